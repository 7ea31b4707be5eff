"""Scoring a conversation of somebody else's agent, without a corpus: messages, the tools that were offered, a truth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from callwright.episodes.logs.reading import Tools, read_tools
from callwright.episodes.logs.told import Failing, outcome_of, read_messages, told_calls, told_log
from callwright.episodes.logs.truth import Truth, with_truth
from callwright.episodes.logs.world import UnknownWorld
from callwright.language.native import NATIVE_FORM
from callwright.plugins import Registry, default_registry

if TYPE_CHECKING:
    from callwright.episodes.logs.log import Log
    from callwright.language.parser import Parser
    from callwright.walk.reward import Reward, RewardRecipe


def score_messages(
    messages: Iterable[Any],
    tools: Tools | None = None,
    truth: Truth | None = None,
    reward: str | RewardRecipe = "tier",
    *,
    failed: str = "",
    parser: Parser | str = NATIVE_FORM,
    registry: Registry | None = None,
    **options: Any,
) -> Reward:
    """The reward of a conversation that was held elsewhere: what was called is in it, and what that came to.

    ``messages`` are OpenAI's, or :class:`callwright.Message`; ``tools`` those that were offered
    (:func:`callwright.read_log`); ``truth`` is what would have been right
    (:func:`callwright.episodes.logs.truth.with_truth`). ``reward`` is a recipe or the name of one, with its
    ``options``. ``failed`` is a regular expression that is found in the results of failed calls: messages have no mark
    for one, so that without it, and for texts that are not our own, what a call came to is unknown.

    A reward that needs what is not stated is masked: its total is ``None``, and it says what is missing. Nothing is
    executed. Raises :class:`callwright.errors.DataError` for messages, tools and truths that cannot be read.
    """
    known = registry or default_registry()
    recipe: RewardRecipe = known.create("reward recipe", reward, **options) if isinstance(reward, str) else reward
    log = log_of_messages(messages, tools, failed=failed)
    return recipe.score_attempt(truthful(log, truth, known).episode(parser=parser))


def log_of_messages(messages: Iterable[Any], tools: Tools | None = None, *, failed: str = "") -> Log:
    """A conversation as a log; what its results say of calls is all that is known of them."""
    read, findings, failing = read_messages(list(messages), "messages"), list[str](), Failing(failed)
    calls = told_calls(read, lambda one: outcome_of(one.text, failing(one.text)), findings)
    world = None if tools is None else UnknownWorld(read_tools(tools))
    return told_log("messages", read, calls, world, origin={"format": "messages"}, findings=findings)


def truthful(log: Log, truth: Truth | None, registry: Registry | None = None) -> Log:
    """The log, its task with a truth."""
    from callwright.episodes.logs.log import Log as Made

    task = with_truth(log.task, truth)
    known = registry or log.registry
    return Made.recorded(
        task,
        log.calls,
        log.messages,
        findings=log.noted,
        truncated=log.truncated,
        attempted=log.attempted,
        registry=known,
    )
