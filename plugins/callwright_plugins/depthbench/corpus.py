"""The corpus ``depthbench-v1`` as shipped: rows of JSON that become tasks when they are asked for."""

from __future__ import annotations

import gzip
import json
import operator
import zlib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, overload

from attrs import evolve

from callwright.errors import DataError, UnknownName, UsageError
from callwright.language.program import Call, Program, revive
from callwright.pickling import made_again, made_by
from callwright.walk.task_rows.reading import read_tasks
from callwright.walk.task_rows.schema import MARK
from callwright.walk.tasks import Answer, Corpus, Task
from callwright_plugins.depthbench.environment import DepthBench
from callwright_plugins.depthbench.environment import made as environment_of
from callwright_plugins.depthbench.examples import EXAMPLES, fixed_examples, oracle_examples
from callwright_plugins.depthbench.families.arguable import ARGUABLE
from callwright_plugins.depthbench.instances import FILES as INSTANCES
from callwright_plugins.depthbench.instances import MOST_FRESH, fresh_tasks, instances_of
from callwright_plugins.depthbench.mended.examples import EXAMPLES_1_1
from callwright_plugins.depthbench.mended.regrouping import equally_right
from callwright_plugins.depthbench.world import V1, V1_1, Version

#: Version -> its rows.
FILES: Final[Mapping[str, str]] = {V1.name: "corpus.jsonl.gz", V1_1.name: "corpus-1.1.jsonl.gz"}
FILE: Final = FILES[V1.name]
SPLITS: Final = ("train", "validation")


