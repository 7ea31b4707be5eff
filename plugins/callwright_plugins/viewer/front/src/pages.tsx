/** The other pages of a source: curves, comparison, disagreement of rewards, synthesis. */

import { useEffect, useMemo, useState } from "preact/hooks";
import { ask, useAnswer } from "./api";
import { Bars, Difference, type Line, LineChart } from "./charts";
import { Json } from "./json";
import { type Route, go, href } from "./route";
import type { Agreement, Compared, Curves, Disagreeing, Funnel, Source } from "./types";
import { cut, figure, percent, plain, shown } from "./words";

// Curves ---------------------------------------------------------------------------------------------------------------

/** Exponentially weighted, corrected for its start; what is missing is passed over. */
function smooth(values: (number | null)[], weight: number): (number | null)[] {
  let mean = 0;
  let mass = 0;
  return values.map((value) => {
    if (value === null) return null;
    mean = weight * mean + (1 - weight) * value;
    mass = weight * mass + (1 - weight);
    return mean / mass;
  });
}

/** The mean of the last `size` values. */
function windowed(values: (number | null)[], size: number): (number | null)[] {
  return values.map((value, place) => {
    if (value === null) return null;
    const some = values.slice(Math.max(0, place - size + 1), place + 1).filter((one): one is number => one !== null);
    return some.reduce((a, b) => a + b, 0) / some.length;
  });
}

const FIRST = ["reward", "answered", "executed", "parsed", "loss", "kl", "entropy", "length", "tokens/s", "memory (GB)", "gradient_norm"];

export function CurvesPage({ route, sources, again }: { route: Route; sources: Source[]; again: string }) {
  const runs = sources.filter((one) => one.kind === "run");
  const { with: beside = "", smooth: how = "ewma", by = "0.6", band = "" } = route.asked;
  const chosen = [route.source, ...beside.split(",").filter(Boolean)];
  const [held, setHeld] = useState<Record<string, Curves>>({});
  const [error, setError] = useState("");
  useEffect(() => {
    let wanted = true;
    Promise.all(chosen.map(async (key) => [key, await ask<Curves>("curves", { source: key })] as const)).then(
      (found) => wanted && setHeld(Object.fromEntries(found)),
      (problem: Error) => wanted && setError(problem.message),
    );
    return () => {
      wanted = false;
    };
  }, [chosen.join(), again]);
  const change = (asked: Record<string, string>) => go({ ...route, asked: { ...route.asked, ...asked } }, true);
  const own = held[route.source];
  const drawn = useMemo(() => {
    const known = chosen.map((key) => [key, held[key]] as const).filter((one): one is readonly [string, Curves] => Boolean(one[1]));
    const steps = [...new Set(known.flatMap(([, one]) => one.steps))].sort((a, b) => a - b);
    const names = [...new Set(known.flatMap(([, one]) => Object.keys(one.figures)))];
    names.sort((a, b) => (FIRST.indexOf(a) + 1 || 99) - (FIRST.indexOf(b) + 1 || 99));
    const smoothed = (values: (number | null)[]) => (how === "none" ? values : how === "window" ? windowed(values, Math.max(1, Number(by))) : smooth(values, Math.min(0.999, Number(by))));
    const charts = names.map((name) => {
      const lines = known
        .filter(([, one]) => one.figures[name])
        .map(([key, one], place): Line => {
          const at = new Map(one.steps.map((step, index) => [step, one.figures[name]?.[index] ?? null]));
          const raw = steps.map((step) => at.get(step) ?? null);
          return { name: key, tint: place % 6, values: smoothed(raw), raw: how === "none" ? undefined : raw };
        });
      return { name, lines: band && lines.length > 1 ? [banded(lines)] : lines };
    });
    return { steps, charts };
  }, [held, how, by, band, chosen.join()]);
  if (error) return <p class="error">{error}</p>;
  if (!own) return <p class="soft pad">…</p>;
  const last = own.steps[own.steps.length - 1];
  return (
    <div class="page">
      <div class="tools">
        <label>
          smoothing{" "}
          <select value={how} onChange={(event) => change({ smooth: event.currentTarget.value, by: event.currentTarget.value === "window" ? "10" : "0.6" })}>
            <option value="none">none</option>
            <option value="ewma">exponential</option>
            <option value="window">window</option>
          </select>
        </label>
        {how !== "none" && (
          <input type="range" aria-label="how much" min={how === "window" ? 1 : 0} max={how === "window" ? 100 : 0.99} step={how === "window" ? 1 : 0.01} value={by} onInput={(event) => change({ by: event.currentTarget.value })} />
        )}
        {runs.length > 1 && (
          <fieldset>
            <legend>beside</legend>
            {runs
              .filter((one) => one.key !== route.source)
              .map((one) => (
                <label key={one.key}>
                  <input
                    type="checkbox"
                    checked={chosen.includes(one.key)}
                    onChange={(event) => change({ with: event.currentTarget.checked ? [...chosen.slice(1), one.key].join(",") : chosen.slice(1).filter((key) => key !== one.key).join(",") })}
                  />
                  {one.name}
                </label>
              ))}
            {chosen.length > 1 && (
              <label>
                <input type="checkbox" checked={Boolean(band)} onChange={(event) => change({ band: event.currentTarget.checked ? "yes" : "" })} />
                as one band (seeds)
              </label>
            )}
          </fieldset>
        )}
      </div>
      {!own.steps.length && <p class="soft">There is no step yet.</p>}
      <Evaluations of={own} />
      <div class="charts">
        {drawn.charts.map((one) => (
          <LineChart key={one.name} title={one.name} steps={drawn.steps} lines={one.lines} onStep={(step) => go({ source: route.source, place: "rows", asked: { q: `step:${step}` } })} />
        ))}
      </div>
      <Time of={own} last={last} />
    </div>
  );
}

