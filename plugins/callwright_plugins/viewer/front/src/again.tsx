/** A row executed again: whole values, and what each call changed in the world. */

import { useState } from "preact/hooks";
import { ask } from "./api";
import { Json } from "./json";
import type { Call, Changes, MadeAgain } from "./types";
import { cut, plain, shown } from "./words";

/** The button, and what became of it. */
export function ExecuteAgain({ source, n, made, onMade }: { source: string; n: number; made: MadeAgain | null; onMade: (made: MadeAgain) => void }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const execute = () => {
    setBusy(true);
    setError("");
    ask<MadeAgain>("again", { source, n })
      .then(onMade, (problem: Error) => setError(problem.message))
      .then(() => setBusy(false));
  };
  return (
    <p class="again">
      {!made && (
        <button id="again" disabled={busy} onClick={execute} title="in a fresh session of its task: every value, and what each call changed (e)">
          {busy ? "executing …" : "execute again"}
        </button>
      )}
      {error && (
        <span class="error" role="alert">
          {plain(error)}
        </span>
      )}
      {made?.masked && <span class="none">{plain(made.masked)}</span>}
      {made && !made.masked && !made.differences.length && <span class="soft">executed again, as it was</span>}
      {made?.differences.map((one) => (
        <span key={one} class="none">
          {plain(one)}
        </span>
      ))}
    </p>
  );
}

/** The calls of a page with what they came to now; where they are other calls, those of the page. */
export function together(calls: Call[], made: MadeAgain | null): Call[] {
  if (!made || (calls.length && calls.length !== made.calls.length)) return calls;
  return made.calls.map((one, place) => {
    const before = calls[place] ?? {};
    const now: Call = { ...before, ...one };
    if (now.by === "agent") delete now.by;
    if (before.changed !== undefined) now.changed = before.changed;
    if ("value" in one) delete now.size;
    return now;
  });
}

/** What a call changed: a line a row of a table, or JSON where the world is no tables. */
export function WhatChanged({ of }: { of: Changes }) {
  const tables = Object.entries(of);
  return (
    <div class="changes">
      {tables.map(([name, parts]) => (isTable(parts) ? <Table key={name} name={name} parts={parts} /> : <Json key={name} name={name} value={parts} depth={1} />))}
    </div>
  );
}

interface Parts {
  added?: Record<string, unknown>;
  removed?: Record<string, unknown>;
  changed?: Record<string, Record<string, [unknown, unknown]>>;
}

function isTable(parts: unknown): parts is Parts {
  return parts !== null && typeof parts === "object" && !Array.isArray(parts) && Object.keys(parts).every((one) => ["added", "removed", "changed"].includes(one));
}

function Table({ name, parts }: { name: string; parts: Parts }) {
  return (
    <>
      {Object.entries(parts.added ?? {}).map(([key, row]) => (
        <div key={`+${key}`} class="change added">
          <span class="mono">{`+ ${plain(name)} ${plain(key)}`}</span> <Json value={row} depth={2} />
        </div>
      ))}
      {Object.entries(parts.removed ?? {}).map(([key, row]) => (
        <div key={`-${key}`} class="change removed">
          <span class="mono">{`− ${plain(name)} ${plain(key)}`}</span> <Json value={row} depth={2} />
        </div>
      ))}
      {Object.entries(parts.changed ?? {}).map(([key, fields]) => (
        <div key={`~${key}`} class="change">
          <span class="mono">{`${plain(name)} ${plain(key)}`}</span>
          {Object.entries(fields).map(([field, pair]) => (
            <span key={field} class="field">
              <span class="soft mono">{plain(field)}</span> {plain(cut(said(pair[0]), 200))} <span class="soft">→</span> <b>{plain(cut(said(pair[1]), 200))}</b>
            </span>
          ))}
        </div>
      ))}
    </>
  );
}

const said = (value: unknown) => (value === null || value === "" ? "–" : shown(value));
