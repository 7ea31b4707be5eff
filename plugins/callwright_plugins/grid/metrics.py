"""Figures of a finished run by their names: accuracy from its evaluations, the rest from the end of its metrics."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from callwright.commands.file_formats import schema_of
from callwright.errors import UnknownName, UsageError
from callwright.training.run_folder import METRICS, Run

#: What is always measured and compared.
ALWAYS: Final = ("before", "after", "gain", "reward")
#: Steps at the end of training over which a figure of ``metrics.jsonl`` is averaged.
WINDOW: Final = 10
_ACCURACY: Final = re.compile(r"(before|after|gain)(?:@([0-9]{1,4})(?:-([0-9]{1,4}))?)?")


@frozen
class Figures:
    """What is read of a run: accuracy by depth before and after, accuracy by step, and the rows of its metrics."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    during: Sequence[Mapping[str, Any]]
    rows: Sequence[Mapping[str, Any]]

    @property
    def depths(self) -> list[int]:
        """The depths that were evaluated."""
        found = {**_table(self.before.get("by_depth")), **_table(self.after.get("by_depth"))}
        return sorted(int(depth) for depth in found if depth.isdecimal())

    @property
    def accuracy(self) -> dict[int, float]:
        """Accuracy over all depths, by the step after which it was measured; 0 is before training."""
        steps = max((row["step"] for row in self.rows if type(row.get("step")) is int), default=0)
        found = {0: self.before.get("overall"), steps: self.after.get("overall")} if steps else {}
        found |= {row["step"]: row.get("overall") for row in self.during if type(row.get("step")) is int}
        return {step: value for step in sorted(found) if (value := number(found[step])) is not None}

    @property
    def alarm(self) -> tuple[int, str] | None:
        """The first step with an alarm, and what it said."""
        for row in self.rows:
            said = row.get("alarm")
            if isinstance(said, str) and said and type(row.get("step")) is int:
                return row["step"], said
        return None

    def series(self, name: str) -> dict[int, float]:
        """A figure of the metrics by step, where it is a number."""
        path = name.split(".")
        found = {}
        for row in self.rows:
            value: Any = row
            for key in path:
                value = _table(value).get(key)
            if type(row.get("step")) is int and (known := number(value)) is not None:
                found[row["step"]] = known
        return found

    def value(self, name: str) -> float | None:
        """The figure of this name; ``None`` if the run has none."""
        match = _ACCURACY.fullmatch(name)
        if match is None:
            series = self.series(name)
            late = [series[step] for step in sorted(series)[-WINDOW:]]
            return math.fsum(late) / len(late) if late else None
        when, first, last = match.groups()
        if when == "gain":
            before, after = (self._accuracy(side, first, last) for side in (self.before, self.after))
            return None if before is None or after is None else after - before
        return self._accuracy(self.before if when == "before" else self.after, first, last)

    def _accuracy(self, side: Mapping[str, Any], first: str | None, last: str | None) -> float | None:
        if first is None:
            return number(side.get("overall"))
        cells = _table(side.get("by_depth"))
        wanted = [str(depth) for depth in range(int(first), int(last or first) + 1)]
        known = [number(_table(cells.get(depth)).get("accuracy")) for depth in wanted]
        shares = [share for share in known if share is not None]
        return math.fsum(shares) / len(shares) if shares and len(shares) == len(known) else None


def read_figures(run: Run) -> Figures:
    """What a run folder tells. Raises :class:`callwright.errors.DataError` for files that are damaged."""
    evaluation = _table(run.read_json("evaluation.json"))
    during = evaluation.get("during")
    return Figures(
        _table(evaluation.get("before")),
        _table(evaluation.get("after")),
        [row for row in during if isinstance(row, dict)] if isinstance(during, list) else [],
        run.rows(METRICS),
    )


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names with those that are always measured. Raises :class:`callwright.errors.UnknownName`.

    A name with a dot (``scores.answer``, or what only some trainer writes) is taken as it is.
    """
    known = [key for key in schema_of("metrics")["properties"] if key not in ("step", "alarm")]
    for name in names:
        if not _ACCURACY.fullmatch(name) and "." not in name and name not in known:
            hint = "Accuracies of a depth are after@3, of several gain@2-4; parts are scores.answer."
            raise UnknownName("metric", name, ["before", "after", "gain", *known], hint=hint)
    return tuple(dict.fromkeys([*ALWAYS, *names]))


def check_depths(names: Sequence[str], depths: Collection[int]) -> None:
    """Raise :class:`callwright.UsageError` for an accuracy of a depth that nothing is evaluated of."""
    for name in names:
        match = _ACCURACY.fullmatch(name)
        if match is None or match[2] is None or not depths:
            continue
        wanted = range(int(match[2]), int(match[3] or match[2]) + 1)
        if not wanted or any(depth not in depths for depth in wanted):
            there = ", ".join(map(str, sorted(depths)))
            raise UsageError(f"--metric {name}: the tasks of the evaluation have the depths {there}")


def is_share(name: str) -> bool:
    """Whether a figure is an accuracy, which is shown in percent."""
    return _ACCURACY.fullmatch(name) is not None


def by_depth(depths: Sequence[int]) -> Iterator[str]:
    """The names of the accuracies of each depth."""
    for when in ("before", "after", "gain"):
        for depth in depths:
            yield f"{when}@{depth}"


def number(value: object) -> float | None:
    """The value if it is a finite number, else ``None``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
