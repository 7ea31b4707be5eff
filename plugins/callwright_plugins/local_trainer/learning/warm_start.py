"""Warm start: supervised training on rendered programs, so that reinforcement learning has something to reinforce."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from callwright.errors import UsageError
from callwright.training.demonstrations import Shown
from callwright.training.reporter import SILENT, Reporter
from callwright.walk.limits import SINGLE_TURN, TurnLimits
from callwright.walk.tasks import Task
from callwright_plugins.local_trainer.learning.demonstrations import (
    Bound,
    Example,
    encode,
    none_to_show,
    of_corpus,
    of_tasks,
)
from callwright_plugins.local_trainer.learning.steps import learning_rate
from callwright_plugins.local_trainer.learning.supervised import supervised_step
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import WarmStart
from callwright_plugins.local_trainer.randomness import python_generator

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline


def examples(
    pipeline: Pipeline,
    policy: Policy,
    options: WarmStart,
    seed: int,
    reporter: Reporter = SILENT,
    limits: TurnLimits = SINGLE_TURN,
) -> list[Example]:
    """The demonstrations, encoded (:func:`.demonstrations.encode` says how, and what it raises).

    Raises :class:`callwright.UsageError` if there are none, or if one is too long.
    """
    shown = demonstrations(pipeline, options, seed)
    encoded = encode(pipeline, policy, shown, Bound(options.max_tokens, "'warm_start'.max_tokens"), limits, reporter)
    if not encoded.examples:
        raise none_to_show()
    return list(encoded.examples)


def demonstrations(pipeline: Pipeline, options: WarmStart, seed: int) -> Iterable[tuple[Task, Shown]]:
    """Tasks with what is shown for each: the corpus's own demonstrations, else the references of the train split.

    Raises :class:`callwright.UsageError` if demonstrations are given options and the corpus has none.
    """
    made = of_corpus(pipeline, seed, options.count, dict(options.demonstrations))
    if made is not None:
        return made
    if options.demonstrations:
        raise UsageError(
            f"the corpus {pipeline.corpus.name!r} makes no demonstrations, so 'warm_start'.demonstrations means nothing"
        )
    return of_tasks(pipeline, pipeline.tasks(pipeline.train, options.count))


def warm_start_step(
    policy: Policy,
    optimiser: torch.optim.AdamW,
    shown: Sequence[Example],
    options: WarmStart,
    seed: int,
    step: int,
    tokens_per_micro_batch: int | None = None,
) -> Mapping[str, Any]:
    """One step on a batch drawn for this step; the loss (nats a token) is of completion tokens only."""
    rng = python_generator(seed, "warm start", step)
    batch = [shown[rng.randrange(len(shown))] for _ in range(options.batch)]
    rate = learning_rate(step, options.steps, options.learning_rate, options.warm_up, "linear")
    return supervised_step(
        policy, optimiser, batch, options.micro_batches, rate, options.clip_norm, tokens_per_micro_batch
    )
