"""Advantages: a literal transcription, and what must hold for all rewards and all masks."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright import UsageError
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO
from callwright_plugins.policy_gradient.dapo import DAPO
from callwright_plugins.policy_gradient.grpo import GRPO
from callwright_plugins.policy_gradient.loss_terms import zero_variance_fraction

Groups = list[list[float | None]]  # None: a masked sample
examples = settings(max_examples=60, deadline=None, derandomize=True)
steps = st.integers(0, 20).map(lambda value: value / 20)  # as rewards are: many of them equal


@st.composite
def groups(draw: st.DrawFn) -> Groups:
    prompts, completions = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    group = st.lists(st.none() | steps, min_size=completions, max_size=completions)
    return draw(st.lists(group, min_size=prompts, max_size=prompts))


def tensors(rewards: Groups, hidden: float = math.nan) -> tuple[Any, Any]:
    values = torch.tensor([[hidden if r is None else r for r in group] for group in rewards], dtype=torch.float64)
    return values, torch.tensor([[r is not None for r in group] for group in rewards])


def literal(rewards: Groups, std: str, epsilon: float) -> Groups:
    """(R - mean) / (std + eps) over the samples that there are; statistics.stdev divides by n - 1, pstdev by n."""
    everything = [r for group in rewards for r in group if r is not None]
    result: Groups = []
    for group in rewards:
        there = [r for r in group if r is not None]
        if len(set(there)) < 2:
            result.append([0.0] * len(group))
            continue
        scale = {
            "group": lambda there=there: statistics.stdev(there) + epsilon,
            "population": lambda there=there: statistics.pstdev(there) + epsilon,
            "batch": lambda: statistics.stdev(everything) + epsilon,
            "none": lambda: 1.0,
        }[std]()
        mean = statistics.mean(there)
        result.append([0.0 if r is None else (r - mean) / scale for r in group])
    return result


STDS: tuple[Any, ...] = ("group", "population", "batch", "none")
ALGORITHMS = [
    *(pytest.param(GRPO(std=std), std, 1e-4, id=f"grpo-{std}") for std in STDS),
    *(pytest.param(BatchNormalisedGRPO(std=std), std, 1e-4, id=f"bn-{std}") for std in STDS),
    pytest.param(DAPO(std="population"), "population", 1e-4, id="dapo-population"),
    pytest.param(GRPO(std_epsilon=0.5), "group", 0.5, id="grpo-epsilon"),
    pytest.param(BatchNormalisedGRPO(std_epsilon=0), "group", 0.0, id="bn-epsilon"),
    pytest.param(DAPO(std_epsilon=1e-6), "group", 1e-6, id="dapo"),
]
each_algorithm = pytest.mark.parametrize(("algorithm", "std", "epsilon"), ALGORITHMS)
#: The same by name, for properties: rewards are drawn once for all of them.
NAMED: dict[str, tuple[Any, str, float]] = {str(case.id): case.values for case in ALGORITHMS}  # type: ignore[misc]


@examples
@given(rewards=groups())
def test_advantages_follow_the_formula(rewards: Groups) -> None:
    for name, (algorithm, std, epsilon) in NAMED.items():
        found = algorithm.advantages(*tensors(rewards))
        expected = torch.tensor(literal(rewards, std, epsilon), dtype=torch.float64)
        assert (found - expected).abs().max() < 1e-9, name


@examples
@given(rewards=groups())
def test_advantages_of_a_group_sum_to_zero(rewards: Groups) -> None:
    for name, (algorithm, _, _) in NAMED.items():
        assert algorithm.advantages(*tensors(rewards)).sum(1).abs().max() < 1e-9, name


@examples
@given(rewards=groups(), shift=st.integers(-8, 8))
def test_a_shift_of_rewards_changes_nothing(rewards: Groups, shift: int) -> None:
    values, valid = tensors(rewards)
    for name, (algorithm, std, _) in NAMED.items():
        if std == "batch":
            moved = values + shift  # the deviation of the batch sees differences between groups, so all move together
        else:
            moved = values + shift * torch.arange(1, len(values) + 1).unsqueeze(1)
        difference = algorithm.advantages(moved, valid) - algorithm.advantages(values, valid)
        assert difference.abs().max() < 1e-9, name


@examples
@given(rewards=groups(), data=st.data())
def test_masked_samples_are_as_if_never_drawn(rewards: Groups, data: Any) -> None:
    """Neither what stands in their place nor that they are there at all changes the advantages of the others."""
    more = [[*group, *data.draw(st.sampled_from([[None], [None, None]]))] for group in rewards]
    width = max(len(group) for group in more)
    wider = tensors([group + [None] * (width - len(group)) for group in more])
    for name, (algorithm, _, _) in NAMED.items():
        with_masked = algorithm.advantages(*tensors(rewards))
        for hidden in (0.0, math.inf, -1e30):
            assert algorithm.advantages(*tensors(rewards, hidden)).tolist() == with_masked.tolist(), name
        padded = algorithm.advantages(*wider)
        assert (padded[:, : with_masked.shape[1]] - with_masked).abs().max() < 1e-12, name
        assert bool((padded[:, with_masked.shape[1] :] == 0).all()), name
        assert bool((with_masked[~tensors(rewards)[1]] == 0).all()), name


@each_algorithm
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool])
def test_groups_of_equal_rewards_get_exactly_zero(algorithm: Any, std: str, epsilon: float, dtype: Any) -> None:
    """In float32 the mean of three times 0.225 is off by 1.5e-8, which divided by 1e-4 would be an advantage."""
    rewards = torch.tensor([[0.225] * 3, [0.7] * 3, [0.0, 1.0, 1.0]]).to(dtype)
    advantages = algorithm.advantages(rewards, torch.ones(3, 3, dtype=torch.bool))
    assert advantages[:2].tolist() == [[0.0] * 3] * 2
    assert advantages.is_floating_point()
    assert advantages[2, 0] < 0 < advantages[2, 1]


def test_rewards_that_differ_by_rounding_count_as_equal() -> None:
    rewards = torch.tensor([[0.35, 0.35 + 3e-8, 0.35], [0.35, 0.35 + 3e-5, 0.35]], dtype=torch.float64)
    valid = torch.ones(2, 3, dtype=torch.bool)
    assert GRPO().advantages(rewards, valid)[0].tolist() == [0.0] * 3
    assert GRPO().advantages(rewards, valid)[1].abs().max() > 0.1
    assert DAPO().keep_groups(rewards, valid).tolist() == [False, True]
    assert zero_variance_fraction(rewards, valid) == 0.5


def test_a_valid_sample_without_a_finite_reward_is_refused() -> None:
    rewards = torch.tensor([[0.0, 1.0], [0.5, math.nan]])
    with pytest.raises(UsageError, match="prompt 1, completion 1 is nan, although the sample is marked valid"):
        GRPO().advantages(rewards, torch.ones(2, 2, dtype=torch.bool))
    with pytest.raises(UsageError, match=r"\[prompts, completions per prompt\], but have \[4\] and \[4\]"):
        GRPO().advantages(torch.zeros(4), torch.ones(4))


@examples
@given(rewards=groups())
def test_zero_variance_fraction(rewards: Groups) -> None:
    there = [[r for r in group if r is not None] for group in rewards]
    there = [group for group in there if group]
    expected = sum(len(set(group)) == 1 for group in there) / len(there) if there else 0.0
    found = zero_variance_fraction(*tensors(rewards))
    assert type(found) is float
    assert found == pytest.approx(expected, abs=1e-6)


@examples
@given(rewards=groups())
def test_kept_groups(rewards: Groups) -> None:
    there = [{r for r in group if r is not None} for group in rewards]
    for algorithm in (GRPO(), BatchNormalisedGRPO(), DAPO(dynamic_sampling=False)):
        assert algorithm.keep_groups(*tensors(rewards)).tolist() == [len(group) > 0 for group in there]
    assert DAPO().keep_groups(*tensors(rewards)).tolist() == [len(group) > 1 for group in there]
