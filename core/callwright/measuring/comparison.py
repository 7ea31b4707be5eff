"""Two evaluations of the same tasks, task by task: what changed, how sure that is, and which tasks flipped.

What is compared are the tasks of which both say something. A task's value is the share of its samples that are right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from callwright.errors import DataError
from callwright.measuring.folders import Evaluated
from callwright.statistics.paired import Difference, bootstrap_difference, mcnemar
from callwright.statistics.shares import clustered_share
from callwright.training.summary import group_name
from callwright.training.verdicts import Verdict

#: Settings that say what is measured rather than how: folders that differ in them measure different things.
_SAME = ("corpus",)
#: Settings that a reader must know of where they differ.
_TOLD = ("ir", "shots", "temperature", "turns", "samples", "seed", "limit")


@frozen
class GroupDifference:
    """One group of tasks in two evaluations: both accuracies, the paired difference (second minus first), and flips.

    Accuracies are over the tasks that both have, each counted once. ``gained`` and ``lost`` are tasks that only the
    second, only the first has right. ``p`` is McNemar's, ``None`` where tasks have several samples.
    """

    name: str
    first: float | None
    second: float | None
    difference: Difference
    gained: int
    lost: int
    p: float | None

    def to_json(self) -> dict[str, Any]:
        """The fields as an object."""
        return {
            "first": self.first,
            "second": self.second,
            **self.difference.to_json(),
            "gained": self.gained,
            "lost": self.lost,
            "p": self.p,
        }


@frozen
class Flip:
    """A task on which two evaluations differ by half of its samples or more, with the rows to show (by position)."""

    task: str
    first: float
    second: float
    rows: tuple[int, int]

    @property
    def gained(self) -> bool:
        """Whether the second has more samples right."""
        return self.second > self.first


@frozen(eq=False)
class Comparison:
    """Two evaluations. ``tables`` are groups by keys; the first, under ``""``, is everything."""

    first: Evaluated
    second: Evaluated
    tables: Mapping[str, Sequence[GroupDifference]]
    flips: Sequence[Flip] = field(repr=False)
    #: What keeps the two from being the same measurement, in words.
    remarks: Sequence[str] = ()

    @property
    def whole(self) -> GroupDifference:
        """Everything that both have."""
        return self.tables[""][0]

    def to_json(self) -> dict[str, Any]:
        """What ``callwright compare --json`` prints of it, without completions."""
        return {
            "benchmark": self.first.benchmark,
            "first": self.first.name,
            "second": self.second.name,
            "all": self.whole.to_json(),
            "by": {keys: {one.name: one.to_json() for one in groups} for keys, groups in self.tables.items() if keys},
            "flips": [
                {"task": one.task, "first": one.first, "second": one.second, "gained": one.gained} for one in self.flips
            ],
            "remarks": list(self.remarks),
        }


@frozen
class _Pair:
    cluster: str
    first: float
    second: float
    single: bool
    rows: tuple[int, int]
    verdict: Verdict


def compare(
    first: Evaluated, second: Evaluated, by: Sequence[Sequence[str]] = (("depth",), ("structure",)), *, seed: int = 0
) -> Comparison:
    """Compare two evaluations of the same tasks.

    Raises :class:`callwright.errors.DataError` where they have no task in common of which both say something.
    """
    pairs, remarks = _paired(first, second)
    tables = {"": [_difference("all", pairs, seed)]}
    for keys in by:
        groups: dict[tuple[Any, ...], list[_Pair]] = {}
        for pair in pairs:
            groups.setdefault(group_name(pair.verdict, keys), []).append(pair)
        named = [(", ".join(shown for _, _, shown in name), some) for name, some in sorted(groups.items())]
        tables[",".join(keys)] = [_difference(name, some, seed) for name, some in named]
    flips = [
        Flip(pair.verdict.task, pair.first, pair.second, pair.rows)
        for pair in pairs
        if abs(pair.second - pair.first) >= 0.5
    ]
    return Comparison(first, second, tables, flips, remarks)


def _paired(first: Evaluated, second: Evaluated) -> tuple[list[_Pair], list[str]]:
    remarks = [
        f"{key}: {_shown(first.settings.get(key))} and {_shown(second.settings.get(key))}"
        for key in (*_SAME, *_TOLD)
        if first.settings.get(key) != second.settings.get(key)
    ]
    ours, theirs = _by_task(first), _by_task(second)
    common = [task for task in ours if task in theirs]
    apart = len(ours) + len(theirs) - 2 * len(common)
    if apart:
        remarks.append(f"{apart} tasks stand in one of the two only and are left out")
    pairs, masked = [], 0
    for task in common:
        left, right = (
            [place for place in found[task] if not one.verdicts[place].masked]
            for found, one in ((ours, first), (theirs, second))
        )
        if not left or not right:
            masked += 1
            continue
        pairs.append(
            _Pair(
                first.verdicts[left[0]].cluster,
                _share(first, left),
                _share(second, right),
                single=len(ours[task]) == len(theirs[task]) == 1,
                rows=_telling(first, left, second, right),
                verdict=first.verdicts[left[0]],
            )
        )
    if masked:
        remarks.append(f"{masked} tasks are masked in one of the two and left out")
    if not pairs:
        raise DataError(f"{first.path} and {second.path} have no task in common of which both say something")
    return pairs, remarks


def _share(one: Evaluated, places: Sequence[int]) -> float:
    return sum(one.verdicts[place].answer for place in places) / len(places)


def _by_task(evaluated: Evaluated) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, verdict in enumerate(evaluated.verdicts):
        places.setdefault(verdict.task, []).append(place)
    return places


def _telling(first: Evaluated, left: list[int], second: Evaluated, right: list[int]) -> tuple[int, int]:
    """The rows that show a difference, if there is one: one right and one wrong, whichever way it went."""
    for mine in left:
        for theirs in right:
            if first.verdicts[mine].answer != second.verdicts[theirs].answer:
                return mine, theirs
    return left[0], right[0]


def _difference(name: str, pairs: Sequence[_Pair], seed: int) -> GroupDifference:
    clusters: dict[str, list[float]] = {}
    for pair in pairs:
        clusters.setdefault(pair.cluster, []).append(pair.second - pair.first)
    gained, lost = (sum((pair.second - pair.first) * sign > 0 for pair in pairs) for sign in (1, -1))
    return GroupDifference(
        name,
        sum(pair.first for pair in pairs) / len(pairs),
        sum(pair.second for pair in pairs) / len(pairs),
        bootstrap_difference(clusters.values(), seed=seed),
        gained,
        lost,
        mcnemar(gained, lost) if all(pair.single for pair in pairs) else None,
    )


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={inner}" for key, inner in value.items() if inner is not None)
    return "none" if value is None else str(value)


# Several of each ------------------------------------------------------------------------------------------------------


@frozen(eq=False)
class Board:
    """Benchmarks by checkpoints: each evaluation in its place, each checkpoint compared with the first of its row."""

    benchmarks: Sequence[str]
    checkpoints: Sequence[str]
    cells: Mapping[tuple[str, str], Evaluated]
    results: Mapping[tuple[str, str], Mapping[str, Any]] = field(repr=False)
    comparisons: Sequence[Comparison] = field(repr=False)
    #: Why results are not official, a sentence each.
    unofficial: Sequence[str] = ()


def board_of(
    evaluations: Sequence[Evaluated], by: Sequence[Sequence[str]] = (("depth",), ("structure",)), *, seed: int = 0
) -> Board:
    """Arrange evaluations by what they measured and by the names of the checkpoints, both in the order given.

    Raises :class:`callwright.errors.DataError` where two of the same benchmark have the same name.
    """
    benchmarks, checkpoints = (list(dict.fromkeys(names)) for names in zip(*map(_names, evaluations), strict=True))
    cells: dict[tuple[str, str], Evaluated] = {}
    for one in evaluations:
        if (other := cells.get(_names(one))) is not None:
            raise DataError(
                f"{other.path} and {one.path} are both {one.name!r} on {one.benchmark}; name them: NAME={one.path}"
            )
        cells[_names(one)] = one
    comparisons = []
    for benchmark in benchmarks:
        row = [cells[benchmark, name] for name in checkpoints if (benchmark, name) in cells]
        comparisons += [compare(row[0], other, by, seed=seed) for other in row[1:]]
    results = {names: one.summary(by) for names, one in cells.items()}
    why = {f"{one.benchmark} is not official: {reason}": None for one in evaluations for reason in one.unofficial}
    return Board(benchmarks, checkpoints, cells, results, comparisons, list(why))


def _names(one: Evaluated) -> tuple[str, str]:
    return one.benchmark, one.name


def accuracy_of(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The cell of everything in a result; an empty one where nothing counts."""
    cell = result.get("all")
    if isinstance(cell, Mapping):
        return cell
    share = clustered_share([])
    return {"accuracy": None, "n": 0, "low": share.low, "high": share.high}
