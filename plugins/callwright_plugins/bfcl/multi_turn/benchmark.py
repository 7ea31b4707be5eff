"""The four multi-turn categories by themselves, as a benchmark: ``bfcl-multi-turn``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from callwright.errors import UnknownName, UsageError
from callwright.language.parser import Parser
from callwright.measuring.benchmark import Judged, Judgement, Need, mean, shares, version_of
from callwright.measuring.sources.source import Source
from callwright.pickling import made_by
from callwright.walk.attempt import Attempt
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Corpus, Task
from callwright_plugins.bfcl.multi_turn.entries import CATEGORIES, LIMITS
from callwright_plugins.bfcl.multi_turn.environment import ClassesEnvironment
from callwright_plugins.bfcl.multi_turn.package import FOLDER
from callwright_plugins.bfcl.multi_turn.suite import MultiTurn


class MultiTurnCorpus(Corpus):
    """The entries of a version; a split is a category."""

    limits: TurnLimits = LIMITS

    def __init__(self, version: str, data: str, package: str | None = None) -> None:
        self._given = version, data, package
        self.suite = MultiTurn(version, data, package)
        self._places: dict[str, Task] | None = None

    def __reduce__(self) -> Any:
        """As the files that it reads, which must be where it is unpickled."""
        return made_by(self, type(self), *self._given)

    @property
    def name(self) -> str:
        """``bfcl-v3-multi-turn`` or ``bfcl-v4-multi-turn``."""
        return self.environment.name

    @property
    def environment(self) -> ClassesEnvironment:
        """Where the tasks' calls are executed."""
        return self.suite.environment

    @property
    def splits(self) -> Mapping[str, int]:
        """The categories with their numbers of entries."""
        return {category: len(self.suite.tasks(category)) for category in CATEGORIES}

    def __getitem__(self, split: str) -> Sequence[Task]:
        """The tasks of a category, in the order of its file. Raises :class:`callwright.errors.UnknownName`."""
        return self.suite.tasks(split)

    def task(self, task_id: str) -> Task:
        """The task with this id (``multi_turn_base_0``). Raises :class:`callwright.errors.UnknownName`."""
        if self._places is None:
            self._places = {task.id: task for category in CATEGORIES for task in self.suite.tasks(category)}
        if task_id not in self._places:
            raise UnknownName(f"task of {self.name}", task_id, self._places)
        return self._places[task_id]


def _wheel(release: str, digest: str, size: int) -> Source:
    take = {"bfcl_eval/data/": "", f"{FOLDER}/": FOLDER}
    return Source("bfcl-eval", f"bfcl_eval-{release}-py3-none-any.whl", digest, size, take, "Apache-2.0")


class BfclMultiTurn:
    """BFCL's multi-turn categories. Options: ``data``, a folder with BFCL's files, and ``package``, the pinned wheel.

    ``package`` may be left out where ``data`` holds the classes, too, as ``callwright benchmark get`` leaves it.
    ``category`` takes one of the four alone. Raises :class:`callwright.UsageError` for another version or category, and
    without ``data``.
    """

    name: Final = "bfcl-multi-turn"
    versions: ClassVar[Sequence[str]] = ("v3", "v4")
    needs: ClassVar[Sequence[Need]] = (
        Need(
            "data",
            "the folder with BFCL's multi-turn files of this version, with possible_answer/ and multi_turn_func_doc/ "
            "(--data DIR)",
            tuple(f"BFCL_v3_{category}.json" for category in CATEGORIES),
            "the wheel bfcl-eval (Apache-2.0); v4's are named BFCL_v4_…",
        ),
        Need(
            "package",
            "the wheel bfcl-eval of this version, or the folder in which it was unpacked (--package); not where --data "
            "holds its classes, too",
        ),
    )
    unofficial: ClassVar[Sequence[str]] = ()
    sources: ClassVar[Mapping[str, Sequence[Source]]] = {
        "v3": [_wheel("2025.8.6.2", "fdb996ac963ed1c6fce1eb4884053aae4a6de282fb931665a46dbeed204a228d", 1_746_683)],
        "v4": [_wheel("2026.3.23", "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a", 1_925_664)],
    }

    def __init__(
        self,
        version: str | None = None,
        data: str | Path | None = None,
        package: str | Path | None = None,
        category: str | None = None,
    ) -> None:
        self.version = version_of(self.name, version, self.versions)
        if data is None:
            raise UsageError(f"{self.name} reads BFCL's files: name their folder with --data DIR")
        if category is not None and category not in CATEGORIES:
            raise UnknownName(f"category of {self.name}", category, CATEGORIES)
        self._categories = CATEGORIES if category is None else (category,)
        if package is None and (Path(data) / FOLDER).is_dir():
            package = data
        self.corpus = MultiTurnCorpus(self.version, str(data), None if package is None else str(package))

    @property
    def categories(self) -> Mapping[str, int]:
        """The categories with their numbers of tasks."""
        return {category: len(self.corpus[category]) for category in self._categories}

    def tasks(self, category: str | None = None) -> Sequence[Task]:
        """The tasks of a category, else of all. Raises :class:`callwright.errors.UnknownName`."""
        if category is not None:
            return self.corpus[category]
        return [task for one in self._categories for task in self.corpus[one]]

    def category_of(self, task: Task) -> str:
        """The category that the id names."""
        return task.id.rpartition("_")[0]

    def judge(self, task: Task, attempt: Attempt) -> Judgement:
        """What the official checker says (:meth:`.suite.MultiTurn.judge`)."""
        return self.corpus.suite.judge(task, attempt)

    def judge_together(self, attempts: Sequence[tuple[Task, Attempt]]) -> Sequence[Judgement]:
        """As :meth:`judge`, of several, much quicker."""
        return self.corpus.suite.judge_together(attempts)

    def answer(self, row: Mapping[str, Any], parser: Parser) -> Attempt | None:
        """The answer of an official row: ``result`` as result files have it, or ``calls`` (decoded already)."""
        return self.corpus.suite.answer(row, self.corpus.task(row["id"]), parser)

    def aggregate(self, judged: Sequence[Judged]) -> Mapping[str, float | None]:
        """``overall``: the unweighted mean of the categories, as both versions have it; and each of them.

        ``None`` until something is known of all of them.
        """
        found = {category: mean(values) for category, values in shares(judged).items()}
        table = {category: found.get(category) for category in self._categories}
        known = [value for value in table.values() if value is not None]
        return {"overall": mean(known) if len(known) == len(table) else None, **table}
