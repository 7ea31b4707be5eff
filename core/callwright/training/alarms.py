"""Alarms: what the rows of ``metrics.jsonl`` say about the health of a training run.

All are in :data:`ALARMS`, each with its threshold, its window and its sentence. A trainer keeps a :class:`Watch`:

    watch = Watch(run.rows("metrics.jsonl"))
    found = watch.look(row)             # before the row is written
    row["alarm"] = found.text
    ...                                 # say found.news, write the row
    if found.stop is not None:          # and end, so that the run can go on from here
        raise RunError(found.stop)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from callwright.training.algorithm import GroupBaseline
from callwright.training.truncation import CUT, alarm_of_truncation
from callwright.training.truncation import WINDOW as CUT_WINDOW

Row = Mapping[str, Any]

#: Steps from the beginning of a run which say what its entropy was; the first alarm about it can come after them.
BEGINNING: Final = 5


@frozen
class Rule:
    """One alarm. ``look(first, last, rule)`` gives its sentence, or ``None``.

    ``first`` are the first :data:`BEGINNING` rows of the run, ``last`` the newest :attr:`window` of them (fewer at its
    beginning), oldest first. With ``stops`` the run ends, in a state from which it can go on.
    """

    name: str
    threshold: float
    window: int
    look: Callable[[Sequence[Row], Sequence[Row], Rule], str | None]
    stops: bool = False
    #: It holds for algorithms that compare the completions of a prompt with one another, and for no others.
    grouped: bool = False


def _figures(rows: Sequence[Row], key: str, window: int) -> list[float] | None:
    """A figure of whole windows of rows; ``None`` if one of them has it not."""
    found = [row.get(key) for row in rows]
    if len(found) < window or any(value is None for value in found):
        return None
    return [float(value) for value in found if value is not None]


def masked_share(row: Row) -> float:
    """The share of a step's rollouts that the machinery failed; those that the recipe masks as cut off are none."""
    count = row.get("rollouts") or 0
    return (row.get("masked", 0) - row.get("masked_cut", 0)) / count if count else 0.0


def mostly_masked(row: Row) -> bool:
    """Whether a step is one of those of which the alarm ``masked`` wants several in a row."""
    return masked_share(row) > MASKED.threshold


def _masked(first: Sequence[Row], last: Sequence[Row], rule: Rule) -> str | None:
    if len(last) < rule.window or not all(mostly_masked(row) for row in last):
        return None
    lost = sum(row["masked"] - row.get("masked_cut", 0) for row in last)
    count = sum(row["rollouts"] for row in last)
    return (
        f"{lost:,} of the {count:,} samples of the last {rule.window} steps are masked, more than {rule.threshold:.0%} "
        "in each: the machinery that executes or scores them fails (a judge, a server, an environment). Find out why "
        "(rollouts.jsonl says it under 'masked'), and go on when it answers again"
    )


_FLAT: Final = (
    "which teach nothing: the tasks are all too easy or too hard for this policy, or the reward cannot tell its "
    "completions apart"
)


def _mean_reward(last: Sequence[Row]) -> str:
    return f"(their mean is {sum(row.get('reward') or 0.0 for row in last) / len(last):.3g})"


def _equal_rewards(first: Sequence[Row], last: Sequence[Row], rule: Rule) -> str | None:
    spread = _figures(last, "reward_std", rule.window)
    if spread is None or max(spread) > rule.threshold:
        return None
    return f"all samples of each of the last {rule.window} steps had equal rewards {_mean_reward(last)}, {_FLAT}"


def _equal_groups(first: Sequence[Row], last: Sequence[Row], rule: Rule) -> str | None:
    equal = _figures(last, "zero_variance", rule.window)
    if equal is None or min(equal) < rule.threshold or _equal_rewards(first, last, EQUAL_REWARDS) is not None:
        return None
    return f"the samples of each prompt of the last {rule.window} steps had equal rewards {_mean_reward(last)}, {_FLAT}"


def _entropy(first: Sequence[Row], last: Sequence[Row], rule: Rule) -> str | None:
    begun, now = _figures(first, "entropy", BEGINNING), _figures(last, "entropy", rule.window)
    if begun is None or now is None:
        return None
    before, mean = sum(begun) / len(begun), sum(now) / len(now)
    if before <= 0 or mean >= rule.threshold * before:
        return None
    return (
        f"the entropy is gone: {mean:.3g} nats a token over the last {rule.window} steps, less than "
        f"{rule.threshold:.0%} of the {before:.3g} of the first {BEGINNING}. The policy hardly explores any more: a "
        "larger kl_weight, entropy_weight or epsilon_high, or a smaller learning_rate keeps more of it"
    )


def _kl(first: Sequence[Row], last: Sequence[Row], rule: Rule) -> str | None:
    found = _figures(last, "kl", rule.window)
    if found is None or sum(found) / len(found) <= rule.threshold:
        return None
    return (
        f"the policy has left its reference: a divergence of {sum(found) / len(found):.3g} nats a token over the last "
        f"{rule.window} steps, more than {rule.threshold:g}. A larger kl_weight or a smaller learning_rate keeps it "
        "nearer; where completions still read well, nothing may be wrong"
    )


def _cut_off(first: Sequence[Row], last: Sequence[Row], rule: Rule) -> str | None:
    return alarm_of_truncation(last)


