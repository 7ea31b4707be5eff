"""Rows of completions: what a row has to hold, and which keys it may have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callwright.commands.file_formats import schema_of
from callwright.commands.jsonl import BadRow
from callwright.commands.pipelines import find_task
from callwright.commands.row_corpus import RowCorpus
from callwright.errors import DataError, UsageError
from callwright.language.strict_json import kind
from callwright.walk.completion import Completion
from callwright.walk.conditions import Progress

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline
    from callwright.walk.tasks import Task


def read_row(
    pipeline: Pipeline, tasks: dict[str, Task | str], row: dict[str, Any]
) -> tuple[str | int, Task, str | Completion, Progress | None]:
    """The id of a row, its task, its completion and how far training was.

    A row of several turns (``completions``, ``turns``) needs no ``completion``, which is empty then. ``tasks``
    remembers tasks by their ids, and why there is none. Raises :class:`callwright.commands.jsonl.BadRow`.
    """
    row_id, name, completion = row.get("id"), row.get("task"), row.get("completion")
    if type(row_id) is not str and type(row_id) is not int:
        raise BadRow(_expected(row, "id", "a string or an integer"))
    if completion is None and (row.get("completions") or row.get("turns")):
        completion = ""
    if type(completion) is not str:
        raise BadRow(_expected(row, "completion", "a string"))
    if "truncated" in row:
        if type(row["truncated"]) is not bool:
            raise BadRow(_expected(row, "truncated", "true or false"))
        completion = Completion(completion, truncated=row["truncated"])
    progress = _progress(row) if "step" in row or "total_steps" in row else None
    if isinstance(pipeline.corpus, RowCorpus):
        try:
            return row_id, pipeline.corpus.row_task(row), completion, progress
        except DataError as error:
            raise BadRow(str(error)) from error
    if type(name) is int:
        name = str(name)
    if type(name) is not str:
        raise BadRow(_expected(row, "task", "the id of a task"))
    task = tasks.get(name)
    if task is None:
        try:
            task = find_task(pipeline, name)
        except UsageError as error:  # remembered, since looking for similar names takes a while
            task = str(error)
        tasks[name] = task
    if isinstance(task, str):
        raise BadRow(task)
    return row_id, task, completion, progress


def known_keys() -> set[str]:
    """Keys of rows that are read, or that other commands write into rows which may be scored."""
    return {
        "group",
        *(key for name in ("score-input", "rollouts", "verdicts") for key in schema_of(name)["properties"]),
    }


def _expected(row: dict[str, Any], key: str, what: str) -> str:
    if key not in row:
        return f"the row has no {key!r}"
    return f"{key!r} is {kind(row[key])}, expected {what}"


def _progress(row: dict[str, Any]) -> Progress:
    step, total = row.get("step"), row.get("total_steps")
    if type(step) is not int or type(total) is not int or step < 0 or total < 1:
        raise BadRow("'step' and 'total_steps' must be integers, step >= 0 and total_steps >= 1")
    return Progress(step, total)
