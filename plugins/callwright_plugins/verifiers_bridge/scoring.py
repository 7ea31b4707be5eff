"""What was said in a rollout of verifiers, scored by a recipe."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from attrs import evolve

from callwright.errors import CannotExpress, DataError
from callwright.language.parser import Parser
from callwright.language.program import Call, Program
from callwright.plugins import default_registry
from callwright.walk.attempt import Attempt
from callwright.walk.reward import Reward, RewardRecipe
from callwright.walk.sampling import Completion
from callwright.walk.tasks import Corpus, Task

#: The form in which calls that a server has parsed are written again: it has text without calls as an answer.
NATIVE: Final = "hermes"


def make_corpus(name: str, options: Mapping[str, Any]) -> Corpus:
    """A registered corpus, made once in a process."""
    return _corpus(name, json.dumps(dict(options), sort_keys=True))


@lru_cache(maxsize=16)
def _corpus(name: str, options: str) -> Corpus:
    made: Corpus = default_registry().create("corpus", name, **json.loads(options))
    return made


def score_messages(
    recipe: str,
    task: Task,
    messages: Sequence[Any],
    *,
    ir: str | None,
    truncated: bool = False,
    lost: str | None = None,
) -> Reward:
    """The reward of the messages that a model wrote for a task.

    With a form the last one is the completion. Without, each is a turn of an episode: its calls are executed in a fresh
    session of the task. Raises :class:`callwright.errors.DataError` if the model wrote nothing.
    """
    registry = default_registry()
    reward: RewardRecipe = registry.create("reward recipe", recipe)
    parser: Parser = registry.create("parser", ir or NATIVE)
    if not messages and lost is None:
        raise DataError(f"there is nothing to score: no model wrote anything for task {task.id!r}")
    if ir is not None:
        text = written(messages[-1]) if messages else ""
        return reward.score(task, Completion(text, truncated=truncated, lost=lost), ir=parser)
    turns = [Completion(turn_text(message, task, parser)) for message in messages]
    if turns:
        turns[-1] = evolve(turns[-1], truncated=truncated, lost=lost)
    else:
        turns = [Completion("", lost=lost)]
    return reward.score_attempt(Attempt(task, turns, parser))


def written(message: Any) -> str:
    """The text of a message, with the thought that a server took out of it."""
    said = message.content or ""
    return f"<think>\n{message.reasoning_content}\n</think>\n{said}" if message.reasoning_content else said


def turn_text(message: Any, task: Task, parser: Parser) -> str:
    """A message in the form of a parser: its calls as the parser writes them, or its text."""
    if not message.tool_calls:
        return written(message)
    calls = []
    for number, call in enumerate(message.tool_calls):
        try:
            arguments = json.loads(call.arguments)
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):  # left open, so that no form reads an answer without calls in it
            return f"<tool_call>\n{call.name} {call.arguments}"
        calls.append(Call(number, own_name(call.name, task), arguments))
    thought = (message.reasoning_content or message.content or "").strip()
    try:
        return parser.render(Program(tuple(calls), "all" if len(calls) > 1 else "one", thought))
    except CannotExpress:
        return "<tool_call>\n" + " ".join(f"{call.name} {call.arguments}" for call in message.tool_calls)


def own_name(name: str, task: Task) -> str:
    """The name of a tool without what a harness puts before it (``mcp__callwright__find`` is ``find``)."""
    if name in task.tools:
        return name
    last = name.rpartition("__")[2]
    return last if last in task.tools else name
