"""Corpora in files: JSON lines, the released benchmark's format, Parquet, and OpenAI-style chat rows.

A *row* is a task as JSON: ``id, split, depth, chain, structure, returns, scenario, prompt, target_tools, distractors,
tools`` (offered, in order), ``program`` (the reference in the JSON form), ``answer`` (a list of values), and what else
the corpus knows of it (``family``, ``kind``, ``compound``; ``would``: what a depth-0 task was made from).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from callwright.errors import DataError, MissingExtra, UsageError
from callwright.language.messages import Message, ToolCall
from callwright.language.program import Call, plain
from callwright.tools.validation import TABLE
from callwright.walk.execution import execute
from callwright.walk.tasks import Corpus, Task
from callwright.walk.trace import CallRecord

FORMATS: Final = ("jsonl", "official", "parquet", "openai")
QUERIES: Final = "queries.json"
DEFINITIONS: Final = "function_definitions.json"
#: Columns that hold text or numbers as they are; the others are JSON texts in tables.
_PLAIN: Final = (
    "id",
    "split",
    "depth",
    "chain",
    "structure",
    "returns",
    "scenario",
    "prompt",
    "family",
    "kind",
    "compound",
)
_LISTS: Final = ("target_tools", "distractors", "tools")
_TEXTS: Final = ("program", "answer", "would")


def row_of(task: Task) -> dict[str, Any]:
    """The row of a task of any corpus."""
    calls = task.program.calls if task.program is not None else ()
    called = list(dict.fromkeys(call.tool for call in calls))
    return {
        "id": task.id,
        "split": task.split,
        "depth": task.depth,
        "chain": task.chain,
        "structure": task.structure,
        "returns": task.returns,
        "scenario": task.scenario,
        "prompt": task.query,
        "target_tools": called,
        "distractors": [name for name in task.tools if name not in called],
        "tools": list(task.tools),
        "program": {str(call.id): {call.tool: plain(call.arguments)} for call in calls},
        "answer": plain(list(task.answer.values)),
        **{key: task.facts[key] for key in ("family", "kind", "compound") if isinstance(task.facts.get(key), str)},
        **({"would": task.facts["would"]} if isinstance(task.facts.get("would"), dict) else {}),
    }


def rows_of(corpus: Corpus, splits: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """The rows of a corpus, split by split."""
    for split in splits or tuple(corpus.splits):
        for task in corpus[split]:
            yield row_of(task)


# Writing --------------------------------------------------------------------------------------------------------------


def write(corpus: Corpus, path: Path, form: str, splits: Sequence[str] = ()) -> int:
    """Write a corpus and return the number of rows.

    ``official`` is a folder with ``queries.json`` and ``function_definitions.json``; the others are files. Raises
    :class:`callwright.UsageError` for an unknown format, :class:`callwright.errors.MissingExtra` without pyarrow.
    """
    if form == "jsonl":
        return _write_lines(path, rows_of(corpus, splits))
    if form == "openai":
        tasks = (task for split in splits or tuple(corpus.splits) for task in corpus[split])
        return _write_lines(path, (openai_row(task) for task in tasks))
    if form == "official":
        return _write_official(path, list(rows_of(corpus, splits)), corpus)
    if form == "parquet":
        return _write_parquet(path, list(rows_of(corpus, splits)))
    raise UsageError(f"there is no format {form!r}; known: {', '.join(FORMATS)}")


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    count = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    return count


def openai_row(task: Task) -> dict[str, Any]:
    """A chat row: the query, the assistant's calls, and the offered tools as function definitions.

    Calls that need one another's results are made one after the other: those that need nothing in the assistant's first
    message, what they returned in messages of the role ``tool``, and so on; arguments are the values that the tools
    get. The last message is the assistant's. A task without calls has an assistant that says so. Raises
    :class:`callwright.errors.DataError` for a program with references that does not execute.
    """
    waves = task.program.waves if task.program is not None else ()
    said: list[Message] = [Message.user(task.query)]
    if not waves:
        said.append(Message.assistant("None of the available tools can do this."))
    made = _executed(task) if len(waves) > 1 else {}
    before: tuple[Call, ...] = ()
    for wave in waves:
        if before:
            said += [Message.tool(json_of(made[call.id].outcome.value), f"call_{call.id}") for call in before]
        arguments = [plain(made[call.id].arguments if made else call.arguments) for call in wave]
        named = zip(wave, arguments, strict=True)
        said.append(
            Message.assistant("", [ToolCall(f"call_{call.id}", call.tool, json_of(given)) for call, given in named])
        )
        before = wave
    return {
        "id": task.id,
        "split": task.split,
        "messages": [message.to_openai() for message in said],
        "tools": [spec.to_openai() for spec in task.offered.values()],
        "parallel_tool_calls": any(len(wave) > 1 for wave in waves),
    }


def json_of(value: Any) -> str:
    """A value as the text of a message."""
    return json.dumps(value, ensure_ascii=False)


def _executed(task: Task) -> dict[int, CallRecord]:
    """What came of each call of the reference program, by its id."""
    assert task.program is not None
    trace = execute(
        task.program,
        task.environment,
        task.tools,
        scenario=task.scenario,
        seed=task.seed,
        clock=task.clock,
        opening=task.opening,
    )
    if not trace.executed:
        failed = trace.failures[0]
        raise DataError(
            f"the reference program of task {task.id!r} does not execute: call {failed.call} {failed.tool}: "
            f"{failed.outcome.code}: {failed.outcome.message}"
        )
    return {record.call: record for record in trace.records}


def _write_official(folder: Path, rows: Sequence[dict[str, Any]], corpus: Corpus) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    queries = {}
    for number, row in enumerate(rows):
        calls, answer = row["program"], row["answer"]
        ids = list(calls) if row["returns"] == "all" else list(calls)[-1:]
        known = {key: value for key, value in row.items() if key not in ("prompt", "program", "answer", "returns")}
        queries[str(number)] = {
            "prompt": row["prompt"],
            "num_calls": len(calls),
            "follow_up": False,
            "return_all": row["returns"] == "all",
            "tag": row["scenario"],
            "apis": row["target_tools"],
            "api_calls": json.dumps(calls, ensure_ascii=False),
            "response": json.dumps(dict(zip(ids, answer, strict=True)), ensure_ascii=False) if calls else "",
            "callwright": known,
        }
    (folder / QUERIES).write_text(json.dumps(queries, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    definitions: dict[str, Any] = {}
    for name, spec in corpus.environment.tools.items():
        returns = _dialect(spec.result) if spec.result is not None else {"type": "dict", "properties": {}}
        if spec.result_field is not None:
            returns["index"] = spec.result_field
        definitions[name] = {
            "name": name,
            "description": spec.description,
            "parameters": _dialect(spec.parameters),
            "returns": returns,
        }
    (folder / DEFINITIONS).write_text(json.dumps(definitions, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return len(rows)


_NAMES: Final = {"object": "dict", "number": "float"}


def _dialect(schema: Any) -> Any:
    """JSON Schema in the released benchmark's words: ``dict``, ``float``, ``pandas.DataFrame``."""
    if isinstance(schema, list):
        return [_dialect(inner) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type":
            out[key] = "pandas.DataFrame" if schema.get(TABLE) and value == "array" else _NAMES.get(value, value)
        elif key == "properties":
            out[key] = {name: _dialect(inner) for name, inner in value.items()}
        elif key not in (TABLE, "additionalProperties") and not (key == "items" and schema.get(TABLE)):
            out[key] = _dialect(value)
    return out


def _write_parquet(path: Path, rows: Sequence[dict[str, Any]]) -> int:
    arrow, parquet = _arrow()
    columns: dict[str, list[Any]] = {}
    for name in (*_PLAIN, *_LISTS, *_TEXTS):
        values = [row.get(name) for row in rows]
        if any(value is not None for value in values):
            texts = name not in (*_PLAIN, *_LISTS)
            columns[name] = [json.dumps(value, ensure_ascii=False) if texts else value for value in values]
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(arrow.table(columns), path)
    return len(rows)


def _arrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise MissingExtra("the Parquet format", "data", "pyarrow") from error


# Reading --------------------------------------------------------------------------------------------------------------


def read(path: Path, form: str) -> list[dict[str, Any]]:
    """The rows of an exported file or folder.

    Raises :class:`callwright.errors.DataError` for one that is not of the format, :class:`callwright.UsageError` for a
    format that cannot be read back.
    """
    readers = {"jsonl": _read_lines, "official": _read_official, "parquet": _read_parquet}
    if form not in readers:
        raise UsageError(f"the format {form!r} cannot be read back; these can: {', '.join(readers)}")
    if not path.exists():  # pyarrow's own error does not say so
        raise DataError(f"{path} cannot be read: there is no such file or folder")
    try:
        return readers[form](path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path} is not of the format {form!r}: {type(error).__name__}: {error}") from error


def _read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def _read_official(folder: Path) -> list[dict[str, Any]]:
    rows = []
    for number, query in json.loads((folder / QUERIES).read_text(encoding="utf-8")).items():
        calls = json.loads(query["api_calls"])
        known = dict(query.get("callwright") or {})
        response = json.loads(query["response"]) if query["response"] else {}
        row = {
            "id": known.pop("id", number),
            "split": known.pop("split", "train"),
            "depth": known.pop("depth", query["num_calls"]),
            "chain": known.pop("chain", query["num_calls"]),
            "structure": known.pop("structure", "none"),
            "returns": "all" if query["return_all"] else "one",
            "scenario": query["tag"],
            "prompt": query["prompt"],
            "target_tools": known.pop("target_tools", query["apis"]),
            "distractors": known.pop("distractors", []),
            "tools": known.pop("tools", query["apis"]),
            "program": calls,
            "answer": list(response.values()),
        }
        known.pop("scenario", None)
        rows.append({**row, **known})
    return rows


def _read_parquet(path: Path) -> list[dict[str, Any]]:
    arrow, parquet = _arrow()
    try:
        table = parquet.read_table(path)
    except arrow.ArrowInvalid as error:
        raise DataError(f"{path} is not a Parquet file: {error}") from error
    order = (
        "id",
        "split",
        "depth",
        "chain",
        "structure",
        "returns",
        "scenario",
        "prompt",
        *_LISTS,
        "program",
        "answer",
    )
    rows = []
    for entry in table.to_pylist():
        for name in _TEXTS:
            if name in entry:
                entry[name] = json.loads(entry[name])
        rows.append({**{name: entry[name] for name in order}, **{k: v for k, v in entry.items() if k not in order}})
    return rows
