/** The table: search and filters, rows or groups, and the row that is open beside it. */

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, isExported, useAnswer } from "./api";
import { Bars } from "./charts";
import { useKeys } from "./keys";
import { RolloutView } from "./rollout";
import { type Route, go, href } from "./route";
import { GroupView, TaskView } from "./samples";
import type { Facets, Groups, Note, Page, Row, Source } from "./types";
import { count, cut, figure, percent, plain, signed, tone } from "./words";

const PAGE = 100;
const MOST = 500;
const GROUPS = ["task", "group", "step", "failure", "stage", "depth", "structure", "tool", "answered", "branch"];

export function Table({
  route,
  source,
  again,
  notes,
  onNote,
}: {
  route: Route;
  source: Source;
  again: string;
  notes: Map<number, Note>;
  onNote: ((note: Note) => void) | null;
}) {
  const { q = "", sort = "", by = "", n = "", group = "", task = "" } = route.asked;
  const [rows, setRows] = useState<Row[]>([]);
  const [total, setTotal] = useState<number | null>(null);
  const [error, setError] = useState("");
  const [groups, setGroups] = useState<Groups | null>(null);
  const [opened, setOpened] = useState<Row | null>(null);
  const facets = useAnswer<Facets>("facets", { source: source.key, q }, again);
  const wanted = useRef("");
  const loaded = useRef(PAGE);
  const list = useRef<HTMLDivElement>(null);
  const key = `${source.key}|${q}|${sort}|${by}`;

  const load = useCallback(
    async (more: number) => {
      wanted.current = key;
      try {
        if (by) {
          const found = await ask<Groups>("groups", { source: source.key, q, by, sort: GROUP_SORTS.includes(sort.replace("-", "")) ? sort : "-count", limit: more });
          if (wanted.current !== key) return;
          setGroups(found);
          setTotal(found.total);
        } else {
          const made: Row[] = [];
          let found: Page;
          do {
            found = await ask<Page>("rows", { source: source.key, q, sort: sort || "n", offset: made.length, limit: Math.min(MOST, more - made.length) });
            made.push(...found.rows);
          } while (made.length < Math.min(more, found.total) && found.rows.length);
          if (wanted.current !== key) return;
          setRows(made);
          setTotal(found.total);
        }
        setError("");
      } catch (problem) {
        if (wanted.current === key) setError((problem as Error).message);
      }
    },
    [key],
  );
  useEffect(() => {
    loaded.current = PAGE;
    list.current?.scrollTo(0, 0);
  }, [key]);
  useEffect(() => {
    void load(loaded.current);
  }, [load, again]);

  const current = () => rows.find((row) => String(row.n) === n) ?? (opened && String(opened.n) === n ? opened : undefined);
  const change = (asked: Record<string, string>, replace = false) => go({ ...route, asked: { ...route.asked, ...asked } }, replace);
  const add = (term: string) => change({ q: q.includes(term) ? q.replace(term, "").trim() : `${q} ${term}`.trim(), n: "" });
  const components = source.components;
  const narrow = components.length > 8 ? components.slice(0, 8) : components;

  // Keys -------------------------------------------------------------------------------------------------------------
  useKeys((event) => {
    const place = rows.findIndex((row) => String(row.n) === n);
    const move = (by: number) => {
      const next = rows[place < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, place + by))];
      if (next) change({ n: String(next.n), group: "", task: "" }, true);
    };
    const row = current();
    const held = row ? notes.get(row.n) : undefined;
    const mark = (name: string) => row && onNote?.({ n: row.n, mark: held?.mark === name ? "" : name, comment: held?.comment ?? "" });
    const act: Record<string, () => void> = {
      j: () => move(1),
      ArrowDown: () => move(1),
      k: () => move(-1),
      ArrowUp: () => move(-1),
      Enter: () => place < 0 && move(0),
      Escape: () => change(group || task ? { group: "", task: "" } : { n: "" }),
      g: () => row?.group && change({ group: row.group, task: "" }),
      t: () => row?.task && change({ task: row.task, group: "" }),
      m: () => mark("good"),
      x: () => mark("bad"),
      l: () => mark("look"),
      c: () => document.getElementById("comment")?.focus(),
      e: () => document.getElementById("again")?.click(),
    };
    const found = act[event.key];
    if (found && !by) {
      event.preventDefault();
      found();
    }
  });
  useEffect(() => {
    document.querySelector(`tr[data-n="${CSS.escape(n)}"]`)?.scrollIntoView({ block: "nearest" });
  }, [n]);

  const sorted = (name: string) => ({
    "aria-sort": (sort === name ? "ascending" : sort === `-${name}` ? "descending" : "none") as "ascending",
    onClick: () => change({ sort: sort === `-${name}` ? name : `-${name}` }),
  });
  const open = Boolean(n || group || task);

  return (
    <div class={`browse ${open ? "opened" : ""}`}>
      <Sidebar source={source} facets={facets.value} q={q} add={add} change={change} />
      <section class="list" ref={list} onScroll={(event) => {
        const box = event.currentTarget;
        if (!by && total !== null && rows.length < total && box.scrollTop + box.clientHeight > box.scrollHeight - 600 && loaded.current <= rows.length) {
          loaded.current = rows.length + PAGE;
          void load(loaded.current);
        }
      }}>
        <Search q={q} onSearch={(text) => change({ q: text, n: "" }, true)} />
        {error ? (
          <p class="error" role="alert">
            {error}
          </p>
        ) : (
          <p class="count" aria-live="polite">
            <span>
              {total === null ? "…" : by ? count(total, "group") : count(total, "row")}
              {source.reading && " so far: reading"}
            </span>
            <label>
              group by{" "}
              <select value={by} onChange={(event) => change({ by: event.currentTarget.value, n: "", sort: "" })}>
                <option value="">nothing</option>
                {GROUPS.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
          </p>
        )}
        {source.error && <p class="error">{source.error}</p>}
        {by ? (
          <GroupTable groups={groups} by={by} sort={sort} change={change} q={q} />
        ) : (
          <table class="rows">
            <thead>
              <tr>
                <th scope="col" class="number" {...sorted("n")}>
                  row
                </th>
                <th scope="col" class="number wide" {...sorted("step")}>
                  step
                </th>
                <th scope="col" class="what" {...sorted("query")}>
                  task
                </th>
                <th scope="col" class="number" {...sorted("total")}>
                  {source.kind === "tasks" ? "pass" : "reward"}
                </th>
                <th scope="col" class="number wide" {...sorted("advantage")}>
                  advantage
                </th>
                <th scope="col" class="wide" {...sorted("failure")}>
                  {source.kind === "tasks" ? "kind" : "came to"}
                </th>
                <th scope="col" class="number wide" {...sorted("calls")}>
                  calls
                </th>
                {narrow.map((name) => (
                  <th key={name} scope="col" class="component wide" title={name} {...sorted(`score.${name}`)}>
                    <span>{name}</span>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <Line key={row.n} row={row} components={narrow} open={String(row.n) === n} note={notes.get(row.n)} kind={source.kind} to={href({ ...route, asked: { ...route.asked, n: String(row.n), group: "", task: "" } })} />
              ))}
            </tbody>
          </table>
        )}
      </section>
      {open && (
        <section class="detail" aria-label="the open row">
          <nav class="above">
            <button onClick={() => change({ n: "", group: "", task: "" })} title="close (Esc)">
              close
            </button>
            <Around rows={rows} n={n} change={change} />
            {n && (
              <>
                <button class={group ? "on" : ""} title="the samples of this prompt (g)" onClick={() => { const row = current(); if (row?.group) change({ group: group ? "" : row.group, task: "" }); }}>
                  group
                </button>
                <button class={task ? "on" : ""} title="this task over the steps (t)" onClick={() => { const row = current(); if (row?.task) change({ task: task ? "" : row.task, group: "" }); }}>
                  task over time
                </button>
              </>
            )}
          </nav>
          {group ? (
            <GroupView route={route} name={group} again={again} />
          ) : task ? (
            <TaskView route={route} name={task} again={again} />
          ) : (
            <RolloutView
              source={source.key}
              n={Number(n)}
              executes={!isExported && ["run", "evaluation", "tasks"].includes(source.kind)}
              note={notes.get(Number(n)) ?? null}
              onRow={setOpened}
              onNote={onNote}
            />
          )}
        </section>
      )}
    </div>
  );
}

