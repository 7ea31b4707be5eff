"""Yields: what became of units, by stage and reason, and what it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import define, field

from callwright.training.spending import total


@define
class Yields:
    """Counts over units. The order in which they are told plays no part."""

    planned: int = 0
    accepted: int = 0
    kept: int = 0
    #: By stage and reason.
    rejected: Counter[tuple[str, str]] = field(factory=Counter)
    #: Of the rows that say what they took.
    usages: list[Mapping[str, Any]] = field(factory=list, repr=False)

    def add(self, row: Mapping[str, Any]) -> None:
        """A finished unit."""
        if "accepted" in row:
            self.accepted += 1
        else:
            self.reject(row["rejected"])
        if "usage" in row:
            self.usages.append(row["usage"])

    def reject(self, said: Mapping[str, Any]) -> None:
        """A unit that goes."""
        self.rejected[said["stage"], said["reason"]] += 1

    @property
    def cost(self) -> float:
        """What the replies to all units cost."""
        return float(total(self.usages).get("cost", 0.0))

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON: what came through, then what was rejected by stage and reason, the most first."""
        stages: dict[str, dict[str, int]] = {}
        for (stage, reason), count in sorted(self.rejected.items(), key=lambda one: (-one[1], one[0])):
            stages.setdefault(stage, {})[reason] = count
        return {"planned": self.planned, "accepted": self.accepted, "kept": self.kept, "rejected": stages}

    def usage(self) -> dict[str, float]:
        """The figures of all replies; empty if no teacher was asked."""
        return total(self.usages) if self.usages else {}


def lines(found: Mapping[str, Any]) -> Iterable[str]:
    """The yields of a manifest for people, a line each."""
    yield f"{found['planned']:,} units, {found['accepted']:,} accepted, {found['kept']:,} kept"
    for stage, reasons in found["rejected"].items():
        for reason, count in reasons.items():
            yield f"  {stage}: {reason}: {count:,}"
