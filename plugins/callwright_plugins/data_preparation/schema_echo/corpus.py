"""The corpus: queries of ToolACE and xLAM, each over the tools of its own row."""

from __future__ import annotations

import json
import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import structlog
from attrs import frozen

from callwright.environments.calling import ReadyTool
from callwright.environments.protocol import Environment
from callwright.errors import DataError, UnknownName, UsageError
from callwright.language.program import Call, Program
from callwright.pickling import made_by
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import validate
from callwright.walk.corpora.on_demand import TasksOnDemand
from callwright.walk.tasks import Answer, Corpus, Task
from callwright_plugins.data_preparation.conversations import BadRow, Called, Conversation, Tool, Turn
from callwright_plugins.data_preparation.formats import READERS
from callwright_plugins.data_preparation.reading import read_values
from callwright_plugins.data_preparation.schema_echo.declared import spec_of
from callwright_plugins.data_preparation.schema_echo.environment import ARGUMENTS, NAME, EchoSession, MadeReady

SPLITS: Final = ("train", "validation")
logger = structlog.get_logger(__name__)


@frozen(eq=False)
class Row:
    """A row that became a task: what was asked, over which tools, and what the trajectory calls."""

    id: str
    split: str
    query: str
    tools: Mapping[str, ToolSpec]
    calls: tuple[Called, ...]


class SchemaEchoCorpus(Corpus):
    """The corpus ``schema-echo``: ToolACE and xLAM with tools that echo their arguments (TIER, appendix E.2).

    Rows with one request of the user are taken (E.3), whose trajectory calls everything at once, or nothing. A session
    is opened for a task (its scenario is the task's id) and has the tools of its row. A right answer calls the same
    tools as the trajectory, with the same values of required parameters. Optional ones do not count, nor does the
    order. ``null`` for an optional parameter of a trajectory is read as if it were left out.

    A trajectory that does not fit the schemas of its own row cannot be equalled by a call that does. ``mismatched``
    says what becomes of it: ``"drop"``, or ``"keep"``, as in the paper's training, where it speaks against calls that
    fit (E.5). ``held_out`` is the share of the split ``validation``; equal queries are on the same side.
    ``left_out`` counts what is no task, by reason.

    Raises :class:`callwright.errors.DataError` for a file that is missing, damaged, or gives no task.
    """

    def __init__(
        self,
        toolace: str | Path | None = None,
        xlam: str | Path | None = None,
        mismatched: str = "drop",
        held_out: float = 0.02,
    ) -> None:
        if mismatched not in ("drop", "keep"):
            raise UsageError(f"mismatched must be drop or keep, not {mismatched!r}")
        if isinstance(held_out, bool) or not isinstance(held_out, int | float) or not 0 <= held_out < 1:
            raise UsageError(f"held_out is a share of at least 0 and below 1, not {held_out!r}")
        given = {"toolace": toolace, "xlam": xlam}
        self._files = {name: Path(file).absolute() for name, file in given.items() if file is not None}
        if not self._files:
            raise UsageError(f"the corpus {NAME} needs a file: toolace=FILE, xlam=FILE, or both")
        self._made_of = (self._files.get("toolace"), self._files.get("xlam"), mismatched, held_out)
        self.left_out: Counter[str] = Counter()
        self._specs: dict[str, ToolSpec] = {}
        self._made: dict[str, TasksOnDemand] = {}
        self._rows: dict[str, list[Row]] = {split: [] for split in SPLITS}
        for name, file in self._files.items():
            for row in self._read(name, file, mismatched == "keep", held_out):
                self._rows[row.split].append(row)
        self._places = {row.id: (row.split, at) for rows in self._rows.values() for at, row in enumerate(rows)}
        if not self._places:
            reasons = ", ".join(f"{reason} ({count:,})" for reason, count in self.left_out.most_common(3))
            raise DataError(f"{' and '.join(map(str, self._files.values()))}: no row is a task: {reasons or 'no rows'}")
        if self.left_out:
            logger.info("rows left out", corpus=NAME, tasks=len(self._places), **dict(self.left_out))

    def __reduce__(self) -> Any:
        return made_by(self, SchemaEchoCorpus, *self._made_of)

    @property
    def name(self) -> str:
        return NAME

    @cached_property
    def environment(self) -> RowsEcho:
        """Where the tasks are executed."""
        return RowsEcho(self)

    @property
    def splits(self) -> Mapping[str, int]:
        """``train`` and ``validation`` with their sizes."""
        return {split: len(rows) for split, rows in self._rows.items()}

    def __getitem__(self, split: str) -> Sequence[Task]:
        """The tasks of a split, in the order of the files. Raises :class:`callwright.errors.UnknownName`."""
        if split not in self._rows:
            raise UnknownName(f"split of {NAME}", split, self._rows)
        if split not in self._made:
            rows = self._rows[split]
            self._made[split] = TasksOnDemand(
                len(rows), partial(self._task_at, split), [len(row.calls) for row in rows]
            )
        return self._made[split]

    def _task_at(self, split: str, place: int) -> Task:
        return self.task_of(self._rows[split][place])

    def task(self, task_id: str) -> Task:
        """The task with this id (``xlam-17``: of the file's 18th row). Raises :class:`UnknownName`."""
        return self.task_of(self.row(task_id))

    def row(self, task_id: str) -> Row:
        """What a task was made of. Raises :class:`callwright.errors.UnknownName`."""
        if task_id not in self._places:
            raise UnknownName(f"task of {NAME}", task_id, list(self._places)[:1000])
        split, at = self._places[task_id]
        return self._rows[split][at]

    def every_tool(self) -> Iterator[ToolSpec]:
        """The tools of all rows; those of one name may differ from row to row."""
        for rows in self._rows.values():
            for row in rows:
                yield from row.tools.values()

    def task_of(self, row: Row) -> Task:
        """The task of a row."""
        program = program_of(row)
        expected = [expected_of(called, row.tools.get(called.tool)) for called in row.calls]
        return Task(
            id=row.id,
            query=row.query,
            tools=row.tools,
            answer=Answer(tuple(expected), open=(ARGUMENTS,)),
            environment=self.environment,
            scenario=row.id,
            split=row.split,
            depth=len(row.calls),
            chain=min(len(row.calls), 1),
            structure=program.structure,
            returns=program.returns,
            program=program,
            facts={"category": row.id.partition("-")[0]},
        )

    def _read(self, name: str, file: Path, keep: bool, held_out: float) -> Iterator[Row]:
        for number, value in enumerate(read_values(file)):
            try:
                if not isinstance(value, Mapping):
                    raise BadRow("not an object")
                conversation = READERS[name](value)
                asked, called = single_turn(conversation)
                specs = {tool.name: self._spec(tool) for tool in conversation.tools}
                if len(specs) < len(conversation.tools):
                    raise BadRow("two tools of one name")
                row = Row(f"{name}-{number}", _split_of(asked.text, held_out), asked.text, specs, called.calls)
                if not keep and not fits(row):
                    raise BadRow("a trajectory that does not fit its schemas")
            except BadRow as error:
                self.left_out[str(error)] += 1
                continue
            yield row

    def _spec(self, tool: Tool) -> ToolSpec:
        """The spec, one for all rows that declare the same."""
        told = [tool.name, tool.description, [[one.name, one.required, one.declared] for one in tool.parameters]]
        key = json.dumps(told, default=str)
        if key not in self._specs:
            self._specs[key] = spec_of(tool)
        return self._specs[key]


