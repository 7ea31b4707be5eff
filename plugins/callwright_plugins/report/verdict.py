"""What a run came to, in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from attrs import evolve, frozen

from callwright.statistics.shares import wilson
from callwright.walk.undeclared import ALARMING
from callwright_plugins.report.drawing.markup import cut, percent, points
from callwright_plugins.report.reading import RunData, dig, number, table


@frozen
class Change:
    """Accuracy before and after with 95% intervals, in [0, 1]. Either side may be ``None``: not measured."""

    label: str
    n: int
    before: tuple[float, float, float] | None
    after: tuple[float, float, float] | None

    @property
    def gain(self) -> float | None:
        """After minus before."""
        return self.after[0] - self.before[0] if self.before and self.after else None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """A 95% interval of the gain, by Newcombe's method from the two Wilson intervals (conservative here: both
        measurements are of the same tasks).
        """
        if self.before is None or self.after is None:
            return None
        (p, p_low, p_high), (q, q_low, q_high) = self.before, self.after
        return (
            q - p - math.hypot(q - q_low, p_high - p),
            q - p + math.hypot(q_high - q, p - p_low),
        )

    @property
    def direction(self) -> int:
        """1: better, -1: worse, 0: no difference beyond chance (or not measured)."""
        bounds = self.bounds
        if bounds is None:
            return 0
        return 1 if bounds[0] > 0 else -1 if bounds[1] < 0 else 0


def overall(data: RunData) -> Change:
    """Accuracy over all tasks."""
    return Change("all", _count(data.after) or _count(data.before), _whole(data.before), _whole(data.after))


def changes(data: RunData, by: str) -> list[Change]:
    """Accuracy by ``by_depth`` or ``by_structure``."""
    return compared(table(data.before.get(by)), table(data.after.get(by)))


def compared(first: dict[str, Any], last: dict[str, Any]) -> list[Change]:
    """The cells of two tables by their names."""
    found = []
    for label in sorted({**first, **last}, key=_order):
        before, after = _cell(first.get(label)), _cell(last.get(label))
        count = number(table(last.get(label)).get("n")) or number(table(first.get(label)).get("n")) or 0
        found.append(Change(label, int(count), before, after))
    return found


def _order(label: str) -> tuple[int, str]:
    return (int(label), "") if label.isdecimal() and len(label) < 9 else (10**9, label)


def _cell(value: object) -> tuple[float, float, float] | None:
    cell = table(value)
    accuracy, low, high = (number(cell.get(key)) for key in ("accuracy", "low", "high"))
    if accuracy is None:
        return None
    return accuracy, accuracy if low is None else low, accuracy if high is None else high


def _count(result: dict[str, Any]) -> int:
    stated = number(result.get("n"))
    if stated is not None:
        return int(stated)
    return int(sum(number(dig(cell, ("n",))) or 0 for cell in table(result.get("by_depth")).values()))


def _whole(result: dict[str, Any]) -> tuple[float, float, float] | None:
    share = number(result.get("overall"))
    if share is None:
        return None
    if (cell := _cell(result.get("all"))) is not None:
        return cell
    count = _count(result)  # of an earlier version
    return (share, *wilson(round(share * count), count))


@frozen
class LearningVerdict:
    """``headline``: one sentence; ``details``: what qualifies it; ``state``: how far the run is.

    ``direction`` is 1 if accuracy rose beyond chance, -1 if it fell.
    """

    state: str
    headline: str
    details: tuple[str, ...] = ()
    direction: int = 0


def verdict(data: RunData) -> LearningVerdict:
    """The verdict on a run, finished or not: with the alarm of its last step, if that raised one."""
    found = _judged(data)
    ending = data.metrics[-1] if data.metrics else data.warm_alarms[-1] if data.warm_alarms else {}
    said = ending.get("alarm")
    if not isinstance(said, str) or not said:
        return found
    where = f"the last step, {ending['step']:,}" if data.metrics else f"step {ending['step']:,} of the warm start"
    return evolve(found, details=(*found.details, f"Alarm in {where}: {cut(said, 600)}."))


def _judged(data: RunData) -> LearningVerdict:
    planned = data.planned
    of = f" of {planned:,}" if planned else ""
    if data.after:
        state = "finished"
    elif data.metrics:
        state = f"stopped at step {data.steps:,}{of}"
    elif data.warm_start:
        state = "stopped in the warm start"
    else:
        state = "nothing written yet"
    whole = overall(data)
    if whole.gain is not None:
        return LearningVerdict(state, _headline(whole), tuple(_by_depth(changes(data, "by_depth"))), whole.direction)
    if data.metrics:
        return LearningVerdict(state, _unfinished(data), ("There is no evaluation after training to compare with.",))
    if whole.before is not None:
        return LearningVerdict(
            state, f"Before training, {percent(whole.before[0])} of {whole.n:,} held-out tasks were right."
        )
    if data.warm_start:
        return LearningVerdict(state, f"The warm start has run {len(data.warm_start):,} steps; training has not begun.")
    return LearningVerdict(state, "This run has written no results.")


def _headline(whole: Change) -> str:
    assert whole.before is not None
    assert whole.after is not None
    first, last = percent(whole.before[0]), percent(whole.after[0])
    change = f"{points(whole.gain or 0, signed=True)} points"
    tasks = f"on {whole.n:,} held-out tasks"
    if whole.direction > 0:
        return f"Accuracy {tasks} rose from {first} to {last} ({change})."
    if whole.direction < 0:
        return f"Accuracy {tasks} fell from {first} to {last} ({change})."
    if first == last:
        return f"Accuracy {tasks} is {first}, before and after."
    return f"Accuracy {tasks} went from {first} to {last}, no more than chance explains."


def _by_depth(found: Sequence[Change]) -> list[str]:
    better = [change for change in found if change.direction > 0]
    worse = [change for change in found if change.direction < 0]
    sentences = []
    if better:
        top = max(better, key=lambda change: change.gain or 0)
        gained = f"{_depths(better)} gained beyond chance" if len(better) < len(found) else "Every depth gained"
        sentences.append(f"{gained}, most at depth {top.label} ({points(top.gain or 0, signed=True)} points).")
    if worse:
        sentences.append(f"{_depths(worse)} lost accuracy.")
    if not better and not worse:
        sentences.append("No depth changed beyond chance.")
    same = [change for change in found if not change.direction and change.bounds is not None]
    unsolved = [change for change in same if change.after is not None and change.after[0] < 0.5]
    if unsolved:
        still = "stays" if len(unsolved) == 1 else "stay"
        sentences.append(f"{_depths(unsolved)} {still} below half.")
    return sentences


def _depths(found: Sequence[Change]) -> str:
    runs: list[list[str]] = []
    for change in found:
        if runs and change.label.isdecimal() and change.label == _next(runs[-1][-1]):
            runs[-1].append(change.label)
        else:
            runs.append([change.label])
    parts = [part for run in runs for part in (run if len(run) < 3 else [f"{run[0]}–{run[-1]}"])]
    if len(parts) == 1:
        return f"Depth{'s' if len(found) > 1 else ''} {parts[0]}"
    return f"Depths {', '.join(parts[:-1])} and {parts[-1]}"


def _next(label: str) -> str:
    return str(int(label) + 1) if label.isdecimal() and len(label) < 9 else ""


def _unfinished(data: RunData) -> str:
    rewards = [value for value in data.series("reward") if value is not None]
    if not rewards:
        return f"{data.steps:,} steps were trained."
    window = max(1, min(10, len(rewards) // 3))
    first, last = sum(rewards[:window]) / window, sum(rewards[-window:]) / window
    return f"After {data.steps:,} steps the mean reward is {last:.2f}; it began at {first:.2f}."


@frozen
class Alarm:
    """A warning and the steps at which it was raised."""

    text: str
    first: int
    last: int


def undeclared(parts: Iterable[Any]) -> str:
    """What tools raised without declaring it, in words; empty if nothing. Steps without such failures do not count."""
    calls: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for part in parts:
        for tool, counts in part.items() if isinstance(part, dict) else ():
            if isinstance(counts, dict):
                calls[tool] += int(number(counts.get("calls")) or 0)
                failures[tool] += int(number(counts.get("failures")) or 0)
    listed = [
        f"{tool} in {count:,} of {calls[tool]:,} calls" + (" (alarming)" if count > ALARMING * calls[tool] else "")
        for tool, count in sorted(failures.items())
        if count
    ]
    return f"Tools raised what they do not declare, most likely a bug: {', '.join(listed)}." if listed else ""


def alarms(data: RunData) -> list[Alarm]:
    """Alarms of consecutive steps joined, first those of the warm start; the newest wording of each is shown."""
    return [*_joined(data.warm_alarms, "in the warm start: "), *_joined(data.metrics)]


def _joined(rows: Iterable[dict[str, Any]], where: str = "") -> list[Alarm]:
    found: list[Alarm] = []
    for row in rows:
        text = row.get("alarm")
        if not isinstance(text, str) or not text:
            continue
        step, text = row["step"], where + text
        if found and found[-1].last == step - 1:
            found[-1] = Alarm(text, found[-1].first, step)
        else:
            found.append(Alarm(text, step, step))
    return found


def notices(data: RunData) -> list[str]:
    """What a careful reader would want to know of the last quarter of training, beside the alarms."""
    found = []
    late = data.metrics[-max(1, len(data.metrics) // 4) :] if data.metrics else []

    def mean(*path: str) -> float | None:
        values = [value for row in late if (value := number(dig(row, path))) is not None]
        return sum(values) / len(values) if values else None

    several = [mean("multi_call", name) for name in ("executed", "answered", "calls", "calls_due")]
    executed, answered, made, due = (value if value is not None else math.nan for value in several)
    if executed - answered > 0.4 and made < 0.75 * due:  # never so if one of them is not known
        found.append(
            f"In the last quarter {executed:.0%} of the programs for multi-call tasks executed, but {answered:.0%} "
            f"answered rightly, with {made:.1f} calls where {due:.1f} are due: safe calls instead of right ones."
        )
    equal, cut = mean("zero_variance"), mean("truncated")
    if equal is not None and equal > 0.6:
        found.append(
            f"In the last quarter {equal:.0%} of the groups had equal rewards throughout, so they taught nothing."
        )
    if cut is not None and cut > 0.1:
        found.append(f"In the last quarter {cut:.0%} of the completions were cut off by the length limit.")
    entropies = [value for value in data.series("entropy") if value is not None]
    late_entropy = mean("entropy")
    if late_entropy is not None and len(entropies) >= 8 and entropies[0] > 0 and late_entropy < entropies[0] / 10:
        found.append("Entropy has fallen to less than a tenth of where it began: the policy hardly explores any more.")
    cut_ones = sum(number(row.get("masked_cut")) or 0 for row in data.metrics)
    masked = sum(number(row.get("masked")) or 0 for row in data.metrics) - cut_ones
    left_out = sum("not_finite" in row for row in data.metrics)
    if left_out:
        found.append(f"{left_out:,} of {len(data.metrics):,} steps were not finite; their updates were left out.")
    if masked > 0:
        found.append(f"{masked:,.0f} rollouts were masked because their tools or servers failed.")
    if cut_ones:
        found.append(f"{cut_ones:,.0f} rollouts were masked because the length limit cut them off, as the recipe asks.")
    if raised := undeclared(row.get("undeclared") for row in data.metrics):
        found.append(raised)
    for when, result in (("before", data.before), ("after", data.after)):
        lost = number(result.get("masked"))
        if lost:
            found.append(f"{lost:,.0f} tasks of the evaluation {when} training were masked and are not counted.")
    return found
