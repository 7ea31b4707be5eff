"""Transcripts: the conversation of one agent, put together of what tracers record apart.

A tracer keeps each request to the model with the whole history, each answer, and each run of a tool. The transcript is
what was said once, in its order; the runs of tools say what the calls came to, and in which order they ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.logged import Logged
from callwright.episodes.logs.told import arguments_of, is_json, outcome_of, told_calls, told_log
from callwright.episodes.logs.world import UnknownWorld
from callwright.language.messages import Message, ToolCall


@frozen
class Asked:
    """A request to a model. ``inputs`` is the history that it was sent, ``None`` where that was not recorded."""

    at: Any
    inputs: Sequence[Message] | None
    outputs: Sequence[Message]
    truncated: bool = False


@frozen
class Ran:
    """A run of a tool. ``text`` is what the model was told of it; ``arguments`` are ``None`` where not recorded."""

    at: Any
    tool: str
    arguments: Mapping[str, Any] | None
    outcome: Outcome
    call_id: str = ""
    text: str | None = None


def transcribed(
    log_id: str,
    asked: Sequence[Asked],
    ran: Sequence[Ran],
    world: UnknownWorld | None,
    origin: Mapping[str, Any],
    findings: Sequence[str] = (),
) -> Log:
    """The log of an agent's requests and runs of tools, whatever order they are given in."""
    noted = list(findings)
    asked, ran = sorted(asked, key=lambda one: one.at), sorted(ran, key=lambda one: one.at)
    said = _said(asked, ran, noted)
    return told_log(
        log_id,
        said,
        _calls(said, ran, noted),
        world,
        origin=origin,
        findings=noted,
        truncated=bool(asked) and asked[-1].truncated,
    )


def _said(asked: Sequence[Asked], ran: Sequence[Ran], findings: list[str]) -> list[Message]:
    said: list[Message] = []
    for number, one in enumerate(asked):
        if one.inputs is None:
            said += _results(said, ran)
        else:
            said = _continued(said, list(one.inputs), number, findings)
        if len(one.outputs) > 1:
            findings.append(f"request {number} has {len(one.outputs)} answers; the first is read")
        said += one.outputs[:1]
    return said


def _results(said: Sequence[Message], ran: Sequence[Ran]) -> Iterator[Message]:
    """What the runs of tools say of calls that have no result yet, where no request holds it."""
    answered = {message.tool_call_id for message in said if message.role == "tool"}
    texts = {one.call_id: one.text for one in ran if one.call_id and one.text is not None}
    for message in said:
        for call in message.tool_calls:
            if call.id in texts and call.id not in answered:
                yield Message.tool(texts[call.id] or "", call.id, name=call.name)


def _continued(said: list[Message], inputs: list[Message], number: int, findings: list[str]) -> list[Message]:
    """The conversation with what a request adds. The model's turns stay, whatever the request made of its history."""
    spoken = [message for message in inputs if message.role not in ("system", "developer")]
    before = [message for message in said if message.role not in ("system", "developer")]
    if not said:
        return inputs
    if len(spoken) >= len(before) and all(map(_alike, before, spoken)):
        return said + spoken[len(before) :]
    findings.append(f"request {number} does not begin with the conversation before it; every answer is kept")
    last = next((at for at in reversed(range(len(spoken))) if _alike(before[-1], spoken[at])), -1)
    known = {message.tool_call_id for message in before if message.role == "tool"}
    fresh = [one for one in spoken[last + 1 :] if not any(_alike(one, other) for other in before)]
    return said + [
        one for one in fresh if one.role != "assistant" and not (one.role == "tool" and one.tool_call_id in known)
    ]


def _alike(one: Message, other: Message) -> bool:
    """Whether two messages are one: tracers and frameworks write arguments, and leave thoughts out, as they like."""
    if one.role != other.role or one.tool_call_id != other.tool_call_id or len(one.tool_calls) != len(other.tool_calls):
        return False
    if one.tool_calls:
        return all(map(_same_call, one.tool_calls, other.tool_calls))
    return one.text == other.text


def _same_call(one: ToolCall, other: ToolCall) -> bool:
    if one.id and other.id:
        return one.id == other.id
    return one.name == other.name and arguments_of(one.arguments) == arguments_of(other.arguments)


def _calls(said: Sequence[Message], ran: Sequence[Ran], findings: list[str]) -> list[Logged]:
    """The runs of tools in their order, and after them calls of which only their result in the conversation tells."""
    written = {call.id: call for message in said for call in message.tool_calls if call.id}
    texts = {message.tool_call_id: message.text for message in said if message.role == "tool" and message.tool_call_id}
    found: list[Logged] = []
    for one in ran:
        outcome = one.outcome
        if outcome.kind == "unknown" and one.call_id in texts:
            outcome = outcome_of(texts[one.call_id])
            outcome = one.outcome if outcome.kind == "unknown" else outcome
        arguments = one.arguments
        if arguments is None and one.call_id in written:
            arguments = arguments_of(written[one.call_id].arguments)
        if arguments is None:
            findings.append(f"a run of {one.tool} is left out: the file does not say with which arguments it ran")
        elif not is_json(arguments):
            findings.append(f"a run of {one.tool} is left out: its arguments hold NaN or an infinity, which is no JSON")
        else:
            found.append(Logged(len(found), one.tool, arguments, outcome, one.call_id))
    runs = {one.call_id for one in found}
    nameless = any(not one.call_id for one in found)
    told: Callable[[Message], Outcome] = lambda message: outcome_of(message.text)  # noqa: E731
    for left in told_calls(said, told, findings):
        if left.call_id not in runs and not (nameless and any(_is_run(left, run) for run in found)):
            found.append(evolve(left, number=len(found)))
    return found


def _is_run(one: Logged, run: Logged) -> bool:
    return not run.call_id and run.tool == one.tool and dict(run.arguments) == dict(one.arguments)
