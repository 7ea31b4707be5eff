"""The benchmarks ``bfcl-v3`` and ``bfcl-v4``: the Berkeley Function Calling Leaderboard, two versions never mixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol

from callwright.errors import UnknownName, UsageError
from callwright.language.parser import Parser
from callwright.measuring.benchmark import Judged, Judgement, Need, mean, shares, version_of
from callwright.measuring.sources.source import Source
from callwright.pickling import made_by
from callwright.walk.attempt import Attempt
from callwright.walk.limits import SINGLE_TURN, TurnLimits
from callwright.walk.tasks import Corpus, Task
from callwright_plugins.bfcl.aggregation import table
from callwright_plugins.bfcl.multi_turn.package import FOLDER
from callwright_plugins.bfcl.multi_turn.suite import MultiTurn
from callwright_plugins.bfcl.reading import folder_of
from callwright_plugins.bfcl.single_turn.suite import CalledAsWritten, SingleTurn
from callwright_plugins.bfcl.versions import V3, V4, VERSIONS, Version, category_of_id, kind_of


class Part(Protocol):
    """What makes the tasks of some categories and judges them."""

    def tasks(self, category: str) -> Sequence[Task]:
        """The tasks of a category."""

    def answer(self, row: Mapping[str, Any], task: Task, parser: Parser) -> Attempt | None:
        """The answer of an official row."""

    def judge(self, task: Task, attempt: Attempt) -> Judgement:
        """The official verdict."""


class BfclCorpus(Corpus):
    """The entries of a version; a split is a category. Multi-turn ones are there where ``package`` is."""

    def __init__(self, version: str, data: str, package: str | None = None) -> None:
        self._given = version, data, package
        self.version = VERSIONS[version]
        folder = folder_of(data, self.version)
        turns = None if package is None else MultiTurn(version, folder, package)
        self.single_turn = SingleTurn(version, folder, marked=turns is not None)
        #: Several turns and steps where there are entries of several turns; the others say that they have one.
        self.limits: TurnLimits = SINGLE_TURN if turns is None else turns.limits
        #: Category -> what makes its tasks and judges them.
        self.parts: Mapping[str, Part] = {
            category: part
            for category in self.version.sizes
            if (part := turns if kind_of(category) == "multi_turn" else self.single_turn) is not None
        }

    def __reduce__(self) -> Any:
        """As the files that it reads, which must be where it is unpickled."""
        return made_by(self, type(self), *self._given)

    @property
    def name(self) -> str:
        """``bfcl-v3`` or ``bfcl-v4``."""
        return f"bfcl-{self.version.name}"

    @property
    def environment(self) -> CalledAsWritten:
        """Where calls of single-turn tasks are executed; multi-turn ones have their own."""
        return self.single_turn.environment

    @cached_property
    def splits(self) -> Mapping[str, int]:
        """The categories that the folder holds, with their numbers of entries."""
        sizes = {category: len(part.tasks(category)) for category, part in self.parts.items()}
        return {category: size for category, size in sizes.items() if size}

    def __getitem__(self, split: str) -> Sequence[Task]:
        """The tasks of a category, in the order of its file. Raises :class:`callwright.errors.UnknownName`."""
        if split not in self.splits:
            raise UnknownName(f"category of {self.name}", split, self.splits)
        return self.parts[split].tasks(split)

    @cached_property
    def _places(self) -> dict[str, Task]:
        return {task.id: task for category in self.splits for task in self[category]}

    def task(self, task_id: str) -> Task:
        """The task with this id (``live_simple_3-2-1``). Raises :class:`callwright.errors.UnknownName`."""
        if task_id not in self._places:
            raise UnknownName(f"task of {self.name}", task_id, self._places)
        return self._places[task_id]


def _needs(of: Version) -> Sequence[Need]:
    """BFCL's files, and for several turns the wheel whose classes are executed."""
    return (
        Need(
            "data",
            f"the folder with BFCL's files of {of.name}, with possible_answer/ of the same names (--data DIR)",
            tuple(f"BFCL_{of.name}_{category}.json" for category in of.sizes),
            f"the wheel bfcl-eval {of.release} (Apache-2.0)",
        ),
        Need(
            "package",
            f"for multi-turn categories the wheel bfcl-eval {of.release}, or where it is unpacked (--package); not "
            "where --data holds its classes, too",
        ),
    )


