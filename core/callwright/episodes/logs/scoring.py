"""The reward of a conversation, without a corpus: ``cw.score_messages(messages, tools=..., answer=...)``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve

from callwright.episodes.logs.reading import tools_of
from callwright.episodes.logs.recording import recorded_log
from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.language.native import NATIVE_FORM
from callwright.language.program import Call, Program
from callwright.walk.tasks import Answer

if TYPE_CHECKING:
    from callwright.plugins import Registry
    from callwright.walk.reward import Reward, RewardRecipe


def score_messages(
    messages: Iterable[Any],
    reward: str | RewardRecipe = "tier",
    *,
    tools: Any = None,
    answer: Any = None,
    truth: Sequence[Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    parser: str = NATIVE_FORM,
    registry: Registry | None = None,
) -> Reward:
    """What a recorded conversation earns.

    ``messages`` are :class:`callwright.Message` or rows of OpenAI's format; ``tools`` those that were offered, in any
    shape that :func:`callwright.read_log` takes. ``answer`` is what the last call should have returned (a list of
    values for several), for rewards that look at answers; ``truth`` are the calls that would have been right, as
    ``{"name": ..., "arguments": {...}}`` or messages' tool calls, for those that compare calls. ``facts`` are further
    ones of the task.

    Nothing is executed. What the messages do not say masks a reward that needs it, with the reason.
    Raises :class:`callwright.errors.DataError` for messages, tools or a truth that cannot be read.
    """
    from callwright.plugins import default_registry

    registry = registry or default_registry()
    recipe: Any = registry.create("reward recipe", reward) if isinstance(reward, str) else reward
    log = recorded_log("messages", [Message.from_openai(one) for one in messages], tools_of(tools))
    changes: dict[str, Any] = {}
    if answer is not None:
        changes["answer"] = Answer(tuple(answer) if isinstance(answer, list | tuple) else (answer,))
    if truth is not None:
        changes["program"] = Program(tuple(_call(number, one) for number, one in enumerate(truth)), "all")
        if len(truth) == 1:
            changes["program"] = evolve(changes["program"], returns="one")
    if facts:
        changes["facts"] = dict(facts)
    log.task, log.registry = evolve(log.task, **changes), registry
    scored: Reward = recipe.score_attempt(log.episode(parser=parser))
    return scored


def _call(number: int, given: Any) -> Call:
    one = given.get("function", given) if isinstance(given, Mapping) else None
    if not isinstance(one, Mapping) or not isinstance(one.get("name"), str):
        raise DataError(f"truth[{number}] is no call: expected an object with 'name' and 'arguments'")
    arguments = one.get("arguments") or {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError as error:
            raise DataError(f"truth[{number}]: the arguments are not JSON: {error}") from error
    if not isinstance(arguments, Mapping):
        raise DataError(f"truth[{number}]: the arguments are no object")
    return Call(number, one["name"], dict(arguments))
