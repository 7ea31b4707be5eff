"""Rollouts of a step: sampled groups, what each completion was worth, and the rows that are written of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from attrs import frozen

from callwright.episodes.token_episode import TokenEpisode
from callwright.training.evaluation import Verdict
from callwright.training.rollouts.description import described, observe
from callwright.walk.attempt import Attempt
from callwright.walk.reward import Reward
from callwright.walk.tasks import Task
from callwright.walk.trace import observations
from callwright_plugins.local_trainer.forward.generation import Sampled
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.randomness import python_generator

if TYPE_CHECKING:
    from torch import Tensor


@frozen(eq=False)
class ScoredSample:
    """One episode with its attempt, reward and verdict."""

    sampled: Sampled
    episode: TokenEpisode
    attempt: Attempt
    reward: Reward
    verdict: Verdict


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
    groups: Sequence[Group], advantages: Tensor, policy: Policy, step: int, seed: int, count: int
) -> list[Mapping[str, Any]]:
    """Rows of ``rollouts.jsonl``: ``count`` of the step's rollouts, drawn for this step."""
    places = [(row, column) for row, group in enumerate(groups) for column in range(len(group.rollouts))]
    rng = python_generator(seed, "rollout sample", step)
    rows: list[Mapping[str, Any]] = []
    for row, column in sorted(rng.sample(places, min(count, len(places)))):
        group, rollout = groups[row], groups[row].rollouts[column]
        rows.append(
            {
                "step": step,
                "task": group.task.id,
                "depth": group.task.depth,
                "structure": group.task.structure,
                "query": group.task.query,
                "prompt": policy.text(group.prompt),
                "completion": rollout.attempt.completion.text,
                "truncated": rollout.sampled.truncated,
                "advantage": round(float(advantages[row, column]), 6),
                "answered": rollout.verdict.answer,
                "failure": rollout.verdict.failure,
                "thought_words": rollout.verdict.thought_words,
                **rollout.reward.to_json(),
                "observations": observations(rollout.attempt.trace),
                **_turns(policy, rollout.episode),
            }
        )
    return rows


def _turns(policy: Policy, episode: TokenEpisode) -> dict[str, Any]:
    """What only an episode of several turns has: why it stopped, and each turn with what the model read next."""
    if episode.conditions.limits.single:
        return {}
    response, ranges = episode.response_ids, episode.ranges
    following = [*(start for start, _ in ranges[1:]), len(response)][: len(ranges)]  # none before the first completion
    turns = [
        {
            "completion": turn.completion.text,
            "calls": len(turn.calls),
            "tokens": end - start,
            "observation": policy.written(response[end:after]),
            **({} if turn.user is None else {"user": turn.user.to_json()}),
        }
        for turn, (start, end), after in zip(episode.attempt.turns, ranges, following, strict=True)
    ]
    return {"stop": episode.stop, "turns": turns}
