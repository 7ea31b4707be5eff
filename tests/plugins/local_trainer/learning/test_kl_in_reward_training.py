"""GRPO with its divergence in the reward, from the trainer's first forward pass to the weights after a step."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from attrs import evolve
from torch import Tensor

from callwright.pipeline import Pipeline
from callwright.training.run_folder import Run
from callwright.walk.reward import RewardComponent
from callwright_plugins.local_trainer.learning.update import Batch, update
from callwright_plugins.local_trainer.models.policy import Policy, weights
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.trainer import LocalTrainer
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO
from callwright_plugins.policy_gradient.grpo import GRPO

Make = Callable[[str], Policy]
Pipelines = Callable[..., Pipeline]
#: The first group earned the same throughout. What lies within the long completions is the environment's.
BATCH = Batch(
    [(9, 30, 41), (17, 3, 8, 8)],
    [0, 0, 0, 1, 1, 1],
    [(4, 5, 6, 7, 2), (8, 2), (9, 10, 2), (44, 2), (3, 5, 1, 99, 2), (60, 2)],
    torch.tensor([4.0, 4.0, 4.0, 1.0, -3.0, 2.5]),
    [(1, 1, 0, 0, 1), (1, 1), (1, 1, 1), (1, 1), (1, 0, 0, 1, 1), (1, 1)],
    8,
)


def moved(policy: Policy) -> Policy:
    model = copy.deepcopy(policy.model)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.02)
    return evolve(policy, model=model)


def likelihoods(model: Any, rows: list[int]) -> list[Tensor]:
    """Log-probabilities of the policy's own tokens of some completions, each computed by itself."""
    found = []
    assert BATCH.sampled is not None
    for row in rows:
        prompt, completion = BATCH.prompts[BATCH.owners[row]], BATCH.completions[row]
        logits = model(input_ids=torch.tensor([[*prompt, *completion]]), use_cache=False).logits[0]
        logprobs = logits[len(prompt) - 1 : -1].double().log_softmax(-1)
        own = torch.tensor(BATCH.sampled[row]).bool()
        found.append(logprobs[torch.arange(len(completion)), torch.tensor(completion)][own])
    return found


def by_hand(
    policy: Policy, reference: Policy, weight: float, minis: list[list[int]], iterations: int, whole: bool
) -> Any:
    """The steps written out: penalties, groups, then for each mini-batch a step of plain descent."""
    model = copy.deepcopy(policy.model)
    everything = list(range(6))
    with torch.no_grad():
        old, frozen = likelihoods(model, everything), likelihoods(reference.model, everything)
    paid = [float(BATCH.advantages[i]) - weight * float((old[i] - frozen[i]).sum()) for i in everything]
    advantages = []
    for i in everything:
        mates = torch.tensor([paid[j] for j in everything if BATCH.owners[j] == BATCH.owners[i]], dtype=torch.float64)
        advantages.append(float((paid[i] - mates.mean()) / (mates.std(correction=0 if whole else 1) + 1e-6)))
    for _ in range(iterations):
        for rows in minis:
            terms = []
            for i, new in zip(rows, likelihoods(model, rows), strict=True):
                change = new - old[i]
                ratio = change.sum().exp().reshape(1) if whole else change.exp()
                terms.append(-torch.minimum(ratio * advantages[i], ratio.clamp(0.8, 1.2) * advantages[i]))
            loss = torch.cat(terms).sum() / (len(rows) if whole else sum(len(term) for term in terms))
            loss.backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    if parameter.grad is not None:
                        parameter.sub_(0.05 * parameter.grad)
                        parameter.grad = None
    return weights(model), advantages


@pytest.mark.parametrize(
    ("minis", "micro_batches", "iterations"), [(1, 1, 1), (1, 3, 2), (2, 2, 1), (2, 1, 2)], ids=str
)
@pytest.mark.parametrize("whole", [False, True], ids=["token", "response"])
def test_a_step_is_the_one_written_out(
    minis: int, micro_batches: int, iterations: int, whole: bool, make_policy: Make
) -> None:
    policy = make_policy("llama")
    reference = moved(policy)
    options: dict[str, Any] = {"kl_weight": 0.001, "kl_in": "reward", "std_epsilon": 1e-6}
    algorithm = GRPO(**options, ratio="response", std="population") if whole else BatchNormalisedGRPO(**options)
    rows = [[0, 1, 2, 3, 4, 5]] if minis == 1 else [[0, 1, 2], [3, 4, 5]]
    expected, advantages = by_hand(policy, reference, 0.001, rows, iterations, whole)
    assert max(abs(advantage) for advantage in advantages[:3]) > 0.5  # of the flat group
    mine = evolve(policy, model=copy.deepcopy(policy.model))
    some = Options(clip_norm=1e9, mini_batches=minis, micro_batches=micro_batches, iterations=iterations)
    optimiser: Any = torch.optim.SGD(mine.model.parameters(), lr=0.0)
    found = update(mine, reference, algorithm, optimiser, BATCH, some, 0.05)
    before = weights(policy.model)
    largest = 0.0
    for name, tensor in weights(mine.model).items():
        # Differences of the flat group, rounding included, become advantages of unit size: 4e-5 after four steps.
        torch.testing.assert_close(tensor, expected[name], atol=6e-5, rtol=1e-4)
        largest = max(largest, float((tensor - before[name]).abs().max()))
    assert largest > 1e-3
    assert found["kl"] > 0


def test_a_run_shows_the_divergence_and_keeps_a_reference(
    tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent
) -> None:
    chosen = "algorithm={name='grpo', kl_in='reward', kl_weight=0.001, std='population', ratio='response'}"
    pipeline = make_pipeline(chosen, "trainer.mini_batches=2", extra_rewards=[variety])
    run = Run.create(tmp_path, recipe_text=pipeline.recipe.effective_text(), manifest={})
    LocalTrainer(**pipeline.recipe.recipe.trainer.options).train(pipeline, run)
    rows = run.rows("metrics.jsonl")
    assert (run.checkpoints / "reference").exists()
    assert all("kl" in row for row in rows)
    assert any(row["kl"] > 0 for row in rows)
    assert any(row["gradient_norm"] > 0 for row in rows)
