"""The data mix of ToolRL, section 4.1: 2,000 rows of ToolACE, 1,000 of masked Hammer and 1,000 of xLAM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from callwright_plugins.data_preparation.conversations import BadRow
from callwright_plugins.data_preparation.formats import READERS
from callwright_plugins.data_preparation.reading import read_values
from callwright_plugins.data_preparation.rows import SYSTEM, Row, rows_of
from callwright_plugins.data_preparation.sampling import Sample

#: Rows for reinforcement learning, by data set. Appendix B found no gain beyond these 4,000.
MIX: Final[Mapping[str, int]] = {"toolace": 2000, "hammer": 1000, "xlam": 1000}
#: Rows for supervised training besides: appendix B's 400, which differ in content.
SFT: Final = 400


@frozen
class Mixture:
    """Rows for reinforcement learning and for supervised training, shuffled, and where they come from."""

    rl: tuple[Row, ...]
    sft: tuple[Row, ...]
    sources: Mapping[str, Mapping[str, Any]]


def mix(
    files: Mapping[str, Path],
    *,
    seed: int = 0,
    sft: int = SFT,
    system: str = SYSTEM,
    advance: Callable[[int], object] = lambda size: None,
) -> Mixture:
    """The mixture from the files of data sets by name (``toolace``, ``hammer``, ``xlam``).

    A data set that holds fewer rows than its share gives all it has to reinforcement learning first; nothing is
    repeated and no other makes up for it. ``sft`` rows are shared out as the mix is. Raises
    :class:`callwright.errors.DataError` for files that cannot be read.
    """
    shares = _shares(sft)
    drawn: list[tuple[int, Row]] = []
    taught: list[tuple[int, Row]] = []
    sources = {}
    for name, path in files.items():
        sample = Sample(MIX[name] + shares[name], seed)
        counts, rejected = _take_in(name, path, system, sample, advance)
        rows = sample.rows()
        rl, other = rows[: MIX[name]], rows[MIX[name] :]
        drawn += rl
        taught += other
        sources[name] = {
            **counts,
            "rl": {"wanted": MIX[name], "drawn": len(rl)},
            "sft": {"wanted": shares[name], "drawn": len(other)},
            "rejected": dict(sorted(rejected.items())),
        }
    kept = _once(drawn)  # two data sets may hold the same row
    other_rows = {place: row for place, row in _once(taught).items() if place not in kept}
    return Mixture(tuple(kept.values()), tuple(other_rows.values()), sources)


def _once(rows: list[tuple[int, Row]]) -> dict[int, Row]:
    return dict(sorted(rows, key=lambda item: item[0]))


def _shares(total: int) -> dict[str, int]:
    whole = sum(MIX.values())
    found = {name: total * size // whole for name, size in MIX.items()}
    found["toolace"] += total - sum(found.values())
    return found


def _take_in(
    name: str, path: Path, system: str, sample: Sample, advance: Callable[[int], object]
) -> tuple[dict[str, int], Counter[str]]:
    read, steps = 0, 0
    rejected: Counter[str] = Counter()
    for value in read_values(path, advance):
        read += 1
        try:
            if not isinstance(value, Mapping):
                raise BadRow("not an object")
            for row in rows_of(READERS[name](value), system):
                steps += 1
                if isinstance(row, BadRow):
                    rejected[str(row)] += 1
                else:
                    sample.add(row)
        except BadRow as error:
            rejected[str(error)] += 1
    return {"rows": read, "steps": steps}, rejected
