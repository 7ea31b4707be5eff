/** A rollout: its conversation, what its calls came to, and what it was worth, with evidence at its place. */

import { Fragment } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ExecuteAgain, WhatChanged, together } from "./again";
import { useAnswer } from "./api";
import { Json } from "./json";
import type { Call, Document, MadeAgain, Mark, Note, Rollout, Row, Said, Score } from "./types";
import { cut, figure, plain, shown, signed, tone } from "./words";

const LONG = 6000;

export function RolloutView({
  source,
  n,
  executes,
  note,
  onRow,
  onNote,
}: {
  source: string;
  n: number;
  /** Whether rows of this source can be executed again. */
  executes: boolean;
  note: Note | null;
  /** Told of the row once it is there: it may be none of those that the table has loaded. */
  onRow: (row: Row) => void;
  onNote: ((note: Note) => void) | null;
}) {
  const { value, error } = useAnswer<Rollout>("rollout", { source, n });
  const [picked, setPicked] = useState<string>("");
  const [made, setMade] = useState<MadeAgain | null>(null);
  useEffect(() => {
    setPicked("");
    setMade(null);
  }, [source, n]);
  // Before it is painted: a key that is pressed on sight is about this row, whether or not the table has it yet.
  useLayoutEffect(() => {
    if (value?.n === n) onRow(value);
  }, [value, n]);
  if (error) return <p class="error">{error}</p>;
  if (!value || value.n !== n) return <p class="soft pad">…</p>;
  const told = { ...value.document, calls: together(value.document.calls, made) };
  return (
    <article class="rollout" data-n={n}>
      <Head row={value} />
      {told.masked && <p class="notice">masked: {plain(told.masked)}</p>}
      <Notes note={note} n={n} onNote={onNote} />
      {executes && <ExecuteAgain key={n} source={source} n={n} made={made} onMade={setMade} />}
      <div class="parts">
        <section class="talk" aria-label="conversation">
          <Conversation of={told} picked={picked} onPick={setPicked} />
        </section>
        <aside class="worth" aria-label="reward">
          <Scores of={told} row={value} picked={picked} onPick={setPicked} />
          <Answers of={told} />
          {told.has_tokens && <Tokens source={source} n={n} />}
          <More of={told} />
        </aside>
      </div>
    </article>
  );
}

function Head({ row }: { row: Row }) {
  const parts = [
    row.step !== null && `step ${row.step}`,
    row.sample !== null && `sample ${row.sample}`,
    row.depth !== null && `depth ${row.depth}`,
    row.structure,
    row.branch,
    row.truncated && "cut off",
  ].filter(Boolean);
  return (
    <header class="head">
      <h2>{plain(row.query || row.task || row.id)}</h2>
      <p class="soft">
        <span class="mono">{plain(row.task || row.id)}</span> · {parts.join(" · ")}
      </p>
      <p class="figures">
        {row.total !== null && (
          <span class={`total ${tone(row.total, 0, 1)}`}>
            {figure(row.total)} <small>reward</small>
          </span>
        )}
        {row.advantage !== null && (
          <span>
            {signed(row.advantage)} <small>advantage</small>
          </span>
        )}
        {row.answered !== null && (
          <span class={row.answered ? "full" : "none"}>
            {row.answered ? "right" : "wrong"} <small>{row.failure || "answer"}</small>
          </span>
        )}
      </p>
    </header>
  );
}

function Notes({ note, n, onNote }: { note: Note | null; n: number; onNote: ((note: Note) => void) | null }) {
  const written = note?.comment ?? "";
  const [comment, setComment] = useState(written);
  const dropped = useRef(false);
  // Of a note with a mark alone and of no note the words are the same: what is being typed stays.
  useEffect(() => setComment(written), [n, written]);
  if (!onNote) return note?.comment || note?.mark ? <p class="notice">{`${note.mark} ${plain(note.comment)}`}</p> : null;
  const mark = note?.mark ?? "";
  return (
    <div class="notes">
      {(["good", "bad", "look"] as const).map((one) => (
        <button
          key={one}
          class={`mark ${one}`}
          aria-pressed={mark === one}
          onClick={() => onNote({ n, mark: mark === one ? "" : one, comment })}
        >
          {one}
        </button>
      ))}
      <input
        id="comment"
        type="text"
        placeholder="comment"
        aria-label="comment"
        value={comment}
        onInput={(event) => setComment(event.currentTarget.value)}
        onBlur={(event) => {
          const typed = event.currentTarget.value;
          if (dropped.current) setComment(written);
          else if (typed !== written) onNote({ n, mark, comment: typed });
          dropped.current = false;
        }}
        onKeyDown={(event) => {
          dropped.current = event.key === "Escape";
          if (event.key === "Enter" || event.key === "Escape") event.currentTarget.blur();
          event.stopPropagation();
        }}
      />
    </div>
  );
}