const GROUP_SORTS = ["count", "total", "spread", "answered", "name"];

function Around({ rows, n, change }: { rows: Row[]; n: string; change: (asked: Record<string, string>, replace?: boolean) => void }) {
  const place = rows.findIndex((row) => String(row.n) === n);
  if (place < 0) return null;
  const to = (row: Row | undefined) => row && change({ n: String(row.n), group: "", task: "" }, true);
  return (
    <>
      <button disabled={place === 0} onClick={() => to(rows[place - 1])} title="the one before (k)">
        ↑
      </button>
      <button disabled={place === rows.length - 1} onClick={() => to(rows[place + 1])} title="the next one (j)">
        ↓
      </button>
    </>
  );
}

function Search({ q, onSearch }: { q: string; onSearch: (text: string) => void }) {
  const [text, setText] = useState(q);
  const typed = useRef(0);
  useEffect(() => setText(q), [q]);
  return (
    <input
      id="search"
      type="search"
      value={text}
      spellcheck={false}
      placeholder="words, or step>30 failure:schema* tool:GetPrice score.format<1   ( / )"
      aria-label="search and filter"
      onInput={(event) => {
        const value = event.currentTarget.value;
        setText(value);
        clearTimeout(typed.current);
        typed.current = window.setTimeout(() => onSearch(value), 200);
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter") {
          clearTimeout(typed.current);
          onSearch(event.currentTarget.value);
          event.currentTarget.blur();
        }
        if (event.key === "Escape") event.currentTarget.blur();
        event.stopPropagation();
      }}
    />
  );
}

