"""Logs of inspect_ai: a file of JSON (version 2 of its format), or its archive ``.eval`` with a file for each sample.

A sample has the conversation in ``messages``. A tool's message has an ``error`` with a ``type`` where the call failed,
and ``null`` where it did not: that is known.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.reading import json_rows
from callwright.episodes.logs.recording import outcome_of, recorded_log
from callwright.errors import DataError
from callwright.language.messages import Message, ToolCall
from callwright.tools.spec import ToolSpec


class Inspect:
    """``.json`` and ``.eval``."""

    name = "inspect"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it is an archive of that name, or a log with its ``eval``."""
        if head.startswith(b"PK"):
            return path.suffix == ".eval"
        return b'"eval"' in head and (b'"samples"' in head or b'"eval_id"' in head)

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log of each epoch of each sample."""
        for where, sample in _samples(path):
            listed = sample.get("messages")
            if not isinstance(listed, list):
                raise DataError(f"{where}: a sample has 'messages', a list")
            messages: list[Message] = []
            outcomes: dict[str, Outcome] = {}
            for one in listed:
                if not isinstance(one, Mapping):
                    raise DataError(f"{where}: a message is no object")
                message = _message(one, where)
                messages.append(message)
                if message.role == "tool" and "error" in one:
                    error = one["error"] if isinstance(one["error"], Mapping) else {}
                    text = message.text or str(error.get("message") or "")
                    outcomes[message.tool_call_id] = outcome_of(text, bool(error), str(error.get("type") or ""))
            name = f"{sample.get('id')}-{sample.get('epoch', 1)}"
            yield recorded_log(name, messages, tools, outcomes)


def _samples(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if path.suffix == ".eval":
        try:
            with zipfile.ZipFile(path) as archive:
                names = sorted(name for name in archive.namelist() if name.startswith("samples/"))
                for name in names:
                    yield f"{path}: {name}", json.loads(archive.read(name))
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise DataError(f"{path}: it is no archive of Inspect: {error}") from error
        return
    for where, row in json_rows(path):
        listed = row.get("samples") if isinstance(row, Mapping) else None
        if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
            raise DataError(f"{where}: a log of Inspect has 'samples', a list")
        for number, sample in enumerate(listed):
            yield f"{where}: sample {number}", sample


def _message(one: Mapping[str, Any], where: str) -> Message:
    content = one.get("content") or ""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    parts = [part for part in parts if isinstance(part, Mapping)]
    said = "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
    thought = "\n".join(str(part.get("reasoning", "")) for part in parts if part.get("type") == "reasoning")
    role = one.get("role")
    if role == "assistant":
        calls = [
            ToolCall(
                str(call.get("id") or ""), str(call.get("function") or ""), json.dumps(call.get("arguments") or {})
            )
            for call in one.get("tool_calls") or ()
            if isinstance(call, Mapping)
        ]
        return Message.assistant(said, calls, reasoning=thought)
    if role == "tool":
        return Message.tool(said, str(one.get("tool_call_id") or ""), name=str(one.get("function") or ""))
    if role in ("system", "user"):
        return Message(role, said)
    raise DataError(f"{where}: a message has the role {role!r:.40}")
