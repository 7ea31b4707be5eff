"""ToolRL's training rows from the user's own file: the corpus ``toolrl-rows``, whose rows bring their own prompts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy
from callwright.walk.tasks import Task

#: The fact of a task that holds the messages of its row.
MESSAGES = "messages"


@hookimpl
def callwright_corpora() -> Iterable[Lazy]:
    """Register the corpus."""
    yield Lazy(
        "toolrl-rows",
        "callwright_plugins.toolrl_rows.corpus:ToolRLRows",
        summary="rows of ToolRL's data format: prompt, tool list and ground truth (file=FILE)",
        takes="callwright_plugins.toolrl_rows.options:ToolRLRowsOptions",
    )


@hookimpl
def callwright_prompt(task: Task, messages: list[dict[str, Any]]) -> None:
    """A row's prompt is its own: instructions, tools and dialogue as the data has them."""
    given = task.facts.get(MESSAGES)
    if given is not None and task.environment.name == "toolrl-rows":
        messages[:] = [dict(message) for message in given]