def single_turn(conversation: Conversation) -> tuple[Turn, Turn]:
    """The one request of a conversation, and the turn that answers it. Raises :class:`.conversations.BadRow`."""
    asked = [turn for turn in conversation.turns if turn.by == "user"]
    answers = [turn for turn in conversation.turns if turn.by == "assistant"]
    if len(asked) != 1:
        raise BadRow("several turns of the user" if asked else "no turn of the user")
    if not answers or not asked[0].text.strip():
        raise BadRow("nothing asked, or no answer")
    if any(turn.calls for turn in answers[1:]):
        raise BadRow("calls in several steps")
    return asked[0], answers[0]


def program_of(row: Row) -> Program:
    """The calls of the trajectory, each on its own."""
    calls = []
    for number, called in enumerate(row.calls):
        spec = row.tools.get(called.tool)
        required = () if spec is None else spec.parameters.get("required", ())
        given = {name: value for name, value in called.arguments.items() if value is not None or name in required}
        calls.append(Call(number, called.tool, given))
    return Program(tuple(calls), "all" if len(calls) > 1 else "one")


def fits(row: Row) -> bool:
    """Whether the trajectory fits the schemas of its row."""
    found = validate(program_of(row), row.tools)
    return not (found.names or found.parameters or found.types or found.values)


def expected_of(called: Called, spec: ToolSpec | None) -> dict[str, Any]:
    """What a call of a trajectory is held to: its required arguments. One that it lacks is ``None``."""
    required = () if spec is None else spec.parameters.get("required", ())
    return {"name": called.tool, ARGUMENTS: {name: called.arguments.get(name) for name in required}}


def _split_of(query: str, held_out: float) -> str:
    drawn = int.from_bytes(blake2b(query.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") / 2**64
    return "validation" if drawn < held_out else "train"


class RowsEcho(Environment):
    """The environment of a ``corpus``: a session has the tools of one row, and echoes."""

    def __init__(self, corpus: SchemaEchoCorpus) -> None:
        self._corpus = corpus
        self._made: dict[int, ReadyTool] = {}

    def __reduce__(self) -> Any:
        return operator.attrgetter("environment"), (self._corpus,)

    @property
    def name(self) -> str:
        return NAME

    @cached_property
    def tools(self) -> Mapping[str, ToolSpec]:
        """A tool of every name that a row has: the first."""
        found: dict[str, ToolSpec] = {}
        for spec in self._corpus.every_tool():
            found.setdefault(spec.name, spec)
        return found

    @property
    def pure(self) -> bool:
        """True: nothing is changed."""
        return True

    def open(self, scenario: str = "", seed: int = 0) -> EchoSession:
        """A session for the task of that id; without one over :attr:`tools`. Raises :class:`UnknownName`."""
        tools = self._corpus.row(scenario).tools if scenario else self.tools
        return EchoSession(MadeReady(tools, self._made), self, scenario)
