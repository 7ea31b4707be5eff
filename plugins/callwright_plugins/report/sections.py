"""The sections of the page: accuracy, learning, examples, reproduction. Each yields nothing where there is no data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from attrs import frozen

from callwright_plugins.report.charts import Frame, Line, chart, label, smoothing_window
from callwright_plugins.report.examples import Example, pick
from callwright_plugins.report.markup import attribute, cut, percent, points, safe, section
from callwright_plugins.report.reading import ROLLOUTS, RunData, dig, number, rows, table
from callwright_plugins.report.verdict import Change, changes, overall

_SMALL: Final = Frame(320, 132)
_WIDE: Final = Frame(760, 260)
_NARROW: Final = Frame(360, 230)
_LONGEST_COMPLETION: Final = 6000
_LONGEST_PROMPT: Final = 4000
_MOST_EVIDENCE: Final = 8

# Accuracy -------------------------------------------------------------------------------------------------------------


def accuracy(data: RunData) -> Iterator[str]:
    """Accuracy before and after, by depth and structure, and how it grew between."""
    depths = changes(data, "by_depth")
    if not depths:
        return
    lead = (
        "Share of held-out tasks whose answer is right, greedy decoding. Depth is the number of calls that a task "
        "needs. Lines are Wilson’s 95% intervals."
    )
    body = _comparison(depths, overall(data), "Depth")
    body += _growth(data)
    structures = changes(data, "by_structure")
    if len(structures) > 1:
        compared = _comparison(structures, None, "Structure")
        body += f"<details><summary>By structure of the program</summary>{compared}</details>"
    failures = _failures(data)
    if failures:
        body += f"<details><summary>What still goes wrong, by depth</summary>{failures}</details>"
    yield section("Accuracy", body, lead=lead, key="accuracy")


def _comparison(found: list[Change], whole: Change | None, heading: str) -> str:
    body = "".join(_comparison_row(change) for change in found)
    foot = f"<tfoot>{_comparison_row(whole)}</tfoot>" if whole is not None else ""
    legend = (
        '<span class="key before">before</span> <span class="key after">after</span>'
        '<span class="scale"><span>0</span><span>50</span><span>100%</span></span>'
    )
    return (
        f'<table class="compare"><thead><tr><th scope="col">{safe(heading)}</th><th scope="col" class="n">Tasks</th>'
        f'<th scope="col" class="plotted">{legend}</th><th scope="col" class="n">Before</th>'
        f'<th scope="col" class="n">After</th><th scope="col" class="n">Points</th></tr></thead>'
        f"<tbody>{body}</tbody>{foot}</table>"
    )


def _comparison_row(change: Change) -> str:
    marks = "".join(
        f'<i class="span {side}" style="left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%"></i>'
        f'<i class="dot {side}" style="left:{100 * value:.2f}%"></i>'
        for side, measured in (("before", change.before), ("after", change.after))
        if measured is not None
        for value, low, high in (measured,)
    )
    gain = change.gain
    tone = {1: "up", -1: "down", 0: "same"}[change.direction]
    shown = "–" if gain is None else points(gain, signed=True)
    title = {1: "better beyond chance", -1: "worse beyond chance", 0: "no difference beyond chance"}[change.direction]
    return (
        f'<tr><th scope="row">{safe(change.label)}</th><td class="n tasks">{change.n:,}</td>'
        f'<td class="plotted"><div class="track">{marks}</div></td>'
        f'<td class="n">{_measured(change.before)}</td><td class="n">{_measured(change.after)}</td>'
        f'<td class="n {tone}" title="{title}">{shown}</td></tr>'
    )


def _measured(value: tuple[float, float, float] | None) -> str:
    if value is None:
        return "–"
    share, low, high = value
    return f'<span title="{percent(low)} to {percent(high)}">{percent(share)}</span>'


def _growth(data: RunData) -> str:
    """Accuracy by depth at each evaluation, as a table whose cells are shaded."""
    columns: list[tuple[str, dict[str, Any]]] = []
    if data.before:
        columns.append(("0", data.before))
    columns += [(f"{number(row.get('step')) or 0:,.0f}", row) for row in data.during]
    if data.after:
        columns.append((f"{data.steps:,}" if data.steps else "end", data.after))
    if len(columns) < 3:
        return ""
    while len(columns) > 12:  # the first and last always stay
        columns = [*columns[:-1:2], columns[-1]]
    depths = [change.label for change in changes(data, "by_depth")]
    heads = "".join(f'<th scope="col" class="n">{safe(step)}</th>' for step, _ in columns)
    body = "".join(
        f'<tr><th scope="row">{safe(depth)}</th>'
        + "".join(_shade(number(dig(result, ("by_depth", depth, "accuracy")))) for _, result in columns)
        + "</tr>"
        for depth in depths
    )
    return (
        '<h3>While it trained</h3><div class="scroll"><table class="heat"><thead><tr><th scope="col">Depth \\ step</th>'
        f"{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _shade(share: float | None) -> str:
    if share is None:
        return '<td class="n">–</td>'
    strong = " strong" if share >= 0.55 else ""
    return f'<td class="n shade{strong}" style="--share:{100 * share:.0f}%">{100 * share:.0f}</td>'


def _failures(data: RunData) -> str:
    found = table(data.after.get("failures") or data.before.get("failures"))
    lines = []
    for depth in sorted(found, key=lambda key: (len(key), key)):
        counts = [(name, number(count)) for name, count in table(found[depth]).items()]
        words = ", ".join(f"{safe(name)} <b>{count:,.0f}</b>" for name, count in counts if count)
        if words:
            lines.append(f'<tr><th scope="row">{safe(depth)}</th><td>{words}</td></tr>')
    return f'<table class="plain"><tbody>{"".join(lines)}</tbody></table>' if lines else ""


# Learning -------------------------------------------------------------------------------------------------------------


@frozen
class _Diagnostic:
    """A small chart: what it shows, of which figures, and the range that it shows at least."""

    title: str
    about: str
    lines: tuple[tuple[str, tuple[str, ...], str], ...]
    bounds: tuple[float | None, float | None] = (0.0, None)


_DIAGNOSTICS: Final = (
    _Diagnostic(
        "Executed and answered",
        "share of completions; a widening gap means safe calls instead of right ones",
        (("executed", ("executed",), "b"), ("answered", ("answered",), "a")),
        (0.0, 1.0),
    ),
    _Diagnostic(
        "Calls a program",
        "mean, beside the number that the tasks need",
        (("due", ("calls_due",), "c"), ("made", ("calls",), "a")),
    ),
    _Diagnostic(
        "Groups without signal",
        "share of groups whose rewards are all equal",
        (("equal", ("zero_variance",), "a"),),
        (0.0, 1.0),
    ),
    _Diagnostic("KL", "nats a token, from the policy before training", (("KL", ("kl",), "a"),)),
    _Diagnostic("Entropy", "nats a token; near 0 it no longer explores", (("entropy", ("entropy",), "a"),)),
    _Diagnostic("Clipped tokens", "share whose gradient is cut", (("clipped", ("clip_fraction",), "a"),)),
    _Diagnostic("Length", "mean tokens of a completion", (("tokens", ("length",), "a"),)),
    _Diagnostic("Cut off", "share of completions at the length limit", (("cut off", ("truncated",), "a"),)),
    _Diagnostic("Gradient norm", "before clipping", (("norm", ("gradient_norm",), "a"),)),
    _Diagnostic("Loss", "its level means little; jumps do", (("loss", ("loss",), "a"),), (None, None)),
)


def learning(data: RunData) -> Iterator[str]:
    """Curves of the reward, its components, and what tells whether training is healthy."""
    if data.metrics:
        steps = [row["step"] for row in data.metrics]
        window = smoothing_window(len(steps))
        faint = f" Strong lines are means over {window} steps, faint ones single steps." if window > 1 else ""
        body = _reward_chart(data, steps)
        parts = "".join(_component_charts(data, steps))
        if parts:
            body += f'<h3>Components</h3><div class="grid">{parts}</div>'
        if body:
            yield section("Reward", body, lead=f"Mean over the rollouts of each step.{faint}", key="reward")
        charts = "".join(_diagnostic(data, steps, one) for one in _DIAGNOSTICS)
        if charts:
            lead = "What tells healthy training from a reward that is merely rising."
            yield section("Diagnostics", f'<div class="grid">{charts}</div>', lead=lead, key="diagnostics")
    losses = [number(row.get("loss")) for row in data.warm_start]
    if losses:
        steps = list(range(1, len(losses) + 1))
        figure = _small("Loss", "nats a token of the demonstrations", steps, [Line("loss", losses)], (0.0, None))
        body = f'<div class="grid">{figure}</div>'
        yield section("Warm start", body, lead="Supervised steps before the training.", key="warm-start")


def _reward_chart(data: RunData, steps: list[int]) -> str:
    values = data.series("reward")
    if not any(value is not None for value in values):
        return ""
    lines = [Line("reward", values)]
    description = f"Mean reward by step, from {_ends(values)}"
    drawn = "".join(
        f'<div class="{name}">{chart(steps, lines, frame, description=description, bounds=(0.0, 1.0))}</div>'
        for name, frame in (("wide", _WIDE), ("narrow", _NARROW))
    )
    return f'<figure class="chart main">{drawn}<figcaption>Steps of training</figcaption></figure>'


def _component_charts(data: RunData, steps: list[int]) -> Iterator[str]:
    names: dict[str, None] = {}
    for row in data.metrics:
        names.update(dict.fromkeys(table(row.get("scores"))))
    highest = _highest(data)
    for name in list(names)[:24]:
        values = data.series("scores", name)
        if any(value is not None for value in values):
            yield _small(name, "", steps, [Line(name, values)], (0.0, highest.get(name, 1.0)))


def _highest(data: RunData) -> dict[str, float]:
    """The maximum of each component, from the first rollout."""
    for _, row in rows(data, ROLLOUTS):
        tops = {name: number(table(part).get("high")) for name, part in table(row.get("scores")).items()}
        return {name: top for name, top in tops.items() if top is not None}
    return {}


def _diagnostic(data: RunData, steps: list[int], one: _Diagnostic) -> str:
    lines = [Line(name, data.series(*path), style) for name, path, style in one.lines]
    lines = [line for line in lines if any(value is not None for value in line.values)]
    return _small(one.title, one.about, steps, lines, one.bounds) if lines else ""


def _small(
    title: str, about: str, steps: list[int], lines: list[Line], bounds: tuple[float | None, float | None]
) -> str:
    known = {value for line in lines for value in line.values if value is not None}
    last = " ".join(_last(line, len(lines) > 1) for line in lines)
    heading = f'<div class="head"><b>{safe(title)}</b><span>{last}</span></div>'
    note = f"<small>{safe(about)}</small>" if about else ""
    if len(known) == 1:
        drawn = f'<p class="flat">{label(known.pop())} throughout</p>'
    else:
        description = "; ".join(f"{title}, {line.name}: {_ends(line.values)}" for line in lines)
        drawn = chart(steps, lines, _SMALL, description=description, bounds=bounds, y_ticks=2, x_ticks=3)
    return f'<figure class="chart">{heading}{note}{drawn}</figure>'


def _last(line: Line, named: bool) -> str:
    late = [value for value in line.values if value is not None][-smoothing_window(len(line.values)) :]
    shown = label(sum(late) / len(late))
    return f'<em class="{line.style}">{safe(line.name)} {shown}</em>' if named else f"<em>{shown}</em>"


def _ends(values: object) -> str:
    assert isinstance(values, list)
    known = [value for value in values if value is not None]
    return f"{label(known[0])} to {label(known[-1])}"


# Examples -------------------------------------------------------------------------------------------------------------


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
    lead = "Sampled completions of the last third of training, with where each point was lost."
    yield section("Rollouts", body, lead=lead, key="rollouts")


def _lost(example: Example) -> bool:
    return example.why != "best" and example.row.get("stage") != "done"


def _example(example: Example, opened: bool) -> str:
    row = example.row
    total = number(row.get("total"))
    tone = "full" if total is not None and total >= 1 - 1e-9 else "none" if not total else "part"
    shown = "–" if total is None else f"{total:.2f}"
    query = row.get("query")
    title = query if isinstance(query, str) else str(row.get("task", ""))
    title = title if len(title) <= 160 else f"{title[:159]}…"
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
<div class="scores">{"".join(_scores(table(row.get("scores"))))}</div></div>
</details>"""


