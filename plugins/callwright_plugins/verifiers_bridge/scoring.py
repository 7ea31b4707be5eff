"""What was said in a rollout of verifiers, scored by a recipe."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from attrs import evolve

from callwright.errors import DataError
from callwright.language.messages import Message, ToolCall
from callwright.language.native import NATIVE_FORM, turn_text
from callwright.language.parser import Parser
from callwright.plugins import default_registry
from callwright.walk.attempt import Attempt
from callwright.walk.completion import Completion
from callwright.walk.conditions import Conditions
from callwright.walk.limits import TruncationPolicy
from callwright.walk.reward import Reward, RewardRecipe
from callwright.walk.tasks import Corpus, Task

#: As every trainer has it: foreign tools in processes that can be killed.
CONDITIONS = Conditions(isolation="auto")


def make_corpus(name: str, options: Mapping[str, Any]) -> Corpus:
    """A registered corpus, made once in a process."""
    return _corpus(name, json.dumps(dict(options), sort_keys=True))


@lru_cache(maxsize=16)
def _corpus(name: str, options: str) -> Corpus:
    made: Corpus = default_registry().create("corpus", name, **json.loads(options))
    return made


@lru_cache(maxsize=16)
def make_reward(name: str, truncated: TruncationPolicy | None = None, floor: float | None = None) -> RewardRecipe:
    """A registered reward recipe with what a cut-off completion earns, made once in a process."""
    stated = {"truncated": truncated, "floor": floor}
    given = {key: value for key, value in stated.items() if value is not None}
    made: RewardRecipe = default_registry().create("reward recipe", name, **given)
    return made


def attempt_of(
    task: Task,
    messages: Sequence[Any],
    *,
    ir: str | None,
    truncated: bool = False,
    masked: str | None = None,
) -> Attempt:
    """The messages that a model wrote for a task.

    With a form the last one is the completion. Without, each is a turn of an episode: its calls are executed in a fresh
    session of the task. Raises :class:`callwright.errors.DataError` if the model wrote nothing.
    """
    registry = default_registry()
    parser: Parser = registry.create("parser", ir or NATIVE_FORM)
    if not messages and masked is None:
        raise DataError(f"there is nothing to score: no model wrote anything for task {task.id!r}")
    if ir is not None:
        text = turn_text(read_message(messages[-1], task), parser) if messages else ""
        return Attempt(task, Completion(text, truncated=truncated, masked=masked), parser, CONDITIONS)
    turns = [Completion(turn_text(read_message(message, task), parser)) for message in messages]
    if turns:
        turns[-1] = evolve(turns[-1], truncated=truncated, masked=masked)
    else:
        turns = [Completion("", truncated=truncated, masked=masked)]
    return Attempt(task, turns, parser, CONDITIONS)


def score_messages(
    recipe: str,
    task: Task,
    messages: Sequence[Any],
    *,
    ir: str | None,
    truncated: bool = False,
    masked: str | None = None,
    policy: TruncationPolicy | None = None,
    floor: float | None = None,
) -> Reward:
    """The reward of the messages that a model wrote for a task.

    ``policy`` and ``floor`` are what ``truncated`` ones earn, by default the recipe's own choice.
    """
    attempt = attempt_of(task, messages, ir=ir, truncated=truncated, masked=masked)
    return make_reward(recipe, policy, floor).score_attempt(attempt)


def read_message(message: Any, task: Task) -> Message:
    """A message of an assistant as verifiers has it, its tools under the names that the task knows."""
    content = message.content
    if content is not None and not isinstance(content, str):  # models of parts, such as pictures
        content = [part if isinstance(part, Mapping) else part.model_dump() for part in content]
    calls = [ToolCall("", own_name(call.name, task), call.arguments) for call in message.tool_calls or ()]
    return Message.assistant(content or "", calls, reasoning=message.reasoning_content or "")


def own_name(name: str, task: Task) -> str:
    """The name of a tool without what a harness puts before it (``mcp__callwright__find`` is ``find``).

    A tool's own name may hold such a mark, so that the longest end of the name that is a tool's is the tool.
    """
    end = name
    while end not in task.tools:
        _, mark, end = end.partition("__")
        if not mark:
            return name
    return end
