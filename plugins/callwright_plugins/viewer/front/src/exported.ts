/** Answers of exported pages: data that was written once, filtered, sorted and grouped here. */

import { readFilter, valueOf } from "./filtering";
import type { Agreement, Disagreeing, Facets, GroupRow, Groups, Note, Page, Rollout, Row, Samples, State } from "./types";

const BARS = 24;
const FACETS = ["answered", "failure", "stage", "depth", "structure", "branch"];
const loaded = new Map<string, Promise<unknown>>();
const waiting = new Map<string, (value: unknown) => void>();

declare global {
  interface Window {
    callwrightData?: (name: string, value: unknown) => void;
  }
}

/** The data of a file `data/NAME.js`, loaded once. */
function data<T>(name: string): Promise<T> {
  window.callwrightData ??= (given, value) => waiting.get(given)?.(value);
  let found = loaded.get(name);
  if (!found) {
    found = new Promise((resolve, reject) => {
      waiting.set(name, resolve);
      const script = document.createElement("script");
      script.src = `data/${encodeURIComponent(name)}.js`;
      script.onerror = () => reject(new Error(`this was not exported: ${name}`));
      document.head.append(script);
    });
    loaded.set(name, found);
  }
  return found as Promise<T>;
}

interface Part {
  documents: Record<string, Rollout>;
  tokens: Record<string, [string, number | null][]>;
}

async function partOf(key: string, n: number): Promise<Part> {
  const [state, rows] = await Promise.all([data<State>("state"), data<Row[]>(`${key}--rows`)]);
  const size = state.sources.find((one) => one.key === key)?.part ?? 50;
  const place = rows.findIndex((row) => row.n === n);
  if (place < 0) throw new Error(`row ${n} was not exported`);
  return data<Part>(`${key}--part-${Math.floor(place / size)}`);
}

async function rolloutOf(key: string, n: number): Promise<Rollout> {
  const found = (await partOf(key, n)).documents[n];
  if (!found) throw new Error(`there is no row ${n}`);
  return found;
}

async function filtered(key: string, text: string): Promise<Row[]> {
  const [state, rows] = await Promise.all([data<State>("state"), data<Row[]>(`${key}--rows`)]);
  const components = state.sources.find((one) => one.key === key)?.components ?? [];
  const notes = await data<Note[]>(`${key}--notes`);
  const marked: Record<string, number[]> = { comment: notes.filter((one) => one.comment).map((one) => one.n) };
  for (const note of notes) if (note.mark) (marked[note.mark] ??= []).push(note.n);
  const words: Record<string, string> = text ? await data(`${key}--words`) : {};
  const test = readFilter(text, components, marked);
  return rows.filter((row) => test(row, words[row.n] ?? ""));
}

async function componentsOf(key: string): Promise<string[]> {
  return (await data<State>("state")).sources.find((one) => one.key === key)?.components ?? [];
}

function ordered(rows: Row[], sort: string, components: string[]): Row[] {
  const down = sort.startsWith("-");
  const of = valueOf(sort.replace(/^-/, "") || "n", components);
  return [...rows].sort((left, right) => {
    const a = of(left);
    const b = of(right);
    if (a === null || b === null) return a === b ? left.n - right.n : a === null ? 1 : -1;
    const order = a < b ? -1 : a > b ? 1 : 0;
    return (down ? -order : order) || left.n - right.n;
  });
}

function groupsOf(rows: Row[], by: string, sort: string, components: string[]): GroupRow[] {
  const of = valueOf(by, components);
  const held = new Map<string | number | null, Row[]>();
  for (const row of rows) {
    const name = of(row);
    const some = held.get(name);
    if (some) some.push(row);
    else held.set(name, [row]);
  }
  const made = [...held].map(([name, some]) => {
    const totals = some.map((row) => row.total).filter((one): one is number => one !== null);
    const right = some.map((row) => row.answered).filter((one): one is boolean => one !== null);
    const mean = totals.length ? sum(totals) / totals.length : null;
    return {
      name,
      count: some.length,
      mean,
      low: totals.length ? Math.min(...totals) : null,
      high: totals.length ? Math.max(...totals) : null,
      spread: mean === null ? null : Math.sqrt(Math.max(0, sum(totals.map((one) => one * one)) / totals.length - mean * mean)),
      answered: right.length ? right.filter(Boolean).length / right.length : null,
      first: some[0]!.n,
    };
  });
  const down = sort.startsWith("-");
  const key = ({ count: "count", total: "mean", spread: "spread", answered: "answered", name: "name" } as const)[
    sort.replace(/^-/, "") as "count"
  ];
  return made.sort((left, right) => {
    const a = left[key] ?? -Infinity;
    const b = right[key] ?? -Infinity;
    const order = a < b ? -1 : a > b ? 1 : 0;
    return (down ? -order : order) || String(left.name).localeCompare(String(right.name));
  });
}

