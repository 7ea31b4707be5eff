"""PPO in the trainer: the critic, token-level advantages, the KL weight, and everything that a checkpoint must hold."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from attrs import evolve
from torch import Tensor

# MOVED
from callwright.pipeline import Pipeline
from callwright.training import LossOutput, TokenBatch
from callwright.training.algorithm import Experience
from callwright.training.run_folder import Run
from callwright.walk.reward import RewardComponent
from callwright_plugins.local_trainer.learning.critic import make_critic
from callwright_plugins.local_trainer.learning.steps import adamw
from callwright_plugins.local_trainer.learning.update import Batch, descend, prepare, update
from callwright_plugins.local_trainer.models.policy import Policy, weights
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.run import checkpoints
from callwright_plugins.local_trainer.trainer import LocalTrainer
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO
from callwright_plugins.policy_gradient.dr_grpo import DrGRPO
from callwright_plugins.policy_gradient.ppo import PPO
from callwright_plugins.policy_gradient.reinforce_plus_plus import ReinforcePlusPlusBaseline
from callwright_plugins.policy_gradient.rloo import RLOO

Make = Callable[[str], Policy]
Pipelines = Callable[..., Pipeline]
BATCH = Batch(
    [(9, 30, 41), (17, 3, 8, 8)],
    [0, 0, 0, 1, 1, 1],
    [(4, 5, 6, 7, 2), (8, 2), (9, 10, 2), (44, 2), (3, 5, 1, 99, 2), (60, 2)],
    torch.tensor([1.0, 0.2, 0.5, 0.9, 0.3, 0.0]),
)
#: The third and fourth token of the long completions are the environment's.
OBSERVED = evolve(BATCH, sampled=[(1, 1, 0, 0, 1), (1, 1), (1, 1, 1), (1, 1), (1, 0, 0, 1, 1), (1, 1)], limit=8)


def options(**given: Any) -> Options:
    return Options(**{"clip_norm": 1e9, **given})


def moved(policy: Policy, by: float = 0.02) -> Policy:
    model = copy.deepcopy(policy.model)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * by)
    return evolve(policy, model=model)


def train(pipeline: Pipeline, folder: Path) -> Run:
    run = Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    LocalTrainer(**pipeline.recipe.recipe.trainer.options).train(pipeline, run)
    return run


# The critic ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt2", "mistral"])
def test_values_are_those_of_the_trunk_alone_before_each_token(kind: str, make_policy: Make) -> None:
    policy = make_policy(kind)
    critic = make_critic(policy, options())
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        critic.model.head.weight.copy_(torch.randn(1, 32, generator=generator))
        critic.model.head.bias.fill_(0.5)
    prepared = prepare(policy, None, PPO(kl_weight=0), BATCH, options(micro_batches=3), critic)
    for part in prepared.minis[0].parts:
        assert part.values is not None
        for row, values in zip(part.rows, part.values, strict=True):
            prompt, completion = BATCH.prompts[BATCH.owners[row]], BATCH.completions[row]
            ids = torch.tensor([[*prompt, *completion]])
            with torch.no_grad():
                hidden = policy.model.base_model(input_ids=ids, use_cache=False).last_hidden_state[0]
            expected = (hidden @ critic.model.head.weight[0] + 0.5)[len(prompt) - 1 : -1]
            torch.testing.assert_close(values[: len(completion)], expected, atol=2e-5, rtol=1e-4)


def test_a_critic_begins_at_zero_and_shares_nothing_with_the_policy(make_policy: Make) -> None:
    policy = make_policy("llama")
    before = {name: tensor.clone() for name, tensor in weights(policy.model).items()}
    critic = make_critic(policy, options())
    prepared = prepare(policy, None, PPO(kl_weight=0), BATCH, options(), critic)
    assert all(bool((part.values == 0).all()) for part in prepared.minis[0].parts)
    optimiser = adamw(policy.model, 0, (0.9, 0.95))
    for _ in range(3):
        update(policy, None, PPO(kl_weight=0), optimiser, BATCH, options(), 0.0, critic, 1e-3)
    for name, tensor in weights(policy.model).items():
        assert torch.equal(tensor, before[name])  # the rate of the policy was 0
    trunk = dict(critic.model.trunk.named_parameters())
    assert any(not torch.equal(tensor, before[f"model.{name}"]) for name, tensor in trunk.items())


def test_the_critic_learns_what_completions_earn(make_policy: Make) -> None:
    policy = make_policy("llama")
    critic = make_critic(policy, options())
    algorithm = PPO(kl_weight=0, value_clip=None)
    optimiser = adamw(policy.model, 0, (0.9, 0.95))
    errors = [
        update(policy, None, algorithm, optimiser, BATCH, options(micro_batches=1), 0.0, critic, 3e-3)["value_error"]
        for _ in range(30)
    ]
    assert errors[-1] < 0.2 * errors[0]


# Token-level advantages -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "algorithm",
    [
        PPO(kl_weight=0.3, gamma=0.9, lam=0.8, entropy_weight=0.02),
        RLOO(kl_weight=0.3, ratio="token"),
        RLOO(entropy_weight=0.1),
        ReinforcePlusPlusBaseline(kl_weight=0.2),
        DrGRPO(kl_weight=0.2),
    ],
    ids=lambda algorithm: algorithm.name,
)
@pytest.mark.parametrize("batch", [BATCH, OBSERVED], ids=["single", "turns"])
def test_micro_batches_add_up_to_the_whole(algorithm: Any, batch: Batch, make_policy: Make) -> None:
    policy = make_policy("llama")
    gradients, figures = [], []
    for parts, shared in ((1, True), (4, False)):
        mine, critic = evolve(policy, model=copy.deepcopy(policy.model)), make_critic(policy, options())
        with torch.no_grad():
            critic.model.head.weight.fill_(0.05)
        critic = evolve(critic, optimiser=torch.optim.SGD(critic.model.parameters(), lr=0.0))
        models = [mine.model, critic.model]
        before = [{name: tensor.clone() for name, tensor in weights(model).items()} for model in models]
        optimiser = torch.optim.SGD(mine.model.parameters(), lr=0.0)
        some = options(micro_batches=parts, shared_prefix=shared)
        figures.append(update(mine, moved(policy), algorithm, optimiser, batch, some, 1e-3, critic, 1e-3))
        after = [weights(model) for model in models]
        gradients.append(
            [{name: (old[name] - new[name]) * 1e3 for name in old} for old, new in zip(before, after, strict=True)]
        )
    for whole, again in zip(*gradients, strict=True):
        for name, gradient in whole.items():
            torch.testing.assert_close(again[name], gradient, atol=4e-3, rtol=2e-3)
    assert figures[0] == pytest.approx(figures[1], rel=2e-3, abs=2e-4)
    largest = [max(float(gradient.abs().max()) for gradient in found.values()) for found in gradients[0]]
    assert largest[0] > 0.1
    assert (largest[1] > 0.1) == isinstance(algorithm, PPO)


def test_advantages_are_of_the_whole_batch_however_it_is_cut(make_policy: Make) -> None:
    policy = make_policy("llama")
    algorithm = PPO(kl_weight=0.3, gamma=0.9)
    found = []
    for minis, micros in ((1, 1), (2, 1), (2, 3)):
        critic = make_critic(policy, options())
        some = options(mini_batches=minis, micro_batches=micros)
        prepared = prepare(policy, moved(policy), algorithm, OBSERVED, some, critic)
        assert len(prepared.minis) == minis
        assert [len(mini.parts) for mini in prepared.minis] == [micros] * minis
        found.append(prepared.advantages)
    torch.testing.assert_close(found[1], found[0], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found[2], found[0], atol=1e-4, rtol=1e-4)
    assert float(found[0].std()) > 0.1


def test_what_the_algorithm_reads_is_what_was_sampled(make_policy: Make) -> None:
    """The experience by hand: log-probabilities of policy and reference, the mask, groups, values, the KL weight."""
    policy = make_policy("llama")
    seen: list[Experience] = []

    class Spy(PPO):
        def token_advantages(self, experience: Experience) -> tuple[Tensor, Tensor]:
            seen.append(experience)
            return PPO.token_advantages(self, experience)

    critic = make_critic(policy, options())
    reference = moved(policy)
    prepare(policy, reference, Spy(kl_weight=0.5), OBSERVED, options(micro_batches=3), critic, kl_weight=0.125)
    (experience,) = seen
    assert experience.kl_weight == 0.125
    assert experience.groups.tolist() == OBSERVED.owners
    assert experience.mask.tolist() == [[*row, *[0] * (5 - len(row))] for row in OBSERVED.sampled or ()]
    assert experience.scores.tolist() == OBSERVED.advantages.tolist()
    for row, completion in enumerate(OBSERVED.completions):
        prompt = OBSERVED.prompts[OBSERVED.owners[row]]
        for model, table in ((policy.model, experience.logprobs), (reference.model, experience.ref_logprobs)):
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([[*prompt, *completion]]), use_cache=False).logits[0]
            logprobs = logits[len(prompt) - 1 : -1].log_softmax(-1)
            expected = logprobs[torch.arange(len(completion)), torch.tensor(completion)]
            assert table is not None
            torch.testing.assert_close(table[row, : len(completion)], expected, atol=2e-5, rtol=1e-4)


def test_tokens_of_the_environment_are_not_trained_on(make_policy: Make) -> None:
    """Another observation of the same length changes the loss only through what the policy reads afterwards."""
    policy, masks = make_policy("llama"), []

    class Spy:
        name, kl_weight = "spy", 0.0
        inner = BatchNormalisedGRPO(kl_weight=0.0)
        normaliser = inner.normaliser

        def loss(self, batch: TokenBatch) -> LossOutput:
            masks.append(batch.mask.clone())
            return self.inner.loss(batch)

    spy: Any = Spy()
    found = update(policy, None, spy, adamw(policy.model, 0, (0.9, 0.95)), OBSERVED, options(micro_batches=1), 0.0)
    rows = sorted(range(6), key=lambda row: (len(OBSERVED.completions[row]), row))
    assert OBSERVED.sampled is not None
    assert masks[0].tolist() == [[*OBSERVED.sampled[row], *[0] * (5 - len(OBSERVED.sampled[row]))] for row in rows]
    assert found["loss"] == pytest.approx(
        -sum(a * sum(row) for a, row in zip(OBSERVED.advantages.tolist(), OBSERVED.sampled, strict=True)) / 15, abs=1e-6
    )


def test_the_constant_of_dr_grpo_is_the_longest_completion(make_policy: Make) -> None:
    policy = make_policy("llama")
    found = [
        update(policy, None, DrGRPO(), adamw(policy.model, 0, (0.9, 0.95)), evolve(BATCH, limit=limit), options(), 0.0)
        for limit in (10, 40)
    ]
    assert found[0]["loss"] == pytest.approx(4 * found[1]["loss"])


def test_mini_batches_take_a_step_each_on_whole_groups(make_policy: Make) -> None:
    policy, seen = make_policy("llama"), []

    class Spy:
        name, kl_weight = "spy", 0.0
        inner = BatchNormalisedGRPO(kl_weight=0.0)
        normaliser = inner.normaliser

        def loss(self, batch: TokenBatch) -> LossOutput:
            moved = (batch.logprobs.detach() - batch.old_logprobs).abs().max()
            seen.append((batch.advantages.tolist(), float(moved)))
            return self.inner.loss(batch)

    spy: Any = Spy()
    some = options(mini_batches=2, micro_batches=1, iterations=2)
    found = update(policy, None, spy, adamw(policy.model, 0, (0.9, 0.95)), BATCH, some, 1e-2)
    advantages = BATCH.advantages.tolist()
    assert [sorted(row) for row, _ in seen] == [sorted(advantages[:3]), sorted(advantages[3:])] * 2
    moves = [move for _, move in seen]
    assert moves[0] < 1e-6
    assert min(moves[1:]) > 1e-3  # of the policy as it sampled, which every later step has left
    assert found["ratio_max"] > 1.01


def test_an_entropy_bonus_has_the_gradient_of_the_entropy(make_policy: Make) -> None:
    policy = make_policy("llama")
    batch = evolve(BATCH, advantages=torch.zeros(6))
    mine = evolve(policy, model=copy.deepcopy(policy.model))
    algorithm = BatchNormalisedGRPO(kl_weight=0, entropy_weight=0.5)
    optimiser = torch.optim.SGD(mine.model.parameters(), lr=0.0)
    before = {name: tensor.clone() for name, tensor in weights(mine.model).items()}
    found = update(mine, None, algorithm, optimiser, batch, options(), 1e-3)
    assert found["loss"] == pytest.approx(-0.5 * found["entropy"])
    total = torch.zeros(())
    for owner, completion in zip(batch.owners, batch.completions, strict=True):
        prompt = batch.prompts[owner]
        logits = policy.model(input_ids=torch.tensor([[*prompt, *completion]]), use_cache=False).logits[0]
        logprobs = logits[len(prompt) - 1 : -1].log_softmax(-1)
        total = total + (logprobs.exp() * logprobs).sum()
    (0.5 * total / 19).backward()
    for name, parameter in policy.model.named_parameters():
        gradient = (before[name] - weights(mine.model)[name]) * 1e3
        assert parameter.grad is not None
        torch.testing.assert_close(gradient, parameter.grad, atol=4e-3, rtol=2e-3)


# Runs -----------------------------------------------------------------------------------------------------------------

ADAPTIVE = "algorithm={name='ppo', kl_weight=0.05, kl_target=0.001, kl_horizon=50, lam=0.95, entropy_weight=0.001}"


@pytest.mark.parametrize("name", ["dr-grpo", "rloo", "reinforce++", "reinforce++-baseline", "ppo"])
def test_every_algorithm_trains(name: str, tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent) -> None:
    run = train(make_pipeline(f"algorithm={name}", "trainer.mini_batches=2", extra_rewards=[variety]), tmp_path)
    rows = run.rows("metrics.jsonl")
    assert len(rows) == 4
    assert any(row["gradient_norm"] > 0 for row in rows)
    assert (run.checkpoints / "reference").exists() == (name != "dr-grpo")
    for row in rows:
        assert ("value_loss" in row) == (name == "ppo")
        assert ("kl" in row) == (name != "dr-grpo")
    if name == "ppo":
        assert {"value_mean", "return_mean", "value_error", "value_clip_fraction", "value_gradient_norm"} <= set(
            rows[0]
        )
        assert {row["kl_weight"] for row in rows} == {0.001}


def test_the_kl_weight_follows_the_divergence(
    tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent
) -> None:
    run = train(make_pipeline(ADAPTIVE, "trainer.learning_rate=0.05", extra_rewards=[variety]), tmp_path)
    found = [row["kl_weight"] for row in run.rows("metrics.jsonl")]
    assert found[0] == 0.05
    assert found[1] == pytest.approx(0.05 * (1 - 0.2 * 6 / 50))  # the first divergence is 0, below the target
    assert found[3] > found[2]  # by now it is far above
    state = checkpoints.read_state(run.checkpoints / "train-000004")
    assert state.kl_weight is not None
    assert state.kl_weight > found[3]


def test_a_head_start_leaves_the_policy_alone(
    tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent
) -> None:
    run = train(
        make_pipeline(
            "algorithm=ppo", "trainer.critic={head_start=2}", "trainer.warm_start=0", extra_rewards=[variety]
        ),
        tmp_path,
    )
    rows = run.rows("metrics.jsonl")
    assert ["loss" in row for row in rows] == [False, False, True, True]
    assert all(row["value_gradient_norm"] > 0 for row in rows)
    assert run.rows("metrics.jsonl")[0]["learning_rate"] > 0


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_run_that_was_stopped_ends_in_the_same_bytes(
    stop: int, tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = make_pipeline(ADAPTIVE, "trainer.iterations=2", "trainer.checkpoint_every=1", extra_rewards=[variety])
    whole = train(pipeline, tmp_path / "whole")
    told = 0

    def dying(*arguments: Any) -> Any:
        nonlocal told
        told += 1
        if told == stop + 1:
            raise KeyboardInterrupt
        return descend(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr("callwright_plugins.local_trainer.run.training.descend", dying)
        with pytest.raises(KeyboardInterrupt):
            train(pipeline, tmp_path / "stopped")
    resumed = train(pipeline, tmp_path / "stopped")
    for path in ("metrics.jsonl", "rollouts.jsonl", "evaluation.json", "checkpoints/train-000004/critic.safetensors"):
        assert (whole.path / path).read_bytes() == (resumed.path / path).read_bytes(), path
    state = json.loads((resumed.path / "checkpoints/train-000004/state.json").read_text())
    assert state == json.loads((whole.path / "checkpoints/train-000004/state.json").read_text())
    for name in ("model.safetensors", "config.json"):
        path = f"checkpoints/final/{name}"
        assert (whole.path / path).read_bytes() == (resumed.path / path).read_bytes()


def test_a_critic_comes_back_bit_for_bit(tmp_path: Path, make_policy: Make) -> None:
    policy = make_policy("llama")
    optimiser = adamw(policy.model, 0.0, (0.9, 0.95))
    critic = make_critic(policy, options())
    update(policy, None, PPO(kl_weight=0), optimiser, BATCH, options(), 1e-3, critic, 1e-3)
    state = checkpoints.State("train", 1, {}, {}, 0.25)
    checkpoints.save(tmp_path, state, policy.model, optimiser, 2, critic)
    other = make_critic(make_policy("llama"), options())
    found = checkpoints.newest(tmp_path)
    assert found is not None
    assert checkpoints.read_state(found) == state
    checkpoints.restore(found, make_policy("llama").model, adamw(policy.model, 0.0, (0.9, 0.95)), other)
    for _ in range(2):
        for one in (critic, other):
            loss = one.model(input_ids=torch.tensor([[4, 5]])).logits.sum()
            loss.backward()
            one.optimiser.step()
            one.optimiser.zero_grad()
    for name, tensor in weights(critic.model).items():
        assert torch.equal(tensor, weights(other.model)[name])


def test_mixed_precision_trains_the_critic_too(
    tmp_path: Path, make_pipeline: Pipelines, variety: RewardComponent
) -> None:
    pipeline = make_pipeline("algorithm=ppo", "trainer.dtype=bfloat16", "trainer.steps=2", extra_rewards=[variety])
    run = train(pipeline, tmp_path)
    assert all(row["value_gradient_norm"] > 0 for row in run.rows("metrics.jsonl"))
