"""Files of tasks: two corpora that read them, and the commands that write such files, look at them and check them."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

NAME = "tasks"
COMPACT = "compact-tasks"
_HERE = "callwright_plugins.task_files"


@hookimpl
def callwright_corpora() -> Iterable[Lazy]:
    """Register the corpora."""
    yield Lazy(
        NAME,
        f"{_HERE}.corpus:TasksCorpus",
        summary="tasks of any environments, from a file of tasks (file=FILE)",
        reaches=f"{_HERE}.corpus:reaches",
        takes=f"{_HERE}.options:TasksOptions",
    )
    yield Lazy(
        COMPACT,
        f"{_HERE}.compact:CompactTasksCorpus",
        summary="the same with prompts, demonstrations and a vocabulary for tiny models (file=FILE, shown=FILE)",
        reaches=f"{_HERE}.corpus:reaches",
        takes=f"{_HERE}.options:CompactTasksOptions",
    )


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """Register the commands."""
    yield Lazy("tasks export", f"{_HERE}.command:export", summary="write tasks of a corpus to a file")
    yield Lazy("tasks show", f"{_HERE}.command:show", summary="what a file of tasks holds, or one of its tasks")
    yield Lazy("tasks check", f"{_HERE}.command:check", summary="whether the tasks of a file hold in their worlds")
