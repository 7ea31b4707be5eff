"""The sections on learning: the reward, its components, and what tells whether training is healthy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen

from callwright_plugins.report.drawing.charts import Frame, Line, chart, label, smoothing_window
from callwright_plugins.report.drawing.markup import safe, section
from callwright_plugins.report.reading import ROLLOUTS, RunData, number, rows, table

_SMALL: Final = Frame(320, 132)
_WIDE: Final = Frame(760, 260)
_NARROW: Final = Frame(360, 230)


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
    _Diagnostic("Thought", "mean words of a thought", (("words", ("thought_words",), "a"),)),
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
        yield from _supervised(data, steps, faint)
        body = _reward_chart(data, steps)
        parts = "".join(_component_charts(data, steps))
        if parts:
            body += f'<h3>Components</h3><div class="grid">{parts}</div>'
        if body:
            yield section("Reward", body, lead=f"Mean over the rollouts of each step.{faint}", key="reward")
        charts = "".join(_diagnostic(data, steps, one) for one in _DIAGNOSTICS)
        if charts and not supervised(data):
            lead = "What tells healthy training from a reward that is merely rising."
            yield section("Diagnostics", f'<div class="grid">{charts}</div>', lead=lead, key="diagnostics")
    losses = [number(row.get("loss")) for row in data.warm_start]
    if losses:
        steps = list(range(1, len(losses) + 1))
        figure = _small("Loss", "nats a token of the demonstrations", steps, [Line("loss", losses)], (0.0, None))
        body = f'<div class="grid">{figure}</div>'
        yield section("Warm start", body, lead="Supervised steps before the training.", key="warm-start")


def supervised(data: RunData) -> bool:
    """Whether the run learnt from demonstrations: its steps have a loss, and nothing was sampled in them."""
    return any(number(row.get("loss")) is not None for row in data.metrics) and not any(
        number(row.get("reward")) is not None or number(row.get("rollouts")) for row in data.metrics
    )


def _supervised(data: RunData, steps: list[int], faint: str) -> Iterator[str]:
    """Supervised training: the loss of what was shown, and what the evaluations between came to."""
    if not supervised(data):
        return
    trained = _small(
        "Loss", "nats a token of the demonstrations", steps, [Line("loss", data.series("loss"))], (0, None)
    )
    charts = [trained]
    last = {"step": data.steps, **data.after}
    evaluations = [row for row in ({"step": 0, **data.before}, *data.during, last) if len(row) > 1]
    places = [int(number(row.get("step")) or 0) for row in evaluations]
    for key, title, about in (
        ("loss", "Held-out loss", "nats a token of the reference solutions; it rises where training overfits"),
        ("reward", "Reward", "mean of the greedy completions of an evaluation"),
    ):
        values = [number(row.get(key)) for row in evaluations]
        if len([value for value in values if value is not None]) > 1:
            charts.append(_small(title, about, places, [Line(key, values)], (0, None)))
    for one in _DIAGNOSTICS:
        if one.title == "Gradient norm":
            charts.append(_diagnostic(data, steps, one))
    lead = f"Loss over the tokens that the policy is to write.{faint}"
    yield section("Supervised training", f'<div class="grid">{"".join(charts)}</div>', lead=lead, key="supervised")


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
