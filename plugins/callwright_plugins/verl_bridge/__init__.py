"""The bridge to verl: rewards, tools, an agent loop and data for its trainers, of any recipe, corpus and environment.

    reward.custom_reward_function.path=pkg://callwright_plugins.verl_bridge.scoring
    reward.custom_reward_function.name=compute_score
    +reward.custom_reward_function.reward_kwargs.corpus=depthbench-v1

A recipe is the name of a registered reward recipe together with a corpus and an intermediate representation; or,
without a corpus, a pipeline recipe, which names all of them. Scoring and data need nothing of verl.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

if TYPE_CHECKING:
    from callwright.environments.protocol import Environment
    from callwright.language.parser import Parser
    from callwright.pipeline import Pipeline
    from callwright.plugins import Registry
    from callwright.walk.reward import RewardRecipe
    from callwright.walk.tasks import Corpus
    from callwright_plugins.verl_bridge.scoring import ScoreFunction


def compute_score(
    recipe: str | Path | RewardRecipe | Pipeline,
    *,
    corpus: str | Corpus | None = None,
    ir: str | Parser = "json",
    seed: int = 0,
    retries: int = 1,
    masked_score: float | None = None,
    total_steps: int | None = None,
    thought_opened: bool = False,
    registry: Registry | None = None,
) -> ScoreFunction:
    """A reward function as verl calls it: ``f(data_source, solution_str, ground_truth, extra_info)``.

    It returns a dict with ``score`` and the value of every component, the same keys for every sample; ``ground_truth``
    is the id of a task. verl cannot mask a sample here: one whose machinery failed is tried again ``retries`` times,
    then it gets ``masked_score`` or, without one, stops the run. A reward with a schedule needs ``total_steps``, and
    ``global_steps`` in ``extra_info``. ``thought_opened``: the chat template ends a prompt with ``<think>``, which verl
    does not hand over. For the command line of verl see :func:`.scoring.compute_score`.
    """
    from callwright.pipeline import open_pipeline
    from callwright_plugins.verl_bridge.scoring import ScoreFunction

    pipeline = open_pipeline(recipe, corpus, ir, seed=seed, registry=registry)
    return ScoreFunction(
        pipeline,
        retries=retries,
        masked_score=masked_score,
        total_steps=total_steps,
        thought_opened=thought_opened,
    )


def export(
    corpus: str | Corpus,
    path: str | Path,
    split: str = "train",
    ir: str | Parser | None = "json",
    *,
    agent: str | None = None,
    limit: int | None = None,
    registry: Registry | None = None,
) -> int:
    """Write a split as a parquet file in verl's columns; returns the number of rows.

    ``ir`` ``None``: the query alone, with ``tools_kwargs`` that open each task's session, for verl's ``tool_agent``.
    ``agent`` is written as ``agent_name``: which agent loop the rows are for. Needs the extra ``data``. Raises
    :class:`callwright.UsageError` for a file that does not end in ``.parquet``, and for a ``limit`` below 1.
    """
    from callwright_plugins.verl_bridge.parquet import write_parquet

    return write_parquet(corpus, Path(path), split, ir, agent=agent, limit=limit, registry=registry)


def tool_config(
    environment: str | Environment,
    path: str | Path,
    *,
    tools: Iterable[str] | None = None,
    options: Mapping[str, Any] | None = None,
    registry: Registry | None = None,
) -> Path:
    """Write the file for ``actor_rollout_ref.rollout.multi_turn.tool_config_path``: the tools of an environment.

    ``options`` are those of an environment by its name, JSON: ``tool_config("mcp", path, options={"url": …})`` lists
    the tools of a server, which is asked for them now. They stand in the file, secrets too. Raises
    :class:`callwright.errors.UnknownName`, :class:`callwright.UsageError` for options beside an environment that is
    made already, and :class:`callwright.errors.DataError` for a file that cannot be written.
    """
    from callwright_plugins.verl_bridge.configuration import write_tools

    return write_tools(environment, Path(path), tools=tools, options=options, registry=registry)


def agent_loop_config(path: str | Path, *, name: str = "callwright", **options: Any) -> Path:
    """Write the file for ``actor_rollout_ref.rollout.agent.agent_loop_config_path``.

    ``options`` are those of :class:`.agent_loop.CallwrightAgentLoop`: ``recipe``, ``corpus``, ``ir``, limits …
    """
    from callwright_plugins.verl_bridge.configuration import write_agent_loop

    return write_agent_loop(Path(path), name, options)


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """``callwright verl-export``."""
    yield Lazy(
        "verl-export",
        "callwright_plugins.verl_bridge.command:verl_export",
        "write a corpus as parquet for verl",
        "data",
    )
