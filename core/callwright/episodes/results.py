"""Results: what a turn's calls came to, as the messages that a model reads next, cut to what fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from attrs import evolve

from callwright.capability import has
from callwright.environments.telling import printable, tell
from callwright.errors import ComponentError, DataError
from callwright.language.messages import Message
from callwright.language.parser import Parser, WritesResults
from callwright.language.program import handle_of
from callwright.walk.trace import CallRecord
from callwright.walk.turn import Turn

#: Stands for all results of a turn where not even the ends of them fit into the budget.
LEFT_OUT: Final = "[the results of these calls are too long and were left out]"


def observation_messages(parser: Parser, turn: Turn, first: int | None = None) -> tuple[Message, ...]:
    """The messages that follow a turn with calls.

    A parser that :class:`callwright.language.parser.WritesResults` writes them itself. Otherwise there is one message
    of the role ``tool`` for each call: compact JSON with the id and name of the call and its ``result`` (of a partial
    one with a ``warning``), or an ``error`` with code and message. With ``first``, results have handles, which begin
    with that number (:mod:`callwright.walk.calls.handles`).

    Raises :class:`callwright.errors.ComponentError` if ``observe`` raises or returns something else: a bug of the
    parser.
    """
    if not has(parser, WritesResults):
        steps = turn.trace.records if turn.trace is not None else ()
        return tuple(Message.tool(describe_step(step, first)) for step in steps)
    try:
        made = parser.observe(turn)
    except Exception as error:
        raise ComponentError(
            f"parser {parser.name!r} raised {type(error).__name__} in 'observe': {error}. This is a bug of the parser"
        ) from error
    messages = [Message.tool(made)] if isinstance(made, str) else made
    try:
        if not isinstance(messages, list | tuple) or not messages:
            raise DataError("there is no message")
        return tuple(_printable(Message.from_openai(one)) for one in messages)
    except DataError as error:
        raise ComponentError(
            f"parser {parser.name!r}: 'observe' gave {made!r:.80}; it must give a text or messages: {error}"
        ) from error


def _printable(message: Message) -> Message:
    said = message.content
    parts = (said,) if isinstance(said, str) else said
    shown = tuple(printable(part) if isinstance(part, str) else part for part in parts)
    return evolve(message, content=shown[0] if isinstance(said, str) else shown)


def describe_step(step: CallRecord, first: int | None = None) -> str:
    """One call's outcome as compact JSON: its id and name, and what :func:`callwright.environments.tell` tells.

    With ``first``, the number of its turn's first result, a call that executed has a ``handle`` beside them.
    """
    handle = {} if first is None or not step.outcome.executed else {"handle": handle_of(first + step.call)}
    return tell(step.outcome, id=step.call, name=step.tool, **handle)


def as_user_message(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages for models without a role ``tool``: these become ``<tool_response>`` lines of a user's message."""
    merged: list[Message] = []
    lines: list[str] = []
    for message in [*messages, None]:
        if message is not None and message.role == "tool":
            lines.append(f"<tool_response>\n{message.text}\n</tool_response>")
            continue
        if lines:
            merged.append(Message.user("\n".join(lines)))
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
    low, high = 0, max(len(message.text) for message in whole) - 1
    while low <= high:  # measures need not grow evenly with characters: what is returned was measured itself
        keep = (low + high) // 2
        tried = tuple(evolve(one, content=cut_middle(one.text, keep)) for one in whole)
        if measure(tried) <= limit:
            best, low = tried, keep + 1
        else:
            high = keep - 1
    if best is None:
        tried = (evolve(whole[0], content=LEFT_OUT),)
        best = tried if measure(tried) <= limit else None
    return best
