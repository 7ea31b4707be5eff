"""Compare advantages, returns, losses, gradients and KL weights with those of TRL, OpenRLHF and verl.

    python benchmarks/algorithm_agreement.py                             # against the peers that are installed here
    python benchmarks/algorithm_agreement.py --write found.json          # keeps the numbers
    python benchmarks/algorithm_agreement.py more.json others.json       # adds numbers found elsewhere to the table

The peers cannot be installed together; run it with the interpreter of each environment (``PYTHONPATH=core:plugins``)
and merge what they wrote. All sides get the same random tensors, in float64 with ragged rows; rows have holes (tokens
of the environment) wherever the peer knows of them. Log-probabilities are multiples of 1/4096, which float32 holds
exactly, since OpenRLHF rounds divergences and the moments of advantages to it. The exit status is 1 if anything differs
by more than 1e-6.

``flash_attn`` and ``vllm``, which OpenRLHF imports and does not use here, are replaced by empty modules where missing.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.machinery
import importlib.util
import io
import json
import os
import sys
import types
import warnings
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import torch
from torch import Tensor

from callwright.training.algorithm import Experience, TokenBatch, ValueBatch
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO
from callwright_plugins.policy_gradient.cispo import CISPO
from callwright_plugins.policy_gradient.dapo import DAPO
from callwright_plugins.policy_gradient.dr_grpo import DrGRPO
from callwright_plugins.policy_gradient.grpo import GRPO
from callwright_plugins.policy_gradient.gspo import GSPO
from callwright_plugins.policy_gradient.ppo import PPO
from callwright_plugins.policy_gradient.reinforce_plus_plus import ReinforcePlusPlus, ReinforcePlusPlusBaseline
from callwright_plugins.policy_gradient.rloo import RLOO

TOLERANCE: Final = 1e-6
GROUP: Final = 4
#: Column of the table, and the distribution whose version stands in its head.
PEERS: Final[Mapping[str, str]] = {"TRL": "trl", "OpenRLHF": "openrlhf", "verl": "verl"}

#: What was compared, and the absolute difference.
Differences = Iterator[tuple[str, float]]


class Sample:
    """Random tensors of one batch: ``B`` prompts with :data:`GROUP` completions each, ``N`` rows of ``L`` tokens."""

    def __init__(self, seed: int, *, holes: bool) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.prompts = 2 + seed % 4
        rows, tokens = self.prompts * GROUP, 3 + seed % 17
        self.tokens = tokens

        def noise(scale: float, *shape: int) -> Tensor:
            drawn = scale * torch.randn(shape or (rows, tokens), generator=generator, dtype=torch.float64)
            return (drawn * 4096).round() / 4096

        lengths = torch.randint(1, tokens + 1, (rows,), generator=generator)
        self.mask = (torch.arange(tokens) < lengths.unsqueeze(1)).long()
        if holes:
            last = torch.arange(tokens) == lengths.unsqueeze(1) - 1
            self.mask *= ((torch.rand(rows, tokens, generator=generator) > 0.25) | last).long()
        self.old_logprobs = -1.5 - noise(0.8).abs()
        self.logprobs = self.old_logprobs + noise(0.2)
        self.ref_logprobs = self.old_logprobs + noise(0.3)
        self.entropy = noise(1.0).abs()
        off_grid = torch.randn(2, rows, tokens, generator=generator, dtype=torch.float64)  # else some moves just touch
        self.old_values, self.values = 0.5 * off_grid  # the clip range, where slopes are a matter of taste
        self.rewards = torch.rand(self.prompts, GROUP, generator=generator, dtype=torch.float64)
        self.groups = torch.arange(self.prompts).repeat_interleave(GROUP)

    @property
    def valid(self) -> Tensor:
        """Every sample."""
        return torch.ones_like(self.rewards, dtype=torch.bool)

    def experience(self, algorithm: Any) -> Experience:
        """What our token-level algorithms read."""
        scores = algorithm.advantages(self.rewards, self.valid).reshape(-1)
        return Experience(scores, self.groups, self.mask, self.old_logprobs, self.ref_logprobs, self.old_values)

    def ours(self, algorithm: Any) -> tuple[Tensor, Tensor | None]:
        """Our advantages ``[N, L]``, 0 in inactive positions, and the returns of a token-level algorithm."""
        if hasattr(algorithm, "token_advantages"):
            return algorithm.token_advantages(self.experience(algorithm))
        scores = algorithm.advantages(self.rewards, self.valid).reshape(-1, 1)
        return scores * self.mask, None

    def loss(self, algorithm: Any, advantages: Tensor) -> tuple[Tensor, Tensor]:
        """Our loss and its gradient."""
        logprobs = self.logprobs.clone().requires_grad_()
        batch = TokenBatch(logprobs, self.old_logprobs, self.mask, advantages, self.ref_logprobs, self.entropy)
        return differentiated(algorithm.loss(batch).loss, logprobs)


def differentiated(loss: Tensor, leaf: Tensor) -> tuple[Tensor, Tensor]:
    """A loss without its graph, and its gradient with respect to ``leaf``."""
    loss.backward()
    assert leaf.grad is not None
    return loss.detach(), leaf.grad


def apart(found: Tensor | float, expected: Tensor | float) -> float:
    """The largest absolute difference."""
    return float((torch.as_tensor(found) - torch.as_tensor(expected)).abs().max())


def samples(batches: int, *, holes: bool) -> Iterator[Sample]:
    """As many batches as are asked for."""
    return (Sample(seed, holes=holes) for seed in range(batches))


# TRL ------------------------------------------------------------------------------------------------------------------


def trl_cases(batches: int) -> Iterator[tuple[str, Differences]]:
    """TRL's own trainers, around a one-layer model whose forward pass is replaced by the given tensors."""
    yield "grpo", trl_grpo(GRPO(), batches, loss_type="grpo", beta=0.04)
    yield "bn-grpo", trl_grpo(BatchNormalisedGRPO(), batches, loss_type="bnpo", beta=0.04)
    yield "dapo", trl_grpo(DAPO(), batches, loss_type="dapo", beta=0.0, epsilon_high=0.28)
    constant = DrGRPO(max_length=16)
    yield "dr-grpo", trl_grpo(constant, batches, loss_type="dr_grpo", beta=0.0, scale_rewards="none")
    sequence = {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4}
    yield "gspo", trl_grpo(GSPO(), batches, beta=0.0, **sequence)
    yield "cispo", trl_grpo(CISPO(), batches, loss_type="cispo", beta=0.0, epsilon_high=5.0)
    yield "rloo", trl_rloo(RLOO(), batches)


