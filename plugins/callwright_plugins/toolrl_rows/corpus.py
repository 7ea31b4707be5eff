"""Rows of ToolRL's data format as tasks.

The released raw data is a JSON list of ``{"instruction", "input", "output"}``: system message (format and tool list),
user message (the dialogue so far) and ground truth in ToolRL's form. Its parquet files hold the same as ``prompt`` (two
messages) and ``reward_model.ground_truth``. Both are read, and JSON lines of either.

Nothing can be executed, since the data has no tools that run. The environment therefore answers every call with the
call itself, so that an evaluation counts an answer as right if exactly the calls of the ground truth are made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from attrs import field, frozen

from callwright.digests import digest_of
from callwright.environments.calling import unknown_tool
from callwright.environments.protocol import Outcome
from callwright.errors import DataError, MissingExtra, NotThere, UnknownName
from callwright.language.program import Call, Program
from callwright.pickling import made_by
from callwright.tools.spec import ToolSpec
from callwright.walk.tasks import Answer, Task

NAME: Final = "toolrl-rows"
#: One tool of the list in a system message.
_TOOL: Final = re.compile(
    r"^\d+\. Name: (?P<name>.+)\nDescription: (?P<text>.*(?:\n(?!Parameters: ).*)*)\nParameters: (?P<json>.+)$",
    re.MULTILINE,
)
_TYPES: Final = {
    "str": "string", "string": "string", "int": "integer", "integer": "integer", "float": "number", "number": "number",
    "bool": "boolean", "boolean": "boolean", "list": "array", "array": "array", "dict": "object", "object": "object",
}  # fmt: skip
#: Without a file of its own, this share of the rows is for testing: the released split has 2%.
_TEST_EVERY: Final = 50


class ToolRLRows:
    """A corpus of the rows in ``file``: splits ``train`` and ``test``.

    The test rows are those of ``test_file`` if there is one, else those that say so (``extra_info.split``), else every
    fiftieth. Raises :class:`callwright.errors.DataError` naming the file and the row for what cannot be read, and
    :class:`callwright.errors.MissingExtra` for parquet without pyarrow.
    """

    name = NAME

    def __init__(self, file: str | Path, test_file: str | Path | None = None) -> None:
        known: dict[str, ToolSpec] = {}
        self.environment = Echo(known, self)
        self._files = tuple(None if path is None else Path(path).absolute() for path in (file, test_file))
        rows = read_rows(Path(file))
        if test_file is not None:
            split = {"train": rows, "test": read_rows(Path(test_file))}
        else:
            said = any(row.split == "test" for row in rows)
            tests = [row.split == "test" if said else number % _TEST_EVERY == 49 for number, row in enumerate(rows)]
            split = {
                "train": [row for row, test in zip(rows, tests, strict=True) if not test],
                "test": [row for row, test in zip(rows, tests, strict=True) if test],
            }
        self._splits = {
            name: tuple(self._task(f"{name}-{number}", name, row) for number, row in enumerate(found))
            for name, found in split.items()
        }
        for tasks in self._splits.values():
            for task in tasks:
                assert task.program is not None
                for called in task.program.calls:  # a few ground truths call what their list does not hold
                    known.setdefault(called.tool, ToolSpec(called.tool))
                known.update((name, spec) for name, spec in task.tools.items() if name not in known)

    def __reduce__(self) -> Any:
        """As the files that it reads, which must be where it is unpickled."""
        return made_by(self, ToolRLRows, *self._files)

    @property
    def splits(self) -> Mapping[str, int]:
        """``train`` and ``test`` with their sizes."""
        return {name: len(tasks) for name, tasks in self._splits.items()}

    def __getitem__(self, split: str) -> Sequence[Task]:
        """The tasks of a split, in the order of the file. Raises :class:`callwright.errors.UnknownName`."""
        if split not in self._splits:
            raise UnknownName(f"split of {NAME}", split, self._splits)
        return self._splits[split]

    def task(self, task_id: str) -> Task:
        """The task with this id (``train-17``). Raises :class:`callwright.errors.UnknownName`."""
        split, _, number = task_id.rpartition("-")
        tasks = self._splits.get(split, ())
        if not (number.isascii() and number.isdecimal() and len(number) < 10 and int(number) < len(tasks)):
            raise UnknownName(f"task of {NAME}", task_id, [f"{name}-0" for name in self._splits])
        return tasks[int(number)]

    def reference(self, task: Task) -> str:
        """What supervised training shows: the row's own output, thought included, character for character."""
        return str(task.facts["ground_truth"])

    def _task(self, task_id: str, split: str, row: Row) -> Task:
        calls = calls_of(row.truth)
        steps = tuple(Call(number, *call) for number, call in enumerate(calls))
        program = Program(steps, "all" if len(calls) > 1 else "one")
        return Task(
            id=task_id,
            query=row.user,
            tools=tools_of(row.system),
            answer=Answer(tuple(echo(*call) for call in calls)),
            environment=self.environment,
            split=split,
            depth=len(calls),
            chain=min(len(calls), 1),
            structure=program.structure,
            returns=program.returns,
            program=program,
            facts={
                "ground_truth": row.truth,
                "messages": [
                    *([{"role": "system", "content": row.system}] if row.system else []),
                    {"role": "user", "content": row.user},
                ],
            },
        )


