"""Decontaminated: nothing that a model is measured on stands among what it is trained on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

from callwright.measuring.overlap.entries import Entry, entry_of_task
from callwright.measuring.overlap.findings import Source
from callwright.training.synthesis.units import Rejected
from callwright.walk.tasks import Task

#: What is too much to share: ids, prompts, near-equal ones, a run of thirteen words (Brown et al. 2020), and all calls
#: of a task that makes two or more. Tools and single calls are shared on purpose.
KINDS: Final = ("id", "prompt", "near", "words", "calls")
#: Jaccard similarity over runs of 13 characters from which prompts are near-equal.
NEAR: Final = Fraction(1, 2)


class Decontaminated:
    """The gate ``decontaminated``: tasks are held against sources, each a name and its entries."""

    name: Final = "decontaminated"

    def __init__(self, sources: Iterable[tuple[str, Sequence[Entry]]]) -> None:
        self._given = [(name, list(entries)) for name, entries in sources]

    def verdicts(self, entries: Iterable[tuple[Entry, int]]) -> list[Rejected | None]:
        """For each entry with the number of its calls, what it shares with a source; ``None`` if nothing."""
        sources = [Source(name, held, NEAR) for name, held in self._given]
        found: list[Rejected | None] = []
        for number, (entry, calls) in enumerate(entries):
            found.append(None)
            for source in sources:
                before = len(source.overlap().findings)
                source.hold(entry)
                for one in source.overlap().findings[before:]:
                    if one.kind not in KINDS or (one.kind == "calls" and calls < 2) or found[number] is not None:
                        continue
                    evidence = {"source": source.name, "with": one.against, "what": one.what}
                    found[number] = Rejected(self.name, f"shares {_WORDS[one.kind]} with a benchmark", evidence)
        return found

    def of_tasks(self, tasks: Iterable[Task]) -> list[Rejected | None]:
        """The verdicts on tasks."""
        return self.verdicts((entry_of_task(one), len(one.program.calls) if one.program else 0) for one in tasks)


_WORDS: Final = {
    "id": "its id",
    "prompt": "its query",
    "near": "nearly its query",
    "words": "a run of thirteen words",
    "calls": "all its calls",
}