class DepthBenchCorpus(Corpus):
    """``depthbench-v1``: 1,710 tasks: 944 for training and 766 for validation, on disjoint tools.

    ``file`` reads a file of tasks of this environment, such as ``callwright corpus export`` and ``import`` write, or
    rows as the package ships them (plain or ``.gz``).
    ``shots`` are the worked examples of prompts: ``fixed``, the same for every task (:mod:`.examples`), or ``oracle``,
    drawn by the structure and depth of the task itself, which tells a model what its answer looks like.

    ``instances``: a program has to be right in the further worlds of :mod:`.instances`, too. ``fresh``: after the tasks
    of training come so many of each in other worlds, tasks with ids and answers of their own
    (:func:`.instances.fresh_tasks`).

    Raises :class:`callwright.errors.DataError` for a file that cannot be read, :class:`callwright.UsageError` for other
    ``shots``.
    """

    version: ClassVar[Version] = V1
    #: The worked examples of prompts.
    examples: ClassVar[Sequence[tuple[str, str]]] = EXAMPLES

    def __init__(
        self,
        file: str | Path | None = None,
        shots: Literal["fixed", "oracle"] = "fixed",
        instances: bool = False,
        fresh: int = 0,
    ) -> None:
        if shots not in ("fixed", "oracle"):
            raise UsageError(f"shots is 'fixed' or 'oracle', not {shots!r}")
        if type(instances) is not bool:
            raise UsageError(f"instances is true or false, not {instances!r}")
        if type(fresh) is not int or not 0 <= fresh <= MOST_FRESH:
            raise UsageError(f"fresh is a whole number from 0 to {MOST_FRESH}, not {fresh!r}")
        self._instances, self._fresh = instances, fresh
        environment = type(environment_of(self.version))
        self._environment: DepthBench = made_again(environment, ())
        lines = _lines(file, self.version)
        self._splits = {split: _Split(self, split, rows) for split, rows in lines.items()}
        self._other_worlds: Mapping[str, Sequence[str]] = _scenarios(self.version) if instances else {}
        self._renewed: dict[str, Task] | None = None
        self._place: dict[str, tuple[str, int]] | None = None
        self._shapes: list[tuple[str, int]] | None = None
        self._draws = shots
        self._file = None if file is None else Path(file).absolute()

    def __reduce__(self) -> Any:
        """As the file that it reads, which must be where it is unpickled."""
        return made_by(self, type(self), self._file, self._draws, self._instances, self._fresh)

    @property
    def name(self) -> str:
        """The name of the version."""
        return self.version.name

    @property
    def environment(self) -> DepthBench:
        """Where the tasks' programs are executed."""
        return self._environment

    @property
    def splits(self) -> Mapping[str, int]:
        """``train`` and ``validation`` with their sizes."""
        return {name: len(split) + len(self._fresh_tasks(name)) for name, split in self._splits.items()}

    def __getitem__(self, split: str) -> Sequence[Task]:
        """The tasks of a split, by depth. Raises :class:`callwright.errors.UnknownName`."""
        if split not in self._splits:
            raise UnknownName(f"split of {self.name}", split, self._splits)
        fresh = self._fresh_tasks(split)
        return (*self._splits[split], *fresh) if fresh else self._splits[split]

    def _fresh_tasks(self, split: str) -> Sequence[Task]:
        """Tasks of training in other worlds, as many of each as asked for."""
        if not self._fresh or split != "train":
            return ()
        if self._renewed is None:
            made = (one for task in self._splits["train"] for one in fresh_tasks(task, self._fresh))
            self._renewed = {task.id: task for task in made}
        return tuple(self._renewed.values())

    def task(self, task_id: str) -> Task:
        """The task with this id (``train-0017``, ``validation-0003``).

        Raises :class:`callwright.errors.UnknownName`.
        """
        if self._place is None:
            self._place = {
                _field(line, "id"): (name, index)
                for name, split in self._splits.items()
                for index, line in enumerate(split.lines)
            }
        found = self._place.get(task_id)
        if found is None and "@" in task_id:
            self._fresh_tasks("train")
            if task_id in (self._renewed or {}):
                return (self._renewed or {})[task_id]
        if found is None:
            raise UnknownName(f"task of {self.name}", task_id, self._place)
        return self._splits[found[0]][found[1]]

    def in_all_worlds(self, task: Task) -> Task:
        """The task with its instances, where the corpus has them."""
        scenarios = self._other_worlds.get(task.id, ())
        return evolve(task, instances=instances_of(task, scenarios)) if scenarios else task

    @property
    def oracle_shots(self) -> bool:
        """Whether examples for prompts are drawn by what the right answer looks like."""
        return self._draws == "oracle"

    def shots(self, task: Task, count: int = 3) -> list[Task]:
        """Worked examples for a task, never the task itself; fewer than ``count`` if there are no more.

        They are the first of :data:`.examples.EXAMPLES`, whatever the task; with ``shots="oracle"`` training tasks of
        the task's own structure and depth. Raises :class:`callwright.UsageError` for a file of other rows, which lacks
        an example.
        """
        if not self.oracle_shots:
            try:
                return fixed_examples(self, task, count, self.examples)
            except UnknownName as error:
                raise UsageError(
                    f"{self._file or self.name} lacks the task {error.name!r}, an example of every prompt with shots; "
                    "give the corpus a file with all training tasks, or shots='oracle', which draws from those that "
                    "it has"
                ) from error
        train = self._splits["train"]
        if self._shapes is None:
            self._shapes = [(_field(line, "structure"), json.loads(line)["depth"]) for line in train.lines]
        return oracle_examples(train, self._shapes, task, count)


class DepthBenchV11Corpus(DepthBenchCorpus):
    """``depthbench-v1.1``: as many tasks of each kind as in v1, without margins, and judged in several worlds.

    ``instances`` are on unless they are switched off; then a program is judged in the world of the task alone.
    """

    version: ClassVar[Version] = V1_1
    examples: ClassVar[Sequence[tuple[str, str]]] = EXAMPLES_1_1

    def __init__(
        self,
        file: str | Path | None = None,
        shots: Literal["fixed", "oracle"] = "fixed",
        instances: bool = True,
        fresh: int = 0,
    ) -> None:
        super().__init__(file, shots, instances, fresh)


#: Version -> its corpus.
CORPORA: Final[Mapping[str, type[DepthBenchCorpus]]] = {V1.name: DepthBenchCorpus, V1_1.name: DepthBenchV11Corpus}