@frozen
class Row:
    """A row as it was read."""

    system: str
    user: str
    truth: str
    split: str = ""


def read_rows(path: Path) -> list[Row]:
    """The rows of a JSON, JSON-lines or parquet file."""
    if not path.is_file():
        raise NotThere(f"there is no file {path}; name the one that holds ToolRL's rows: --set corpus.file=FILE")
    try:
        if path.suffix == ".parquet":
            values = _parquet(path)
        else:
            text = path.read_text(encoding="utf-8")
            whole = text.lstrip().startswith("[")
            values = json.loads(text) if whole else [json.loads(line) for line in text.split("\n") if line.strip()]
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as rows of ToolRL: {error}") from error
    if not values:
        raise DataError(f"{path} holds no rows")
    return [_row(path, number, value) for number, value in enumerate(values)]


def _parquet(path: Path) -> list[Any]:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra(f"reading {path}", "data", "pyarrow") from error
    rows: list[Any] = pyarrow.parquet.read_table(path).to_pylist()
    return rows


def _row(path: Path, number: int, value: Any) -> Row:
    try:
        if "prompt" in value:
            said = {message["role"]: message["content"] for message in value["prompt"]}
            truth, split = value["reward_model"]["ground_truth"], (value.get("extra_info") or {}).get("split", "")
            row = Row(said.get("system", ""), said["user"], truth, split)
        else:
            row = Row(value["instruction"], value["input"], value["output"], value.get("split", ""))
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}, row {number}: a row is {{'instruction', 'input', 'output'}} or {{'prompt', 'reward_model'}}; "
            f"this one lacks {error}"
        ) from error
    if not all(isinstance(text, str) for text in (row.system, row.user, row.truth)):
        raise DataError(f"{path}, row {number}: prompt and ground truth must be text")
    return row


def tools_of(system: str) -> Mapping[str, ToolSpec]:
    """The tools of a system message's list; those that cannot be read are left out (one of 1,482 in the released rows).

    The dialect has no ``required``: what has neither a default nor "optional" in its type counts as required.
    """
    found: dict[str, ToolSpec] = {}
    for match in _TOOL.finditer(system):
        try:
            given = json.loads(match["json"])
        except ValueError:
            continue
        if not isinstance(given, dict):
            continue
        properties, required = {}, []
        for name, facts in given.items():
            facts = facts if isinstance(facts, dict) else {}
            kind = str(facts.get("type", ""))
            properties[name] = _schema(kind, str(facts.get("description", "")))
            if "optional" not in kind.lower() and facts.get("default") in (None, ""):
                required.append(name)
        schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        found[match["name"].strip()] = ToolSpec(match["name"].strip(), match["text"].strip(), schema)
    return found


def _schema(kind: str, description: str) -> dict[str, Any]:
    word = re.split(r"[\[,( ]", kind.strip().lower(), maxsplit=1)[0]
    schema: dict[str, Any] = {"description": description} if description else {}
    return {**schema, "type": _TYPES[word]} if word in _TYPES else schema


def calls_of(truth: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls of a ground truth's block after its thought; the reward's check refuses lines that cannot be read."""
    _, _, rest = truth.rpartition("</think>")
    if "<tool_call>" not in rest:
        return []
    calls = []
    for line in rest.split("<tool_call>", 1)[1].split("</tool_call>", 1)[0].splitlines():
        try:
            call = json.loads(line)
        except ValueError:
            continue
        if not isinstance(call, dict):
            continue
        name, parameters = call.get("name"), call.get("parameters", {})
        if isinstance(name, str) and isinstance(parameters, dict):
            calls.append((name, parameters))
    return calls


def echo(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A call as the value that it returns."""
    return {"name": tool, "parameters": dict(arguments)}


@frozen(eq=False)
class Echo:
    """An environment that answers every call of a tool of its rows with the call, whatever the arguments are.

    It is pickled as a part of the ``corpus`` of those rows.
    """

    tools: Mapping[str, ToolSpec] = field(repr=False)
    corpus: ToolRLRows = field(repr=False)
    name: str = NAME
    pure: bool = True
    takes_anything: Literal[True] = True

    def __reduce__(self) -> Any:
        return getattr, (self.corpus, "environment")

    def open(self, scenario: str = "", seed: int = 0) -> EchoSession:
        """A session; all are alike."""
        return EchoSession(self)


@frozen(eq=False)
class EchoSession:
    """Has no state."""

    environment: Echo

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        if tool not in self.environment.tools:
            return unknown_tool(tool)
        return Outcome("ok", echo(tool, arguments))

    def digest(self) -> str:
        return digest_of(None)

    def close(self) -> None:
        """Nothing."""
