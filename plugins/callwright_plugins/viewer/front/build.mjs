// Builds static/app.js. Its first line is a digest of what it was made from: a test finds sources that were not built.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { build } from "esbuild";

const sources = [...readdirSync("src").sort().map((name) => `src/${name}`), "package-lock.json"];
const digest = createHash("sha256");
for (const path of sources) digest.update(readFileSync(path));

await build({
  entryPoints: ["src/app.tsx"],
  outfile: "../static/app.js",
  bundle: true,
  minify: true,
  target: "es2021",
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "ascii",
  legalComments: "eof",
  banner: { js: `/* callwright view, made of front/ ${digest.digest("hex")}; preact is MIT, (c) 2015-present Jason Miller */` },
});