def _texts(row: dict[str, Any]) -> str:
    completion, prompt = row.get("completion"), row.get("prompt")
    parts = ""
    if isinstance(completion, str):
        text = safe(cut(completion, _LONGEST_COMPLETION)) or "<i>nothing</i>"
        parts += f'<pre class="completion" tabindex="0">{text}</pre>'
    if isinstance(prompt, str) and prompt:
        text = f'<pre tabindex="0">{safe(cut(prompt, _LONGEST_PROMPT))}</pre>'
        parts += f'<details class="prompt"><summary>Prompt</summary>{text}</details>'
    return parts


def _scores(scores: dict[str, Any]) -> Iterator[str]:
    for name, value in scores.items():
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


# Reproduction ---------------------------------------------------------------------------------------------------------


def reproduction(data: RunData) -> Iterator[str]:
    """The command, the recipe and the versions that make this run again."""
    parts = []
    if data.command:
        parts.append(f'<h3>Command</h3><pre class="command" tabindex="0">{safe(data.command)}</pre>')
    if data.recipe_text:
        parts.append(f'<h3>Recipe</h3><pre tabindex="0">{safe(cut(data.recipe_text, 20_000))}</pre>')
    versions = table(data.manifest.get("versions"))
    listed = [("python", data.manifest.get("python")), ("platform", data.manifest.get("platform")), *versions.items()]
    cells = "".join(
        f"<div><dt>{safe(name)}</dt><dd>{safe(version)}</dd></div>" for name, version in listed if version is not None
    )
    if cells:
        parts.append(f'<h3>Versions</h3><dl class="facts">{cells}</dl>')
    plugins = data.manifest.get("plugins")
    foreign = [
        f"{safe(one.get('name'))} ({safe(one.get('distribution'))} {safe(one.get('version'))})"
        for one in (plugins if isinstance(plugins, list) else [])
        if isinstance(one, dict) and one.get("distribution") != "callwright"
    ]
    if foreign:
        parts.append(f"<h3>Plugins of others</h3><p>{', '.join(foreign)}</p>")
    if parts:
        lead = "The same command, versions and seed give the same run, bit for bit on the CPU."
        yield section("Reproduce", "".join(parts), lead=lead, key="reproduce")
