"""The bridge to TRL: rewards, data, environments and rollouts for its ``GRPOTrainer``, of any recipe and corpus.

    from callwright_plugins import trl_bridge
    GRPOTrainer(model, trl_bridge.reward("tier", corpus="depthbench-v1"),
                train_dataset=trl_bridge.dataset("depthbench-v1"))

Everywhere a recipe is the name of a registered reward recipe (or a :class:`callwright.RewardRecipe`) together with a
corpus and an intermediate representation; or, without a corpus, a pipeline recipe (a shipped one's name, a file or a
:class:`callwright.Pipeline`), which names all of them. Nothing of TRL is imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callwright.errors import MissingExtra

if TYPE_CHECKING:
    from callwright.environments.protocol import Environment
    from callwright.episodes.token_episode import Codec
    from callwright.language.parser import Parser
    from callwright.pipeline import Pipeline
    from callwright.plugins import Registry
    from callwright.walk.limits import TurnLimits
    from callwright.walk.reward import RewardRecipe
    from callwright.walk.tasks import Corpus, Task
    from callwright_plugins.trl_bridge.environments import ToolEnvironment
    from callwright_plugins.trl_bridge.rewards import RewardFunction
    from callwright_plugins.trl_bridge.rollouts import RolloutFunction


def reward(
    recipe: str | Path | RewardRecipe | Pipeline,
    *,
    corpus: str | Corpus | None = None,
    ir: str | Parser = "json",
    seed: int = 0,
    tokenizer: Any = None,
    registry: Registry | None = None,
) -> RewardFunction:
    """A reward function for ``GRPOTrainer(reward_funcs=…)``; the data needs the column ``task_id``.

    It takes plain and conversational completions, completions that TRL took apart into tool calls, and the episodes of
    :func:`rollout_func`. A masked sample gets ``None``, which TRL leaves out of its baseline. ``tokenizer``: read
    completions from their ids instead of from TRL's text, which has no special tokens.
    """
    from callwright.pipeline import open_pipeline
    from callwright_plugins.trl_bridge.rewards import RewardFunction

    return RewardFunction(open_pipeline(recipe, corpus, ir, seed=seed, registry=registry), tokenizer)


def dataset(
    corpus: str | Corpus | Pipeline,
    split: str = "train",
    ir: str | Parser | None = "json",
    *,
    form: str = "chat",
    limit: int | None = None,
    registry: Registry | None = None,
) -> Any:
    """A ``datasets.Dataset`` with ``prompt``, ``task_id``, ``depth`` and ``structure``, a row for each task of a split.

    ``form``: ``chat`` for messages, ``text`` for the compact prompt of the corpus, for tiny models. ``ir`` ``None``:
    neither form nor tools stand in the prompt, only when to call and when not: for :func:`environment_factory`, where
    the chat template shows the tools and how to call them.
    """
    from callwright_plugins.trl_bridge.prompts import make_dataset

    return make_dataset(corpus, split, ir, form=form, limit=limit, registry=registry)


def environment_factory(
    corpus_or_environment: str | Corpus | Environment,
    recipe: str | RewardRecipe | None = None,
    *,
    tools: Iterable[str] | None = None,
    seed: int = 0,
    registry: Registry | None = None,
) -> type[ToolEnvironment]:
    """A class for ``GRPOTrainer(environment_factory=…)`` whose public methods are the tools, with a session a rollout.

    Of a corpus, ``reset`` opens the scenario of the row's ``task_id``; of an environment, that of its ``scenario`` and
    ``seed``. ``tools`` are those that are offered, by default all that are not hidden. With a ``recipe`` it also has
    ``get_reward``; see docs/trl.md for when :func:`reward` knows more.
    """
    from callwright_plugins.trl_bridge.environments import make_environment

    return make_environment(corpus_or_environment, recipe, tools=tools, seed=seed, registry=registry)


def rollout_func(
    recipe: str | Path | RewardRecipe | Pipeline,
    *,
    corpus: str | Corpus | None = None,
    ir: str | Parser = "json",
    limits: TurnLimits | None = None,
    seed: int = 0,
    retries: int = 1,
    codec: Callable[[Any], Codec] | None = None,
    compact: Callable[[Task], str] | None = None,
    executor: str = "serial",
    workers: int = 1,
    registry: Registry | None = None,
) -> RolloutFunction:
    """A ``GRPOTrainer(rollout_func=…)``: episodes of several turns with the trainer's own model, exact in every id.

    ``limits`` are by default those of the pipeline recipe, else a single turn; what they leave open is bounded by
    ``max_completion_length`` and the model's positions. ``codec`` makes another codec of the trainer's tokenizer;
    ``compact`` is what prompts in the form ``text`` come from, by default the corpus's ``prompt_text``. Use
    :func:`reward` beside it: it scores the very episodes. ``executor`` and ``workers`` are where calls are executed
    (:meth:`callwright.Pipeline.pool`).
    """
    from callwright.pipeline import open_pipeline

    try:
        from callwright_plugins.trl_bridge.rollouts import RolloutFunction
    except ModuleNotFoundError as error:
        raise MissingExtra("the rollouts of the TRL bridge", "trl", error.name or "trl") from error
    pipeline = open_pipeline(recipe, corpus, ir, seed=seed, registry=registry)
    pool = pipeline.pool(executor, workers)
    return RolloutFunction(pipeline, limits=limits, retries=retries, codec=codec, compact=compact, pool=pool)
