"""Token-level advantages against literal transcriptions, token by token, and what must hold for every mask."""

from __future__ import annotations

import statistics
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright import UsageError
from callwright.training.algorithm import Experience
from callwright_plugins.policy_gradient.dr_grpo import DrGRPO
from callwright_plugins.policy_gradient.ppo import PPO
from callwright_plugins.policy_gradient.reinforce_plus_plus import ReinforcePlusPlus, ReinforcePlusPlusBaseline
from callwright_plugins.policy_gradient.rloo import RLOO

examples = settings(max_examples=60, deadline=None, derandomize=True)
KL: dict[str, Any] = {"k1": lambda r: -r, "k2": lambda r: r * r / 2, "k3": lambda r: 2.718281828459045**r - r - 1}


@st.composite
def cases(draw: st.DrawFn) -> Experience:
    groups, size, tokens = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 5))
    rows = groups * size

    def matrix(low: float, high: float) -> Any:
        row = st.lists(st.floats(low, high, width=32), min_size=tokens, max_size=tokens)
        return torch.tensor(draw(st.lists(row, min_size=rows, max_size=rows)), dtype=torch.float64)

    mask = draw(st.lists(st.lists(st.booleans(), min_size=tokens, max_size=tokens), min_size=rows, max_size=rows))
    return Experience(
        scores=torch.tensor(draw(st.lists(st.floats(-1, 1, width=32), min_size=rows, max_size=rows))).double(),
        groups=torch.arange(groups).repeat_interleave(size),
        mask=torch.tensor(mask),
        logprobs=matrix(-3, 0),
        ref_logprobs=matrix(-3, 0),
        values=matrix(-1, 1),
    )


def written(experience: Experience, row: int) -> list[int]:
    """The positions that the policy wrote."""
    return [t for t, on in enumerate(experience.mask[row].tolist()) if on]


def rewards(experience: Experience, row: int, weight: float, estimator: str) -> list[float]:
    """r_t of the written tokens: the score at the last, the penalty at each."""
    places = written(experience, row)
    assert experience.ref_logprobs is not None
    drift = (experience.ref_logprobs - experience.logprobs)[row].tolist()
    return [
        (float(experience.scores[row]) if t == places[-1] else 0.0) - weight * KL[estimator](drift[t]) for t in places
    ]


@examples
@given(
    case=cases(),
    gamma=st.sampled_from([1.0, 0.9, 0.0]),
    lam=st.sampled_from([1.0, 0.8, 0.0]),
    estimator=st.sampled_from(sorted(KL)),
)
def test_ppo_is_the_recursion_over_written_tokens(case: Experience, gamma: float, lam: float, estimator: str) -> None:
    algorithm = PPO(gamma=gamma, lam=lam, kl_weight=0.3, kl_estimator=estimator, whiten=False)
    advantages, returns = algorithm.token_advantages(case)
    for row in range(len(case.scores)):
        places, earned = written(case, row), rewards(case, row, 0.3, estimator)
        assert case.values is not None
        values = case.values[row].tolist()
        for number, t in enumerate(places):
            total = 0.0
            for ahead in range(number, len(places)):  # the sum of equation 11, not its recursion
                following = values[places[ahead + 1]] if ahead + 1 < len(places) else 0.0
                delta = earned[ahead] + gamma * following - values[places[ahead]]
                total += (gamma * lam) ** (ahead - number) * delta
            assert float(advantages[row, t]) == pytest.approx(total, abs=1e-9)
            assert float(returns[row, t]) == pytest.approx(total + values[t], abs=1e-9)


@examples
@given(case=cases(), gamma=st.sampled_from([1.0, 0.9]), estimator=st.sampled_from(sorted(KL)))
def test_reinforce_plus_plus_sums_what_follows(case: Experience, gamma: float, estimator: str) -> None:
    algorithm = ReinforcePlusPlus(gamma=gamma, kl_weight=0.3, kl_estimator=estimator)
    advantages, returns = algorithm.token_advantages(case)
    everything = []
    for row in range(len(case.scores)):
        places, earned = written(case, row), rewards(case, row, 0.3, estimator)
        for number, t in enumerate(places):
            total = sum(gamma**ahead * reward for ahead, reward in enumerate(earned[number:]))
            assert float(returns[row, t]) == pytest.approx(total, abs=1e-9)
            everything.append((total, float(advantages[row, t])))
    if everything:
        mean, deviation = statistics.fmean(t for t, _ in everything), statistics.pstdev([t for t, _ in everything])
        for total, found in everything:
            expected = (total - mean) / (deviation**2 + 1e-8) ** 0.5
            assert found == pytest.approx(expected, abs=1e-6) or (found == 0 and abs(total - mean) < 1e-5)


