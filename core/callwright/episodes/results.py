"""Observations: what a turn's calls came to, as messages that the model reads next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from callwright.environments.telling import printable, tell
from callwright.errors import ComponentError
from callwright.language.parser import Parser
from callwright.walk.sampling import Message
from callwright.walk.trace import CallRecord
from callwright.walk.turn import Turn

#: Stands for all results of a turn where not even the ends of them fit into the budget.
LEFT_OUT: Final = "[the results of these calls are too long and were left out]"
_ROLES: Final = ("system", "user", "assistant", "tool")


def observation_messages(parser: Parser, turn: Turn) -> tuple[Message, ...]:
    """The messages that follow a turn with calls.

    A parser may offer a method ``observe(turn)`` that returns a text, for one message of the role ``tool``, or
    messages. Without it there is one message of the role ``tool`` for each call: compact JSON with the id and name of
    the call and its ``result`` (of a partial one with a ``warning``), or an ``error`` with code and message.

    Raises :class:`callwright.errors.ComponentError` if ``observe`` raises or returns something else: a bug of the
    parser.
    """
    observe = getattr(parser, "observe", None)
    if observe is None:
        steps = turn.trace.records if turn.trace is not None else ()
        return tuple(Message(role="tool", content=describe_step(step)) for step in steps)
    try:
        made = observe(turn)
    except Exception as error:
        raise ComponentError(
            f"parser {parser.name!r} raised {type(error).__name__} in 'observe': {error}. This is a bug of the parser"
        ) from error
    messages = [{"role": "tool", "content": made}] if isinstance(made, str) else made
    if not isinstance(messages, list | tuple) or not messages or not all(map(_is_message, messages)):
        raise ComponentError(f"parser {parser.name!r}: 'observe' gave {made!r:.80}; it must give a text or messages")
    return tuple(Message(role=one["role"], content=printable(one["content"])) for one in messages)


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.get("role") in _ROLES and isinstance(value.get("content"), str)


def describe_step(step: CallRecord) -> str:
    """One call's outcome as compact JSON: its id and name, and what :func:`callwright.environments.tell` tells."""
    return tell(step.outcome, id=step.call, name=step.tool)


def as_user_message(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages for models without a role ``tool``: these become ``<tool_response>`` lines of a user's message."""
    merged: list[Message] = []
    lines: list[str] = []
    for message in [*messages, None]:
        if message is not None and message["role"] == "tool":
            lines.append(f"<tool_response>\n{message['content']}\n</tool_response>")
            continue
        if lines:
            merged.append(Message(role="user", content="\n".join(lines)))
            lines = []
        if message is not None:
            merged.append(message)
    return tuple(merged)


def cut_middle(text: str, keep: int) -> str:
    """The first and last characters of a text, ``keep`` in all, and between them how many were left out."""
    left_out = len(text) - keep
    if left_out <= 0:
        return text
    head, tail = (keep + 1) // 2, keep // 2
    return f"{text[:head]}[{left_out} characters left out]{text[len(text) - tail :]}"


def fit_observation(
    messages: Sequence[Message], limit: int, measure: Callable[[Sequence[Message]], int]
) -> tuple[Message, ...] | None:
    """Messages that measure at most ``limit``: as they are, else every content cut to the same number of characters.

    Where not even that fits, one message says that the results were left out; ``None`` if that is too long, too.
    """
    whole = tuple(messages)
    if measure(whole) <= limit:
        return whole
    best: tuple[Message, ...] | None = None
    low, high = 0, max(len(message["content"]) for message in whole) - 1
    while low <= high:  # measures need not grow evenly with characters: what is returned was measured itself
        keep = (low + high) // 2
        tried = tuple(Message(role=one["role"], content=cut_middle(one["content"], keep)) for one in whole)
        if measure(tried) <= limit:
            best, low = tried, keep + 1
        else:
            high = keep - 1
    if best is None:
        tried = (Message(role=whole[0]["role"], content=LEFT_OUT),)
        best = tried if measure(tried) <= limit else None
    return best
