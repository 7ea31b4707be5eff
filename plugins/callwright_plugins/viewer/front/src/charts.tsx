/** Small charts as SVG: bars of a distribution, lines over steps with bands. */

import { useMemo, useRef, useState } from "preact/hooks";
import type { Bars as BarsOf, Interval } from "./types";
import { figure } from "./words";

export function Bars({ of, onPick, label, shared }: { of: BarsOf; onPick?: (low: number, high: number) => void; label: string; shared?: number }) {
  const most = Math.max(1, shared ?? 0, ...of.bars);
  const width = (of.high - of.low) / of.bars.length;
  return (
    <figure class="bars">
      <svg viewBox={`0 0 ${of.bars.length * 10} 40`} preserveAspectRatio="none" role="img" aria-label={label}>
        {of.bars.map((one, place) => {
          const tall = one ? Math.max(1, (one / most) * 40) : 0;
          const low = of.low + place * width;
          return (
            <g key={place}>
              <rect x={place * 10 + 1} y={40 - tall} width="8" height={tall} />
              {onPick && one > 0 && (
                <rect class="pick" x={place * 10} y="0" width="10" height="40" onClick={() => onPick(low, low + width)}>
                  <title>{`${one} from ${figure(low)} to ${figure(low + width)}`}</title>
                </rect>
              )}
            </g>
          );
        })}
      </svg>
      <figcaption>
        <span>{figure(of.low)}</span>
        <span>{figure(of.high)}</span>
      </figcaption>
    </figure>
  );
}

export interface Line {
  name: string;
  tint: number;
  values: (number | null)[];
  /** Before smoothing. */
  raw?: (number | null)[];
  low?: (number | null)[];
  high?: (number | null)[];
}

export function LineChart({ title, steps, lines, onStep }: { title: string; steps: number[]; lines: Line[]; onStep?: (step: number) => void }) {
  const [at, setAt] = useState<number | null>(null);
  const svg = useRef<SVGSVGElement>(null);
  const [W, H, left, bottom] = [320, 130, 4, 4];
  const all = lines.flatMap((line) => [...line.values, ...(line.raw ?? []), ...(line.low ?? []), ...(line.high ?? [])]);
  const known = all.filter((one): one is number => one !== null && Number.isFinite(one));
  const range = useMemo(() => {
    if (!known.length) return [0, 1] as const;
    const low = known.reduce((a, b) => Math.min(a, b));
    const high = known.reduce((a, b) => Math.max(a, b));
    return low === high ? ([low - 0.5, high + 0.5] as const) : ([low, high] as const);
  }, [known.length, title, known[0], known[known.length - 1]]);
  if (!known.length) return null;
  const first = steps[0] ?? 0;
  const last = steps[steps.length - 1] ?? 1;
  const x = (step: number) => left + ((step - first) / (last - first || 1)) * (W - 2 * left);
  const y = (value: number) => H - bottom - ((value - range[0]) / (range[1] - range[0])) * (H - 2 * bottom);
  const path = (values: (number | null)[]) => {
    let drawn = "";
    let pen = "M";
    values.forEach((value, place) => {
      const step = steps[place];
      if (value === null || step === undefined) pen = "M";
      else {
        drawn += `${pen}${x(step).toFixed(1)} ${y(value).toFixed(1)}`;
        pen = "L";
      }
    });
    return drawn;
  };
  const band = (line: Line) => {
    const points = steps.map((step, place) => [step, line.low?.[place], line.high?.[place]] as const).filter((one) => one[1] != null && one[2] != null);
    if (points.length < 2) return "";
    return `M${points.map(([step, , high]) => `${x(step).toFixed(1)} ${y(high!).toFixed(1)}`).join("L")}L${points
      .reverse()
      .map(([step, low]) => `${x(step).toFixed(1)} ${y(low!).toFixed(1)}`)
      .join("L")}Z`;
  };
  const move = (event: PointerEvent) => {
    const box = svg.current?.getBoundingClientRect();
    if (!box) return;
    const wanted = first + ((event.clientX - box.left) / box.width) * (last - first);
    let near = 0;
    steps.forEach((step, place) => {
      if (Math.abs(step - wanted) < Math.abs((steps[near] ?? 0) - wanted)) near = place;
    });
    setAt(near);
  };
  const place = at ?? steps.length - 1;
  return (
    <figure class="chart">
      <figcaption>
        <b>{title}</b>
        <span class="at">{at === null ? "" : `step ${steps[place]}`}</span>
      </figcaption>
      <svg
        ref={svg}
        viewBox={`0 0 ${W} ${H}`}
        role="img"
        aria-label={`${title} over steps, from ${figure(range[0])} to ${figure(range[1])}`}
        onPointerMove={move}
        onPointerLeave={() => setAt(null)}
        onClick={() => onStep?.(steps[place] ?? 0)}
      >
        {lines.map((line) => (
          <g key={line.name} class={`tint-${line.tint}`}>
            {line.low && <path class="band" d={band(line)} />}
            {line.raw && <path class="raw" d={path(line.raw)} />}
            <path class="line" d={path(line.values)} />
            {steps.length === 1 && line.values[0] != null && <circle cx={x(first)} cy={y(line.values[0])} r="2.5" />}
          </g>
        ))}
        {at !== null && <line class="hair" x1={x(steps[at] ?? 0)} x2={x(steps[at] ?? 0)} y1="0" y2={H} />}
      </svg>
      <div class="legend">
        {lines.map((line) => (
          <span key={line.name} class={`tint-${line.tint}`}>
            <i /> {lines.length > 1 ? `${line.name} ` : ""}
            {figure(line.values[place] ?? null)}
          </span>
        ))}
        <span class="range">
          {figure(range[0])} … {figure(range[1])}
        </span>
      </div>
    </figure>
  );
}

export function Difference({ of, unit }: { of: Interval; unit: "points" | "reward" }) {
  if (of.mean === null) return <p class="soft">no task is in both</p>;
  const scale = unit === "points" ? 100 : 1;
  const said = (value: number) => `${value > 0 ? "+" : ""}${figure(value * scale, 2)}`;
  const certain = of.low !== null && of.high !== null && (of.low > 0 || of.high < 0);
  return (
    <p class="difference">
      <b class={certain ? (of.mean > 0 ? "better" : "worse") : ""}>{said(of.mean)}</b> {unit === "points" ? "points" : "reward"}
      {of.low !== null && of.high !== null && (
        <span class="soft">
          {" "}
          [{said(of.low)}, {said(of.high)}] over {of.n} tasks{certain ? "" : ": may be chance"}
        </span>
      )}
    </p>
  );
}