@examples
@given(case=cases())
def test_rloo_leaves_one_out_after_the_divergence(case: Experience) -> None:
    """TRL's order: the divergence of the whole completion comes off the reward, then the others' mean comes off."""
    algorithm = RLOO(kl_weight=0.3)
    rows = len(case.scores)
    size = int((case.groups == 0).sum())
    valid = case.mask.any(1).reshape(-1, size)
    raw = torch.linspace(0, 1, rows, dtype=torch.float64).reshape(-1, size)
    scores = algorithm.advantages(raw, valid).reshape(-1)
    experience = Experience(scores, case.groups, case.mask, case.logprobs, case.ref_logprobs)
    advantages, _ = algorithm.token_advantages(experience)
    assert case.ref_logprobs is not None
    paid = raw.reshape(-1) - 0.3 * torch.where(case.mask, case.logprobs - case.ref_logprobs, 0).sum(1)
    for row in range(rows):
        mates = [other for other in range(rows) if case.groups[other] == case.groups[row] and case.mask[other].any()]
        others = [float(paid[other]) for other in mates if other != row]
        expected = float(paid[row]) - statistics.fmean(others) if others else 0.0
        for t in written(case, row):
            assert float(advantages[row, t]) == pytest.approx(expected, abs=1e-9)


@examples
@given(case=cases())
def test_whitened_advantages_have_mean_0_and_deviation_1_over_tokens(case: Experience) -> None:
    for algorithm in (PPO(kl_weight=0), ReinforcePlusPlusBaseline(kl_weight=0, unbiased_std=True)):
        advantages, _ = algorithm.token_advantages(case)
        found = advantages[case.mask].tolist()
        if len(found) > 1 and max(found) - min(found) > 0.1:
            assert statistics.fmean(found) == pytest.approx(0, abs=1e-9)
            assert statistics.stdev(found) == pytest.approx(1, abs=1e-3)


def test_equal_returns_are_whitened_to_exactly_zero() -> None:
    """In float32 the mean of three times 0.225 is off by 1.5e-8."""
    zeros = torch.zeros(3, 1)
    experience = Experience(torch.full((3,), 0.225), torch.arange(3), torch.ones(3, 1), zeros, zeros)
    assert ReinforcePlusPlus().token_advantages(experience)[0].tolist() == [[0.0]] * 3


def test_the_adaptive_weight_is_ziegler_s() -> None:
    logprobs = torch.zeros(2, 2, dtype=torch.float64)
    mask = torch.tensor([[1, 1], [1, 0]])
    experience = Experience(
        torch.zeros(2), torch.arange(2), mask, logprobs, logprobs - torch.tensor([[0.1, 0.3], [0.6, 9]])
    )
    mean = (0.2 + 0.6) / 2  # of sequences, each the mean of its tokens
    for target, error in ((0.36, mean / 0.36 - 1), (0.1, 0.2), (4.0, -0.2)):
        algorithm = PPO(kl_weight=0.5, kl_target=target, kl_horizon=100)
        assert algorithm.next_kl_weight(experience) == pytest.approx(0.5 * (1 + error * 2 / 100))
    assert PPO(kl_weight=0.5).next_kl_weight(experience) == 0.5


def test_dr_grpo_divides_by_a_constant() -> None:
    mask = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
    assert DrGRPO(max_length=50).normaliser(mask) == 100
    assert DrGRPO().normaliser(mask) == 8
    assert DrGRPO().normaliser(torch.zeros(2, 0)) == 1


def test_ppo_needs_a_critic_and_a_reference() -> None:
    zeros = torch.zeros(2, 3)
    bare = Experience(torch.zeros(2), torch.arange(2), torch.ones(2, 3), zeros)
    with pytest.raises(UsageError, match="ppo: there are no values; the trainer must keep a critic"):
        PPO().token_advantages(bare)
    with pytest.raises(UsageError, match=r"reinforce\+\+: kl_weight is 0.01, but the batch holds no ref_logprobs"):
        ReinforcePlusPlus().token_advantages(bare)
    ReinforcePlusPlus(kl_weight=0).token_advantages(bare)
    with pytest.raises(UsageError, match=r"scores has the shape \[3\], but there are 2 sequences"):
        RLOO().token_advantages(Experience(torch.zeros(3), torch.arange(2), zeros, zeros, zeros))
    with pytest.raises(UsageError, match=r"values has the shape \[2, 2\], but logprobs has \[2, 3\]"):
        PPO().token_advantages(Experience(torch.zeros(2), torch.arange(2), zeros, zeros, zeros, zeros[:, :2]))
