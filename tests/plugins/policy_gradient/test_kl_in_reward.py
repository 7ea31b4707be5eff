"""The divergence in the reward, and the ratio of whole responses: slow derivations in float64, and what must hold."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright import UsageError
from callwright.testing.algorithms import check_algorithm
from callwright.training import TokenBatch
from callwright.training.algorithm import Experience, TokenLevel
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO
from callwright_plugins.policy_gradient.dapo import DAPO
from callwright_plugins.policy_gradient.dr_grpo import DrGRPO
from callwright_plugins.policy_gradient.grpo import GRPO

examples = settings(max_examples=60, deadline=None, derandomize=True)
KINDS = [GRPO, BatchNormalisedGRPO, DAPO, DrGRPO]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind().name)
ESTIMATES = {
    "k1": lambda policy, reference: policy - reference,
    "k2": lambda policy, reference: (policy - reference) ** 2 / 2,
    "k3": lambda policy, reference: np.exp(reference - policy) - (reference - policy) - 1,
}
DEVIATIONS: dict[str, Any] = {
    "group": lambda mates, everything: mates.std(ddof=1),
    "population": lambda mates, everything: np.sqrt(((mates - mates.mean()) ** 2).sum() / len(mates)),
    "batch": lambda mates, everything: everything.std(ddof=1),
}


@st.composite
def cases(draw: st.DrawFn) -> dict[str, np.ndarray[Any, Any]]:
    """A batch of groups that need not lie together, with rewards many of which are equal."""
    prompts, size, tokens = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    rows = prompts * size
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    mask = generator.random((rows, tokens)) < 0.7
    groups = generator.permutation(np.repeat(np.arange(prompts), size))
    return {
        "rewards": generator.choice([-3.0, 0.5, 4.0], rows),
        "groups": groups * 7,  # numbers of prompts need not be consecutive
        "mask": mask,
        "old": generator.uniform(-3, 0, (rows, tokens)),
        "ref": generator.uniform(-3, 0, (rows, tokens)),
        "new": generator.uniform(-3, 0, (rows, tokens)),
    }


def derived(case: dict[str, Any], weight: float, estimator: str, std: str, epsilon: float) -> Any:
    """One sequence at a time: pay for the divergence, then look at the group."""
    rows = len(case["rewards"])
    paid = [
        case["rewards"][i] - weight * sum(ESTIMATES[estimator](case["old"], case["ref"])[i][case["mask"][i]])
        for i in range(rows)
    ]
    there = [i for i in range(rows) if case["mask"][i].any()]
    found = np.zeros((rows, case["mask"].shape[1]))
    for i in there:
        mates = np.array([paid[j] for j in there if case["groups"][j] == case["groups"][i]])
        if mates.max() - mates.min() > 1e-6:
            advantage = paid[i] - mates.mean()
            if std != "none":
                advantage /= DEVIATIONS[std](mates, np.array([paid[j] for j in there])) + epsilon
            found[i][case["mask"][i]] = advantage
    return found


def experience(case: dict[str, Any], scores: Any = None) -> Experience:
    tensors = {name: torch.from_numpy(values) for name, values in case.items()}
    scores = tensors["rewards"] if scores is None else scores
    return Experience(scores, tensors["groups"], tensors["mask"], tensors["old"], tensors["ref"])


@examples
@given(
    case=cases(),
    weight=st.sampled_from([0.001, 0.3]),
    estimator=st.sampled_from(sorted(ESTIMATES)),
    std=st.sampled_from(["group", "population", "batch", "none"]),
)
def test_groups_are_normalised_after_the_penalty(case: Any, weight: float, estimator: Any, std: Any) -> None:
    options: dict[str, Any] = {"kl_weight": weight, "kl_in": "reward", "kl_estimator": estimator}
    algorithms: list[Any] = [
        GRPO(**options, std=std, std_epsilon=1e-6),
        BatchNormalisedGRPO(**options, std=std, std_epsilon=1e-6),
        DAPO(**options, std=std, std_epsilon=1e-6),
    ]
    if std == "none":
        algorithms.append(DrGRPO(**options))
    expected = torch.from_numpy(derived(case, weight, estimator, std, 1e-6))
    for algorithm in algorithms:
        advantages, returns = algorithm.token_advantages(experience(case))
        assert (advantages - expected).abs().max() < 1e-9
        assert torch.equal(advantages, returns)


@each_kind
@examples
@given(case=cases())
def test_without_a_weight_it_is_the_algorithm_itself(kind: Any, case: Any) -> None:
    size = int((case["groups"] == case["groups"][0]).sum())
    order = np.argsort(case["groups"], kind="stable")
    case = {name: values[order] for name, values in case.items()}
    case["mask"][:, 0] = True
    rewards = torch.from_numpy(case["rewards"]).reshape(-1, size)
    valid = torch.ones_like(rewards, dtype=torch.bool)
    plain, placed = kind(kl_weight=0), kind(kl_weight=0, kl_in="reward")
    scores = placed.advantages(rewards, valid).reshape(-1)
    assert torch.equal(scores, rewards.reshape(-1))
    found, _ = placed.token_advantages(experience(case, scores))
    expected = plain.advantages(rewards, valid).reshape(-1, 1) * torch.from_numpy(case["mask"])
    assert (found - expected).abs().max() < 1e-9


def test_in_a_flat_group_the_divergence_alone_is_an_advantage_of_unit_size() -> None:
    """The released ToolRL: 0.001 nats' worth of a divergence, blown up to what a right answer is worth elsewhere."""
    old = torch.tensor([[-1.0, -1.0], [-1.2, -1.0], [-1.4, -1.0], [-1.6, -1.0]], dtype=torch.float64)
    flat = Experience(torch.full((4,), 3.0), torch.zeros(4), torch.ones(4, 2), old, torch.full_like(old, -1.0))
    found, _ = GRPO(kl_weight=0.001, kl_in="reward", std_epsilon=1e-6).token_advantages(flat)
    assert found[:, 0].tolist() == pytest.approx([-1.1574, -0.3858, 0.3858, 1.1574], abs=1e-4)
    still = evolve(flat, ref_logprobs=old)  # the policy has not moved
    assert GRPO(kl_weight=0.001, kl_in="reward").token_advantages(still)[0].tolist() == [[0.0, 0.0]] * 4


