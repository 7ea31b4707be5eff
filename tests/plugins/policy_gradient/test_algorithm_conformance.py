"""The conformance kit: every registered algorithm passes, and each way of being wrong fails the check made for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from attrs import evolve

from callwright.plugins import load_plugins

# MOVED
from callwright.testing.algorithms import ALGORITHM_CHECKS, check_algorithm
from callwright.training import LossOutput, TokenBatch
from callwright.training.algorithm import Experience, ValueBatch
from callwright_plugins import policy_gradient
from callwright_plugins.policy_gradient import loss_terms
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO
from callwright_plugins.policy_gradient.ppo import PPO

registry = load_plugins(extra={"policy-gradient": policy_gradient}, entry_points=False)
VARIANTS = [
    ("grpo", {}),
    ("grpo", {"std": "batch", "epsilon_high": 0.3, "kl_weight": 0}),
    ("grpo", {"std": "none"}),
    ("grpo", {"credit_share": 1}),
    ("bn-grpo", {}),
    ("bn-grpo", {"credit_share": 0.4}),
    ("bn-grpo", {"std": "batch", "unbiased_kl": True}),
    ("bn-grpo", {"std": "none"}),
    ("dapo", {}),
    ("dapo", {"dynamic_sampling": False, "overlong_buffer": 0, "kl_weight": 0.04}),
    ("dr-grpo", {}),
    ("dr-grpo", {"max_length": 50, "kl_weight": 0.1, "entropy_weight": 0.01}),
    ("gspo", {}),
    ("gspo", {"epsilon": 0.1, "epsilon_high": 0.3, "kl_weight": 0.05, "std": "none", "entropy_weight": 0.01}),
    ("cispo", {}),
    ("cispo", {"epsilon_low": 0.5, "epsilon_high": 0.5, "kl_weight": 0.05, "std": "batch"}),
    ("rloo", {}),
    ("rloo", {"ratio": "token", "kl_weight": 0, "entropy_weight": 0.01}),
    ("reinforce++", {}),
    ("reinforce++", {"kl_in": "loss", "kl_estimator": "k3", "unbiased_std": True}),
    ("reinforce++", {"kl_weight": 0.3, "kl_estimator": "k2", "gamma": 0.9}),
    ("reinforce++-baseline", {}),
    ("reinforce++-baseline", {"kl_in": "reward", "kl_estimator": "k1", "entropy_weight": 0.01}),
    ("ppo", {}),
    ("ppo", {"gamma": 0.9, "lam": 0.8, "kl_weight": 0.05, "kl_target": 0.1, "kl_estimator": "k3", "value_clip": 0.2}),
    ("ppo", {"kl_weight": 0, "whiten": False, "entropy_weight": 0.01, "epsilon_high": 0.3}),
]


def test_every_registered_algorithm_is_checked() -> None:
    assert {name for name, _ in VARIANTS} == set(registry.names("algorithm"))


@pytest.mark.parametrize("check", ALGORITHM_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=lambda value: str(value))
def test_conformance(name: str, options: dict[str, Any], check: Callable[[Any], None]) -> None:
    check(registry.create("algorithm", name, **options))


class Sound:
    """A right algorithm, to be broken in one place at a time."""

    name = "sound"
    kl_weight = 0.04
    smallest_group = 2

    def __init__(self) -> None:
        self.inner = BatchNormalisedGRPO()

    def shape_rewards(self, rewards: Any, lengths: Any, max_length: int) -> Any:
        return rewards

    def advantages(self, rewards: Any, valid: Any) -> Any:
        return self.inner.advantages(rewards, valid)

    def keep_groups(self, rewards: Any, valid: Any) -> Any:
        return self.inner.keep_groups(rewards, valid)

    def normaliser(self, mask: Any) -> float:
        return self.inner.normaliser(mask)

    def loss(self, batch: TokenBatch) -> LossOutput:
        return self.inner.loss(batch)


class Nameless(Sound):
    name = ""


class WeightOfWords(Sound):
    kl_weight = "a little"


class FlatAdvantages(Sound):
    def advantages(self, rewards: Any, valid: Any) -> Any:
        return super().advantages(rewards, valid).flatten()


class DividesByZero(Sound):
    def advantages(self, rewards: Any, valid: Any) -> Any:
        rewards = torch.where(valid, rewards, 0)
        return (rewards - rewards.mean(1, keepdim=True)) / rewards.std(1, keepdim=True)


class KeepsFloats(Sound):
    def keep_groups(self, rewards: Any, valid: Any) -> Any:
        return super().keep_groups(rewards, valid).float()


class TurnsTheSign(Sound):
    def advantages(self, rewards: Any, valid: Any) -> Any:
        return -super().advantages(rewards, valid)


class ScoresFailures(Sound):
    def advantages(self, rewards: Any, valid: Any) -> Any:
        return super().advantages(torch.where(valid, rewards, 0), torch.ones_like(valid))


class KeepsMaskedGroups(Sound):
    def keep_groups(self, rewards: Any, valid: Any) -> Any:
        return torch.ones(len(rewards), dtype=torch.bool)


class TensorDiagnostics(Sound):
    def loss(self, batch: TokenBatch) -> LossOutput:
        output = super().loss(batch)
        return evolve(output, diagnostics={**output.diagnostics, "loss": output.loss})


class VectorLoss(Sound):
    def loss(self, batch: TokenBatch) -> LossOutput:
        output = super().loss(batch)
        return evolve(output, loss=output.loss.unsqueeze(0))


class DropsLastToken(Sound):
    def loss(self, batch: TokenBatch) -> LossOutput:
        mask = batch.mask.clone()
        mask[:, -1] = 0
        return super().loss(evolve(batch, mask=mask))


class Climbs(Sound):
    def loss(self, batch: TokenBatch) -> LossOutput:
        return super().loss(evolve(batch, advantages=-batch.advantages))


class IgnoresReference(Sound):
    def loss(self, batch: TokenBatch) -> LossOutput:
        return super().loss(evolve(batch, ref_logprobs=batch.logprobs.detach()))


class FleesReference(Sound):
    def loss(self, batch: TokenBatch) -> LossOutput:
        return super().loss(evolve(batch, ref_logprobs=2 * batch.logprobs.detach() - batch.ref_logprobs))


class FreeButUsesReference(Sound):
    kl_weight = 0.0

    def loss(self, batch: TokenBatch) -> LossOutput:
        reference = batch.logprobs.detach() if batch.ref_logprobs is None else batch.ref_logprobs
        return super().loss(evolve(batch, ref_logprobs=reference))


class ScalesTokens(Sound):
    def loss(self, batch: TokenBatch) -> LossOutput:
        scale = 1.0 if batch.advantages.dim() == 1 else 0.5
        return super().loss(evolve(batch, advantages=scale * batch.advantages))


class LosesWeight(Sound):
    credit_share = 0.5

    def placed(self, advantages: Any, blame: Any, mask: Any) -> Any:
        return torch.where(blame != 0, 2 * advantages, advantages).expand(mask.shape)


class BlamesOthers(Sound):
    credit_share = 1.0

    def placed(self, advantages: Any, blame: Any, mask: Any) -> Any:
        return loss_terms.placed_penalty(advantages, mask - blame, mask, 1.0)


class HeedsTheFirstToken(Sound):
    def loss(self, batch: TokenBatch) -> LossOutput:
        advantages = batch.advantages if batch.advantages.dim() == 1 else batch.advantages[:, 1]
        return super().loss(evolve(batch, advantages=advantages))


class MultipliesByMask(Sound):
    def loss(self, batch: TokenBatch) -> LossOutput:
        output = super().loss(batch)
        return evolve(output, loss=output.loss + 0 * (batch.logprobs * batch.mask).sum())


class PadsDiagnostics(Sound):
    def loss(self, batch: TokenBatch) -> LossOutput:
        output = super().loss(batch)
        return evolve(output, diagnostics={**output.diagnostics, "entropy": float(batch.entropy.nan_to_num().mean())})


class LocalMean(Sound):
    def loss(self, batch: TokenBatch) -> LossOutput:
        return super().loss(evolve(batch, normaliser=None))


class WrongNormaliser(Sound):
    def normaliser(self, mask: Any) -> float:
        return float(mask.shape[0])


class EmptyNormaliser(Sound):
    def normaliser(self, mask: Any) -> float:
        return float(mask.sum())


class NoGuard(Sound):
    def loss(self, batch: TokenBatch) -> LossOutput:
        output = super().loss(batch)
        return evolve(output, loss=output.loss / (batch.mask.sum() > 0))


class Detached(Sound):
    def loss(self, batch: TokenBatch) -> LossOutput:
        output = super().loss(batch)
        return evolve(output, loss=output.loss.detach())


class Remembers(Sound):
    calls = 0

    def loss(self, batch: TokenBatch) -> LossOutput:
        self.calls += 1
        output = super().loss(batch)
        return evolve(output, loss=output.loss + self.calls)


class WritesInput(Sound):
    def shape_rewards(self, rewards: Any, lengths: Any, max_length: int) -> Any:
        return rewards.sub_(0.1)


class Draws(Sound):
    def advantages(self, rewards: Any, valid: Any) -> Any:
        torch.rand(1)
        return super().advantages(rewards, valid)


class Raises(Sound):
    def normaliser(self, mask: Any) -> float:
        raise KeyError("tokens")


class SoundCritic(Sound):
    """A right algorithm with everything that an algorithm may have, to be broken in one place at a time."""

    entropy_weight = 0.01
    smallest_group = 1

    def __init__(self) -> None:
        self.inner: Any = PPO(kl_weight=0.04, kl_target=0.1, entropy_weight=0.01)

    def token_advantages(self, experience: Experience) -> Any:
        return self.inner.token_advantages(experience)

    def value_loss(self, batch: ValueBatch) -> LossOutput:
        return self.inner.value_loss(batch)

    def next_kl_weight(self, experience: Experience) -> float:
        return self.inner.next_kl_weight(experience)


class SaysNothingOfGroups(Sound):
    smallest_group = 1


class AsksForMore(Sound):
    smallest_group = 3


class AsksForHalves(Sound):
    smallest_group = 2.5


class SequenceShaped(SoundCritic):
    def token_advantages(self, experience: Experience) -> Any:
        advantages, returns = super().token_advantages(experience)
        return advantages.mean(1), returns


class FillsPadding(SoundCritic):
    def token_advantages(self, experience: Experience) -> Any:
        advantages, returns = super().token_advantages(experience)
        return advantages + (experience.mask == 0), returns


class TurnsScores(SoundCritic):
    def token_advantages(self, experience: Experience) -> Any:
        return super().token_advantages(evolve(experience, scores=-experience.scores))


class KeepsItsWeight(SoundCritic):
    def token_advantages(self, experience: Experience) -> Any:
        weight = experience.kl_weight if experience.kl_weight is None else min(experience.kl_weight, 0.04)
        return super().token_advantages(evolve(experience, kl_weight=weight))


class RewardsDivergence(SoundCritic):
    def token_advantages(self, experience: Experience) -> Any:
        return super().token_advantages(
            evolve(experience, ref_logprobs=2 * experience.logprobs - experience.ref_logprobs)
        )


class DiscountsObservations(SoundCritic):
    def __init__(self) -> None:
        super().__init__()
        self.inner = PPO(kl_weight=0.04, gamma=0.9, whiten=False)

    def token_advantages(self, experience: Experience) -> Any:
        everything = torch.ones_like(experience.mask)
        inside = {
            name: torch.where(experience.mask == 1, getattr(experience, name), 0) for name in ("values", "logprobs")
        }
        _, returns = super().token_advantages(
            evolve(experience, mask=everything, **inside, ref_logprobs=inside["logprobs"])
        )
        advantages, _ = super().token_advantages(experience)
        return advantages, returns * experience.mask


class ReadsObservedValues(SoundCritic):
    def token_advantages(self, experience: Experience) -> Any:
        advantages, returns = super().token_advantages(experience)
        return advantages + experience.mask * experience.values.mean(), returns


class CountsTheMasked(SoundCritic):
    def token_advantages(self, experience: Experience) -> Any:
        advantages, returns = super().token_advantages(experience)
        return advantages + experience.mask * experience.scores.mean(), returns


class FleesReturns(SoundCritic):
    def value_loss(self, batch: ValueBatch) -> LossOutput:
        return super().value_loss(evolve(batch, returns=2 * batch.values.detach() - batch.returns))


class LocalValueMean(SoundCritic):
    def value_loss(self, batch: ValueBatch) -> LossOutput:
        return super().value_loss(evolve(batch, normaliser=None))


class PadsValues(SoundCritic):
    def value_loss(self, batch: ValueBatch) -> LossOutput:
        output = super().value_loss(batch)
        return evolve(output, loss=output.loss + 0 * (batch.values * batch.mask).sum())


class LoosensFarAway(SoundCritic):
    def next_kl_weight(self, experience: Experience) -> float:
        return experience.kl_weight**2 / super().next_kl_weight(experience)


class TensorWeight(SoundCritic):
    def next_kl_weight(self, experience: Experience) -> Any:
        return torch.tensor(super().next_kl_weight(experience))


class FightsEntropy(SoundCritic):
    def loss(self, batch: TokenBatch) -> LossOutput:
        return super().loss(batch if batch.entropy is None else evolve(batch, entropy=-batch.entropy))


class WeightlessButTrained(SoundCritic):
    entropy_weight = 0.0


MUTANTS = [
    (Nameless, "check_attributes", "name must be a string"),
    (WeightOfWords, "check_attributes", "kl_weight must be a finite float"),
    (FlatAdvantages, "check_reward_shapes", r"advantages gave the shape \[6\] for \[3, 2\]"),
    (DividesByZero, "check_reward_shapes", "divided by a deviation of 0"),
    (KeepsFloats, "check_reward_shapes", "one bool per prompt"),
    (TurnsTheSign, "check_advantages_follow_rewards", "is the sign turned"),
    (ScoresFailures, "check_masked_samples", "infrastructure failure would become a gradient"),
    (KeepsMaskedGroups, "check_masked_samples", "must not be kept"),
    (TensorDiagnostics, "check_loss", "a tensor would keep the graph alive"),
    (VectorLoss, "check_loss", "it must be a scalar"),
    (DropsLastToken, "check_loss", "some active token has no gradient"),
    (Detached, "check_loss", "detached or copied"),
    (Climbs, "check_gradient_direction", "is a minus sign missing"),
    (IgnoresReference, "check_kl", "the loss is the KL term"),
    (FleesReference, "check_kl", "are policy and reference exchanged"),
    (FreeButUsesReference, "check_kl", "kl_weight is 0, but the reference changes the loss"),
    (HeedsTheFirstToken, "check_weighed_tokens", "the advantage of a token does not weigh that token"),
    (ScalesTokens, "check_weighed_tokens", "differs by"),
    (LosesWeight, "check_placed_credit", "and sum to"),
    (BlamesOthers, "check_placed_credit", "no more of the penalty than others"),
    (MultipliesByMask, "check_padding_is_never_read", "the loss was changed by nan in padded positions"),
    (PadsDiagnostics, "check_padding_is_never_read", "a diagnostic was changed"),
    (LocalMean, "check_micro_batches", "is batch.normaliser ignored"),
    (WrongNormaliser, "check_micro_batches", "with its own normaliser given"),
    (EmptyNormaliser, "check_empty", "must be above 0"),
    (NoGuard, "check_empty", "is it divided by 0"),
    (Remembers, "check_purity", "does it hold state"),
    (WritesInput, "check_purity", "changed in place"),
    (Draws, "check_purity", "global random generator"),
    (SequenceShaped, "check_token_advantages", r"advantages of the shape \[6\]"),
    (FillsPadding, "check_token_advantages", "of inactive positions are not 0"),
    (TurnsScores, "check_token_advantages", "the score at the wrong token"),
    (KeepsItsWeight, "check_token_advantages", "the kl_weight of the experience is not read"),
    (RewardsDivergence, "check_kl", "added instead of taken off"),
    (DiscountsObservations, "check_environment_tokens", "something is discounted over them"),
    (ReadsObservedValues, "check_environment_tokens", "changed by nan in inactive positions"),
    (CountsTheMasked, "check_environment_tokens", "without active tokens changes the advantages of others"),
    (SaysNothingOfGroups, "check_group_baseline", "groups of 1 have advantages of 0"),
    (AsksForMore, "check_group_baseline", "groups of 2 have advantages other than 0"),
    (AsksForHalves, "check_group_baseline", "not a whole number from 1"),
    (FleesReturns, "check_critic", "away from its return"),
    (LocalValueMean, "check_critic", "is batch.normaliser ignored"),
    (PadsValues, "check_critic", "changed by nan in inactive positions"),
    (LoosensFarAway, "check_adaptive_kl", "falls when the policy moves away"),
    (TensorWeight, "check_adaptive_kl", "it must be a finite float"),
    (FightsEntropy, "check_entropy", "does not raise the entropy"),
    (WeightlessButTrained, "check_entropy", "entropy_weight is 0, but entropy is trained"),
]


@pytest.mark.parametrize("sound", [Sound, SoundCritic])
def test_the_sound_algorithms_pass(sound: type[Sound]) -> None:
    check_algorithm(sound())


@pytest.mark.parametrize(("mutant", "check", "message"), MUTANTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_algorithm_fails_its_check(mutant: type[Sound], check: str, message: str) -> None:
    checks = {check.__name__: check for check in ALGORITHM_CHECKS}
    with pytest.raises(AssertionError, match=message):
        checks[check](mutant())


def test_every_check_catches_some_mutant() -> None:
    assert {check for _, check, _ in MUTANTS} == {check.__name__ for check in ALGORITHM_CHECKS}


def test_all_failures_come_at_once() -> None:
    class TwiceBroken(Nameless, Draws):
        pass

    with pytest.raises(ExceptionGroup, match="algorithm '' does not conform") as caught:
        check_algorithm(TwiceBroken())
    assert len(caught.value.exceptions) == 2
    assert caught.value.exceptions[0].__notes__[0].startswith("in check_attributes: ")


def test_an_algorithm_that_raises_is_reported_and_the_other_checks_run() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        check_algorithm(Raises())
    assert {type(error) for error in caught.value.exceptions} == {KeyError}
    assert len(caught.value.exceptions) == 2  # check_micro_batches and check_empty
