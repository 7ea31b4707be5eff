"""Penalties that land on blamed tokens: the formula by hand, who keeps what, and the algorithms that have it."""

from __future__ import annotations

import pytest
import torch

from callwright.capability import has
from callwright.errors import UsageError
from callwright.training.algorithm import PlacesCredit
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO
from callwright_plugins.policy_gradient.grpo import GRPO
from callwright_plugins.policy_gradient.loss_terms import placed_penalty
from callwright_plugins.policy_gradient.rloo import RLOO

MASK = torch.tensor([[1, 1, 0, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]])
BLAME = torch.tensor([[0, 1, 1, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 0, 1]])


def test_the_formula_by_hand() -> None:
    advantages = torch.tensor([[-1.0], [0.5], [-2.0]])
    found = placed_penalty(advantages, BLAME, MASK, 0.5)
    assert found.tolist() == [
        [-0.5, -0.5 - 0.5 * 4, 0.0, -0.5, -0.5],  # the third token is the environment's, and blamed in vain
        [0.5, 0.5, 0.5, 0.0, 0.0],  # no penalty
        [-2.0, -2.0, -2.0, -2.0, 0.0],  # only padding is blamed
    ]
    assert placed_penalty(advantages, BLAME, MASK, 1.0)[0].tolist() == [0.0, -4.0, 0.0, 0.0, 0.0]
    assert placed_penalty(advantages, BLAME, MASK, 0.0).tolist() == (advantages * MASK).tolist()


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_sums_stay(share: float) -> None:
    generator = torch.Generator().manual_seed(1)
    mask = (torch.rand(20, 15, generator=generator) < 0.7).long()
    blame = (torch.rand(20, 15, generator=generator) < 0.2).long()
    advantages = torch.randn(20, 1, generator=generator, dtype=torch.float64)
    found = placed_penalty(advantages, blame, mask, share)
    torch.testing.assert_close(found.sum(1), (advantages * mask).sum(1))


def test_who_has_it() -> None:
    for made in (GRPO(credit_share=0.5), BatchNormalisedGRPO(credit_share=1), GRPO(credit_share=0.2, kl_in="reward")):
        assert has(made, PlacesCredit)
        assert made.placed(torch.tensor([[-1.0]] * 3), BLAME, MASK)[0, 1] < -1
    assert not has(RLOO(), PlacesCredit)
    assert GRPO().credit_share == 0
    with pytest.raises(UsageError, match="credit_share must be a number of at least 0 and of at most 1"):
        GRPO(credit_share=1.5)
