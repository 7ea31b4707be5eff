"""Reading and writing files of logs: ``cw.read_log("traces.jsonl")``, ``cw.write_logs(logs, "kept.jsonl")``."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from callwright.compression.packing import unpacked
from callwright.environments.protocol import Outcome
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.recording import specs_of
from callwright.errors import DataError, UsageError
from callwright.tools.spec import ToolSpec

if TYPE_CHECKING:
    from callwright.episodes.logs.kinds import LogFormat
    from callwright.plugins import Registry

#: Bytes of a file that a format looks at.
_HEAD: Final = 64 * 1024
#: What a file of ours begins with.
VERSION: Final = "callwright_log"


def read_log(
    file: str | Path,
    format: str | None = None,
    *,
    tools: Mapping[str, ToolSpec] | Iterable[Any] | str | Path | None = None,
    registry: Registry | None = None,
) -> list[Log]:
    """Every log of a file. ``format`` is the name of a log format; without it the one is taken that knows the file.

    ``tools`` are those that were offered, for formats that do not say it: specs, definitions in OpenAI's or MCP's
    format, or the path of a file of them. Each log is scored by ``recipe.score_attempt(log.episode())``.

    Raises :class:`callwright.errors.DataError` for a file that cannot be read, with the line, and
    :class:`callwright.UsageError` where no format, or more than one, knows it.
    """
    path = Path(file)
    return list(format_of(path, format, registry).read(path, tools_of(tools)))


def format_of(path: Path, name: str | None = None, registry: Registry | None = None) -> LogFormat:
    """The format of a file: the one that is named, else the only one that recognises it."""
    from callwright.plugins import default_registry

    registry = registry or default_registry()
    made: LogFormat
    if name is not None:
        made = registry.create("log format", name)
        return made
    head = head_of(path)
    known: list[LogFormat] = []
    for one in registry.names("log format"):
        made = registry.create("log format", one)
        if made.recognises(path, head):
            known.append(made)
    if len(known) == 1:
        return known[0]
    names = ", ".join(registry.names("log format"))
    if not known:
        raise UsageError(f"{path}: no log format knows this file; name one of {names} (format=, --format)")
    which = " or ".join(one.name for one in known)
    raise UsageError(f"{path}: it may be of the format {which}; name one (format=, --format)")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A file, unpacked where it is compressed. Raises :class:`callwright.errors.DataError` if it cannot be read."""
    try:
        with path.open("rb") as file:
            yield unpacked(file, str(path))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: it cannot be read: {getattr(error, 'strerror', None) or error}") from error


def head_of(path: Path) -> bytes:
    """The first bytes of a file, unpacked; those of an archive or of Parquet as they are.

    Raises :class:`callwright.errors.DataError` if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_HEAD)
    except OSError as error:
        raise DataError(f"{path}: it cannot be read: {error.strerror or error}") from error
    if raw.startswith((b"PK", b"PAR1")):
        return raw
    with opened(path) as unpacked_file:
        return unpacked_file.read(_HEAD)


def tools_of(given: Any) -> dict[str, ToolSpec]:
    """Tools that are given, in whatever shape."""
    if given is None:
        return {}
    if isinstance(given, str | Path):
        path = Path(given)
        with opened(path) as file:
            text = file.read()
        try:
            return specs_of(json.loads(text), str(path))
        except ValueError as error:
            raise DataError(f"{path}: it is not JSON: {error}") from error
    if isinstance(given, Mapping) and all(isinstance(one, ToolSpec) for one in given.values()):
        return dict(given)
    listed = list(given) if not isinstance(given, Mapping) else given
    if isinstance(listed, list) and all(isinstance(one, ToolSpec) for one in listed):
        return {spec.name: spec for spec in listed}
    return specs_of(listed)


def json_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """The JSON values of a file, each with its place: a line each, or one value, whose members a list has.

    Raises :class:`callwright.errors.DataError`, with the line, for what is no JSON, and for an empty file.
    """
    with opened(path) as file:
        content = file.read()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: it is not UTF-8 text (byte {error.start})") from error
    if not text.strip():
        raise DataError(f"{path}: it is empty")
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    try:
        whole = json.loads(text)
    except RecursionError as error:
        raise DataError(f"{path}: it is nested too deeply") from error
    except ValueError as error:
        if len(lines) == 1:
            raise DataError(f"{path}: it is not JSON: {error}") from error
    else:
        if isinstance(whole, list) and all(isinstance(one, dict | list) for one in whole):
            for number, one in enumerate(whole):
                yield f"{path}[{number}]", one
        else:
            yield str(path), whole
        return
    for number, line in lines:
        try:
            yield f"{path}:{number}", json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}:{number}: it is not JSON: {error}") from error


# Our own format ---------------------------------------------------------------------------------------------------


def write_logs(logs: Iterable[Log], file: str | Path) -> int:
    """Write logs as JSON lines, nothing of them lost but the world; returns how many. :func:`read_log` reads them."""
    count = 0
    with Path(file).open("w", encoding="utf-8") as out:
        for log in logs:
            out.write(json.dumps(row_of(log), ensure_ascii=False, default=str) + "\n")
            count += 1
    return count


def row_of(log: Log) -> dict[str, Any]:
    """A log as a row of our own format (version 1)."""
    task = log.task
    return {
        VERSION: 1,
        "id": task.id,
        "query": task.query,
        "environment": task.environment.name,
        "scenario": task.scenario,
        "seed": task.seed,
        "tools": [spec.to_openai() for spec in task.tools.values()],
        "messages": [message.to_openai() for message in log.messages],
        "calls": [
            {
                "tool": one.tool,
                "arguments": dict(one.arguments),
                "outcome": outcome_row(one.outcome),
                "call_id": one.call_id,
                "before": one.before,
                "state": one.state,
            }
            for one in log.calls
        ],
        "findings": list(log.notes),
    }


def outcome_row(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON, without what is empty."""
    row = {
        "kind": outcome.kind,
        "value": outcome.value,
        "code": outcome.code,
        "message": outcome.message,
        "notices": list(outcome.notices),
    }
    return {key: value for key, value in row.items() if key == "kind" or value not in (None, "", [])}
