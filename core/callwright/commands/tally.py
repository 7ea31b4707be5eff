"""The summary of many rewards: counts and exact means, which several workers can add up in any order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from attrs import define, field

from callwright.language.shortening import shortened
from callwright.training.spending import in_words, total
from callwright.walk.reward import STAGES
from callwright.walk.undeclared import ToolCalls

if TYPE_CHECKING:
    from callwright.walk.reward import Reward


@define
class Tally:
    """What a summary says of all rows. Sums are exact (:func:`_exact`), so it does not matter who added what first."""

    rows: int = 0
    bad: int = 0
    masked: int = 0
    total: int = 0
    sums: dict[str, int] = field(factory=dict)
    #: Of each component the lowest and the highest value that any row could have got, and its weight in the first row.
    ranges: dict[str, tuple[float, float, float]] = field(factory=dict)
    stages: Counter[str] = field(factory=Counter)
    tools: ToolCalls = field(factory=ToolCalls)
    #: Why rows are masked, without the numbers by which equal reasons differ, and how many of each.
    reasons: Counter[str] = field(factory=Counter)
    #: What components that ask servers took of them (:class:`callwright.training.spending.Meter`).
    usage: dict[str, float] = field(factory=dict)

    def spend(self, usage: Mapping[str, float]) -> None:
        """Count what was asked of servers."""
        if usage:
            self.usage = total([self.usage, usage])

    def add(self, reward: Reward) -> None:
        """Count one reward. Masked ones are counted and take no part in any mean."""
        self.rows += 1
        if reward.total is None:
            self.masked += 1
            reason = _DIGITS.sub("#", reward.masked or "no reason given")
            if reason in self.reasons or len(self.reasons) < _MOST_REASONS:
                self.reasons[reason] += 1
            return
        self.total += _exact(reward.total)
        self.stages[reward.stage] += 1
        sums = self.sums
        for name, weighted in reward.scores.items():
            score = weighted.score
            if name in sums:
                sums[name] += _exact(score.value)
                low, high, weight = self.ranges[name]
                if score.low < low or score.high > high:  # some components have another range for each task
                    self.ranges[name] = (min(low, score.low), max(high, score.high), weight)
            else:
                sums[name] = _exact(score.value)
                self.ranges[name] = (score.low, score.high, weighted.weight)

    def merge(self, other: Tally) -> None:
        """Add what was counted of other rows."""
        self.rows += other.rows
        self.bad += other.bad
        self.masked += other.masked
        self.total += other.total
        self.stages.update(other.stages)
        self.reasons.update(other.reasons)
        self.tools.merge(other.tools)
        self.spend(other.usage)
        for name, value in other.sums.items():
            self.sums[name] = self.sums.get(name, 0) + value
            low, high, weight = other.ranges[name]
            if name in self.ranges:
                mine = self.ranges[name]
                low, high, weight = min(low, mine[0]), max(high, mine[1]), mine[2]
            self.ranges[name] = (low, high, weight)

    def to_state(self) -> dict[str, Any]:
        """Everything that was counted, as JSON: :meth:`from_state` goes on from it."""
        return {
            "rows": self.rows,
            "bad": self.bad,
            "masked": self.masked,
            "total": str(self.total),  # of hundreds of digits, which other readers of JSON would round
            "sums": {name: str(value) for name, value in self.sums.items()},
            "ranges": self.ranges,
            "stages": self.stages,
            **({"reasons": self.reasons} if self.reasons else {}),
            "tools": {
                "calls": self.tools.calls,
                "undeclared": self.tools.undeclared,
                "accounts": self.tools.accounts,
            },
            **({"usage": self.usage} if self.usage else {}),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Tally:
        """What :meth:`to_state` kept; nothing counted yet if it is empty.

        Raises ``KeyError``, ``TypeError`` or ``ValueError`` for anything else.
        """
        if not state:
            return cls()
        tools = state["tools"]
        return cls(
            rows=int(state["rows"]),
            bad=int(state["bad"]),
            masked=int(state["masked"]),
            total=int(state["total"]),
            sums={name: int(value) for name, value in state["sums"].items()},
            ranges={name: (low, high, weight) for name, (low, high, weight) in state["ranges"].items()},
            stages=Counter(state["stages"]),
            tools=ToolCalls(Counter(tools["calls"]), Counter(tools["undeclared"]), dict(tools["accounts"])),
            reasons=Counter(state.get("reasons", {})),
            usage=dict(state.get("usage", {})),
        )

    @property
    def counted(self) -> int:
        """Rows that have a total."""
        return self.rows - self.masked

    @property
    def mean(self) -> float | None:
        """The mean total; ``None`` without a row that has one."""
        return _mean(self.total, self.counted) if self.counted else None

    def to_json(self) -> dict[str, Any]:
        """The summary as ``callwright score --json`` prints it."""
        count = self.counted
        undeclared = self.tools.to_json()
        return {
            "rows": self.rows,
            "bad": self.bad,
            "masked": self.masked,
            "mean_total": self.mean,
            "components": {
                name: {"mean": _mean(value, count), "low": low, "high": high, "weight": weight}
                for (name, value), (low, high, weight) in zip(self.sums.items(), self.ranges.values(), strict=True)
            },
            "stages": {stage: self.stages[stage] for stage in (*STAGES, "done") if stage in self.stages},
            **({"undeclared": undeclared} if undeclared else {}),
            **({"usage": self.usage} if self.usage else {}),
        }

    def why_masked(self) -> Iterator[str]:
        """The commonest reasons why rows are masked, a sentence each; at the end whether that was all of them."""
        for reason, count in self.reasons.most_common(_SAID_REASONS):
            yield f"{count:,} masked: {shortened(reason, _LONGEST_REASON)}"
        if self.masked and not self.counted:
            yield "every row is masked: nothing is known of them, and nothing was scored"

    def sentence(self) -> str:
        """The summary in one line."""
        mean = f", mean total {self.mean:.4f}" if self.mean is not None else ""
        undeclared = f"; {self.tools.sentence}" if self.tools.undeclared else ""
        asked = f"; asked: {in_words(self.usage)}" if self.usage else ""
        return f"{self.rows:,} rows scored, {self.masked:,} of them masked, {self.bad:,} bad{mean}{undeclared}{asked}"


_DIGITS: Final = re.compile(r"\d+")
#: Reasons why rows are masked that are counted, that are said, and the characters of one.
_MOST_REASONS: Final = 1000
_SAID_REASONS: Final = 3
_LONGEST_REASON: Final = 400
#: The smallest positive float is 2 to the power of minus this; every float is a whole multiple of it.
_FINEST: Final = 1074


@lru_cache(maxsize=4096)
def _exact(value: float) -> int:
    """A float in units of the smallest one: an integer, so that sums of it are exact in any order."""
    numerator, denominator = float(value).as_integer_ratio()
    return numerator << (_FINEST - denominator.bit_length() + 1)


def _mean(total: int, count: int) -> float:
    return total / (count << _FINEST)