def test_single_precision_loses_nothing_of_a_small_penalty() -> None:
    old = torch.tensor([[-1.0], [-1.03], [-1.07], [-1.2]])
    flat = Experience(torch.full((4,), 3.3), torch.zeros(4), torch.ones(4, 1), old, torch.full_like(old, -1.0))
    exact = evolve(flat, logprobs=old.double(), ref_logprobs=torch.full_like(old, -1.0).double())
    algorithm = GRPO(kl_weight=0.001, kl_in="reward", std_epsilon=1e-6)
    single, double = algorithm.token_advantages(flat)[0], algorithm.token_advantages(exact)[0]
    assert single.dtype == torch.float32
    assert (single - double).abs().max() < 1e-5


@each_kind
def test_the_loss_has_no_term_of_it_but_the_diagnostics_show_it(kind: Any) -> None:
    values = torch.tensor([[-1.0, -2.0]], dtype=torch.float64)
    batch = TokenBatch(values, values, torch.ones(1, 2), torch.ones(1, 2), ref_logprobs=values - 0.5)
    without = evolve(batch, ref_logprobs=None)
    algorithm = kind(kl_weight=0.7, kl_in="reward")
    assert float(algorithm.loss(batch).loss) == float(kind(kl_weight=0).loss(without).loss)
    assert algorithm.loss(batch).diagnostics["kl"] == pytest.approx(math.exp(-0.5) + 0.5 - 1)
    assert float(kind(kl_weight=0.7).loss(batch).loss) > float(algorithm.loss(batch).loss)


@each_kind
def test_k2_in_the_loss(kind: Any) -> None:
    values = torch.tensor([[-1.0, -2.0]], dtype=torch.float64)
    batch = TokenBatch(values, values, torch.ones(1, 2), torch.zeros(1, 2), ref_logprobs=values - 0.5)
    assert float(kind(kl_weight=0.7, kl_estimator="k2").loss(batch).loss) == pytest.approx(0.7 * 0.5**2 / 2)


@each_kind
@pytest.mark.parametrize("weight", [0.3, 0.0])
def test_it_conforms_and_is_a_value(kind: Any, weight: float) -> None:
    algorithm = kind(kl_weight=weight, kl_in="reward")
    check_algorithm(algorithm)
    assert isinstance(algorithm, kind)
    assert isinstance(algorithm, TokenLevel)
    assert not isinstance(kind(kl_weight=weight), TokenLevel)
    assert algorithm.name == kind().name
    assert pickle.loads(pickle.dumps(algorithm)) == copy.deepcopy(algorithm) == algorithm
    assert evolve(algorithm, kl_weight=0.5).kl_in == "reward"
    assert evolve(kind(), kl_in="reward", kl_weight=weight) == algorithm


@each_kind
def test_options_that_contradict_one_another_are_refused(kind: Any) -> None:
    with pytest.raises(UsageError, match='kl_estimator = "k1" has no gradient on average in the loss'):
        kind(kl_estimator="k1")
    with pytest.raises(UsageError, match="kl_in must be 'loss' or 'reward', but is 'rewards'"):
        kind(kl_in="rewards")
    with pytest.raises(UsageError, match="WithKLInReward cannot have kl_in = 'loss'"):
        evolve(kind(kl_in="reward"), kl_in="loss")
    if kind is not DrGRPO:
        with pytest.raises(UsageError, match="unbiased_kl corrects the gradient of k3 in the loss"):
            kind(kl_in="reward", unbiased_kl=True)
        with pytest.raises(UsageError, match="unbiased_kl corrects the gradient of k3 in the loss"):
            kind(kl_estimator="k2", unbiased_kl=True)