// The conversation -----------------------------------------------------------------------------------------------------

export function Conversation({ of, picked, onPick }: { of: Document; picked: string; onPick: (key: string) => void }) {
  return (
    <>
      {of.conversation.map((one, place) => (
        <Message key={place} said={one} calls={of.calls} picked={picked} onPick={onPick} />
      ))}
      {of.conversation.every((one) => !one.calls.length) && of.calls.length > 0 && <Calls calls={of.calls} numbers={of.calls.map((_, n) => n)} />}
    </>
  );
}

function Message({ said, calls, picked, onPick }: { said: Said; calls: Call[]; picked: string; onPick: (key: string) => void }) {
  const folded = said.role === "system" || said.role === "prompt";
  const [open, setOpen] = useState(!folded);
  const [whole, setWhole] = useState(false);
  const long = said.text.length > LONG && !whole;
  return (
    <div class={`said ${said.role} ${said.loss ? "loss" : ""}`}>
      <div class="who">
        <button class="fold" aria-expanded={open} onClick={() => setOpen(!open)}>
          {plain(said.role)}
          {said.name && <span class="mono"> {plain(said.name)}</span>}
        </button>
        {said.loss && <span class="tag" title="the loss is over these tokens">loss</span>}
        {folded && !open && <span class="soft peek">{cut(plain(said.text), 120)}</span>}
      </div>
      {open && said.text && (
        <pre tabIndex={0}>
          <Marked text={long ? said.text.slice(0, LONG) : said.text} marks={said.marks} picked={picked} onPick={onPick} />
          {long && (
            <button class="link" onClick={() => setWhole(true)}>
              {(said.text.length - LONG).toLocaleString("en")} more characters
            </button>
          )}
        </pre>
      )}
      {open && said.cut ? <p class="soft">{said.cut.toLocaleString("en")} characters are in the file alone</p> : null}
      {said.asked?.map((one) => (
        <p class="asked mono" key={one.id}>
          {plain(one.name)}(<span class="soft">{cut(plain(one.arguments), 400)}</span>)
        </p>
      ))}
      {said.calls.length > 0 && <Calls calls={calls} numbers={said.calls} />}
    </div>
  );
}

/** A text with evidence at its place: stretches may overlap, so it is cut wherever one begins or ends. */
function Marked({ text, marks, picked, onPick }: { text: string; marks: Mark[]; picked: string; onPick: (key: string) => void }) {
  if (!marks.length) return <>{plain(text)}</>;
  const cuts = [...new Set([0, text.length, ...marks.flatMap(([start, end]) => [start, end])])].filter((one) => one <= text.length).sort((a, b) => a - b);
  return (
    <>
      {cuts.slice(0, -1).map((start, place) => {
        const end = cuts[place + 1] ?? text.length;
        const over = marks.filter((one) => one[0] <= start && one[1] >= end);
        const part = plain(text.slice(start, end));
        if (!over.length) return <Fragment key={start}>{part}</Fragment>;
        const keys = over.map((one) => `${one[2]}/${one[3]}`);
        return (
          <mark key={start} class={keys.includes(picked) ? "picked" : ""} title={over.map((one) => one[2]).join(", ")} onClick={() => onPick(keys[0] ?? "")}>
            {part}
          </mark>
        );
      })}
    </>
  );
}

function Calls({ calls, numbers }: { calls: Call[]; numbers: number[] }) {
  return (
    <ol class="calls">
      {numbers.map((number) => {
        const call = calls[number];
        return call ? <CallView key={number} call={call} /> : null;
      })}
    </ol>
  );
}

function CallView({ call }: { call: Call }) {
  const ok = call.kind === "ok" || call.kind === undefined;
  const executed = ok || call.kind === "empty" || call.kind === "partial";
  const given = call.arguments && typeof call.arguments === "object" ? Object.entries(call.arguments) : [];
  return (
    <li class={executed ? "ok" : "failed"}>
      <div class="call">
        <span class="tool mono">{plain(call.tool ?? `call ${call.call ?? ""}`)}</span>
        {given.map(([name, value]) => (
          <span class="argument mono" key={name}>
            <span class="soft">{plain(name)}=</span>
            {cut(plain(shown(value)), 200)}
          </span>
        ))}
        {call.changed && <span class="tag world" title="the state of the world is another one after this call">changed the world</span>}
        {call.by && <span class="tag">by the {plain(call.by)}</span>}
      </div>
      <div class="outcome">
        {!ok && (
          <p class={executed ? "soft" : "why"}>
            {plain(call.kind ?? "")}
            {call.code ? ` ${plain(call.code)}` : ""}
            {call.message ? `: ${plain(call.message)}` : ""}
          </p>
        )}
        {call.value !== undefined && <Json value={call.value} depth={1} />}
        {call.size !== undefined && (
          <p class="soft">a value of {call.size.toLocaleString("en")} characters was not kept: rollout_values keeps longer ones, and execute again shows it</p>
        )}
        {call.notices?.map((one) => (
          <p key={one} class="soft">
            {plain(one)}
          </p>
        ))}
        {call.changes && Object.keys(call.changes).length > 0 && <WhatChanged of={call.changes} />}
        {call.value === undefined && call.size === undefined && ok && call.digest && <p class="soft mono">value {plain(call.digest)}</p>}
      </div>
    </li>
  );
}