class _Split(Sequence[Task]):
    """Rows that are decoded when they are first asked for, and then kept."""

    def __init__(self, corpus: DepthBenchCorpus, name: str, lines: Sequence[bytes]) -> None:
        self._corpus, self._name, self.lines = corpus, name, lines
        self._made: dict[int, Task] = {}

    def __reduce__(self) -> Any:
        return operator.getitem, (self._corpus, self._name)

    def __len__(self) -> int:
        return len(self.lines)

    @overload
    def __getitem__(self, index: int) -> Task: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Task]: ...

    def __getitem__(self, index: int | slice) -> Task | Sequence[Task]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self.lines)))]
        position = range(len(self.lines))[index]
        task = self._made.get(position)
        if task is None:
            task = self._corpus.in_all_worlds(read_task(json.loads(self.lines[position]), self._corpus.environment))
            self._made[position] = task
        return task


def _lines(file: str | Path | None, version: Version) -> dict[str, list[bytes]]:
    """The lines of each split, undecoded: the id at the start of a line says which split it is of."""
    try:
        raw = (
            Path(file).read_bytes()
            if file
            else resources.files("callwright_plugins.depthbench").joinpath("data", FILES[version.name]).read_bytes()
        )
        text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file or FILES[version.name]} cannot be read: {error}") from error
    found: dict[str, list[bytes]] = {split: [] for split in SPLITS}
    if file and (raw[:4] == b"PAR1" or text.startswith(f'{{"{MARK}"'.encode())):
        text = b"\n".join(_rows_of_tasks(Path(file), version))
    for number, line in enumerate(text.splitlines(), 1):
        if line:
            split = _START.get(line[:12])
            if split is None:
                try:
                    split = json.loads(line)["split"]
                    found[split]
                except (ValueError, KeyError, TypeError) as error:
                    raise DataError(f"{file}: row {number} is not a task of {version.name}") from error
            found[split].append(line)
    return found


def _rows_of_tasks(file: Path, version: Version) -> Iterator[bytes]:
    """The rows of a file of tasks. Raises :class:`callwright.errors.DataError` for tasks of another environment."""
    from callwright_plugins.depthbench.exchange import row_of

    for task in read_tasks(file):
        if task.environment.name != version.name:
            raise DataError(
                f"{file}: task {task.id!r} is of the environment {task.environment.name!r}; the corpus 'tasks' reads it"
            )
        yield json.dumps(row_of(task)).encode()


def _scenarios(version: Version) -> Mapping[str, Sequence[str]]:
    """The scenarios of instances by the id of their task."""
    path = resources.files("callwright_plugins.depthbench").joinpath("data", INSTANCES[version.name])
    found: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return found


_START: Final = {b'{"id": "trai': "train", b'{"id": "vali': "validation"}


def _field(line: bytes, name: str) -> str:
    return str(json.loads(line)[name])


def read_task(row: Mapping[str, Any], environment: DepthBench) -> Task:
    """The task of a row. Raises :class:`callwright.errors.DataError` for a row that is not one."""
    try:
        calls = tuple(
            Call(int(number), tool, revive(arguments))
            for number, call in row["program"].items()
            for tool, arguments in call.items()
        )
        program = Program(calls, row["returns"])
        offered = row.get("tools") or [*row["target_tools"], *row["distractors"]]
        task = Task(
            id=row["id"],
            query=row["prompt"],
            tools={name: environment.tools[name] for name in offered},
            answer=Answer(tuple(row["answer"])),
            environment=environment,
            scenario=row["scenario"],
            split=row["split"],
            depth=row["depth"],
            chain=row["chain"],
            structure=row["structure"],
            returns=row["returns"],
            program=program,
            facts={
                key: row[key]
                for key in ("target_tools", "distractors", "family", "kind", "compound", "would")
                if key in row
            }
            | ({"arguable": ARGUABLE[row["id"]]} if environment.version is V1 and row["id"] in ARGUABLE else {}),
        )
        others = equally_right(task, task.scenario) if environment.version.lenient else ()
        return evolve(task, answer=evolve(task.answer, others=others)) if others else task
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"row {str(row.get('id', row))[:60]!r} is not a task of {environment.name}: {type(error).__name__}: {error}"
        ) from error
