"""Mixtures: exact counts of kinds of tasks, of a synthesis' own and of files, in one file.

    [[synthesis.mixture]]
    count = 10_895                       # of its own kinds that no other part names

    [[synthesis.mixture]]
    kinds = ["clarification"]
    count = 1_500

    [[synthesis.mixture]]
    kinds = ["abstention"]
    file = "imported.jsonl"              # a file of tasks
    count = 1_122

A kind is the fact ``kind`` of a task. Which ones are taken hangs on the seed and on their ids alone.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen
from pydantic import BaseModel, ConfigDict, Field

from callwright.errors import DataError, UsageError
from callwright.plugins import Registry
from callwright.training.synthesis.units import Rejected
from callwright.walk.task_rows.reading import read_rows, read_tasks

#: The stage that says that a task is one too many.
STAGE: Final = "mixture"


class MixturePart(BaseModel):
    """An entry of the list ``[[synthesis.mixture]]``."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    count: int = Field(ge=1, description="How many tasks it has.")
    kinds: list[str] = Field(
        default=[], description="Their fact `kind`; left out: the kinds that no other part of the same source names."
    )
    file: str | None = Field(default=None, description="A file of tasks; left out: what the synthesis makes itself.")
    split: str = Field(default="train", description="Of a file: the split that they are taken from.")


@frozen
class Mixture:
    """The parts of a recipe, and the rows of those that come from files.

    ``made`` says of each part how many tasks it has: of those of the synthesis itself only :meth:`verdicts` knows.
    """

    parts: tuple[MixturePart, ...]
    seed: int
    rows: tuple[Mapping[str, Any], ...] = ()
    made: dict[int, int] = field(factory=dict)

    @classmethod
    def of(cls, parts: Sequence[MixturePart], seed: int, registry: Registry) -> Mixture | None:
        """``None`` for no parts. The files are read now, so that what is wrong with them is said at once.

        Raises :class:`callwright.UsageError` for parts that name a kind twice, and
        :class:`callwright.errors.DataError` for a file that is none of tasks, is of other environments, or has too few.
        """
        if not parts:
            return None
        named: set[tuple[str | None, str, str]] = set()
        for part in parts:
            source = "" if part.file is None else part.split
            for kind in part.kinds or [""]:
                if (part.file, source, kind) in named:
                    what = f"the kind {kind!r}" if kind else "all other kinds"
                    raise UsageError(f"two parts of the mixture take {what} of {part.file or 'the synthesis'}")
                named.add((part.file, source, kind))
        found = cls(tuple(parts), seed)
        drawn: list[Mapping[str, Any]] = []
        for number, part in enumerate(parts):
            if part.file is not None:
                taken = found._drawn(number, Path(part.file), registry)
                found.made[number] = len(taken)
                drawn += taken
        counts = Counter(str(row["id"]) for row in drawn)
        twice = next((one for one, count in counts.items() if count > 1), None)
        if twice is not None:
            raise DataError(f"two files of the mixture have a task {twice!r}; ids are unique in a file of tasks")
        return cls(tuple(parts), seed, tuple(drawn), found.made)

    def verdicts(self, own: Iterable[tuple[int, str, str]]) -> dict[int, Rejected]:
        """Which tasks of the synthesis are too many, by their places. ``own`` are places, ids and kinds."""
        by_part: dict[int, list[tuple[bytes, int]]] = {}
        gone: dict[int, Rejected] = {}
        for place, task_id, kind in own:
            number = self._part(None, "", kind)
            if number is None:
                gone[place] = Rejected(STAGE, "a kind that the mixture does not name", {"kind": kind})
            else:
                by_part.setdefault(number, []).append((self._order(task_id), place))
        for number, part in enumerate(self.parts):
            if part.file is None:
                ordered = sorted(by_part.get(number, []))
                self.made[number] = min(len(ordered), part.count)
                for _, place in ordered[part.count :]:
                    gone[place] = Rejected(STAGE, "more than the count of its part", {"count": part.count})
        return gone

    def to_json(self) -> list[dict[str, Any]]:
        """What was asked for and what is there, part by part."""
        return [
            {
                "kinds": list(part.kinds),
                **({} if part.file is None else {"file": part.file, "split": part.split}),
                "asked": part.count,
                "made": self.made.get(number, 0),
            }
            for number, part in enumerate(self.parts)
        ]

    def _part(self, file: str | None, split: str, kind: str) -> int | None:
        """The part that takes a kind of a source: one that names it, else the one that names none."""
        rest = None
        for number, part in enumerate(self.parts):
            if part.file == file and (file is None or part.split == split):
                if kind in part.kinds:
                    return number
                if not part.kinds:
                    rest = number
        return rest

    def _drawn(self, number: int, file: Path, registry: Registry) -> list[Mapping[str, Any]]:
        """The rows that a part takes of a file, in its order."""
        part = self.parts[number]
        tasks = read_tasks(file, registry=registry)
        _, rows = read_rows(file)
        able = [
            (self._order(str(row.get("id"))), place, row)
            for place, row in enumerate(rows)
            if row.get("split") == part.split and self._part(part.file, part.split, kind_of(row)) == number
        ]
        if len(able) < part.count:
            what = f" of the kinds {', '.join(part.kinds)}" if part.kinds else ""
            raise DataError(
                f"{file} has {len(able):,} tasks{what} in the split {part.split!r}, and the mixture takes "
                f"{part.count:,}: ask for fewer, or name another file"
            )
        taken = sorted(sorted(able, key=lambda one: one[:2])[: part.count], key=lambda one: one[1])
        for _, place, _ in taken:
            tasks[place]  # a row that is no task is said now, with its line
        return [row for _, _, row in taken]

    def _order(self, task_id: str) -> bytes:
        return hashlib.blake2b(f"{self.seed}\n{task_id}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def kind_of(row: Mapping[str, Any]) -> str:
    """The fact ``kind`` of the row of a task; empty where it has none."""
    facts = row.get("facts")
    return str(facts.get("kind", "")) if isinstance(facts, Mapping) else ""


def lines(parts: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    """The mixture of a manifest for people, a line for each part."""
    for part in parts:
        what = ", ".join(part["kinds"]) or "other kinds"
        short = "" if part["made"] == part["asked"] else ": too few; raise synthesis.count"
        yield f"  {part['made']:,} of {part['asked']:,} {what} of {part.get('file', 'its own')}{short}"