// What it was worth ----------------------------------------------------------------------------------------------------

function Scores({ of, row, picked, onPick }: { of: Document; row: Row; picked: string; onPick: (key: string) => void }) {
  if (!of.scores.length) return null;
  return (
    <section class="scores">
      <h3>
        Reward <span>{figure(row.total)}</span>
      </h3>
      {of.scores.map((score) => (
        <ScoreView key={score.name} score={score} picked={picked} onPick={onPick} />
      ))}
    </section>
  );
}

function ScoreView({ score, picked, onPick }: { score: Score; picked: string; onPick: (key: string) => void }) {
  const [most, setMost] = useState(6);
  const low = score.low ?? 0;
  const high = score.high ?? 1;
  const share = score.value === null || high <= low ? 0 : Math.max(0, Math.min(1, (score.value - low) / (high - low)));
  const reasons = score.closed ? [] : score.evidence;
  return (
    <div class={`score ${score.closed ? "closed" : tone(score.value, score.low, score.high)}`}>
      <div class="line">
        <span class="name">{plain(score.name)}</span>
        <meter min={0} max={1} value={share} aria-label={`${score.name} ${figure(score.value)} of ${figure(high)}`} />
        <span class="value">
          {score.closed ? "not reached" : `${figure(score.value)} / ${figure(high)}`}
          {score.weight !== null && score.weight !== 1 && !score.closed && <small> × {figure(score.weight)}</small>}
        </span>
      </div>
      {reasons.length > 0 && (
        <ul>
          {reasons.slice(0, most).map((one, number) => {
            const key = `${score.name}/${number}`;
            return (
              <li key={key} class={picked === key ? "picked" : ""}>
                <button onClick={() => onPick(picked === key ? "" : key)}>
                  {plain(one.reason ?? one.code ?? "")}
                  {one.expected !== undefined && !(one.reason ?? "").includes("expected") && (
                    <span class="pair">
                      <span>
                        <small>expected</small> {plain(cut(shown(one.expected), 300))}
                      </span>
                      <span>
                        <small>found</small> {plain(cut(shown(one.found), 300))}
                      </span>
                    </span>
                  )}
                </button>
              </li>
            );
          })}
          {reasons.length > most && (
            <li>
              <button class="link" onClick={() => setMost(1000)}>
                {reasons.length - most} more
              </button>
            </li>
          )}
        </ul>
      )}
    </div>
  );
}

function Answers({ of }: { of: Document }) {
  const some = of.expected !== undefined && of.expected !== null;
  const found = of.found !== undefined && of.found !== null;
  if (!some && !found && !of.plan && !of.goal && !of.steps) return null;
  return (
    <section>
      {(some || found) && <h3>{found ? "Expected beside found" : "Right answer"}</h3>}
      {(some || found) && (
        <div class="beside">
          {some && (
            <div>
              {found && <small>expected</small>}
              <Json value={of.expected} />
            </div>
          )}
          {found && (
            <div>
              <small>found</small>
              <Json value={of.found} />
            </div>
          )}
        </div>
      )}
      {(["plan", "goal", "steps"] as const).map((name) =>
        of[name] ? (
          <details key={name}>
            <summary>{name === "steps" ? "steps that are due" : name}</summary>
            <Json value={of[name]} />
          </details>
        ) : null,
      )}
    </section>
  );
}

function Tokens({ source, n }: { source: string; n: number }) {
  const [open, setOpen] = useState(false);
  const { value, error } = useAnswer<[string, number | null][]>("tokens", open ? { source, n } : null);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>tokens and log-probabilities</summary>
      {error && <p class="error">{error}</p>}
      <p class="tokens mono">
        {value?.map(([text, logprob], place) => (
          <span
            key={place}
            class={logprob === null ? "observed" : `p${Math.min(5, Math.floor(-logprob))}`}
            title={logprob === null ? "an observation: no loss" : `${figure(logprob)} nats, ${(100 * Math.exp(logprob)).toFixed(1)}%`}
          >
            {plain(text)}
          </span>
        ))}
      </p>
    </details>
  );
}

function More({ of }: { of: Document }) {
  return (
    <details>
      <summary>the rest of the row</summary>
      <Json value={of.more} />
    </details>
  );
}
