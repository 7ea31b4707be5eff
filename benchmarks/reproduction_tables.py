"""The tables and curves of the reproduction study (``reproduce.py``), from its rows alone.

*Composition* is the mean of the greedy accuracies at depths 2 to 6. Its *area* is the mean over the course of training
(trapezia over the evaluations), so that a reward which gets there sooner has more of it. *Steps to* a threshold are
those of the first evaluation at which composition is at least that; a run that never gets there counts with its last
step, and how many did get there stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from attrs import frozen

#: What the lab calls the judgement that an answer is right.
TRUTH: Final = "right answer"
Seeds = tuple[int, int]
Row = Mapping[str, Any]
#: Colours of lines, dark enough for white paper and told apart by most colour-blind readers.
COLOURS: Final = ("#1b6ca8", "#d1495b", "#2e8b57", "#8d5a97", "#c77700", "#5c5c5c", "#00878f")


@frozen
class Course:
    """What a training is judged by."""

    steps: tuple[int, ...]
    composition: tuple[float, ...]
    row: Row

    @property
    def area(self) -> float:
        pairs = zip(self.steps, self.steps[1:], self.composition, self.composition[1:], strict=False)
        return sum((later - step) * (a + b) / 2 for step, later, a, b in pairs) / (self.steps[-1] - self.steps[0])

    @property
    def final(self) -> float:
        return self.composition[-1]

    @property
    def deep(self) -> float:
        """Accuracy at depths 5 and 6 at the end, where TIER's Table 1 has 0 for its rivals. Not a frozen measure."""
        last = list(self.row["accuracy"].values())[-1]
        return float(last["5"] + last["6"]) / 2

    def at(self, step: int) -> float:
        return self.composition[self.steps.index(step)]

    def reached(self, threshold: float) -> int | None:
        """The first evaluated step with a composition of at least ``threshold``; ``None`` if there is none."""
        places = zip(self.steps, self.composition, strict=True)
        return next((step for step, value in places if value >= threshold - 1e-9), None)

    def steps_to(self, threshold: float) -> float:
        """The same, the last step standing for never."""
        found = self.reached(threshold)
        return float(self.steps[-1] if found is None else found)

    @property
    def collapsed(self) -> bool:
        return bool(self.row["alarms"])


def course(row: Row, depths: Sequence[int]) -> Course:
    steps = tuple(int(step) for step in row["accuracy"])
    values = tuple(sum(cell[str(depth)] for depth in depths) / len(depths) for cell in row["accuracy"].values())
    return Course(steps, values, row)


# Intervals


def bootstrap(values: Mapping[Seeds, float], samples: int, confidence: float) -> tuple[float, float]:
    """Percentile interval of the mean: warm starts are drawn with replacement, then runs of each of them.

    Runs of one warm start have its weights in common, so that they are not eight independent runs.
    """
    kinds = sorted({warm for warm, _ in values})
    runs = [[value for (warm, _), value in sorted(values.items()) if warm == kind] for kind in kinds]
    widest = max(len(found) for found in runs)
    table = np.array([found + [0.0] * (widest - len(found)) for found in runs])
    counts = np.array([len(found) for found in runs])
    rng = np.random.default_rng(0)
    warm = rng.integers(len(kinds), size=(samples, len(kinds)))
    run = (rng.random((samples, len(kinds), widest)) * counts[warm][..., None]).astype(int)
    weights = np.arange(widest) < counts[warm][..., None]
    means = (table[warm[..., None], run] * weights).sum((1, 2)) / weights.sum((1, 2))
    tail = 100 * (1 - confidence) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Rank correlation, ties sharing their mean rank; ``nan`` where one side is constant."""
    a, b = ranks(first), ranks(second)
    a, b = a - a.mean(), b - b.mean()
    size = math.sqrt(float((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / size if size else math.nan


def ranks(values: Sequence[float]) -> Any:
    array = np.array(values, dtype=float)
    return np.array([((array < value).sum() + (array <= value).sum() + 1) / 2 for value in array])


# Tables


def tables(study: Row, rows: Sequence[Row]) -> str:
    """All tables as Markdown: per part a summary, the differences and every run; then the warm starts."""
    depths = study["depths"]
    courses = {row["key"]: course(row, depths) for row in rows if "training_seed" in row}
    parts = [part for part in study["parts"] if any(key.startswith(f"{part['name']}/") for key in courses)]
    pieces = []
    for part in parts:
        cells = cells_of(study, part, courses)
        pieces.append(f"## {part['title']}\n\n{part['question']}\n")
        pieces.append(summary(study, cells))
        pieces.append(by_depth(study, cells))
        pieces.append(differences(study, part, cells))
        pieces.append(dynamics(cells))
        pieces.append(every_run(study, part, courses))
    if any(row["part"] == "warm-starts" for row in rows):
        pieces.append("## The warm starts\n")
        pieces.append(before(rows))
        pieces.append(looks(study, rows))
        pieces.append(early(study, list(courses.values())))
    return "\n".join(piece for piece in pieces if piece)


def cells_of(study: Row, part: Row, courses: Mapping[str, Course]) -> dict[str, dict[Seeds, Course]]:
    """The runs of each cell by their seeds, the baseline's first where it belongs to another part."""
    names = {cell: f"{part['name']}/{cell}" for cell in part["cells"]}
    if "/" in part["baseline"]:
        names = {part["baseline"]: part["baseline"], **names}
    found: dict[str, dict[Seeds, Course]] = {}
    for cell, start in names.items():
        mine = {seeds(run.row): run for key, run in courses.items() if key.startswith(f"{start}/")}
        if cell == part["baseline"] and cell != start.rpartition("/")[2]:
            mine = {pair: run for pair, run in mine.items() if pair[1] in part["training_seeds"]}
        if mine:
            found[cell] = mine
    return found


