"""The section of rollouts: completions with the evidence for every lost point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from callwright.language.shortening import shortened
from callwright_plugins.report.drawing.charts import label
from callwright_plugins.report.drawing.markup import attribute, cut, safe, section
from callwright_plugins.report.reading import RunData, number, table
from callwright_plugins.report.sections.conversations import conversation
from callwright_plugins.report.sections.examples import Example, pick
from callwright_plugins.report.sections.learning import supervised

_LONGEST_COMPLETION: Final = 6000
_LONGEST_PROMPT: Final = 4000
_MOST_EVIDENCE: Final = 8


def examples(data: RunData) -> Iterator[str]:
    """Rollouts with the evidence for every lost point."""
    picked = pick(data)
    if not picked:
        return
    groups: dict[int, list[Example]] = {}
    for example in picked:
        groups.setdefault(example.depth, []).append(example)
    unfolded = max(groups, key=lambda depth: (depth <= 3, depth))  # one depth lies open: the page shows what it holds
    body = "".join(
        f"<h3>Depth {depth}</h3>" + "".join(_example(one, depth == unfolded and _lost(one)) for one in group)
        for depth, group in groups.items()
    )
    whose = (
        "Greedy completions of the last evaluations" if supervised(data) else "Sampled completions of the last third"
    )
    lead = f"{whose} of training, with where each point was lost."
    yield section("Rollouts", body, lead=lead, key="rollouts")


def _lost(example: Example) -> bool:
    return example.why != "best" and example.row.get("stage") != "done"


def _example(example: Example, opened: bool) -> str:
    row = example.row
    total = number(row.get("total"))
    tone = "full" if total is not None and total >= 1 - 1e-9 else "none" if not total else "part"
    shown = "–" if total is None else f"{total:.2f}"
    query = row.get("query")
    title = shortened(query if isinstance(query, str) else str(row.get("task", "")), 160)
    aside = " · ".join(
        str(part)
        for part in (
            f"step {row.get('step')}",
            f"task {cut(str(row.get('task', '?')), 60)}",
            row.get("structure"),
            f"lost at {row.get('stage')}" if row.get("stage") not in (None, "done") else None,
            "cut off by the length limit" if row.get("truncated") is True else None,
        )
        if part
    )
    return f"""<details class="rollout"{" open" if opened else ""}>
<summary><span class="why">{safe(example.why)}</span><span class="total {tone}">{shown}</span>
<span class="query">{safe(title)}</span></summary>
<p class="aside">{safe(aside)}</p>
<div class="pair"><div>{_texts(row)}</div>
<div class="scores">{"".join(scores(table(row.get("scores"))))}</div></div>
</details>"""


def _texts(row: dict[str, Any]) -> str:
    completion, prompt = row.get("completion"), row.get("prompt")
    parts = conversation(row)
    if not parts and isinstance(completion, str):
        text = safe(cut(completion, _LONGEST_COMPLETION)) or "<i>nothing</i>"
        parts += f'<pre class="completion" tabindex="0">{text}</pre>'
    if isinstance(prompt, str) and prompt:
        text = f'<pre tabindex="0">{safe(cut(prompt, _LONGEST_PROMPT))}</pre>'
        parts += f'<details class="prompt"><summary>Prompt</summary>{text}</details>'
    return parts


def scores(found: dict[str, Any]) -> Iterator[str]:
    """The terms of a reward as bars, each with the evidence for what it lost."""
    for name, value in found.items():
        part = table(value)
        got, low, high = (number(part.get(key)) for key in ("value", "low", "high"))
        if got is None:
            continue
        low, high = low or 0.0, 1.0 if high is None else high
        evidence = [table(one) for one in part.get("evidence") or [] if isinstance(one, dict)]
        closed = any(one.get("code") == "gate_closed" for one in evidence)
        share = min(1.0, max(0.0, (got - low) / (high - low))) if high > low else 0.0
        tone = "closed" if closed else "full" if got >= high else "none" if share == 0 else "part"
        shown = "not reached" if closed else f"{label(got)} / {label(high)}"
        reasons = "" if closed else _reasons(evidence)
        described = attribute(f"{name} {shown}")
        yield (
            f'<div class="score {tone}"><span class="name">{safe(name)}</span>'
            f'<span class="bar" role="img" aria-label="{described}"><i style="width:{100 * share:.1f}%"></i></span>'
            f'<span class="value">{shown}</span>{reasons}</div>'
        )


def _reasons(evidence: list[dict[str, Any]]) -> str:
    lines = [f"<li>{safe(cut(str(one.get('reason', one.get('code', ''))), 400))}</li>" for one in evidence]
    if not lines:
        return ""
    if len(lines) > _MOST_EVIDENCE:
        lines[_MOST_EVIDENCE:] = [f"<li>and {len(lines) - _MOST_EVIDENCE} more</li>"]
    return f"<ul>{''.join(lines)}</ul>"
