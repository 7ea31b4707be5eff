"""Checks of rewards and groups: shapes, signs, and samples that are masked."""

from __future__ import annotations

import math

from callwright.testing.algorithms.batches import sample_rewards
from callwright.testing.expectations import expect
from callwright.training.algorithm import Algorithm


def check_reward_shapes(algorithm: Algorithm) -> None:
    """Rewards ``[B, G]`` give shaped rewards and advantages ``[B, G]`` and kept groups ``[B]`` bool, all finite."""
    import torch

    rewards, valid = sample_rewards()
    shaped = algorithm.shape_rewards(rewards, torch.tensor([[9, 80], [100, 1], [50, 50]]), 100)
    advantages = algorithm.advantages(rewards, valid)
    kept = algorithm.keep_groups(rewards, valid)
    for what, found in (("shape_rewards", shaped), ("advantages", advantages)):
        expect(found.shape == rewards.shape, f"{what} gave the shape {list(found.shape)} for {list(rewards.shape)}")
        expect(bool(found.isfinite().all()), f"{what} gave NaN or infinity: is it divided by a deviation of 0?")
    expect(
        kept.shape == rewards.shape[:1] and kept.dtype == torch.bool,
        f"keep_groups must give one bool per prompt, but gave {list(kept.shape)} of {kept.dtype}",
    )


def check_advantages_follow_rewards(algorithm: Algorithm) -> None:
    """Within a group, the completion with the higher reward has the higher advantage."""
    rewards, valid = sample_rewards()
    advantages = algorithm.advantages(rewards, valid)
    for prompt, (first, second) in enumerate(rewards.tolist()):
        a, b = advantages[prompt].tolist()
        expect(
            first == second or (a > b) == (first > second),
            f"rewards {first:g} and {second:g} of one prompt gave the advantages {a:g} and {b:g}: is the sign turned, "
            "or the group on the wrong axis?",
        )


def check_masked_samples(algorithm: Algorithm) -> None:
    """A masked sample has advantage 0, and its reward, which may be NaN, changes nobody else's."""
    import torch

    rewards = torch.tensor([[0.0, 1.0, 0.3], [0.5, 0.25, 1.0]], dtype=torch.float64)
    valid = torch.tensor([[True, True, False], [True, True, True]])
    outcomes = []
    for hidden in (0.0, 1e9, math.nan):
        rewards[0, 2] = hidden
        advantages = algorithm.advantages(rewards, valid)
        expect(
            advantages[0, 2].item() == 0,
            f"a masked sample with reward {hidden} has the advantage {advantages[0, 2].item()}, not 0: an "
            "infrastructure failure would become a gradient",
        )
        outcomes.append((advantages.tolist(), algorithm.keep_groups(rewards, valid).tolist()))
    expect(
        outcomes[0] == outcomes[1] == outcomes[2],
        "the reward of a masked sample changed the advantages of others or the kept groups: does it enter the mean or "
        "the deviation? NaN times 0 is NaN: use torch.where",
    )
    nothing = algorithm.advantages(torch.full((1, 2), math.nan), torch.zeros(1, 2, dtype=torch.bool))
    expect(nothing.tolist() == [[0.0, 0.0]], "a group in which every sample is masked must have the advantages 0")
    expect(
        not algorithm.keep_groups(torch.zeros(1, 2), torch.zeros(1, 2, dtype=torch.bool)).any(),
        "a group in which every sample is masked must not be kept: there is nothing in it to train on",
    )