def seeds(row: Row) -> Seeds:
    return row["warm_seed"], row["training_seed"]


def summary(study: Row, cells: Mapping[str, Mapping[Seeds, Course]]) -> str:
    thresholds = study["thresholds"]
    head = ["", "runs", "composition at half", "at the end", "area"]
    head += [f"steps to {percent(threshold)}% (runs that get there)" for threshold in thresholds]
    head += ["failed", "collapsed"]
    lines = []
    for name, runs in cells.items():
        half = middle(next(iter(runs.values())))
        reached = [
            f"{interval(study, runs, lambda run, t=threshold: run.steps_to(t), scale=1)} "  # type: ignore[misc]
            f"({sum(run.reached(threshold) is not None for run in runs.values())})"
            for threshold in thresholds
        ]
        lines.append(
            [
                f"`{name}`",
                len(runs),
                interval(study, runs, lambda run, at=half: run.at(at)),  # type: ignore[misc]
                interval(study, runs, lambda run: run.final),
                interval(study, runs, lambda run: run.area),
                *reached,
                sum(run.final < study["failed_below"] for run in runs.values()),
                sum(run.collapsed for run in runs.values()),
            ]
        )
    return markdown(head, lines)


def middle(run: Course) -> int:
    """The evaluated step that is nearest to half of the training."""
    return min(run.steps, key=lambda step: (abs(step - run.steps[-1] / 2), step))


def by_depth(study: Row, cells: Mapping[str, Mapping[Seeds, Course]]) -> str:
    """Mean final accuracy at each depth, as TIER's tables have it."""
    lines = []
    for name, runs in cells.items():
        ends = [list(run.row["accuracy"].values())[-1] for run in runs.values()]
        lines.append([f"`{name}`", *(percent(sum(end[d] for end in ends) / len(ends)) for d in ends[0])])
    depths = list(next(iter(next(iter(cells.values())).values())).row["tasks"])
    return "Accuracy in % at the end, mean of the runs:\n\n" + markdown(["depth", *depths], lines)


