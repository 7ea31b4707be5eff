"""Logs of Inspect (``inspect_ai``): ``.json`` documents, and ``.eval`` archives with a member for each sample.

A sample is a log: its ``messages``, whose results of tools have their ``error`` (``type`` and ``message``), absent for
a call that executed. The tools are those of its last request (``events`` of the type ``model``), where these were kept.
Arguments that Inspect could not parse are no JSON here either. Logs that callwright wrote do not hold errors of calls:
their results say nothing but what :func:`callwright.environments.telling.tell` told.

Source: inspect.aisi.org.uk, "Log files" and the reference of ``inspect_ai.log`` and ``inspect_ai.model``: version 2 of
the format, written since 0.3.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.files import parse, peeked, pieces_of, reason
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.told import Shelf, outcome_of, told_calls, told_log
from callwright.errors import DataError
from callwright.language.messages import Message, ToolCall
from callwright.tools.spec import ToolSpec

_ZIP: Final = b"PK\x03\x04"
_ATTACHED: Final = "attachment://"
_ROLES: Final = ("system", "user", "assistant", "tool")


class InspectLogs:
    """The log format ``inspect``."""

    @property
    def name(self) -> str:
        """``inspect``."""
        return "inspect"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it is an archive called ``.eval``, or a document with ``eval`` and ``samples`` or a ``plan``."""
        if head.startswith(_ZIP):
            return path.suffix == ".eval"
        value = peeked(head)
        return isinstance(value.get("eval"), Mapping) and "version" in value and "status" in value

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log for each sample. Raises :class:`callwright.errors.DataError` that names the sample."""
        shelf = Shelf(tools)
        with path.open("rb") as file:
            packed = file.read(4) == _ZIP
        for where, sample, ours in _archived(path) if packed else _listed(path):
            yield _log(sample, where, shelf, ours)


def _listed(path: Path) -> Iterator[tuple[str, Any, bool]]:
    for piece in pieces_of(path):
        log = piece.value
        if not isinstance(log, Mapping) or not isinstance(log.get("eval"), Mapping):
            raise DataError(f"{piece.where}: no log of Inspect: expected an object with 'eval' and 'samples'")
        for number, sample in enumerate(_list(log, "samples")):
            yield f"{piece.where}: sample {number}", sample, _is_ours(log)


def _archived(path: Path) -> Iterator[tuple[str, Any, bool]]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            header = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
            ours = header is not None and _is_ours(_member(archive, header, path))
            for name in names:
                if name.startswith("samples/") and name.endswith(".json"):
                    yield f"{path}: {name}", _member(archive, name, path), ours
    except NotImplementedError as error:
        raise DataError(
            f"{path}: its members are compressed in a way that this Python does not know: {error}"
        ) from error
    except (zipfile.BadZipFile, OSError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> Any:
    try:
        return parse(archive.read(name))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: {name}: {reason(error)}") from error


def _is_ours(log: Any) -> bool:
    about = log.get("eval") if isinstance(log, Mapping) else None
    packages = about.get("packages") if isinstance(about, Mapping) else None
    return isinstance(packages, Mapping) and "callwright" in packages


def _log(sample: Any, where: str, shelf: Shelf, ours: bool) -> Log:
    if not isinstance(sample, Mapping) or not isinstance(sample.get("messages"), list):
        raise DataError(f"{where}: no sample: expected an object with 'messages'")
    attached = sample.get("attachments")
    texts = attached if isinstance(attached, Mapping) else {}
    errors: dict[int, Mapping[str, Any]] = {}
    messages = []
    for number, given in enumerate(sample["messages"]):
        message = _message(given, f"{where}: message {number}", texts)
        messages.append(message)
        if isinstance(given.get("error"), Mapping):
            errors[id(message)] = given["error"]
    findings = []
    if isinstance(failure := sample.get("error"), Mapping):
        findings.append(f"the sample ended in an error: {str(failure.get('message'))[:200]}")

    def outcome(message: Message) -> Outcome:
        error = errors.get(id(message))
        if error is None:
            return outcome_of(message.text, None if ours else False)
        return outcome_of(str(error.get("message") or message.text), True, str(error.get("type") or "error"))

    calls = told_calls(messages, outcome, findings)
    name, epoch = sample.get("id"), sample.get("epoch", 1)
    origin = {"format": "inspect", "task": str(name), "epoch": epoch}
    return told_log(
        f"{name}-{epoch}",
        messages,
        calls,
        shelf.world(_tools(sample), where),
        origin=origin,
        findings=findings,
        truncated=_cut_off(sample),
    )


def _message(given: Any, where: str, texts: Mapping[str, Any]) -> Message:
    if not isinstance(given, Mapping) or given.get("role") not in _ROLES:
        raise DataError(f"{where}: expected an object whose 'role' is one of {', '.join(_ROLES)}")
    content = given.get("content")
    if isinstance(content, str):
        parts: Any = _whole(content, texts)
    elif isinstance(content, list):
        parts = tuple(_part(one, texts) for one in content if isinstance(one, str | Mapping))
    else:
        parts = ""
    if given["role"] == "tool":
        return Message.tool(parts, str(given.get("tool_call_id") or ""), name=str(given.get("function") or ""))
    if given["role"] == "assistant":
        return Message.assistant(parts, [_call(one, where) for one in _list(given, "tool_calls")])
    return Message(given["role"], parts)


def _part(part: Any, texts: Mapping[str, Any]) -> Any:
    if isinstance(part, str):
        return _whole(part, texts)
    if part.get("type") == "text" and isinstance(part.get("text"), str):
        return _whole(part["text"], texts)
    return part


def _whole(text: str, texts: Mapping[str, Any]) -> str:
    """A text; where it is long, Inspect keeps it once, and a name in its place."""
    if not text.startswith(_ATTACHED):
        return text
    held = texts.get(text.removeprefix(_ATTACHED))
    return held if isinstance(held, str) else text


def _call(given: Any, where: str) -> ToolCall:
    if not isinstance(given, Mapping) or not isinstance(given.get("function"), str):
        raise DataError(f"{where}: a call has no 'function'")
    arguments = given.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    if given.get("parse_error"):  # the text that was sampled is not kept
        text = f"not parsed: {given['parse_error']}"
    return ToolCall(str(given.get("id") or ""), given["function"], text)


def _tools(sample: Mapping[str, Any]) -> Any:
    """The tools of the last request, if events were kept."""
    for event in reversed(_list(sample, "events")):
        if isinstance(event, Mapping) and event.get("event") == "model" and isinstance(event.get("tools"), list):
            return event["tools"]
    return None


def _list(row: Mapping[str, Any], name: str) -> list[Any]:
    value = row.get(name)
    return value if isinstance(value, list) else []


def _cut_off(sample: Mapping[str, Any]) -> bool:
    output = sample.get("output")
    choices = output.get("choices") if isinstance(output, Mapping) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return isinstance(first, Mapping) and first.get("stop_reason") == "max_tokens"
