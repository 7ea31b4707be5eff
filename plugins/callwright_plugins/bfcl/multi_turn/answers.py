"""Answers to multi-turn entries, of official files and of attempts: turns of steps of calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from callwright.errors import DataError
from callwright.language.parser import Parser
from callwright.language.program import Program
from callwright.walk.attempt import Attempt
from callwright.walk.tasks import Task
from callwright_plugins.bfcl.multi_turn.calls import sent, sent_with
from callwright_plugins.bfcl.multi_turn.decoding import NotDecoded, decoded_calls, decoded_text

#: The calls of an answer as they are sent, by turn of the user and step (a completion with calls).
Turns = list[list[list[str]]]
#: The calls of an answer as texts.
Texts = list[list[list[str]]]


class OfficialAnswer(Attempt):
    """An answer of an official file: calls as texts, which are no program of ours.

    ``steps`` are the decoded calls by turn and step; ``None`` if the file says that inference failed.
    """

    def __init__(self, task: Task, parser: Parser, steps: Texts | None) -> None:
        super().__init__(task, (), parser)
        self.steps: Final = steps


def read_answer(row: Mapping[str, Any], task: Task, parser: Parser, version: str) -> OfficialAnswer | None:
    """The answer of an official row; ``None`` if it holds none.

    ``result`` is what a model wrote (a text for each step, or the function calls that a server returned), by turn;
    anything but a list stands for inference that failed. ``calls`` are the calls as texts, decoded already.

    Raises :class:`callwright.errors.DataError` for ``calls`` of another shape.
    """
    if "calls" in row:
        calls = row["calls"]
        if not _is_list(calls) or not all(_is_list(turn) and all(map(_is_texts, turn)) for turn in calls):
            raise DataError("'calls' is no list of turns, each a list of steps, each a list of texts")
        return OfficialAnswer(task, parser, calls)
    if "result" not in row:
        return None
    result = row["result"]
    return OfficialAnswer(task, parser, _decoded(result, version) if _is_list(result) else None)


def _decoded(result: list[Any], version: str) -> Texts:
    """What the official runner makes of a result: steps that cannot be decoded, or call nothing, are left out."""
    turns: list[Sequence[Any]] = [turn if isinstance(turn, list | str) else [] for turn in result]
    by_server = any(isinstance(step, list | Mapping) for turn in turns for step in turn)
    found: Texts = []
    for turn in turns:
        steps = []
        for step in turn:
            try:
                if _is_texts(step) and step:
                    calls = list(step)
                elif by_server:
                    calls = decoded_calls(step)
                else:
                    calls = decoded_text(step, version) if isinstance(step, str) else []
            except NotDecoded:
                continue
            if calls and not (len(calls) == 1 and not calls[0]):
                steps.append(calls)
        found.append(steps)
    return found


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


# As they are executed -------------------------------------------------------------------------------------------------


def official_turns(steps: Texts, methods: frozenset[str]) -> Turns:
    """The calls of an official answer."""
    return [[[sent(text, methods) for text in step] for step in turn] for turn in steps]


def attempted_turns(attempt: Attempt, methods: frozenset[str]) -> Turns:
    """The calls of an attempt, by the message of the user that they work on: a completion without calls ends a turn.

    References to earlier results are what they stood for when the attempt ran. Raises
    :class:`callwright.InfrastructureFailure` where they have to be found out and the machinery fails.
    """
    if any(isinstance(part, Program) and any(call.located for call in part.calls) for part in attempt.parts):
        made: list[list[tuple[str, Mapping[str, Any]]]] = []
        for turn in attempt.turns:
            ran = turn.trace.ran if turn.trace is not None else ()
            records = turn.trace.records if turn.trace is not None else ()
            made.append([(records[at].tool, records[at].arguments) for at in ran])
    else:
        made = [
            [(call.tool, call.arguments) for call in part.calls] if isinstance(part, Program) else []
            for part in attempt.parts
        ]
    turns: Turns = []
    begun: list[list[str]] = []
    for calls in made:
        if calls:
            begun.append([sent_with(tool, arguments, methods) for tool, arguments in calls])
        else:
            turns.append(begun)
            begun = []
    return [*turns, begun] if begun else turns