class Mine(GRPO):
    """A class of somebody else's."""


def test_a_class_derived_from_one_without_the_penalty_cannot_have_it() -> None:
    assert Mine().kl_in == "loss"
    with pytest.raises(UsageError, match="Mine cannot have kl_in = 'reward', which is decided by the class"):
        Mine(kl_in="reward")


# The ratio of whole responses ---------------------------------------------------------------------------------------


@examples
@given(
    case=cases(),
    low=st.sampled_from([0.2, 0.5]),
    high=st.sampled_from([0.2, 1.0]),
    weight=st.sampled_from([0.0, 0.3]),
    entropy_weight=st.sampled_from([0.0, 0.1]),
)
def test_the_objective_of_toolrl_as_printed(
    case: Any, low: float, high: float, weight: float, entropy_weight: float
) -> None:
    """Section 3.4: a mean over responses of min(rho A, clip(rho) A), rho the product over tokens, and its gradient."""
    advantages, entropy = case["rewards"], case["old"] ** 2
    terms, slopes = [], np.zeros_like(case["old"])
    for i, row in enumerate(case["mask"]):
        if row.any():
            rho = math.exp(sum((case["new"] - case["old"])[i][row]))
            clipped = min(max(rho, 1 - low), 1 + high)
            term = min(rho * advantages[i], clipped * advantages[i])
            if term == rho * advantages[i]:
                slopes[i][row] -= rho * advantages[i]
            kl = ESTIMATES["k3"](case["new"], case["ref"])[i][row].mean()
            slopes[i][row] += weight * (1 - np.exp(case["ref"] - case["new"]))[i][row] / row.sum()
            terms.append(-term + weight * kl - entropy_weight * entropy[i][row].mean())
    count = max(1, len(terms))
    logprobs = torch.from_numpy(case["new"].copy()).requires_grad_()
    algorithm = GRPO(ratio="response", epsilon=low, epsilon_high=high, kl_weight=weight, entropy_weight=entropy_weight)
    output = algorithm.loss(
        TokenBatch(
            logprobs,
            torch.from_numpy(case["old"]),
            torch.from_numpy(case["mask"]),
            torch.from_numpy(advantages),
            torch.from_numpy(case["ref"]),
            torch.from_numpy(entropy),
        )
    )
    output.loss.backward()
    scale = max(1.0, abs(sum(terms)))
    assert float(output.loss.detach()) == pytest.approx(sum(terms) / count, abs=1e-12 * scale)
    assert logprobs.grad is not None
    assert np.abs(logprobs.grad.numpy() - slopes / count).max() < 1e-10 * scale


def test_no_length_divides_the_gradient_of_a_response() -> None:
    logprobs = torch.full((2, 3), -1.0, dtype=torch.float64).requires_grad_()
    mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
    advantages = torch.tensor([1.0, -1.0], dtype=torch.float64)
    batch = TokenBatch(logprobs, logprobs.detach(), mask, advantages)
    GRPO(kl_weight=0, ratio="response").loss(batch).loss.backward()
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [[-0.5, -0.5, -0.5], [0.5, 0.0, 0.0]]


def test_diagnostics_of_whole_responses() -> None:
    """Each token has its response's ratio: 1.1^3 is clipped although no token's is, and 2 * 0.5 is not."""
    ratios = torch.tensor([[1.1, 1.1, 1.1], [2.0, 0.5, 9.0]], dtype=torch.float64)
    logprobs = torch.full((2, 3), -2.0, dtype=torch.float64)
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    batch = TokenBatch(logprobs, logprobs - ratios.log(), mask, torch.tensor([1.0, 1.0]))
    found = GRPO(kl_weight=0, ratio="response").loss(batch).diagnostics
    assert found == pytest.approx(
        {
            "ratio_mean": (3 * 1.331 + 2 * 1.0) / 5,
            "ratio_max": 1.331,
            "clip_fraction_low": 0.0,
            "clip_fraction_high": 3 / 5,
            "clip_fraction": 3 / 5,
            "active_tokens": 5.0,
        }
    )
    tokens = GRPO(kl_weight=0).loss(batch).diagnostics
    assert tokens["ratio_max"] == 2
    assert tokens["clip_fraction_high"] == pytest.approx(1 / 5)


@pytest.mark.parametrize("kl_in", ["loss", "reward"])
def test_the_ratio_of_responses_conforms(kl_in: Any) -> None:
    check_algorithm(GRPO(ratio="response", std="population", kl_in=kl_in, kl_weight=0.3))
