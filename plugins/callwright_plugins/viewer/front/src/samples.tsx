/** The samples of one prompt side by side, which is what GRPO sees; and a task over the steps. */

import { useAnswer } from "./api";
import { Conversation } from "./rollout";
import { type Route, href } from "./route";
import type { Row, Samples } from "./types";
import { cut, figure, plain, signed, tone } from "./words";

export function GroupView({ route, name, again }: { route: Route; name: string; again: unknown }) {
  const { value, error } = useAnswer<Samples>("group", { source: route.source, name }, again);
  if (error) return <p class="error">{error}</p>;
  if (!value || value.name !== name) return <p class="soft pad">…</p>;
  const first = value.rows[0];
  const flat = value.deviation !== null && value.deviation < 1e-9 && value.rows.length > 1;
  return (
    <article class="samples">
      <header class="head">
        <h2>{plain(first?.query ?? name)}</h2>
        <p class="soft">
          group <span class="mono">{plain(name)}</span> · {value.rows.length} kept samples · mean {figure(value.mean)} · deviation {figure(value.deviation)}
          {flat && <b class="none"> · all alike: nothing is learnt from it</b>}
        </p>
      </header>
      <div class="columns">
        {value.rows.map((row) => (
          <section key={row.n}>
            <a class="figures" href={href({ ...route, asked: { ...route.asked, group: "", n: String(row.n) } })}>
              <span class={`total ${tone(row.total, 0, 1)}`}>{figure(row.total)}</span>
              <span>
                {signed(row.advantage)} <small>advantage</small>
              </span>
              {row.failure && <span class="none">{plain(row.failure)}</span>}
            </a>
            {row.document && (
              <div class="talk">
                <Conversation
                  of={{ ...row.document, conversation: row.document.conversation.filter((one) => !["prompt", "system"].includes(one.role)) }}
                  picked=""
                  onPick={() => undefined}
                />
              </div>
            )}
          </section>
        ))}
      </div>
    </article>
  );
}

export function TaskView({ route, name, again }: { route: Route; name: string; again: unknown }) {
  const { value, error } = useAnswer<{ task: string; rows: Row[] }>("task", { source: route.source, name }, again);
  if (error) return <p class="error">{error}</p>;
  if (!value || value.task !== name) return <p class="soft pad">…</p>;
  return (
    <article class="over-time">
      <header class="head">
        <h2>{plain(value.rows[0]?.query ?? name)}</h2>
        <p class="soft">
          task <span class="mono">{plain(name)}</span> · {value.rows.length} rows
        </p>
      </header>
      <ol class="timeline">
        {value.rows.map((row) => (
          <li key={row.n}>
            <a href={href({ ...route, asked: { ...route.asked, task: "", n: String(row.n) } })}>
              <span class="when">{row.step === null ? `sample ${row.sample ?? 0}` : `step ${row.step}`}</span>
              <span class={`total ${tone(row.total ?? (row.answered === null ? null : Number(row.answered)), 0, 1)}`}>
                {row.total !== null ? figure(row.total) : row.answered === null ? "–" : row.answered ? "right" : "wrong"}
              </span>
              <span class="soft">{plain(cut(row.failure || row.tools.join(" "), 80))}</span>
            </a>
          </li>
        ))}
      </ol>
    </article>
  );
}
