"""Replay: what a stored rollout did then, against what it does now in a fresh session of the same seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field

from callwright.training.evaluation import judge
from callwright.walk.attempt import Attempt
from callwright.walk.reward import Reward
from callwright.walk.trace import observations

#: How far apart two numbers are that are the same: rows hold what a sum came to on another machine.
_NEAR = 1e-9


@define
class Replay:
    """Counts over all rollouts. ``differences`` holds each one found: the row, the call, what was and what came."""

    rows: int = 0
    observed: int = 0
    calls: int = 0
    masked: int = 0
    unconfirmed: int = 0
    rewards: int = 0
    verdicts: int = 0
    differing: int = 0
    differences: list[dict[str, Any]] = field(factory=list)

    def check(self, row_id: str | int, row: Mapping[str, Any], attempt: Attempt, reward: Reward) -> None:
        """Compare one rollout's observations, its verdict and, under the recipe of the run, its reward."""
        self.rows += 1
        before = len(self.differences)
        now = observations(attempt.trace)
        then = row.get("observations", ...)
        was_masked = row.get("masked") is not None
        if attempt.masked is not None or was_masked:
            self.masked += 1
            self.unconfirmed += not was_masked
            if was_masked and row.get("total") is not None:  # whatever was masked earned nothing
                self._differ(row_id, None, "total", row["total"], None)
                self.differing += 1
            return
        if then is not ...:
            self.observed += 1
            self._observations(row_id, then, now)
        self._reward(row_id, row, reward)
        self._verdict(row_id, row, attempt)
        self.differing += len(self.differences) > before

    def _observations(self, row_id: str | int, then: Any, now: list[dict[str, str | int]] | None) -> None:
        mine, theirs = now or [], then if isinstance(then, list) else []
        if (now is None) != (then is None) or len(mine) != len(theirs):
            self._differ(row_id, None, "calls", _count(then), _count(now))
            return
        for found, stored in zip(mine, theirs, strict=True):
            self.calls += 1
            known = stored if isinstance(stored, dict) else {}
            for key in ("call", "kind", "code", "value", "state"):
                if known.get(key) != found[key]:
                    self._differ(row_id, found["call"], key, known.get(key), found[key])
                    break  # what comes after in the same call follows from it

    def _reward(self, row_id: str | int, row: Mapping[str, Any], reward: Reward) -> None:
        scores = row.get("scores")
        if not isinstance(scores, dict) or scores.keys() != reward.scores.keys():
            return  # the run was scored with terms that its recipe file does not name
        self.rewards += 1
        for name, weighted in reward.scores.items():
            stored = scores[name]
            value = stored.get("value") if isinstance(stored, dict) else None
            self._number(row_id, f"score of {name}", value, weighted.score.value)
        if "total" in row:
            self._number(row_id, "total", row["total"], reward.total)
        if "stage" in row and row["stage"] != reward.stage:
            self._differ(row_id, None, "stage", row["stage"], reward.stage)

    def _verdict(self, row_id: str | int, row: Mapping[str, Any], attempt: Attempt) -> None:
        """Whether it was right, and why not: that hangs on no recipe."""
        if "answered" not in row and "failure" not in row:
            return
        self.verdicts += 1
        verdict = judge(attempt)
        for key, now in (("answered", verdict.answer), ("failure", verdict.failure)):
            if key in row and row[key] != now:
                self._differ(row_id, None, key, row[key], now)

    def _number(self, row_id: str | int, what: str, then: Any, now: float | None) -> None:
        same = then is None if now is None else type(then) in (int, float) and abs(then - now) <= _NEAR
        if not same:
            self._differ(row_id, None, what, then, now)

    def _differ(self, row_id: str | int, call: Any, what: str, then: Any, now: Any) -> None:
        self.differences.append({"id": row_id, "call": call, "what": what, "recorded": then, "now": now})

    def merge(self, other: Replay) -> None:
        """Add what was found of other rollouts."""
        self.rows += other.rows
        self.observed += other.observed
        self.calls += other.calls
        self.masked += other.masked
        self.unconfirmed += other.unconfirmed
        self.rewards += other.rewards
        self.verdicts += other.verdicts
        self.differing += other.differing
        self.differences += other.differences

    @property
    def same(self) -> bool:
        """Whether everything that could be compared is as it was."""
        return not self.differences and not self.unconfirmed

    def sentences(self) -> list[str]:
        """What was compared and what came of it."""
        said = []
        if not self.observed and self.rows > self.masked:
            said.append("These rollouts hold no observations, so only rewards can be compared; newer runs store them.")
        elif self.observed < self.rows - self.masked:
            said.append(f"{self.rows - self.masked - self.observed:,} rollouts hold no observations.")
        compared = f"{self.observed:,} rollouts with {self.calls:,} calls executed again"
        rewards = f"{self.rewards:,} rewards of the run's own recipe computed again"
        verdicts = f", {self.verdicts:,} answers judged again" if self.verdicts else ""
        said.append(f"{compared}, {rewards}{verdicts}: {self.differing or 'no'} rollouts differ.")
        if self.masked:
            now = f", {self.unconfirmed:,} of them only now" if self.unconfirmed else ""
            said.append(
                f"{self.masked:,} rollouts are masked{now}: their tools or servers failed, or they were cut off."
            )
        return said

    def to_json(self) -> dict[str, Any]:
        """The counts, and every difference."""
        return {
            "rows": self.rows,
            "observed": self.observed,
            "calls": self.calls,
            "rewards": self.rewards,
            "verdicts": self.verdicts,
            "masked": self.masked,
            "unconfirmed": self.unconfirmed,
            "differing": self.differing,
            "differences": self.differences,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Replay:
        """What :meth:`to_json` kept; nothing compared yet if it is empty.

        Raises ``KeyError`` or ``TypeError`` for anything else.
        """
        if not state:
            return cls()
        counts = {key: state[key] for key in ("rows", "observed", "calls", "masked", "unconfirmed", "rewards")}
        if not isinstance(state["differences"], list):
            raise TypeError("'differences' is no list")
        return cls(
            **counts,
            verdicts=state["verdicts"],
            differing=state["differing"],
            differences=list(state["differences"]),
        )


def _count(observed: Any) -> str:
    return f"{len(observed)} calls" if isinstance(observed, list) else "no program"