function Line({ row, components, open, note, kind, to }: { row: Row; components: string[]; open: boolean; note: Note | undefined; kind: string; to: string }) {
  return (
    <tr data-n={row.n} class={open ? "open" : ""} aria-selected={open}>
      <td class="number soft">
        <a href={to} aria-label={`row ${row.n}`}>
          {row.n}
        </a>
        {note?.mark && <i class={`dot ${note.mark}`} title={note.mark} />}
        {note?.comment && !note.mark && <i class="dot comment" title="comment" />}
      </td>
      <td class="number wide">{row.step ?? (row.sample !== null ? `·${row.sample}` : "")}</td>
      <td class="what">
        <a href={to} tabIndex={-1}>
          {plain(cut(row.query || row.id, 200))}
          <small class="mono">{plain(row.task)}</small>
        </a>
      </td>
      <td class={`number total ${row.masked ? "unknown" : tone(row.total ?? (row.answered === null ? null : Number(row.answered)), 0, 1)}`}>
        {row.masked ? "masked" : row.total !== null ? figure(row.total) : row.answered === null ? "" : row.answered ? "right" : "wrong"}
      </td>
      <td class="number wide">{row.advantage === null ? "" : signed(row.advantage)}</td>
      <td class="wide failure">{kind === "tasks" ? row.stage : row.failure ? plain(row.failure) : row.stage === "done" || row.answered ? <span class="full">right</span> : (row.stage ?? "")}</td>
      <td class="number wide">
        {row.calls ?? ""}
        {row.failed ? <span class="none"> {row.failed}✗</span> : null}
      </td>
      {components.map((name) => (
        <td key={name} class={`component wide ${tone(row.scores[name] ?? null, 0, 1)}`} title={`${name} ${figure(row.scores[name])}`}>
          <i />
        </td>
      ))}
    </tr>
  );
}