@functools.cache
def trl_side() -> Any:
    """The tests' wrapper of TRL's GRPOTrainer."""
    path = Path(__file__).parents[1] / "tests/plugins/policy_gradient/make_trl_golden.py"
    specification = importlib.util.spec_from_file_location("make_trl_golden", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["make_trl_golden"] = module
    specification.loader.exec_module(module)
    return module


def trl_grpo(algorithm: Any, batches: int, **options: Any) -> Differences:
    """GRPOTrainer: its loss on given tensors, and its advantages of given rewards."""
    side = trl_side()
    trainer = side.Trl(4, 2, **options)
    for sample in samples(batches, holes=True):
        advantages = algorithm.advantages(sample.rewards, sample.valid).reshape(-1)
        tensors = side.Tensors(
            sample.logprobs, sample.old_logprobs, sample.ref_logprobs, sample.entropy, sample.mask, advantages
        )
        loss, gradient = sample.loss(algorithm, advantages)
        expected, expected_gradient, _ = trainer.loss(tensors)
        yield "loss", apart(loss, expected)
        yield "gradient", apart(gradient, expected_gradient)
    scaled = options.get("scale_rewards", "group")
    scorer = side.Trl(2 * GROUP, GROUP, scale_rewards=scaled, beta=0.0)
    for sample in samples(batches, holes=True):
        rewards = sample.rewards[:2]
        found = algorithm.advantages(rewards, torch.ones_like(rewards, dtype=torch.bool))
        yield "advantages", apart(found, scorer.advantages(rewards.tolist()))


def trl_rloo(algorithm: RLOO, batches: int) -> Differences:
    """RLOOTrainer: from rewards and log-probabilities to advantages (the divergence included), loss and gradient."""
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast
    from trl import RLOOConfig, RLOOTrainer

    side = trl_side()
    inner = side.Trl(4, 2, beta=0.04).trainer  # for its model and tokenizer
    tokenizer = inner.processing_class
    assert isinstance(tokenizer, PreTrainedTokenizerFast)
    with side.quiet(), side.tempfile.TemporaryDirectory() as folder:
        inner.model.save_pretrained(folder)
        trainer = RLOOTrainer(
            model=type(inner.model).from_pretrained(folder),
            reward_funcs=lambda prompts, completions, **columns: [0.0] * len(prompts),
            args=RLOOConfig(
                output_dir=folder,
                num_generations=GROUP,
                per_device_train_batch_size=2 * GROUP,
                max_completion_length=32,
                beta=algorithm.kl_weight,
                use_cpu=True,
                bf16=False,
                report_to="none",
            ),
            train_dataset=Dataset.from_list([{"prompt": "w1 w2"}] * 8),
            processing_class=tokenizer,
        )
    trainer.model.train()
    for sample in samples(batches, holes=False):  # it knows no tokens of an environment
        rows = 2 * GROUP
        lengths = sample.mask[:rows].sum(1).tolist()
        width = max(lengths)
        active = sample.mask[:rows, :width]
        column = sample.rewards[:2].reshape(-1, 1)
        given = {
            id(trainer.model): sample.old_logprobs[:rows, :width],
            id(trainer.ref_model): sample.ref_logprobs[:rows, :width],
        }
        trainer._generate = lambda prompts, lengths=lengths: (
            [[1, 2]] * len(prompts),
            [[3] * length for length in lengths],
            ["w3"] * len(prompts),
        )
        trainer._calculate_rewards = lambda *_, column=column: column
        trainer._get_per_token_logps_and_entropies = lambda model, *_, given=given, **__: (given[id(model)], None, None)
        with side.quiet():
            theirs = trainer._generate_and_score_completions([{"prompt": "w1 w2"}] * rows)
        part = Sample(0, holes=False)
        part.prompts, part.rewards, part.groups = 2, sample.rewards[:2], sample.groups[:rows]
        part.mask, part.entropy = active, sample.entropy[:rows, :width]
        part.old_logprobs, part.ref_logprobs = given.values()
        part.logprobs, part.old_values = sample.logprobs[:rows, :width], sample.old_values[:rows, :width]
        advantages, _ = part.ours(algorithm)
        yield "advantages", apart(advantages, theirs["advantages"].unsqueeze(1) * active)

        logprobs = part.logprobs.clone().requires_grad_()
        entropy = torch.zeros_like(part.logprobs)
        trainer._get_per_token_logps_and_entropies = lambda *_, logprobs=logprobs, entropy=entropy, **__: (
            logprobs,
            entropy,
            None,
        )
        expected = differentiated(trainer._compute_loss(trainer.model, theirs), logprobs)
        found = part.loss(algorithm, advantages)
        yield "loss", apart(found[0], expected[0])
        yield "gradient", apart(found[1], expected[1])


# OpenRLHF -------------------------------------------------------------------------------------------------------------


def openrlhf_cases(batches: int) -> Iterator[tuple[str, Differences]]:
    """RemoteExperienceMaker.compute_advantages_and_returns, PolicyLoss, ValueLoss and compute_approx_kl."""
    exact = {"std_epsilon": 1e-9}
    yield "grpo", openrlhf_policy(GRPO(kl_weight=0, **exact), "group_norm", batches, token_level=False)
    yield "bn-grpo", openrlhf_policy(BatchNormalisedGRPO(**exact), "group_norm", batches, kl_loss="k3")
    yield "dapo", openrlhf_policy(DAPO(**exact), "group_norm", batches)
    yield "dr-grpo", openrlhf_policy(DrGRPO(), "dr_grpo", batches, with_loss=False)
    yield "rloo", openrlhf_policy(RLOO(kl_weight=0, ratio="token"), "rloo", batches)
    for estimator in ("k1", "k2", "k3"):
        algorithm = ReinforcePlusPlus(kl_estimator=estimator, kl_weight=0.1)
        yield "reinforce++", openrlhf_policy(algorithm, "reinforce", batches, kl_reward=estimator)
    yield (
        "reinforce++-baseline",
        openrlhf_policy(ReinforcePlusPlusBaseline(), "reinforce_baseline", batches, kl_loss="k2"),
    )
    undiscounted = PPO(unbiased_std=False, kl_weight=0.05)
    yield "ppo", openrlhf_policy(undiscounted, "gae", batches, kl_reward="k1", holes=True)
    discounted = PPO(unbiased_std=False, kl_weight=0.05, gamma=0.97, lam=0.9, kl_estimator="k2")
    yield "ppo", openrlhf_policy(discounted, "gae", batches, kl_reward="k2", holes=False)
    yield "ppo", openrlhf_values(batches)


def stub_openrlhf() -> None:
    """Empty modules for what OpenRLHF imports without using it here: calling into them fails."""
    names = {
        "flash_attn": (),
        "flash_attn.bert_padding": ("index_first_axis", "pad_input", "rearrange", "unpad_input"),
        "flash_attn.utils": (),
        "flash_attn.utils.distributed": ("all_gather",),
        "vllm": ("LLM", "SamplingParams"),
        "vllm.inputs": ("TokensPrompt",),
        "vllm.utils": ("random_uuid",),
    }
    for name, members in names.items():
        root = name.partition(".")[0]
        if root not in sys.modules and importlib.util.find_spec(root) is not None:
            continue
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        module.__path__ = []
        for member in members:
            setattr(module, member, None)
        sys.modules[name] = module


def openrlhf_policy(
    algorithm: Any,
    estimator: str,
    batches: int,
    *,
    token_level: bool = True,
    with_loss: bool = True,
    kl_loss: str | None = None,
    kl_reward: str | None = None,
    holes: bool = True,
) -> Differences:
    """One advantage estimator, split over two experiences, and the loss that goes with it."""
    from openrlhf.models import loss as losses
    from openrlhf.models.utils import compute_approx_kl, masked_mean
    from openrlhf.trainer.ppo_utils.experience import Experience as TheirExperience
    from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker

    maker = object.__new__(RemoteExperienceMaker)
    settings = SimpleNamespace(
        reward=SimpleNamespace(clip_range=None, overlong_buffer_len=None, stop_properly_penalty_coef=None),
        rollout=SimpleNamespace(n_samples_per_prompt=GROUP),
        algo=SimpleNamespace(
            advantage=SimpleNamespace(
                estimator=estimator,
                no_std_norm=False,
                gamma=getattr(algorithm, "gamma", 1.0),
                lambd=getattr(algorithm, "lam", 1.0),
            )
        ),
    )
    maker.strategy = SimpleNamespace(args=settings)
    maker.advantage_estimator = estimator
    maker.kl_ctl = SimpleNamespace(value=algorithm.kl_weight if kl_reward else 0.0)
    high = getattr(algorithm, "epsilon_high", None) or 0.2
    policy_loss = losses.PolicyLoss(clip_eps_low=0.2, clip_eps_high=high, token_level_loss=token_level)
    for sample in samples(batches, holes=holes):
        cut = len(sample.groups) // 2
        divergence = torch.zeros_like(sample.old_logprobs)
        if kl_reward:
            divergence = compute_approx_kl(sample.old_logprobs, sample.ref_logprobs, kl_estimator=kl_reward)
        experiences = []
        for rows in (slice(0, cut), slice(cut, None)):
            experience = TheirExperience()
            experience.index = list(range(len(sample.groups)))[rows]
            experience.rewards = sample.rewards.reshape(-1)[rows].clone()
            experience.kl = divergence[rows]
            experience.action_mask = sample.mask[rows]
            experience.values = sample.old_values[rows]
            experience.info = {}
            experiences.append(experience)
        maker.compute_advantages_and_returns(experiences)
        expected = torch.cat([experience.advantages for experience in experiences])
        advantages, returns = sample.ours(algorithm)
        yield "advantages", apart(advantages, expected * sample.mask)
        if estimator in ("gae", "reinforce"):
            assert returns is not None
            theirs = torch.cat([experience.returns for experience in experiences])
            yield "returns", apart(returns, theirs * sample.mask)
        if not with_loss:
            continue
        loss, gradient = sample.loss(algorithm, advantages)
        logprobs = sample.logprobs.clone().requires_grad_()
        other = policy_loss(logprobs, sample.old_logprobs, expected, action_mask=sample.mask)[0]
        if kl_loss:
            penalty = compute_approx_kl(logprobs, sample.ref_logprobs, kl_estimator=kl_loss)
            other = other + algorithm.kl_weight * masked_mean(penalty, sample.mask)
        other, other_gradient = differentiated(other, logprobs)
        yield "loss", apart(loss, other)
        yield "gradient", apart(gradient, other_gradient)


def openrlhf_values(batches: int) -> Differences:
    """ValueLoss, and AdaptiveKLController, which follows the mean of the sequences' mean divergence."""
    from openrlhf.models.loss import ValueLoss
    from openrlhf.trainer.ppo_utils.kl_controller import AdaptiveKLController

    yield from value_losses(
        batches,
        lambda sample, values, returns: ValueLoss(clip_eps=0.5)(
            values, sample.old_values, returns, action_mask=sample.mask
        ),
    )
    yield from kl_weights(batches, lambda weight, target, horizon: AdaptiveKLController(weight, target, horizon))


def value_losses(batches: int, theirs: Any) -> Differences:
    """Our value loss and its gradient against another's."""
    algorithm = PPO(kl_weight=0, value_clip=0.5)
    for sample in samples(batches, holes=True):
        _, returns = sample.ours(algorithm)
        assert returns is not None
        values = sample.values.clone().requires_grad_()
        batch = ValueBatch(values, sample.old_values, returns, sample.mask)
        loss, gradient = differentiated(algorithm.value_loss(batch).loss, values)
        values = sample.values.clone().requires_grad_()
        expected, expected_gradient = differentiated(theirs(sample, values, returns), values)
        yield "value loss", apart(loss, expected)
        yield "value gradient", apart(gradient, expected_gradient)


def kl_weights(batches: int, controller: Any) -> Differences:
    """Our moving KL weight against another's controller, along all batches."""
    algorithm = PPO(kl_weight=0.1, kl_target=0.02, kl_horizon=200, kl_estimator="k3")
    weight, theirs = algorithm.kl_weight, controller(0.1, 0.02, 200)
    for sample in samples(batches, holes=True):
        experience = sample.experience(algorithm)
        r = sample.ref_logprobs - sample.old_logprobs
        divergence = ((r.exp() - r - 1) * sample.mask).sum(1) / sample.mask.sum(1)
        theirs.update(float(divergence.mean()), len(sample.groups))
        weight = algorithm.next_kl_weight(
            Experience(**{name: getattr(experience, name) for name in _FIELDS}, kl_weight=weight)
        )
        yield "KL weight", abs(weight - theirs.value) / weight


_FIELDS: Final = ("scores", "groups", "mask", "logprobs", "ref_logprobs", "values")


# verl -----------------------------------------------------------------------------------------------------------------


def verl_cases(batches: int) -> Iterator[tuple[str, Differences]]:
    """The functions of ``verl.trainer.ppo.core_algos``."""
    yield "grpo", verl_policy(GRPO(), "grpo", batches, aggregate="seq-mean-token-mean", kl_loss="k3")
    yield "bn-grpo", verl_policy(BatchNormalisedGRPO(), "grpo", batches, kl_loss="k3")
    bonus = BatchNormalisedGRPO(entropy_weight=0.05, kl_weight=0)
    yield "bn-grpo", verl_policy(bonus, "grpo", batches, entropy=True)
    yield "dapo", verl_policy(DAPO(), "grpo", batches)
    yield "dr-grpo", verl_policy(DrGRPO(), "grpo", batches, aggregate="seq-mean-token-sum-norm", std=False)
    yield "rloo", verl_policy(RLOO(ratio="token", kl_weight=0.1), "rloo", batches, kl_reward="k1")
    yield "rloo", verl_policy(RLOO(ratio="token", kl_weight=0.1), "rloo_vectorized", batches, kl_reward="k1")
    for estimator, gamma in (("k1", 1.0), ("k2", 0.95), ("k3", 0.9)):
        algorithm = ReinforcePlusPlus(kl_estimator=estimator, kl_weight=0.1, gamma=gamma, unbiased_std=True)
        yield "reinforce++", verl_policy(algorithm, "reinforce_plus_plus", batches, kl_reward=estimator)
    baseline = ReinforcePlusPlusBaseline(unbiased_std=True)
    yield "reinforce++-baseline", verl_policy(baseline, "reinforce_plus_plus_baseline", batches, kl_loss="k2")
    for gamma, lam, estimator in ((1.0, 1.0, "k1"), (0.97, 0.9, "k2"), (0.9, 0.5, "k3")):
        algorithm = PPO(gamma=gamma, lam=lam, kl_estimator=estimator, kl_weight=0.05, entropy_weight=0.01)
        yield "ppo", verl_policy(algorithm, "gae", batches, kl_reward=estimator, entropy=True)
    yield "ppo", verl_values(batches)


class VerlConfig(SimpleNamespace):
    """What verl's losses read of their configuration; dual clipping is out of reach, as it is not part of PPO."""

    clip_ratio, clip_ratio_low = 0.2, 0.2
    global_batch_info: Mapping[str, Any] = {}

    def get(self, name: str, default: Any) -> Any:
        """A key with a default."""
        return 1e9 if name == "clip_ratio_c" else default


def verl_policy(
    algorithm: Any,
    estimator: str,
    batches: int,
    *,
    aggregate: str = "token-mean",
    std: bool = True,
    kl_loss: str | None = None,
    kl_reward: str | None = None,
    entropy: bool = False,
) -> Differences:
    """One advantage estimator, and the vanilla policy loss with the terms that go with it."""
    from verl.trainer.ppo import core_algos

    estimate = core_algos.get_adv_estimator_fn(estimator)
    for sample in samples(batches, holes=True):
        mask = sample.mask.double()
        rewards = torch.zeros_like(mask)
        last = mask.cumsum(1).argmax(1)  # the first position with all of the row's tokens: its last active one
        rewards[torch.arange(len(rewards)), last] = sample.rewards.reshape(-1)
        if kl_reward:
            penalty = core_algos.kl_penalty(sample.old_logprobs, sample.ref_logprobs, kl_reward)
            rewards = rewards - algorithm.kl_weight * penalty * mask
        options: dict[str, Any] = {"token_level_rewards": rewards, "response_mask": mask}
        if estimator == "gae":
            options |= {"values": sample.old_values, "gamma": algorithm.gamma, "lam": algorithm.lam}
        elif estimator == "grpo":
            options |= {"index": sample.groups.numpy(), "epsilon": 1e-4, "norm_adv_by_std_in_grpo": std}
        elif estimator == "reinforce_plus_plus":
            options |= {"config": SimpleNamespace(gamma=algorithm.gamma)}
        else:
            options |= {"index": sample.groups.numpy()}
        expected, their_returns = estimate(**options)
        advantages, returns = sample.ours(algorithm)
        yield "advantages", apart(advantages, expected * mask)
        if estimator in ("gae", "reinforce_plus_plus"):
            assert returns is not None
            yield "returns", apart(returns, their_returns * mask)

        loss, gradient = sample.loss(algorithm, advantages)
        logprobs = sample.logprobs.clone().requires_grad_()
        high = getattr(algorithm, "epsilon_high", None) or 0.2
        other, _ = core_algos.compute_policy_loss_vanilla(
            sample.old_logprobs, logprobs, expected, mask, aggregate, VerlConfig(clip_ratio_high=high)
        )
        if kl_loss:
            penalty = core_algos.kl_penalty(logprobs, sample.ref_logprobs, kl_loss)
            other = other + algorithm.kl_weight * core_algos.agg_loss(penalty, mask, aggregate)
        if entropy:
            other = other - algorithm.entropy_weight * core_algos.agg_loss(sample.entropy, mask, aggregate)
        other, other_gradient = differentiated(other, logprobs)
        yield "loss", apart(loss, other)
        yield "gradient", apart(gradient, other_gradient)


def verl_values(batches: int) -> Differences:
    """compute_value_loss and AdaptiveKLController."""
    from verl.trainer.ppo import core_algos

    yield from value_losses(
        batches,
        lambda sample, values, returns: core_algos.compute_value_loss(
            values, returns, sample.old_values, sample.mask.double(), 0.5
        )[0],
    )
    yield from kl_weights(batches, lambda *given: core_algos.AdaptiveKLController(*given))


# All ------------------------------------------------------------------------------------------------------------------

CASES: Final = {"TRL": trl_cases, "OpenRLHF": openrlhf_cases, "verl": verl_cases}


@functools.cache
def why_not(peer: str) -> str | None:
    """Why a peer cannot be compared with here; ``None`` if it can."""
    package = PEERS[peer]
    if importlib.util.find_spec(package) is None:
        return f"{package} is not installed"
    needed = {
        "TRL": ("trl",),
        "OpenRLHF": ("openrlhf.models.loss", "openrlhf.trainer.ppo_utils.experience_maker"),
        "verl": ("verl.trainer.ppo.core_algos",),
    }[peer]
    if peer == "OpenRLHF":
        stub_openrlhf()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            for module in needed:
                importlib.import_module(module)
    except ImportError as error:
        return f"{package} is installed, but cannot be imported: {error}"
    return None


def measure(peer: str, batches: int) -> dict[str, dict[str, float]]:
    """Algorithm -> what was compared -> the largest difference over all batches and options."""
    found: dict[str, dict[str, float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for algorithm, differences in CASES[peer](batches):
            worst = found.setdefault(algorithm, {})
            for what, difference in differences:
                worst[what] = max(worst.get(what, 0.0), difference)
    return found


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Markdown: a row an algorithm, a column a peer, in each the largest difference of each thing compared."""
    peers = [peer for peer in PEERS if peer in found]
    names = list(dict.fromkeys(name for peer in peers for name in found[peer]["algorithms"]))
    head = [f"{peer} {found[peer]['version']}" for peer in peers]
    lines = [f"| | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    for name in names:
        cells = []
        for peer in peers:
            worst = found[peer]["algorithms"].get(name)
            cells.append(", ".join(f"{what} {value:.1e}" for what, value in worst.items()) if worst else "has none")
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Measure, merge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("merge", nargs="*", type=Path, help="JSON files that --write made elsewhere")
    parser.add_argument("--write", type=Path, help="where to keep the numbers")
    parser.add_argument("--batches", type=int, default=100, help="random batches for each comparison")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for path in arguments.merge:
        found |= json.loads(path.read_text(encoding="utf-8"))
    for peer, package in PEERS.items():
        reason = "its numbers are in a file" if peer in found else why_not(peer)
        if reason is not None:
            sys.stderr.write(f"{peer}: not compared here: {reason}\n")
            continue
        found[peer] = {"version": version(package), "algorithms": measure(peer, arguments.batches)}
    if not found:
        raise SystemExit("error: none of the peers is installed here: pip install trl==1.16.0")
    if arguments.write:
        arguments.write.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(table(found) + "\n")
    worst = max(value for peer in found.values() for row in peer["algorithms"].values() for value in row.values())
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
