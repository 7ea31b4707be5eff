"""Reading what agents of other stacks recorded: a file of any registered format, as logs.

    for log in cw.read_log("run.jsonl", tools="tools.json"):
        print(cw.reward("tier").score_attempt(log.episode()))

What a file does not say is not guessed: outcomes are ``unknown``, and rewards that need them abstain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from callwright.episodes.logs.files import head_of, pieces_of
from callwright.episodes.logs.logged import ORIGIN
from callwright.episodes.logs.told import read_tool
from callwright.errors import DataError, UsageError, near_path
from callwright.plugins import Registry, default_registry
from callwright.tools.spec import FunctionTool, ToolSpec
from callwright.walk.tasks import Corpus, Task

if TYPE_CHECKING:
    from callwright.episodes.logs.kinds import LogFormat
    from callwright.episodes.logs.log import Log

KIND = "log format"
Tools: TypeAlias = str | Path | Mapping[str, ToolSpec] | Iterable[Any]


def read_log(
    file: str | Path,
    format: str | None = None,
    *,
    tools: Tools | None = None,
    task: Task | Corpus | None = None,
    registry: Registry | None = None,
    **options: Any,
) -> Iterator[Log]:
    """The logs of a file, one after the other; gzip and Zstandard are read, whatever the name.

    ``format`` is the name of a log format; without it the file is recognised. ``tools`` are those that were offered,
    beside what the file states: specifications or definitions (OpenAI's, MCP's), or a JSON file of them. ``task`` is
    what the agent worked on: a task, or a corpus in which the file's logs have theirs by ``task`` or ``id``.
    ``options`` are the format's.

    Raises :class:`callwright.errors.DataError` with the line for what cannot be read, and for a file that no format,
    or more than one, takes for its own; :class:`callwright.errors.UnknownName` for a format or task that is not there.
    """
    path = Path(file)
    if not path.is_file():
        what = "is a folder, not a log" if path.is_dir() else f"cannot be read: there is no such file{near_path(path)}"
        raise DataError(f"{file} {what}")
    known = registry or default_registry()
    if format is None:
        if options:
            raise UsageError(f"{next(iter(options))!r} is an option of a format: name that, too")
        form = recognised(path, known)
    else:
        form = known.create(KIND, format, **options)
    found = form.read(path, read_tools(tools) if tools is not None else {})
    return found if task is None else (_of_task(log, task) for log in found)


def recognised(path: Path, registry: Registry) -> LogFormat:
    """The format that takes a file for its own. Raises ``DataError`` unless there is just one."""
    head = head_of(path)
    forms = {name: registry.create(KIND, name) for name in registry.names(KIND)}
    takers = [name for name, form in forms.items() if form.recognises(path, head)]
    if len(takers) == 1:
        form: LogFormat = forms[takers[0]]
        return form
    if takers:
        raise DataError(f"{path} could be of the formats {', '.join(takers)}: say which one it is")
    raise DataError(f"{path} is of no format that is known by its beginning: name one of {', '.join(forms) or 'none'}")


def read_tools(tools: Tools) -> dict[str, ToolSpec]:
    """Tools by name: of specifications, of definitions, or of a JSON file of these (a list, ``{"tools": […]}``, lines).

    Raises :class:`callwright.errors.DataError` for what defines no tool.
    """
    if isinstance(tools, str | Path):
        where, path = str(tools), Path(tools)
        if not path.is_file():
            raise DataError(f"{path} cannot be read: there is no such file of tools{near_path(path)}")
        listed: list[Any] = []
        for piece in pieces_of(path):
            value = piece.value.get("tools", piece.value) if isinstance(piece.value, dict) else piece.value
            listed += value if isinstance(value, list) else [value]
    else:
        where, listed = "tools", list(tools.values() if isinstance(tools, Mapping) else tools)
    specs = (
        one.spec if isinstance(one, FunctionTool) else read_tool(one, f"{where}: tool {number}")
        for number, one in enumerate(listed, start=1)
    )
    return {spec.name: spec for spec in specs}


def _of_task(log: Log, task: Task | Corpus) -> Log:
    from callwright.episodes.logs.log import Log as Made

    if not isinstance(task, Task):
        origin = log.task.facts.get(ORIGIN)
        stated = origin.get("task") if isinstance(origin, Mapping) else None
        task = task.task(str(stated) if stated is not None else log.task.id)
    return Made.recorded(
        task, log.calls, log.messages, findings=log.noted, truncated=log.truncated, attempted=log.attempted
    )