def differences(study: Row, part: Row, cells: Mapping[str, Mapping[Seeds, Course]]) -> str:
    """Every cell less the baseline, in pairs of runs with the same seeds."""
    base = cells.get(part["baseline"])
    if base is None:
        return ""
    threshold = study["thresholds"][-1]
    measures: list[tuple[str, Callable[[Course], float], float]] = [
        ("area", lambda run: run.area, 100),
        ("at half", lambda run: run.at(middle(run)), 100),
        ("at the end", lambda run: run.final, 100),
        ("depths 5 and 6 at the end", lambda run: run.deep, 100),
        (f"steps to {percent(threshold)}%", lambda run: run.steps_to(threshold), 1),
    ]
    lines = []
    for name, runs in cells.items():
        shared = sorted(runs.keys() & base.keys())
        if name == part["baseline"] or not shared:
            continue
        line: list[object] = [f"`{name}`", len(shared)]
        for _, measure, scale in measures:
            gaps = {pair: scale * (measure(runs[pair]) - measure(base[pair])) for pair in shared}
            low, high = bootstrap(gaps, study["bootstrap"], study["confidence"])
            mean = sum(gaps.values()) / len(gaps)
            line.append(f"{mean:+.0f} [{low:+.0f}, {high:+.0f}]")
        ahead = sum(runs[pair].area > base[pair].area for pair in shared)
        lines.append([*line, f"{ahead} of {len(shared)}"])
    if not lines:
        return ""
    head = ["", "pairs", *(name for name, _, _ in measures), "pairs with more area"]
    return f"Differences to `{part['baseline']}`, run by run (points, and steps):\n\n{markdown(head, lines)}"


