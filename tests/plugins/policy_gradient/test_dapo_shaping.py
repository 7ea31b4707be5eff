"""DAPO's overlong shaping (its equation 13), literally."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright import UsageError
from callwright_plugins.policy_gradient.dapo import DAPO
from callwright_plugins.policy_gradient.grpo import GRPO


def literal_punishment(length: int, limit: int, buffer: int) -> float:
    if length <= limit - buffer:
        return 0.0
    if length <= limit:
        return ((limit - buffer) - length) / buffer
    return -1.0


@settings(max_examples=100, deadline=None, derandomize=True)
@given(data=st.data(), limit=st.integers(1, 60), penalty=st.sampled_from([0.0, 0.5, 1.0, 2.0]))
def test_punishment_follows_the_formula(data: st.DataObject, limit: int, penalty: float) -> None:
    buffer = data.draw(st.integers(1, limit))
    lengths = torch.arange(0, limit + 5).unsqueeze(0)
    rewards = torch.linspace(-1, 1, limit + 5, dtype=torch.float64).unsqueeze(0)
    shaped = DAPO(overlong_buffer=buffer, overlong_penalty=penalty).shape_rewards(rewards, lengths, limit)
    expected = [penalty * literal_punishment(length, limit, buffer) for length in range(limit + 5)]
    assert (shaped - rewards).squeeze(0).tolist() == pytest.approx(expected, abs=1e-12)


def test_the_default_buffer_is_a_fifth_of_the_limit() -> None:
    """The paper: 4,096 of 20,480 tokens."""
    lengths = torch.tensor([[16384, 18432, 20480]])
    rewards = torch.ones(1, 3, dtype=torch.int64)
    assert DAPO().shape_rewards(rewards, lengths, 20480).tolist() == [[1.0, 0.5, 0.0]]


def test_no_buffer_no_shaping() -> None:
    rewards, lengths = torch.rand(2, 3), torch.full((2, 3), 1000)
    assert DAPO(overlong_buffer=0).shape_rewards(rewards, lengths, 10) is rewards
    assert DAPO().shape_rewards(rewards, lengths, 4) is rewards  # a fifth of 4 tokens is none
    assert GRPO().shape_rewards(rewards, lengths, 10) is rewards


def test_a_buffer_beyond_the_limit_is_refused() -> None:
    with pytest.raises(UsageError, match="dapo: overlong_buffer is 4096 tokens, but a completion may only have 2048"):
        DAPO(overlong_buffer=4096).shape_rewards(torch.zeros(1, 1), torch.zeros(1, 1), 2048)


def test_a_group_that_fails_at_different_lengths_is_dropped_by_its_unshaped_rewards() -> None:
    algorithm, rewards, valid = DAPO(), torch.zeros(1, 4), torch.ones(1, 4, dtype=torch.bool)
    shaped = algorithm.shape_rewards(rewards, torch.tensor([[10, 85, 95, 100]]), 100)
    assert algorithm.keep_groups(rewards, valid).tolist() == [False]
    assert algorithm.keep_groups(shaped, valid).tolist() == [True]
