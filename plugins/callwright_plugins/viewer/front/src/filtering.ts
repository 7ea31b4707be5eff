/**
 * Filters of exported pages: the same language as `index/filtering.py`, over rows in memory.
 * A test types the same filters into a served and an exported page and holds the two equal.
 */

import type { Row } from "./types";

const TEXTS = ["id", "task", "group", "structure", "failure", "stage", "branch", "query"];
const NUMBERS = ["n", "step", "sample", "depth", "total", "advantage", "calls", "failed"];
const FLAGS = ["answered", "masked", "truncated"];
const TERM =
  /\s*(-)?(?:([A-Za-z_][\w./-]*?)(!=|<=|>=|<|>|=|:)("(?:[^"\\]|\\.)*"|[^\s"]\S*)|"((?:[^"\\]|\\.)*)"|(\S+))/y;
const YES: Record<string, boolean> = { yes: true, true: true, "1": true, no: false, false: false, "0": false };

export type Test = (row: Row, words: string) => boolean;

/** The test of a filter. Throws an `Error` in words for a condition that makes no sense. */
export function readFilter(text: string, components: string[], marked: Record<string, number[]>): Test {
  const tests: Test[] = [];
  TERM.lastIndex = 0;
  for (let found = TERM.exec(text); found; found = TERM.exec(text)) {
    const [, minus, key, operator, value, phrase, word] = found;
    const test = key
      ? condition(key, operator ?? ":", unquoted(value ?? ""), components, marked)
      : searched(phrase ?? word ?? "");
    tests.push(minus ? (row, words) => !test(row, words) : test);
  }
  return (row, words) => tests.every((test) => test(row, words));
}

/** What a row says under a name. Throws for a name that is none. */
export function valueOf(name: string, components: string[]): (row: Row) => string | number | null {
  const plain = name.replace(/^score\./, "");
  if (name === "tool") return (row) => row.tools.join(" ");
  if (FLAGS.includes(name)) {
    return (row) => {
      const flag = row[name as "answered"];
      return flag === null ? null : Number(flag);
    };
  }
  if (TEXTS.includes(name) || NUMBERS.includes(name)) return (row) => row[name as "id"] ?? null;
  if (components.includes(plain)) return (row) => row.scores[plain] ?? null;
  throw new Error(`There is no column named '${name}'.`);
}

function condition(
  key: string,
  operator: string,
  value: string,
  components: string[],
  marked: Record<string, number[]>,
): Test {
  const equal = operator === "=" || operator === ":";
  if (key === "mark") {
    const any = value === "any" || value === "none";
    const rows = new Set(any ? Object.values(marked).flat() : (marked[value] ?? []));
    const negative = any ? (value === "none") === (operator !== "!=") : operator === "!=";
    return (row) => rows.has(row.n) !== negative;
  }
  const of = valueOf(key, components);
  if (value === "none" && (equal || operator === "!=")) {
    return (row) => (of(row) === null || of(row) === "") === equal;
  }
  if (FLAGS.includes(key)) {
    const wanted = YES[value.toLowerCase()];
    if (wanted === undefined || !(equal || operator === "!=")) throw new Error(`${key} is yes or no: ${key}:yes`);
    return (row) => of(row) !== null && (Boolean(of(row)) === wanted) === equal;
  }
  if (key === "tool" || TEXTS.includes(key)) {
    if (!equal && operator !== "!=") throw new Error(`'${value}' is a text: it is equal (:) or not (!=)`);
    const pattern = glob(value);
    if (key === "tool") return (row) => row.tools.length > 0 && row.tools.some((one) => pattern.test(one)) === equal;
    return (row) => {
      const held = of(row);
      return held !== null && pattern.test(String(held)) === equal;
    };
  }
  const number = Number(value);
  if (value.trim() === "" || Number.isNaN(number)) throw new Error(`${key} is a number: ${key}>0.5`);
  return (row) => {
    const held = of(row);
    if (typeof held !== "number") return false;
    switch (operator) {
      case "<":
        return held < number;
      case ">":
        return held > number;
      case "<=":
        return held <= number;
      case ">=":
        return held >= number;
      default:
        return Math.abs(held - number) < 1e-9 === equal;
    }
  };
}

function searched(text: string): Test {
  const words = unescaped(text).match(/[\p{L}\p{N}_]+/gu);
  if (!words) return () => true;
  // Whole words in a row, of which the last may go on.
  const pattern = new RegExp(
    `(?<![\\p{L}\\p{N}])${words.map((one) => plain(one).replace(/_/g, "[^\\p{L}\\p{N}]+")).join("[^\\p{L}\\p{N}]+")}`,
    "iu",
  );
  return (_, said) => pattern.test(plain(said));
}

/** Without accents, as the index has words. */
function plain(text: string): string {
  return text.normalize("NFD").replace(/\p{M}/gu, "");
}

function glob(value: string): RegExp {
  const source = [...value].map((one) => (one === "*" ? "[^]*" : one.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"))).join("");
  return new RegExp(`^${source}$`, "iu");
}

function unquoted(value: string): string {
  return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? unescaped(value.slice(1, -1)) : value;
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, "$1");
}
