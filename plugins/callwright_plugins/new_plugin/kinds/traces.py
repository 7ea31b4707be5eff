"""The log format ``zebra``: conversations as ShareGPT has them, a line of JSON for each.

    {"conversations": [{"from": "human", "value": "How late is it?"},
                       {"from": "function_call", "value": "{\"name\": \"now\", \"arguments\": {}}"},
                       {"from": "observation", "value": "12:30"},
                       {"from": "gpt", "value": "It is half past twelve."}]}

What a file does not say is not guessed: ShareGPT marks no failed call, so the outcomes of its calls are ``unknown``,
and rewards that need them abstain.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import callwright as cw
from callwright.episodes.logs.files import parse, peeked, pieces_of
from callwright.episodes.logs.told import Shelf, outcome_of, told_calls, told_log
from callwright.errors import DataError
from callwright.language.messages import ToolCall


class Zebra:
    """A file is of this format if its first line has ``conversations``."""

    name = "zebra"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first line has a list of turns with ``from``."""
        turns = peeked(head).get("conversations")
        return isinstance(turns, list) and bool(turns) and isinstance(turns[0], dict) and "from" in turns[0]

    def read(self, path: Path, tools: Mapping[str, cw.ToolSpec]) -> Iterator[cw.Log]:
        """A log for each line."""
        shelf = Shelf(tools)
        for piece in pieces_of(path):
            turns = piece.value.get("conversations") if isinstance(piece.value, dict) else None
            if not isinstance(turns, list):
                raise DataError(f"{piece.where}: the line has no list of 'conversations'")
            messages = [_message(turn, piece.where) for turn in turns]
            findings: list[str] = []
            calls = told_calls(messages, lambda message: outcome_of(message.text), findings)
            yield told_log(
                f"{path.stem}-{piece.number}",
                messages,
                calls,
                shelf.world(None, piece.where),
                origin={"format": self.name},
                findings=findings,
            )


def _message(turn: Any, where: str) -> cw.Message:
    speaker = turn.get("from") if isinstance(turn, dict) else None
    text = turn.get("value") if isinstance(turn, dict) else None
    if not isinstance(text, str):
        raise DataError(f"{where}: a turn has 'from' and, as text, 'value'; not {str(turn)[:80]!r}")
    if speaker == "system":
        return cw.Message.system(text)
    if speaker == "human":
        return cw.Message.user(text)
    if speaker == "gpt":
        return cw.Message.assistant(text)
    if speaker == "observation":
        return cw.Message.tool(text, "")
    if speaker == "function_call":
        return cw.Message.assistant("", [_call(text, where)])
    raise DataError(f"{where}: nobody is called {str(speaker)[:80]!r} in this format")


def _call(text: str, where: str) -> ToolCall:
    try:
        written = parse(text.encode("utf-8", "surrogatepass"))
        return ToolCall("", written["name"], json.dumps(written.get("arguments", {})))
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{where}: a call is JSON with 'name' and 'arguments', not {text[:80]!r}") from error