class Bfcl:
    """A version of BFCL. Options: ``data``, the folder with its files; ``package``, its wheel, for multi-turn entries.

    ``package`` may be left out where ``data`` holds the classes, too, as ``callwright benchmark get`` leaves it.

    Raises :class:`callwright.UsageError` without ``data``, for data of another version, and for another ``version``.
    """

    of: ClassVar[Version]
    #: The release of ``bfcl-eval`` whose data and rules these are.
    versions: ClassVar[Sequence[str]]
    needs: ClassVar[Sequence[Need]]
    sources: ClassVar[Mapping[str, Sequence[Source]]]

    def __init__(
        self, version: str | None = None, data: str | Path | None = None, package: str | Path | None = None
    ) -> None:
        self.name = f"bfcl-{self.of.name}"
        self.version = version_of(self.name, version, self.versions)
        if data is None:
            raise UsageError(
                f"{self.name} reads BFCL's files: name their folder with --data DIR; callwright benchmark get "
                f"{self.name} --data DIR fetches them"
            )
        if package is None and (Path(data) / FOLDER).is_dir():
            package = data
        self.corpus = BfclCorpus(self.of.name, str(data), None if package is None else str(package))

    @property
    def unofficial(self) -> Sequence[str]:
        """What of the official table is missing, and what the folder lacks."""
        found = []
        if not any(kind_of(one) == "multi_turn" for one in self.corpus.parts):
            found.append("multi-turn is not measured without the wheel's classes (--package), so overall is missing")
        if self.of is V4:
            found.append("v4's agentic part (web search, memory), 40% of overall, is not measured, so it is missing")
        held = {one: self.corpus.splits.get(one, 0) for one in self.corpus.parts}
        lacking = sum(max(0, self.of.sizes[one] - size) for one, size in held.items())
        if lacking:
            whole = sum(self.of.sizes[one] for one in held)
            found.append(f"the folder lacks {lacking:,} of the {whole:,} entries of these categories")
        return found

    @property
    def categories(self) -> Mapping[str, int]:
        """The categories with their numbers of tasks."""
        return self.corpus.splits

    def tasks(self, category: str | None = None) -> Sequence[Task]:
        """The tasks of a category, else of all. Raises :class:`callwright.errors.UnknownName`."""
        if category is not None:
            return self.corpus[category]
        return [task for one in self.corpus.splits for task in self.corpus[one]]

    def category_of(self, task: Task) -> str:
        """The category that the id names."""
        return category_of_id(task.id)

    def judge(self, task: Task, attempt: Attempt) -> Judgement:
        """What the official checker says; ``error`` is its ``error_type``."""
        return self.corpus.parts[category_of_id(task.id)].judge(task, attempt)

    def judge_together(self, attempts: Sequence[tuple[Task, Attempt]]) -> Sequence[Judgement]:
        """As :meth:`judge`, of several: those of several turns share a process."""
        judged: dict[int, Judgement] = {}
        turns: list[int] = []
        for place, (task, attempt) in enumerate(attempts):
            if kind_of(category_of_id(task.id)) == "multi_turn":
                turns.append(place)
            else:
                judged[place] = self.judge(task, attempt)
        if turns:
            suite = self.corpus.parts[category_of_id(attempts[turns[0]][0].id)]
            assert isinstance(suite, MultiTurn)
            judged.update(zip(turns, suite.judge_together([attempts[one] for one in turns]), strict=True))
        return [judged[place] for place in range(len(attempts))]

    def answer(self, row: Mapping[str, Any], parser: Parser) -> Attempt | None:
        """The answer of an official row: ``result`` as result files have it, or ``calls`` (decoded already)."""
        task = self.corpus.task(str(row.get("id")))
        return self.corpus.parts[category_of_id(task.id)].answer(row, task, parser)

    def aggregate(self, judged: Sequence[Judged]) -> Mapping[str, float | None]:
        """The figures of the official table (:mod:`.aggregation`), then each category."""
        found = shares(judged)
        figures = table(self.of.name, found)
        return {**figures, **{one: mean(found.get(one, [])) for one in self.of.sizes if one not in figures}}


class BfclV3(Bfcl):
    """BFCL v3."""

    of = V3
    versions = (V3.release,)
    needs = _needs(V3)
    sources: ClassVar[Mapping[str, Sequence[Source]]] = {V3.release: [V3.source]}


class BfclV4(Bfcl):
    """BFCL v4, without its agentic part."""

    of = V4
    versions = (V4.release,)
    needs = _needs(V4)
    sources: ClassVar[Mapping[str, Sequence[Source]]] = {V4.release: [V4.source]}
