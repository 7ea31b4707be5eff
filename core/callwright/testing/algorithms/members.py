"""What every algorithm is: its members, and functions that are pure."""

from __future__ import annotations

import math
from typing import Any

from callwright.testing.algorithms.batches import loss_of, sample_batch, sample_experience, sample_rewards
from callwright.testing.expectations import expect
from callwright.training.algorithm import Algorithm, TokenLevel


def check_attributes(algorithm: Algorithm) -> None:
    """It has the members of :class:`callwright.Algorithm`, a name and a weight for the KL term."""
    expect(isinstance(algorithm, Algorithm), f"{algorithm!r} lacks a member of callwright.Algorithm")
    expect(isinstance(algorithm.name, str) and algorithm.name != "", "name must be a string that is not empty")
    weight = algorithm.kl_weight
    expect(
        isinstance(weight, float) and math.isfinite(weight) and weight >= 0,
        f"kl_weight must be a finite float, 0 or more, but is {weight!r}: trainers load a reference model by it",
    )


def check_purity(algorithm: Algorithm) -> None:
    """The same input gives the same output twice, is not changed, and no global random number is drawn."""
    import torch

    batch, (rewards, valid) = sample_batch(), sample_rewards()
    experience = sample_experience()
    given = [batch.logprobs, batch.advantages, rewards, experience.scores, experience.logprobs, experience.values]
    before = [tensor.clone() for tensor in given if tensor is not None]
    state = torch.random.get_rng_state()
    outcomes: list[Any] = []
    for _ in range(2):
        shaped = algorithm.shape_rewards(rewards, torch.full((3, 2), 95), 100)
        output, gradient = loss_of(algorithm, batch)
        made = [gradient, algorithm.advantages(shaped, valid)]
        if isinstance(algorithm, TokenLevel):
            made += algorithm.token_advantages(experience)
        outcomes.append((output.loss.item(), dict(output.diagnostics), [one.tolist() for one in made]))
    expect(
        all(bool((a == b).all()) for a, b in zip(before, given, strict=True) if b is not None),
        "its input was changed in place",
    )
    expect(outcomes[0] == outcomes[1], "the same input gave two different outputs: does it hold state?")
    expect(bool((torch.random.get_rng_state() == state).all()), "it drew from torch's global random generator")