/** Runs as one: their mean at each step, between the least and the most. */
function banded(lines: Line[]): Line {
  const at = (place: number) => lines.map((line) => line.values[place]).filter((one): one is number => one != null);
  const over = (pick: (some: number[]) => number) => lines[0]!.values.map((_, place) => (at(place).length ? pick(at(place)) : null));
  return {
    name: `${lines.length} runs`,
    tint: 0,
    values: over((some) => some.reduce((a, b) => a + b, 0) / some.length),
    low: over((some) => Math.min(...some)),
    high: over((some) => Math.max(...some)),
  };
}

function Evaluations({ of }: { of: Curves }) {
  if (!of.evaluations.length) return null;
  const depths = [...new Set(of.evaluations.flatMap((one) => Object.keys(one.by_depth)))].sort((a, b) => Number(a) - Number(b));
  return (
    <section>
      <h3>Evaluations</h3>
      <div class="scroll">
        <table class="figures-table">
          <thead>
            <tr>
              <th scope="col">when</th>
              <th scope="col">all</th>
              {depths.map((depth) => (
                <th scope="col" key={depth}>
                  depth {depth}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {of.evaluations.map((one, place) => (
              <tr key={place}>
                <th scope="row">{one.step === null ? one.name : `step ${one.step}`}</th>
                <td>
                  <b>{percent(one.overall)}</b>
                </td>
                {depths.map((depth) => {
                  const cell = one.by_depth[depth];
                  return (
                    <td key={depth} title={cell ? `[${percent(cell.low)}, ${percent(cell.high)}] of ${cell.n}` : ""}>
                      {percent(cell?.accuracy ?? null)}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Time({ of, last }: { of: Curves; last: number | undefined }) {
  const phases = Object.entries(of.seconds).map(([name, values]) => [name, values.reduce<number>((sum, one) => sum + (one ?? 0), 0)] as const);
  const whole = phases.reduce((sum, [, seconds]) => sum + seconds, 0);
  if (!whole) return null;
  return (
    <section>
      <h3>Where the time went</h3>
      <div class="phases">
        {phases.map(([name, seconds], place) => (
          <div key={name} class={`tint-${place % 6}`}>
            <span>{name}</span>
            <meter min={0} max={1} value={seconds / whole} />
            <span>
              {percent(seconds / whole)} <small>{figure(seconds, 1)} s</small>
            </span>
          </div>
        ))}
      </div>
      <p class="soft">
        {figure(whole, 1)} s over {last ?? 0} steps
      </p>
    </section>
  );
}

// Comparison -----------------------------------------------------------------------------------------------------------

export function ComparePage({ route, sources, again }: { route: Route; sources: Source[]; again: string }) {
  const others = sources.filter((one) => one.key !== route.source);
  const second = route.asked.with ?? others.find((one) => one.kind === sources.find((own) => own.key === route.source)?.kind)?.key ?? others[0]?.key ?? "";
  const { value, error } = useAnswer<Compared>("compare", second ? { first: route.source, second, q: route.asked.q ?? "" } : null, again);
  if (!others.length) return <p class="soft pad">Give two paths to compare: callwright view A B</p>;
  const name = (key: string) => sources.find((one) => one.key === key)?.name ?? key;
  const link = (key: string, n: number) => href({ source: key, place: "rows", asked: { n: String(n) } });
  const most = value ? Math.max(1, ...value.sides.flatMap((side) => side.totals?.bars ?? [])) : 1;
  const depth = value?.evaluations && (value.evaluations.by as Record<string, Record<string, Record<string, unknown>>> | undefined);
  return (
    <div class="page">
      <div class="tools">
        <label>
          {name(route.source)} against{" "}
          <select value={second} onChange={(event) => go({ ...route, asked: { ...route.asked, with: event.currentTarget.value } }, true)}>
            {others.map((one) => (
              <option key={one.key} value={one.key}>
                {one.name}
              </option>
            ))}
          </select>
        </label>
      </div>
      {error && <p class="error">{error}</p>}
      {value && (
        <>
          <Difference of={value.difference} unit={value.of === "answered" ? "points" : "reward"} />
          <p>
            <b class="full">{value.gained}</b> tasks better, <b class="none">{value.lost}</b> worse, of {value.tasks} that both have
          </p>
          <div class="sides">
            {value.sides.map((side, place) => (
              <section key={place} class={`tint-${place}`}>
                <h3>{name(place ? second : route.source)}</h3>
                <p class="soft">
                  {side.rows} rows · mean reward {figure(side.mean)} · right {percent(side.answered)}
                </p>
                {side.totals && <Bars of={side.totals} label={`totals of ${name(place ? second : route.source)}`} shared={most} />}
              </section>
            ))}
          </div>
          {depth && <ByDepth of={depth} all={value.evaluations?.all as Record<string, unknown>} />}
          <h3>Tasks that changed</h3>
          <table class="rows flips">
            <thead>
              <tr>
                <th scope="col" class="what">
                  task
                </th>
                <th scope="col" class="number">
                  {cut(name(route.source), 24)}
                </th>
                <th scope="col" class="number">
                  {cut(name(second), 24)}
                </th>
              </tr>
            </thead>
            <tbody>
              {value.flips.map((one) => (
                <tr key={one.task} class={one.second > one.first ? "better" : "worse"}>
                  <td class="what">
                    {plain(cut(one.query || one.task, 200))}
                    <small class="mono">{plain(one.task)}</small>
                  </td>
                  <td class="number">
                    <a href={link(route.source, one.rows[0])}>{figure(one.first)}</a>
                  </td>
                  <td class="number">
                    <a href={link(second, one.rows[1])}>{figure(one.second)}</a>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </div>
  );
}

function ByDepth({ of, all }: { of: Record<string, Record<string, Record<string, unknown>>>; all: Record<string, unknown> }) {
  const number = (value: unknown) => (typeof value === "number" ? value : null);
  const points = (one: Record<string, unknown>) => {
    const told = one.difference as Record<string, unknown> | number | undefined;
    return typeof told === "number" ? told : number(told?.mean ?? told?.value ?? null);
  };
  const rows = [...Object.entries(of).flatMap(([key, groups]) => Object.entries(groups).map(([name, one]) => [`${key} ${name}`, one] as const)), ["all", all] as const];
  return (
    <section>
      <h3>By group, as callwright compare says</h3>
      <div class="scroll">
        <table class="figures-table">
          <thead>
            <tr>
              <th scope="col" />
              <th scope="col">before</th>
              <th scope="col">after</th>
              <th scope="col">points</th>
              <th scope="col">p</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, one]) => {
              const change = points(one);
              return (
                <tr key={name}>
                  <th scope="row">{plain(name)}</th>
                  <td>{percent(number(one.first))}</td>
                  <td>{percent(number(one.second))}</td>
                  <td>{change === null ? "–" : `${change > 0 ? "+" : ""}${(100 * change).toFixed(1)}`}</td>
                  <td>{figure(number(one.p))}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

// Disagreement ---------------------------------------------------------------------------------------------------------

export function LabPage({ route, again }: { route: Route; again: string }) {
  const { value, error } = useAnswer<Agreement>("agreement", { source: route.source }, again);
  const { first = "", second = "" } = route.asked;
  const pairs = useAnswer<Disagreeing>("disagreeing", first && second ? { source: route.source, first, second } : null, again);
  if (error) return <p class="error">{error}</p>;
  if (!value) return <p class="soft pad">…</p>;
  const names = Object.keys(value.rewards);
  const cell = (a: string, b: string) => value.cells.find((one) => (one.first === a && one.second === b) || (one.first === b && one.second === a));
  const link = (n: number) => href({ source: route.source, place: "rows", asked: { n: String(n) } });
  return (
    <div class="page">
      <p class="lead">
        Pairs of rollouts of one group, {value.groups} groups: how often two rewards put them in <b>opposite</b> orders, which would teach opposite things. Small: pairs that
        only one of the two orders. Add others with <code>callwright rescore RUN --recipe NAME -o NAME.jsonl</code> and <code>callwright view RUN NAME.jsonl</code>.
      </p>
      <div class="scroll">
        <table class="matrix">
          <thead>
            <tr>
              <th />
              {names.slice(1).map((name) => (
                <th scope="col" key={name}>
                  {name.replace("score.", "")}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {names.slice(0, -1).map((row, place) => (
              <tr key={row}>
                <th scope="row">{row.replace("score.", "")}</th>
                {names.slice(1).map((column, other) => {
                  const found = other >= place ? cell(row, column) : undefined;
                  if (!found) return <td key={column} />;
                  const all = found.alike + found.opposite + found.one;
                  const on = first === found.first && second === found.second;
                  return (
                    <td key={column}>
                      <button
                        class={`${found.opposite ? "some" : ""} ${on ? "on" : ""}`}
                        title={`${found.opposite} of ${all} pairs in opposite orders, ${found.alike} alike, ${found.one} ordered by one alone`}
                        onClick={() => go({ ...route, asked: { first: found.first, second: found.second } }, true)}
                      >
                        {found.opposite}
                        <small>
                          {found.one} / {all}
                        </small>
                      </button>
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {pairs.error && <p class="error">{pairs.error}</p>}
      {first && pairs.value && (
        <section>
          <h3>
            {pairs.value.count} pairs that {first} and {second} order in opposite ways
          </h3>
          <table class="rows">
            <thead>
              <tr>
                <th scope="col">better by {first}</th>
                <th scope="col">better by {second}</th>
                <th scope="col" class="number">
                  {first}
                </th>
                <th scope="col" class="number">
                  {second}
                </th>
              </tr>
            </thead>
            <tbody>
              {pairs.value.pairs.map((one) => (
                <tr key={one.rows.join()}>
                  <td>
                    <a href={link(one.rows[0])}>row {one.rows[0]}</a>
                  </td>
                  <td>
                    <a href={link(one.rows[1])}>row {one.rows[1]}</a>
                  </td>
                  <td class="number">
                    {figure(one.first[0])} &gt; {figure(one.first[1])}
                  </td>
                  <td class="number">
                    {figure(one.second[0])} &lt; {figure(one.second[1])}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </div>
  );
}

// Synthesis ------------------------------------------------------------------------------------------------------------

export function SynthesisPage({ route, again }: { route: Route; again: string }) {
  const { value, error } = useAnswer<Funnel>("funnel", { source: route.source }, again);
  if (error) return <p class="error">{error}</p>;
  if (!value) return <p class="soft pad">…</p>;
  const yields = value.yields ?? {};
  const stages = ["planned", "accepted", "kept"].filter((name) => typeof yields[name] === "number").map((name) => [name, yields[name] as number] as const);
  const most = Math.max(1, ...stages.map(([, number]) => number));
  return (
    <div class="page">
      {!stages.length && <p class="soft">This file comes without a manifest: only its tasks are known.</p>}
      <div class="funnel">
        {stages.map(([name, number]) => (
          <div key={name}>
            <span>{name}</span>
            <meter min={0} max={1} value={number / most} />
            <b>{number.toLocaleString("en")}</b>
          </div>
        ))}
      </div>
      {value.reasons.length > 0 && (
        <section>
          <h3>Rejected, by stage and reason</h3>
          <table class="figures-table">
            <tbody>
              {value.reasons.map((one) => (
                <tr key={one.stage + one.reason}>
                  <th scope="row">{plain(one.stage)}</th>
                  <td class="words">{plain(one.reason)}</td>
                  <td>{one.count.toLocaleString("en")}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <details>
            <summary>the first {value.rejected.length} of them</summary>
            <Json value={value.rejected} />
          </details>
        </section>
      )}
      {value.mixture != null && (
        <section>
          <h3>Mixture</h3>
          <Json value={value.mixture} />
        </section>
      )}
      {value.difficulty != null && (
        <section>
          <h3>Difficulty</h3>
          <Json value={value.difficulty} />
        </section>
      )}
      <p class="soft">{shown(value.name)}</p>
    </div>
  );
}