def dynamics(cells: Mapping[str, Mapping[Seeds, Course]]) -> str:
    """What sampling and training looked like in the first, the middle and the last ten steps, mean of the runs."""
    names = {"zero_variance": "flat groups", "executed": "executed", "answered": "answered", "calls": "calls made"}
    lines = []
    for name, runs in cells.items():
        courses = [run.row["course"] for run in runs.values()]
        line: list[object] = [f"`{name}`"]
        for key in names:
            shares = []
            for place in (0, len(courses[0]) // 2, len(courses[0]) - 1):
                windows = [windows[place] for windows in courses]
                over = "calls_due" if key == "calls" else ""
                shares.append(percent(mean((cell[key] or 0) / (cell[over] if over else 1) for cell in windows)))
            line.append(" → ".join(shares))
        ends = [windows[-1] for windows in courses]
        for key in ("kl", "entropy"):
            known = [cell[key] for cell in ends if cell[key] is not None]  # no KL without a reference
            line.append(f"{mean(known):.2f}" if known else "–")
        line.append(f"{mean(run.row['rollouts'] for run in runs.values()):,.0f}")
        lines.append(line)
    head = ["", *names.values(), "KL at the end", "entropy at the end", "rollouts"]
    return (
        "Samples of training, in %, in the first ten steps, in the middle and in the last ten: groups whose rewards "
        "are all equal, of all tasks; programs for multi-call tasks that execute and that answer right; calls made of "
        f"those that are due. KL and entropy in nats a token:\n\n{markdown(head, lines)}"
    )


def every_run(study: Row, part: Row, courses: Mapping[str, Course]) -> str:
    """A line a run: accuracy at depths 0 to 6 at three steps, composition in between, and how its programs ended."""
    lines = []
    for cell in part["cells"]:
        for key, run in sorted(courses.items()):
            if not key.startswith(f"{part['name']}/{cell}/"):
                continue
            accuracy, last = run.row["accuracy"], run.row["course"][-1]
            shown = [slashed(accuracy[str(step)]) for step in (run.steps[0], middle(run), run.steps[-1])]
            lines.append(
                [
                    f"`{cell}`",
                    f"{run.row['warm_seed']}, {run.row['training_seed']}",
                    *shown,
                    "/".join(percent(value) for value in run.composition),
                    *("–" if (at := run.reached(t)) is None else at for t in study["thresholds"]),
                    *(percent(last[name]) for name in ("executed", "answered")),
                    f"{last['calls']:.1f} of {last['calls_due']:.1f}" if last["calls"] is not None else "–",
                    f"{run.row['alarms'][0]} ({len(run.row['alarms'])})" if run.collapsed else "–",
                ]
            )
    steps = next(iter(courses.values())).steps
    head = ["", "seeds", "before", "half", "end", f"composition every {steps[1] - steps[0]} steps"]
    head += [f"{percent(threshold)}% at" for threshold in study["thresholds"]]
    head += ["executed", "answered", "calls", "alarm (steps)"]
    note = (
        "Every run. Seeds: of the warm start, of the training. Accuracies in % at depths 0 to 6. The last four columns "
        "are of sampled programs for multi-call tasks: means over the last ten steps, and the first step with the "
        "alarm.\n"
    )
    return f"{note}\n{markdown(head, lines)}"


# The warm starts, and what they let one expect


def before(rows: Sequence[Row]) -> str:
    lines = [
        [row["warm_start"], row["warm_seed"], slashed(next(iter(row["accuracy"].values())))]
        for row in rows
        if row["part"] == "warm-starts"
    ]
    return "Greedy accuracy in % at depths 0 to 6 before any training:\n\n" + markdown(
        ["warm start", "seed", "accuracy"], sorted(lines)
    )


def looks(study: Row, rows: Sequence[Row]) -> str:
    """What the lab says of samples from each kind of warm start: means over its seeds."""
    found = [row for row in rows if row["part"] == "look"]
    lines = []
    for kind in study["warm_starts"]:
        mine = [row["lab"] for row in found if row["warm_start"] == kind]
        if not mine:
            continue
        for recipe in study["look"]["recipes"]:
            pairs = [pair for lab in mine for pair in lab["agreement"] if pair["recipes"] == [recipe, TRUTH]]
            tau = [pair["tau_within"] for pair in pairs]
            inner = [lab["recipes"][recipe] for lab in mine]
            lines.append(
                [
                    kind,
                    f"`{recipe}`",
                    f"{mean(cell['mean'] for cell in inner):.3f}",
                    percent(mean(cell["groups"]["without_signal"] for cell in inner)),
                    f"{mean(cell['groups']['spread'] for cell in inner):.3f}",
                    "–" if not any(t is not None for t in tau) else f"{mean(t for t in tau if t is not None):.2f}",
                    *(probed(mine, probe, recipe) for probe in ("one safe call", "no calls", "wrong parameter name")),
                ]
            )
    if not lines:
        return ""
    head = ["warm start", "reward", "mean", "flat groups, %", "spread in groups", "tau-b with a right answer"]
    head += ["one safe call", "no calls", "one wrong parameter name"]
    right = {
        kind: percent(mean(row["lab"]["right"] for row in found if row["warm_start"] == kind))
        for kind in study["warm_starts"]
        if any(row["warm_start"] == kind for row in found)
    }
    shares = ", ".join(f"{share}% ({kind})" for kind, share in right.items())
    return (
        "What the lab says of 60 prompts with 16 completions from each warm start, before any training: means over the "
        f"seeds. The last three columns are mean rewards of its probes. Right answers among the samples: {shares}.\n\n"
        f"{markdown(head, lines)}"
    )


def probed(labs: Sequence[Row], probe: str, recipe: str) -> str:
    """The mean reward of a probe over the looks that have it."""
    cells = [lab["probes"]["probes"].get(probe, {}).get("recipes", {}).get(recipe) for lab in labs]
    known = [cell["mean"] for cell in cells if cell is not None]
    return f"{mean(known):.2f}" if known else "–"


def early(study: Row, runs: Sequence[Course]) -> str:
    """Rank correlation of what the first ten steps show with the final composition, over all runs under one setting."""
    names = ("answered", "executed", "parsed", "zero_variance", "entropy", "reward")
    among = [run for run in runs if run.row["part"] in ("rewards", "weak") and run.row["course"]]
    groups = [("all rewards, both warm starts", among)]
    for cell in ("tier", "simple", "toolrl-guarded"):
        groups.append((f"`{cell}`, both", [run for run in among if run.row["cell"] == cell]))
    plain = [run for run in among if run.row["warm_start"] == "plain"]
    for cell in ("tier", "simple", "toolrl-guarded"):
        groups.append((f"`{cell}`, plain start only", [run for run in plain if run.row["cell"] == cell]))
    lines = []
    for title, mine in groups:
        if len(mine) < 4:
            continue
        finals = [run.final for run in mine]
        figures: list[object] = []
        for name in names:
            values = [run.row["course"][0][name] for run in mine]
            known = all(value is not None for value in values)
            figures.append(f"{spearman(values, finals):+.2f}" if known else "–")
        lines.append([title, len(mine), *figures])
    if not lines:
        return ""
    return "Rank correlation (Spearman) of the first ten steps' metrics with composition at the end:\n\n" + markdown(
        ["", "runs", *names], lines
    )


# Text


def interval(study: Row, runs: Mapping[Seeds, Course], measure: Callable[[Course], float], scale: float = 100) -> str:
    values = {pair: scale * measure(run) for pair, run in runs.items()}
    low, high = bootstrap(values, study["bootstrap"], study["confidence"])
    return f"{sum(values.values()) / len(values):.0f} [{low:.0f}, {high:.0f}]"


def slashed(accuracy: Mapping[str, float]) -> str:
    return "/".join(percent(value) for value in accuracy.values())


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}"


def mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known) if known else math.nan


def markdown(head: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    texts = [[str(cell) for cell in line] for line in lines]
    rule = ["---", *("---:" if all(numeric(line[i]) for line in texts) else "---" for i in range(1, len(head)))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *texts)) + "\n"


def numeric(text: str) -> bool:
    return bool(text) and text[0] in "+-–.0123456789" and "/" not in text


# Curves


def curves(study: Row, rows: Sequence[Row]) -> str:
    """Mean composition over the steps with its interval, a panel a part, as one SVG; empty if there is nothing."""
    courses = {row["key"]: course(row, study["depths"]) for row in rows if "training_seed" in row}
    panels = []
    for part in study["parts"]:
        if any(key.startswith(f"{part['name']}/") for key in courses):
            panels.append((part["title"], cells_of(study, part, courses)))
    if not panels:
        return ""
    width, height, columns = 430, 300, 2
    drawn = []
    for index, (title, cells) in enumerate(panels):
        x, y = width * (index % columns), height * (index // columns)
        drawn.append(f'<g transform="translate({x} {y})">{panel(study, title, cells, width, height)}</g>')
    total = height * math.ceil(len(panels) / columns)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width * columns} {total}" '
        'font-family="system-ui, sans-serif" font-size="11" role="img">'
        "<title>Mean accuracy at depths 2 to 6 over the steps of training, with 95% intervals</title>"
        f'<rect width="{width * columns}" height="{total}" fill="#ffffff"/>{"".join(drawn)}</svg>\n'
    )


def panel(study: Row, title: str, cells: Mapping[str, Mapping[Seeds, Course]], width: int, height: int) -> str:
    left, right, top, bottom = 38, 118, 30, 34
    last = max(run.steps[-1] for runs in cells.values() for run in runs.values())

    def x(step: float) -> float:
        return left + (width - left - right) * step / last

    def y(value: float) -> float:
        return top + (height - top - bottom) * (1 - value)

    parts = [f'<text x="{left}" y="18" font-size="13" font-weight="600" fill="#222">{title}</text>']
    for value in (0, 0.25, 0.5, 0.75, 1):
        parts.append(
            f'<path d="M{left} {y(value):.1f}H{width - right}" stroke="#ddd"/>'
            f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end" fill="#555">{percent(value)}</text>'
        )
    for step in range(0, last + 1, max(1, last // 5)):
        parts.append(f'<text x="{x(step):.1f}" y="{height - 16}" text-anchor="middle" fill="#555">{step}</text>')
    for number, (name, runs) in enumerate(cells.items()):
        colour = COLOURS[number % len(COLOURS)]
        steps = next(iter(runs.values())).steps
        bounds, middle_line = [], []
        for step in steps:
            values = {pair: run.at(step) for pair, run in runs.items()}
            bounds.append(bootstrap(values, 2000, study["confidence"]))
            middle_line.append(sum(values.values()) / len(values))
        upper = " ".join(f"{x(step):.1f},{y(high):.1f}" for step, (_, high) in zip(steps, bounds, strict=True))
        lower = [f"{x(step):.1f},{y(low):.1f}" for step, (low, _) in zip(steps, bounds, strict=True)]
        line = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in zip(steps, middle_line, strict=True))
        parts.append(f'<polygon points="{upper} {" ".join(reversed(lower))}" fill="{colour}" fill-opacity="0.12"/>')
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        place = top + 8 + 16 * number
        parts.append(
            f'<path d="M{width - right + 8} {place}h16" stroke="{colour}" stroke-width="3"/>'
            f'<text x="{width - right + 28}" y="{place + 4}" fill="#222">{name}</text>'
        )
    return "".join(parts)