MASKED: Final = Rule("masked", threshold=0.5, window=3, look=_masked, stops=True)
EQUAL_REWARDS: Final = Rule("equal_rewards", threshold=1e-6, window=10, look=_equal_rewards)

#: In the order in which they are said.
ALARMS: Final = (
    MASKED,
    EQUAL_REWARDS,
    Rule("equal_groups", threshold=1.0, window=10, look=_equal_groups, grouped=True),
    Rule("cut_off", threshold=CUT, window=CUT_WINDOW, look=_cut_off),
    Rule("entropy", threshold=0.1, window=10, look=_entropy),
    Rule("kl", threshold=2.0, window=5, look=_kl),
)


def alarms_of(algorithm: object) -> tuple[Rule, ...]:
    """Those that mean something under an algorithm."""
    return tuple(rule for rule in ALARMS if isinstance(algorithm, GroupBaseline) or not rule.grouped)


def not_finite(updates: int, of: int, tasks: Sequence[str], found: Sequence[str]) -> dict[str, Any]:
    """What a row says of a step that was not finite: how many of its updates were left out, and what they were.

    ``tasks`` are the ids of the step's prompts, ``found`` the figures of each such update in words.
    """
    return {"updates": updates, "of": of, "tasks": list(tasks), "found": list(found)}


def _not_finite(streak: Sequence[Row], limit: int) -> tuple[str | None, bool]:
    """The sentence about the steps in a row that were not finite, and whether there are too many by now.

    A run that was stopped for them and goes on has as many again.
    """
    if not streak:
        return None, False
    told = "; ".join(
        f"step {row['step']}: {', '.join(_few(row['not_finite']['found']))}, prompts "
        f"{', '.join(_few(row['not_finite']['tasks'])) or 'unknown'}"
        for row in streak[-limit:]
    )
    one = len(streak) == 1
    return (
        f"{'a step was' if one else f'{len(streak)} steps in a row were'} not finite, and "
        f"{'its update was' if one else 'their updates were'} left out ({told}): lower learning_rate or clip_norm, use "
        "dtype = 'float32', or look at the rewards of these prompts"
    ), len(streak) % limit == 0


def _few(words: Sequence[str], most: int = 4) -> list[str]:
    return [*words[:most], *([f"{len(words) - most} more"] if len(words) > most else [])]


@frozen
class Found:
    """The alarms of a row: all in one text, those that were not raised before it, and why the run must end."""

    text: str | None = None
    news: tuple[str, ...] = ()
    stop: str | None = None


class Watch:
    """Looks at the rows of a run, of which ``rows`` are written already; it says the same after a stop as without one.

    ``limit`` is after how many steps in a row that were not finite the run must end, ``raised`` the names of
    a trainer's own alarms that the last row has.
    """

    def __init__(
        self, rows: Sequence[Row] = (), limit: int = 3, rules: Sequence[Rule] = ALARMS, raised: Iterable[str] = ()
    ) -> None:
        self._rules, self._limit = rules, limit
        self._first: list[Row] = list(rows[:BEGINNING])
        self._last: list[Row] = []
        self._streak: list[Row] = []
        self._raised: frozenset[str] = frozenset()
        longest = max((rule.window for rule in rules), default=1)
        for row in rows[-(longest + 1) :]:
            self._take(row)
            self._raised = frozenset([*raised, *(name for name, _ in self._raising())])
        for row in reversed(rows):
            if "not_finite" not in row:
                break
            self._streak.insert(0, row)
        if self._streak:
            self._raised |= {"not_finite"}

    def _take(self, row: Row) -> None:
        longest = max((rule.window for rule in self._rules), default=1)
        self._last = [*self._last, row][-longest:]

    def _raising(self) -> list[tuple[str, str]]:
        found = [(rule.name, rule.look(self._first, self._last[-rule.window :], rule)) for rule in self._rules]
        return [(name, said) for name, said in found if said is not None]

    def look(self, row: Row, *others: tuple[str, str | None]) -> Found:
        """Take the next row, and say what is raised; ``others`` are alarms of the trainer's own: names, sentences."""
        if len(self._first) < BEGINNING:
            self._first.append(row)
        self._take(row)
        self._streak = [*self._streak, row] if "not_finite" in row else []
        said, over = _not_finite(self._streak, self._limit)
        raised = [("not_finite", said)] if said is not None else []
        raised += [(name, text) for name, text in others if text is not None]
        raised += self._raising()
        stops = [text for rule in self._rules if rule.stops for name, text in raised if name == rule.name]
        if over and said is not None:
            stops.insert(0, said)
        news = tuple(text for name, text in raised if name not in self._raised)
        self._raised = frozenset(name for name, _ in raised)
        return Found("; also: ".join(text for _, text in raised) or None, news, stops[0] if stops else None)


def stopped(step: int, reason: str, where: str = "") -> str:
    """What a run says that an alarm ended after ``step`` steps; ``where`` may say of what."""
    return (
        f"stopped after step {step}{where}: {reason}. The run folder is whole, and the same command goes on with it; "
        "other settings need another folder"
    )


def written(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as it can be written: numbers that are not finite, also in tables and lists, are null."""
    return {key: _written(value) for key, value in row.items()}


def _written(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return written(value)
    if isinstance(value, list | tuple):
        return [_written(one) for one in value]
    return value
