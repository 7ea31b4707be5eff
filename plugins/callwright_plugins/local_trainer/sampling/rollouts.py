"""Rollouts of a step: sampled groups, what each completion was worth, and the rows that are written of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from attrs import frozen

from callwright.episodes.finished import FinishedEpisode
from callwright.training.evaluation import Verdict
from callwright.training.rollouts.description import described, observe
from callwright.training.rollouts.written import Keeping
from callwright.walk.attempt import Attempt
from callwright.walk.reward import Reward
from callwright.walk.tasks import Task
from callwright_plugins.local_trainer.forward.generation import Sampled
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.randomness import python_generator

if TYPE_CHECKING:
    from torch import Tensor


@frozen(eq=False)
class ScoredSample:
    """One episode with its attempt, reward and verdict.

    ``lines`` are what is trained on where that is not ``sampled`` after the prompt of the group: prompts with what
    followed them, one for each branch of an agent's conversation.
    """

    sampled: Sampled
    episode: FinishedEpisode
    attempt: Attempt
    reward: Reward
    verdict: Verdict
    lines: tuple[tuple[tuple[int, ...], Sampled], ...] | None = None


@frozen(eq=False)
class Group:
    """The completions of one prompt."""

    task: Task
    prompt: tuple[int, ...]
    rollouts: tuple[ScoredSample, ...]


def rewards_of(groups: Sequence[Group], *, with_environment: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """``[B, G]`` rewards (0 where masked), whether they are valid, and lengths.

    Lengths count sampled tokens; ``with_environment``: whole responses, where a limit counts these.
    """
    totals = [[rollout.reward.total for rollout in group.rollouts] for group in groups]
    rewards = torch.tensor([[0.0 if total is None else total for total in row] for row in totals], dtype=torch.float32)
    valid = torch.tensor([[total is not None for total in row] for row in totals], dtype=torch.bool)
    lengths = torch.tensor(
        [
            [len(one.sampled.ids) if with_environment else one.sampled.length for one in group.rollouts]
            for group in groups
        ]
    )
    return rewards, valid, lengths


def describe(groups: Sequence[Group]) -> dict[str, Any]:
    """The part of a metrics row that is about the rollouts. Masked ones are counted and left out of every mean."""
    return described(
        [
            observe(one.attempt, one.reward, one.verdict, length=one.sampled.length, truncated=one.sampled.truncated)
            for group in groups
            for one in group.rollouts
        ]
    )


def rollout_rows(
    groups: Sequence[Group], advantages: Tensor, policy: Policy, step: int, seed: int, keeping: Keeping
) -> list[Mapping[str, Any]]:
    """Rows of ``rollouts.jsonl`` of step number ``step`` (from 1), drawn for this step."""
    rng = python_generator(seed, "rollout sample", step)
    rows: list[Mapping[str, Any]] = []
    for row, column in keeping.places(step, [len(group.rollouts) for group in groups], rng):
        group, rollout = groups[row], groups[row].rollouts[column]
        rows.append(
            keeping.row(
                rollout.attempt,
                rollout.episode,
                rollout.reward,
                rollout.verdict,
                step=step,
                place=(row, column),
                advantage=float(advantages[row, column]),
                prompt=policy.text(group.prompt),
                truncated=rollout.sampled.truncated,
                text=policy.written,
            )
        )
    return rows