function GroupTable({ groups, by, sort, change, q }: { groups: Groups | null; by: string; sort: string; change: (asked: Record<string, string>) => void; q: string }) {
  if (!groups) return null;
  const most = Math.max(1, ...groups.rows.map((row) => row.count));
  const sorted = (name: string) => ({
    "aria-sort": (sort === name ? "ascending" : sort === `-${name}` || (!sort && name === "count") ? "descending" : "none") as "ascending",
    onClick: () => change({ sort: sort === `-${name}` ? name : `-${name}` }),
  });
  return (
    <table class="rows groups">
      <thead>
        <tr>
          <th scope="col" class="what" {...sorted("name")}>
            {by}
          </th>
          <th scope="col" class="number" {...sorted("count")}>
            rows
          </th>
          <th scope="col" class="number" {...sorted("total")}>
            mean reward
          </th>
          <th scope="col" class="number wide" {...sorted("spread")}>
            deviation
          </th>
          <th scope="col" class="number wide">
            range
          </th>
          <th scope="col" class="number" {...sorted("answered")}>
            right
          </th>
        </tr>
      </thead>
      <tbody>
        {groups.rows.map((row) => {
          const name = row.name === null || row.name === "" ? "none" : by === "answered" ? (row.name ? "yes" : "no") : String(row.name);
          const term = `${by}:${/[\s"]/.test(name) ? JSON.stringify(name) : name}`;
          return (
            <tr key={name} tabIndex={0} onClick={() => change(by === "group" ? { by: "", group: name, n: String(row.first), q: term } : { by: "", q: `${q} ${term}`.trim() })}>
              <td class="what mono">{plain(cut(name, 120))}</td>
              <td class="number">
                <meter min={0} max={1} value={row.count / most} /> {row.count.toLocaleString("en")}
              </td>
              <td class={`number total ${tone(row.mean, 0, 1)}`}>{figure(row.mean)}</td>
              <td class="number wide">{figure(row.spread)}</td>
              <td class="number wide soft">{row.low === null ? "" : `${figure(row.low)} … ${figure(row.high)}`}</td>
              <td class="number">{percent(row.answered)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Sidebar({ source, facets, q, add, change }: { source: Source; facets: Facets | null; q: string; add: (term: string) => void; change: (asked: Record<string, string>) => void }) {
  const shownFacets = useMemo(() => Object.entries(facets?.facets ?? {}), [facets]);
  return (
    <aside class="facets" aria-label="filters">
      {facets?.totals && facets.totals.high > facets.totals.low && (
        <section>
          <h3>{source.kind === "tasks" ? "pass rate" : "reward"}</h3>
          <Bars of={facets.totals} label="totals" onPick={(low, high) => add(`total>=${round(low)} total<=${round(high)}`)} />
        </section>
      )}
      {shownFacets.map(([name, values]) => (
        <section key={name}>
          <h3>{source.kind === "tasks" && name === "stage" ? "kind" : source.kind === "tasks" && name === "branch" ? "world" : name}</h3>
          <ul>
            {values.map((one) => {
              const value = String(one.value);
              const term = `${name}:${/[\s"]/.test(value) ? JSON.stringify(value) : value}`;
              return (
                <li key={value}>
                  <button class={q.includes(term) ? "on" : ""} aria-pressed={q.includes(term)} onClick={() => add(term)}>
                    <span>{plain(cut(value, 60))}</span>
                    <small>{one.count.toLocaleString("en")}</small>
                  </button>
                </li>
              );
            })}
          </ul>
        </section>
      ))}
      {q && (
        <button class="link" onClick={() => change({ q: "" })}>
          clear all filters
        </button>
      )}
    </aside>
  );
}

const round = (value: number) => Number(value.toFixed(6));
