"""Evaluations of a policy during a run: greedy, on the recipe's evaluation split, with a bar of their own if wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from callwright.training.evaluation import Verdict, evaluate, summarise
from callwright.training.reporter import Reporter
from callwright.training.rollouts.task_stream import per_depth as per_depth
from callwright.walk.attempt import Attempt
from callwright.walk.limits import TurnLimits
from callwright.walk.sampling import Sampler
from callwright.walk.tasks import Task
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import Options, SupervisedOptions
from callwright_plugins.local_trainer.sampling.local_model import PolicySampler

if TYPE_CHECKING:
    from callwright.episodes.pool import EpisodePool
    from callwright.pipeline import Pipeline


def evaluation_tasks(pipeline: Pipeline, options: Options | SupervisedOptions) -> list[Task]:
    """The tasks of an evaluation: ``options.evaluation_tasks`` of each depth."""
    return per_depth(pipeline.tasks(pipeline.evaluation), options.evaluation_tasks)


def evaluate_policy(
    pipeline: Pipeline,
    policy: Policy,
    tasks: Sequence[Task],
    options: Options | SupervisedOptions,
    limits: TurnLimits,
    reporter: Reporter,
    stage: str | None = None,
    keep: Callable[[Attempt, Verdict], object] | None = None,
    pool: EpisodePool | None = None,
    agents: Sampler | None = None,
) -> dict[str, Any]:
    """The summary of one greedy attempt per task. Without a ``stage`` the reporter hears nothing of it.

    Turns are executed by the ``pool``, if there is one. ``agents`` make the attempts in place of the policy alone.
    """
    sampler: Sampler = agents or PolicySampler(
        policy, options.max_new_tokens, options.evaluation_batch, pool, options.turn_cache_gib
    )
    heard: Callable[[int], object] | None = None
    if stage is not None:
        reporter.start(stage, len(tasks))
        heard = _advancer(reporter)
    verdicts = evaluate(
        pipeline,
        tasks,
        sampler,
        seed=pipeline.conditions.seed,
        batch=options.evaluation_batch,
        limits=limits,
        retries=options.retries,
        on_batch=heard,
        keep=keep,
    )
    if stage is not None:
        reporter.finish()
    return summarise(verdicts)


def _advancer(reporter: Reporter) -> Callable[[int], object]:
    done = 0

    def heard(count: int) -> None:
        nonlocal done
        reporter.advance(count - done)
        done = count

    return heard
