/** The frame: what there is to look at, its pages, and the keys. */

import { render } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { isExported, send, useAnswer } from "./api";
import { useKeys } from "./keys";
import { ComparePage, CurvesPage, LabPage, SynthesisPage } from "./pages";
import { type Place, type Route, go, href, useRoute } from "./route";
import { Table } from "./table";
import type { Note, Source, State } from "./types";
import { count, plain } from "./words";

const EVERY = 1500;
const KINDS: Record<Source["kind"], string> = { run: "run", evaluation: "evaluation", scored: "scored rows", tasks: "tasks", log: "traces" };
const KEYS: [string, string][] = [
  ["/", "search and filter"],
  ["j k", "next and previous row"],
  ["g", "the samples of its prompt, side by side"],
  ["t", "its task over the steps"],
  ["m x l", "mark as good, bad, to look at"],
  ["c", "comment"],
  ["e", "execute again: every value, and what each call changed"],
  ["Esc", "close, go back"],
  ["1 – 5", "the pages"],
  ["[ ]", "the source before, the next one"],
  ["d", "light, dark, as the system"],
  ["?", "these keys"],
];

function App() {
  const route = useRoute();
  const [tick, setTick] = useState(0);
  const state = useAnswer<State>("state", {}, tick);
  const [theme, setTheme] = useState(stored("theme") ?? "");
  const [help, setHelp] = useState(false);
  const sources = state.value?.sources ?? [];
  const source = sources.find((one) => one.key === route.source) ?? null;
  const growing = source ? `${source.rows} ${source.reading} ${source.stamp}` : "";
  const notes = useNotes(source?.key ?? "");
  const places = source ? placesOf(source, sources) : [];

  useEffect(() => {
    if (isExported) return;
    const timer = setInterval(() => !document.hidden && setTick((one) => one + 1), EVERY);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    try {
      localStorage.setItem("theme", theme);
    } catch {
      // a page opened from a folder may keep nothing
    }
  }, [theme]);
  useEffect(() => {
    const only = sources[0];
    if (!route.source && sources.length === 1 && only) go({ source: only.key, place: "rows", asked: {} }, true);
  }, [sources.length, route.source]);
  useEffect(() => {
    document.title = source ? `${source.name} – callwright view` : "callwright view";
  }, [source?.name]);
  useKeys((event) => {
    const number = Number(event.key);
    const here = sources.findIndex((one) => one.key === route.source);
    const next = (by: number) => {
      const one = sources[(here + by + sources.length) % sources.length];
      if (one) go({ source: one.key, place: placesOf(one, sources).some(([name]) => name === route.place) ? route.place : "rows", asked: {} });
    };
    if (event.key === "/") {
      event.preventDefault();
      if (route.place !== "rows" && source) go({ source: source.key, place: "rows", asked: {} });
      setTimeout(() => document.getElementById("search")?.focus(), 30);
    } else if (event.key === "?") setHelp(!help);
    else if (event.key === "Escape" && help) setHelp(false);
    else if (event.key === "d") setTheme(theme === "" ? "dark" : theme === "dark" ? "light" : "");
    else if (event.key === "[") next(-1);
    else if (event.key === "]") next(1);
    else if (number >= 1 && number <= places.length && source) go({ source: source.key, place: places[number - 1]![0], asked: {} });
  });

  return (
    <>
      <nav class="top">
        <a class="brand" href="#/" title="everything there is">
          callwright <span>view</span>
        </a>
        {source && (
          <select class="source" aria-label="source" value={source.key} onChange={(event) => go({ source: event.currentTarget.value, place: "rows", asked: {} })}>
            {sources.map((one) => (
              <option key={one.key} value={one.key}>
                {one.name} ({KINDS[one.kind]})
              </option>
            ))}
          </select>
        )}
        <div class="tabs" role="tablist">
          {source &&
            places.map(([name, label]) => (
              <a key={name} role="tab" aria-selected={route.place === name} href={href({ source: source.key, place: name, asked: {} })}>
                {label}
              </a>
            ))}
        </div>
        <span class="spacer" />
        {source?.live && <span class="live">live</span>}
        {state.error && <span class="error">{isExported ? state.error : "the server is gone"}</span>}
        {source && !isExported && <Export source={source} notes={notes.all} />}
        <button class="quiet" onClick={() => setHelp(!help)} title="keys (?)" aria-label="keys">
          ?
        </button>
      </nav>
      {help && (
        <div class="help" role="dialog" aria-label="keys" onClick={() => setHelp(false)}>
          <dl>
            {KEYS.map(([key, what]) => (
              <div key={key}>
                <dt>
                  <kbd>{key}</kbd>
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
        </div>
      )}
      <main>
        {!source ? (
          <Home sources={sources} known={state.value !== null} unknown={route.source} />
        ) : route.place === "curves" ? (
          <CurvesPage key={source.key} route={route} sources={sources} again={source.stamp} />
        ) : route.place === "compare" ? (
          <ComparePage route={route} sources={sources} again={growing} />
        ) : route.place === "lab" ? (
          <LabPage route={route} again={growing} />
        ) : route.place === "synthesis" ? (
          <SynthesisPage route={route} again={growing} />
        ) : (
          <Table key={source.key} route={route} source={source} again={`${growing} ${notes.version}`} notes={notes.all} onNote={isExported ? null : notes.write} />
        )}
      </main>
    </>
  );
}

function placesOf(source: Source, sources: Source[]): [Place, string][] {
  return [
    ["rows", source.kind === "tasks" ? "tasks" : "rollouts"],
    ...(source.kind === "run" ? ([["curves", "curves"]] as [Place, string][]) : []),
    ...(source.kind === "tasks" ? ([["synthesis", "synthesis"]] as [Place, string][]) : []),
    ...(sources.length > 1 ? ([["compare", "compare"]] as [Place, string][]) : []),
    ...(source.kind === "run" || source.kind === "evaluation" ? ([["lab", "disagreement"]] as [Place, string][]) : []),
  ];
}

function stored(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function useNotes(source: string): { all: Map<number, Note>; version: number; write: (note: Note) => void } {
  const [version, setVersion] = useState(0);
  const [problem, setProblem] = useState("");
  const { value } = useAnswer<Note[]>("notes", source ? { source } : null, version);
  const [all, setAll] = useState(new Map<number, Note>());
  // One after another: the last note about a row is the one that counts. What the server said before is older than what is on its way.
  const queue = useRef({ waiting: 0, last: Promise.resolve() });
  useEffect(() => {
    if (!queue.current.waiting) setAll(new Map((value ?? []).map((one) => [one.n, one])));
  }, [value]);
  const write = useCallback(
    (note: Note) => {
      setAll((last) => new Map(last).set(note.n, note));
      const line = queue.current;
      line.waiting++;
      line.last = line.last
        .then(() => send("note", { source, ...note }))
        .catch((error: Error) => setProblem(error.message))
        .then(() => {
          if (!--line.waiting) setVersion((one) => one + 1);
        });
    },
    [source],
  );
  useEffect(() => {
    if (problem) alert(problem);
  }, [problem]);
  return { all, version, write };
}

function Export({ source, notes }: { source: Source; notes: Map<number, Note> }) {
  const marked = [...notes.values()].filter((one) => one.mark).length;
  const [error, setError] = useState("");
  if (!marked || source.kind === "tasks") return null;
  const save = (what: string) => {
    setError("");
    send<{ name: string; text: string }>("export", { source: source.key, what }).then(
      ({ name, text }) => {
        const link = document.createElement("a");
        link.href = `data:application/octet-stream;charset=utf-8,${encodeURIComponent(text)}`;
        link.download = name;
        link.click();
      },
      (problem: Error) => setError(problem.message),
    );
  };
  return (
    <label class="export">
      {error && (
        <span class="error" role="alert">
          {error}
        </span>
      )}
      {count(marked, "mark")}{" "}
      <select
        value=""
        aria-label="export the marked rows"
        onChange={(event) => {
          const what = event.currentTarget.value;
          event.currentTarget.value = "";
          if (what) save(what);
        }}
      >
        <option value="">export as …</option>
        <option value="sft">rows to learn from (SFT)</option>
        <option value="preference">preferences</option>
        <option value="tests">tests</option>
        <option value="lab">probe of the lab</option>
      </select>
    </label>
  );
}

function Home({ sources, known, unknown }: { sources: Source[]; known: boolean; unknown: string }) {
  if (!known) return <p class="soft pad">…</p>;
  return (
    <div class="home page">
      {unknown && <p class="error">There is no {plain(unknown)} here.</p>}
      <h1>{count(sources.length, "source")}</h1>
      <ul>
        {sources.map((one) => (
          <li key={one.key}>
            <a href={href({ source: one.key, place: "rows", asked: {} } as Route)}>
              <b>{plain(one.name)}</b>
              <span class="kind">{KINDS[one.kind]}</span>
              {one.live && <span class="live">live</span>}
              <span class="soft">
                {count(one.rows, "row")}
                {one.reading && " so far"}
              </span>
              <small class="mono">{plain(one.path)}</small>
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}

const root = document.getElementById("app");
if (root) render(<App />, root);
