"""Dialogues as they are scored: calls of both sides, what the agent said, and how the dialogue ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from callwright.errors import DataError, InfrastructureFailure
from callwright.language.parser import Parser
from callwright.language.program import Program
from callwright.language.speech import spoken
from callwright.walk.attempt import Attempt
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Task
from callwright.walk.turn import Turn
from callwright_plugins.tau2.scoring import FINISHED, Call

#: Messages of the agent, of the user, and of the tools (all results of one message) that a dialogue has at most.
MOST_STEPS: Final = 200
#: Failed calls of either side with which a dialogue ends.
MOST_ERRORS: Final = 10
#: What a dialogue may have here: each message of the agent is answered, which makes two steps.
LIMITS: Final = TurnLimits(assistant_turns=MOST_STEPS // 2, user_turns=MOST_STEPS // 2 + 1, unparsed="turn")


@frozen
class Dialogue:
    """What is scored. ``ended`` is the official reason; ``lines`` are who said what, for a judge to read."""

    calls: tuple[Call, ...]
    results: tuple[str | None, ...]
    said: tuple[str, ...]
    ended: str
    lines: tuple[tuple[str, str], ...] = ()

    @property
    def finished(self) -> bool:
        """Whether the agent or the user ended it."""
        return self.ended in FINISHED


# As it was led here ---------------------------------------------------------------------------------------------------


def dialogue_of(attempt: Attempt) -> Dialogue:
    """An attempt as a dialogue, the history of its task included.

    It ends as the official program does: after 200 steps, after 10 failed calls, or with a message of the agent without
    words and calls. Where the user calls its tools, each call is a message of its own.

    Raises :class:`callwright.InfrastructureFailure` where the machinery failed, so that nothing is known.
    """
    if attempt.stop == "machinery" or attempt.masked is not None:
        raise InfrastructureFailure(attempt.masked or "the machinery failed")
    opening = attempt.task.opening
    lines = [(one.role, one.text) for one in (opening.history if opening is not None else ()) if one.text]
    calls = [
        Call(one.tool, one.arguments, "user" if one.by == "user" else "assistant")
        for one, acts in (opening.calls if opening is not None else ())
        if not acts
    ]
    if attempt.task.query:  # what the user began with
        lines.append(("user", attempt.task.query))
    counted = _Counted(steps=1 if attempt.task.query else 0)
    ended = ""
    for turn in attempt.turns:
        made = list(_calls(turn))
        words = spoken(turn.parsed if isinstance(turn.parsed, Program) else None, turn.completion)
        if words:
            lines.append(("assistant", words))
        calls += made
        ended = ended or counted.agent(turn, words, len(made))
        if turn.user is not None:
            calls += [Call(call.tool, call.arguments, "user") for call in turn.user.said.calls]
            if turn.user.said.text:
                lines.append(("user", turn.user.said.text))
            ended = ended or counted.user(turn)
    if not ended:
        ended = _ENDS.get(attempt.stop or "", "max_steps")
    said = tuple(words for who, words in lines if who == "assistant")
    return Dialogue(tuple(calls), (None,) * len(calls), said, ended, tuple(lines))


#: How dialogues end that nobody stopped before.
_ENDS: Final = {
    "answered": "user_stop",
    "tokens": "context_window_exceeded",
    "context": "context_window_exceeded",
    "unparsed": "agent_error",
}


def _calls(turn: Turn) -> Iterator[Call]:
    """The calls of the agent in the order in which they ran, with values in place of references."""
    if turn.trace is not None:
        for at in turn.trace.ran:
            record = turn.trace.records[at]
            yield Call(record.tool, record.arguments)


class _Counted:
    """Steps and failed calls so far, and which bound they pass."""

    def __init__(self, steps: int) -> None:
        self.steps, self.errors = steps, 0

    def agent(self, turn: Turn, words: str, calls: int) -> str:
        if not words and not calls:
            return "agent_error"
        self.steps += 2 if calls else 1
        if turn.trace is not None:
            self.errors += sum(record.outcome.failed for record in turn.trace.records)
        return self._passed

    def user(self, turn: Turn) -> str:
        assert turn.user is not None
        said, trace = turn.user.said, turn.user.trace
        self.steps += 2 * len(said.calls) + bool(said.text or said.done)
        if trace is not None:
            self.errors += sum(record.outcome.failed for record in trace.records)
        return self._passed

    @property
    def _passed(self) -> str:
        if self.errors >= MOST_ERRORS:
            return "too_many_errors"
        return "max_steps" if self.steps >= MOST_STEPS else ""


# As an official file has it -------------------------------------------------------------------------------------------


class RecordedDialogue(Attempt):
    """A simulation of an official result file, which is no program of ours."""

    def __init__(self, task: Task, parser: Parser, dialogue: Dialogue) -> None:
        super().__init__(task, (), parser)
        self.dialogue: Final = dialogue


def recorded(simulation: Mapping[str, Any]) -> Dialogue:
    """A simulation as it was recorded; its reward is not read.

    Raises :class:`callwright.errors.DataError` for one whose messages are none: calls without results among them.
    """
    messages, ended = simulation.get("messages"), simulation.get("termination_reason")
    if not isinstance(messages, list) or not isinstance(ended, str):
        what = "is one of voices (ticks), which are not read" if simulation.get("ticks") else "has no messages"
        raise DataError(f"simulation {simulation.get('id')!r:.60} {what}")
    calls: list[Call] = []
    results: list[str | None] = []
    lines: list[tuple[str, str]] = []
    try:
        waiting = 0
        for message in messages:
            role, text = message["role"], message.get("content")
            if role == "tool":
                results.append("" if text is None else str(text))
                waiting -= 1
                if waiting < 0:
                    raise ValueError("a result without a call")
                continue
            if waiting:
                raise ValueError("a call without a result")
            if text and text.strip():
                lines.append((role, text))
            for call in message.get("tool_calls") or ():
                calls.append(Call(call["name"], call["arguments"], call.get("requestor", "assistant")))
                waiting += 1
        if waiting:
            raise ValueError("a call without a result")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(f"simulation {simulation.get('id')!r:.60} cannot be read: {error!r:.200}") from error
    said = tuple(words for who, words in lines if who == "assistant")
    return Dialogue(tuple(calls), tuple(results), said, ended, tuple(lines))


def same_task(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two statements of a task are held against the same: defaults may be written out in one of them."""
    return bool(_held(one) == _held(other))


def _held(task: Mapping[str, Any]) -> Any:
    stated = task.get("evaluation_criteria")
    if not isinstance(stated, Mapping):
        return None
    return (
        _only(stated.get("actions"), ("name", "arguments", "requestor"), {"requestor": "assistant"}),
        _only(stated.get("env_assertions"), ("func_name", "arguments", "assert_value"), {"assert_value": True}),
        list(stated.get("communicate_info") or ()),
        list(stated.get("nl_assertions") or ()),
        sorted(stated.get("reward_basis") or ("DB", "COMMUNICATE")),
    )


def _only(some: Sequence[Mapping[str, Any]] | None, keys: Sequence[str], usual: Mapping[str, Any]) -> list[Any]:
    return [[one.get(key, usual.get(key)) for key in keys] for one in some or ()]
