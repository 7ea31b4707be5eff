"""DepthBench in files: files of tasks, the released benchmark's format, and OpenAI-style chat rows.

Tasks and chats are the core's (:mod:`callwright.walk.task_rows`). A *row* of this module is what the package ships and
what stands under the key ``callwright`` of the released format: ``id, split, depth, chain, structure, returns,
scenario, prompt, target_tools, distractors, tools`` (offered, in order), ``program`` (the reference in the JSON form),
``answer`` (a list of values), and what else the corpus knows of it (``family``, ``kind``, ``compound``; ``would``: what
a depth-0 task was made from).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from callwright.errors import DataError, UsageError
from callwright.language.program import plain
from callwright.plugins import Registry
from callwright.tools.validation import TABLE
from callwright.training.run_folder import jsonl_lines, write_atomically
from callwright.walk.task_rows.chats import chat_row
from callwright.walk.task_rows.reading import read_tasks
from callwright.walk.task_rows.writing import write_tasks
from callwright.walk.tasks import Corpus, Task

FORMATS: Final = ("jsonl", "official", "parquet", "openai")
QUERIES: Final = "queries.json"
DEFINITIONS: Final = "function_definitions.json"


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


def write(corpus: Corpus, path: Path, form: str, splits: Sequence[str] = (), registry: Registry | None = None) -> int:
    """Write a corpus and return the number of tasks.

    ``jsonl`` and ``parquet`` are files of tasks, which the name of the file tells apart, ``openai`` is chats.
    ``official`` is a folder with ``queries.json`` and ``function_definitions.json``. Raises
    :class:`callwright.UsageError` for an unknown format or another name, :class:`callwright.errors.MissingExtra`
    without pyarrow.
    """
    tasks = (task for split in splits or tuple(corpus.splits) for task in corpus[split])
    if form in ("jsonl", "parquet"):
        if (path.suffix == ".parquet") != (form == "parquet"):
            raise UsageError(f"{path}: a file of the format {form} is called .{form}")
        return write_tasks(path, tasks, about={"corpus": corpus.name}, registry=registry)
    if form == "openai":
        lines = jsonl_lines(path, (chat_row(task) for task in tasks))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, b"".join(lines))
        return len(lines)
    if form == "official":
        return _write_official(path, list(rows_of(corpus, splits)), corpus)
    raise UsageError(f"there is no format {form!r}; known: {', '.join(FORMATS)}")


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


# Reading --------------------------------------------------------------------------------------------------------------


def read(path: Path, form: str, registry: Registry | None = None, environment: str = "") -> list[dict[str, Any]]:
    """The rows of an exported file or folder. Rows do not say where they play: with ``environment`` tasks of any other
    one are refused, which the released format does not tell.

    Raises :class:`callwright.errors.DataError` for one that is not of the format, or of another environment,
    :class:`callwright.UsageError` for a format that cannot be read back.
    """
    if form not in ("jsonl", "official", "parquet"):
        raise UsageError(f"the format {form!r} cannot be read back; these can: jsonl, official, parquet")
    if form != "official":
        rows = []
        for task in read_tasks(path, registry=registry):
            if environment not in ("", task.environment.name):
                raise DataError(f"{path}: task {task.id!r} is of {task.environment.name!r}, not of {environment!r}")
            rows.append(row_of(task))
        return rows
    try:
        return _read_official(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path} is not of the format {form!r}: {type(error).__name__}: {error}") from error


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
