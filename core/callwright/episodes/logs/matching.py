"""Matching: which recorded call belongs to which call of a message, and what that says about the agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.logged import Logged
from callwright.episodes.logs.unstated import UnstatedTools
from callwright.language.messages import Message, ToolCall
from callwright.language.native import turn_text
from callwright.language.parser import ParseFailure, Parser
from callwright.language.program import Call, Program, plain
from callwright.language.strict_json import decode
from callwright.walk.answers import values_equal
from callwright.walk.calls.parsing import parsed
from callwright.walk.completion import Completion
from callwright.walk.tasks import Task
from callwright.walk.turn import Turn, told_turn

#: Levels of arguments that are compared with what ran.
_NESTING: Final = 64


@frozen
class Matched:
    """The turns of a conversation with what their calls came to.

    ``unasked`` says which recorded calls no message asks for; ``None`` where there are none.
    """

    turns: tuple[Turn, ...]
    findings: tuple[str, ...] = ()
    unasked: str | None = None


@frozen
class Unread:
    """A call whose arguments were no object, so that it never ran: ``number`` calls had run before it."""

    number: int
    tool: str
    written: str
    message: str


def match(
    task: Task,
    parser: Parser,
    messages: Sequence[Message | Completion],
    calls: Sequence[Logged],
    truncated: bool = False,
    unread: Sequence[Unread] = (),
) -> Matched:
    """The turns of the assistant's messages; of no messages, a turn for each call that was recorded or is ``unread``.

    A completion stands for a message of which the sampled text is known.
    """
    if not messages:
        told = [(one.number, 1, _alone(parser, one)) for one in calls]
        told += [(one.number, 0, _unread(parser, one)) for one in unread]
        return Matched(tuple(turn for *_, turn in sorted(told, key=lambda one: one[:2])))
    spoken = [one for one in messages if isinstance(one, Completion) or one.role == "assistant"]
    matching = _Matching(task, parser, calls)
    turns = tuple(
        matching.turn(message, truncated and number == len(spoken) - 1) for number, message in enumerate(spoken)
    )
    return Matched(turns, tuple(matching.findings), matching.unasked())


def _alone(parser: Parser, one: Logged) -> Turn:
    program = Program((Call(0, one.tool, one.arguments),))
    written = Message.assistant(tool_calls=[ToolCall("", one.tool, _json(one))])
    completion = Completion(turn_text(written, parser), message=written)
    return told_turn(program, [one.outcome], completion=completion, before=one.before, states=[one.state])


def _unread(parser: Parser, one: Unread) -> Turn:
    written = Message.assistant(tool_calls=[ToolCall("", one.tool, one.written)])
    completion = Completion(turn_text(written, parser, native=True), message=written)
    failure = ParseFailure("arguments", "arguments_not_object", one.message, (0, len(completion.text)))
    return told_turn(failure, completion=completion)


def _json(one: Logged) -> str:
    from callwright.environments.telling import as_text

    return as_text(dict(one.arguments))


class _Matching:
    """The recorded calls that no message has claimed yet."""

    def __init__(self, task: Task, parser: Parser, calls: Sequence[Logged]) -> None:
        self._task, self._parser = task, parser
        self._left = list(calls)
        self._with_ids = {one.call_id for one in calls if one.call_id}
        self.findings: list[str] = []

    def turn(self, said: Message | Completion, truncated: bool) -> Turn:
        """A message of the assistant with what its calls came to."""
        if isinstance(said, Completion):
            completion, message = said, said.message or Message.assistant(said.text)
        else:
            text = turn_text(said, self._parser, native=True, truncated=truncated)
            completion, message = Completion(text, message=said, truncated=truncated), said
        part = parsed(self._parser, completion, self._task)
        if isinstance(part, ParseFailure):
            self._repaired(message, part)
            return told_turn(part, completion=completion)
        ids = [call.id for call in message.tool_calls] if len(message.tool_calls) == len(part.calls) else []
        found = [self._claim(call, ids[at] if at < len(ids) else "") for at, call in enumerate(part.calls)]
        pairs = list(zip(part.calls, found, strict=True))
        ran = [one for one in found if one is not None]
        first = min(ran, key=lambda one: one.number, default=None)
        order = _order(found)
        if order != list(range(len(found))):
            written = f"{_named(part.calls)} were written in this order, and ran in the order"
            self.findings.append(f"{written} {', '.join(str(at + 1) for at in order)}")
        return told_turn(
            part,
            [self._outcome(call, one) for call, one in pairs],
            completion=completion,
            arguments=[call.arguments if one is None else one.arguments for call, one in pairs],
            order=order,
            before="" if first is None else first.before,
            states=["" if one is None else one.state for one in found],
        )

    def _claim(self, call: Call, call_id: str) -> Logged | None:
        """The recorded call that this one was: the one with its id, else the first that is like it."""
        if call_id in self._with_ids:
            found = next((one for one in self._left if one.call_id == call_id), None)
            if found is not None and not _same(call, found):
                self.findings.append(
                    f"{call.tool} was asked with {plain(call.arguments)!r:.120} and ran as {found.tool} with "
                    f"{dict(found.arguments)!r:.120}: the framework changed it"
                )
        else:
            found = next((one for one in self._left if _same(call, one) and not (call_id and one.call_id)), None)
        if found is not None:
            self._left.remove(found)
        return found

    def _outcome(self, call: Call, found: Logged | None) -> Outcome | None:
        if found is not None:
            return found.outcome
        if not isinstance(self._task.tools, UnstatedTools) and not self._is_offered(call):  # whoever answered it
            return Outcome("unknown_tool", None, "unknown_tool", f"no tool named {call.tool!r} is offered")
        self.findings.append(f"what came of a call of {call.tool} is not in the log")
        return None

    def _is_offered(self, call: Call) -> bool:
        spec = self._task.tools.get(call.tool)
        return spec is not None and not spec.hidden

    def _repaired(self, message: Message, failure: ParseFailure) -> None:
        """Calls of a message that is no program, and that somebody ran all the same."""
        for call in message.tool_calls:
            found = next((one for one in self._left if call.id and one.call_id == call.id), None)
            if found is None:
                continue
            self._left.remove(found)
            if not _ran_as_written(call, found):  # else it is another call of the message that cannot be read
                self.findings.append(
                    f"{call.name}({call.arguments:.60}) was not readable ({failure.code}); the framework repaired it "
                    f"and ran it with {dict(found.arguments)!r:.120}"
                )

    def unasked(self) -> str | None:
        """Which calls ran although no message asks for them."""
        if not self._left:
            return None
        first = self._left[0]
        more = f" and {len(self._left) - 1} more" if len(self._left) > 1 else ""
        told = f"call {first.number} {first.tool}{more} ran, and no message asks for it"
        self.findings.append(told)
        return told


def _ran_as_written(call: ToolCall, one: Logged) -> bool:
    written = decode(call.arguments or "{}", 0, _NESTING)
    return call.name == one.tool and isinstance(written, dict) and values_equal(written, dict(one.arguments))


def _same(call: Call, one: Logged) -> bool:
    return call.tool == one.tool and values_equal(plain(call.arguments), plain(one.arguments))


def _order(found: Sequence[Logged | None]) -> list[int]:
    """Positions in the order in which the calls ran; one of which nothing is known stays after the one before it."""
    keys: list[tuple[int, int]] = []
    last = -1
    for at, one in enumerate(found):
        last = last if one is None else one.number
        keys.append((last, at))
    return sorted(range(len(found)), key=keys.__getitem__)


def _named(calls: Sequence[Call]) -> str:
    return ", ".join(call.tool for call in calls)