function facetsOf(rows: Row[], text: string, components: string[]): Facets {
  const facets: Facets["facets"] = {};
  for (const name of FACETS) {
    const some = groupsOf(
      rows.filter((row) => ![null, ""].includes(valueOf(name, components)(row) as string)),
      name,
      "-count",
      components,
    );
    if (some.length > 1 || (some.length && text)) {
      facets[name] = some.slice(0, 12).map((one) => ({
        value: name === "answered" ? (one.name ? "yes" : "no") : one.name!,
        count: one.count,
        mean: one.mean,
      }));
    }
  }
  const tools = new Map<string, number>();
  for (const row of rows) for (const tool of row.tools) tools.set(tool, (tools.get(tool) ?? 0) + 1);
  if (tools.size) {
    facets.tool = [...tools]
      .sort((a, b) => b[1] - a[1])
      .slice(0, 12)
      .map(([value, count]) => ({ value, count, mean: null }));
  }
  const totals = rows.map((row) => row.total).filter((one): one is number => one !== null);
  const steps = rows.map((row) => row.step).filter((one): one is number => one !== null);
  return { facets, totals: barsOf(totals), steps: steps.length ? [Math.min(...steps), Math.max(...steps)] : [null, null] };
}

function barsOf(totals: number[]): Facets["totals"] {
  if (!totals.length) return null;
  const low = Math.min(...totals);
  const high = Math.max(...totals);
  const width = (high - low) / BARS || 1;
  const bars = new Array<number>(BARS).fill(0);
  for (const total of totals) {
    const place = Math.max(0, Math.min(BARS - 1, Math.trunc((total - low) / width)));
    bars[place] = (bars[place] ?? 0) + 1;
  }
  return { low, high, bars };
}

const sum = (values: number[]): number => values.reduce((total, one) => total + one, 0);

async function samplesOf(key: string, name: string): Promise<Samples> {
  const rows = (await data<Row[]>(`${key}--rows`)).filter((row) => row.group === name).slice(0, 32);
  const documents = await Promise.all(rows.map((row) => rolloutOf(key, row.n)));
  const totals = rows.map((row) => row.total).filter((one): one is number => one !== null);
  const mean = totals.length ? sum(totals) / totals.length : null;
  return {
    name,
    rows: documents,
    mean,
    deviation: mean === null ? null : Math.sqrt(sum(totals.map((one) => (one - mean) ** 2)) / totals.length),
  };
}

/** The answer to a question, as the server would give it. */
export async function answer(question: string, asked: Record<string, string>): Promise<unknown> {
  const key = asked.source ?? "";
  const text = asked.q ?? "";
  const offset = Number(asked.offset ?? 0);
  const limit = Number(asked.limit ?? 100);
  switch (question) {
    case "state":
      return data("state");
    case "rows": {
      const rows = ordered(await filtered(key, text), asked.sort || "n", await componentsOf(key));
      return { total: rows.length, offset, rows: rows.slice(offset, offset + limit) } satisfies Page;
    }
    case "groups": {
      const by = asked.by || "task";
      const rows = groupsOf(await filtered(key, text), by, asked.sort || "-count", await componentsOf(key));
      return { total: rows.length, offset, by, rows: rows.slice(offset, offset + limit) } satisfies Groups;
    }
    case "facets":
      return facetsOf(await filtered(key, text), text, await componentsOf(key));
    case "rollout":
      return rolloutOf(key, Number(asked.n));
    case "tokens":
      return (await partOf(key, Number(asked.n))).tokens[Number(asked.n)] ?? [];
    case "group":
      return samplesOf(key, asked.name ?? "");
    case "task":
      return { task: asked.name, rows: (await data<Row[]>(`${key}--rows`)).filter((row) => row.task === asked.name) };
    case "compare":
      if (text) throw new Error("exported pages compare everything: start callwright view for a part");
      return data(`${asked.first}--${asked.second}--compare`);
    case "disagreeing": {
      const found = (await data<Record<string, Disagreeing>>(`${key}--disagreeing`))[`${asked.first}|${asked.second}`];
      return found ?? { count: 0, pairs: [] };
    }
    case "agreement":
      return data<Agreement>(`${key}--agreement`);
    default:
      return data(`${key}--${question}`);
  }
}
