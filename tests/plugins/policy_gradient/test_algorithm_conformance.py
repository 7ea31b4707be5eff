"""The conformance kit: every registered algorithm passes, and each way of being wrong fails the check made for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from attrs import evolve

from callwright import LossOutput, TokenBatch, load_plugins
from callwright.testing.algorithms import ALGORITHM_CHECKS, check_algorithm
from callwright_plugins import policy_gradient
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO

registry = load_plugins(extra={"policy-gradient": policy_gradient}, entry_points=False)
VARIANTS = [
    ("grpo", {}),
    ("grpo", {"std": "batch", "epsilon_high": 0.3, "kl_weight": 0}),
    ("grpo", {"std": "none"}),
    ("bn-grpo", {}),
    ("bn-grpo", {"std": "batch", "unbiased_kl": True}),
    ("bn-grpo", {"std": "none"}),
    ("dapo", {}),
    ("dapo", {"dynamic_sampling": False, "overlong_buffer": 0, "kl_weight": 0.04}),
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
    (MultipliesByMask, "check_padding_is_never_read", "the loss was changed by nan in padded positions"),
    (PadsDiagnostics, "check_padding_is_never_read", "a diagnostic was changed"),
    (LocalMean, "check_micro_batches", "is batch.normaliser ignored"),
    (WrongNormaliser, "check_micro_batches", "with its own normaliser given"),
    (EmptyNormaliser, "check_empty", "must be above 0"),
    (NoGuard, "check_empty", "is it divided by 0"),
    (Remembers, "check_purity", "does it hold state"),
    (WritesInput, "check_purity", "changed in place"),
    (Draws, "check_purity", "global random generator"),
]


def test_the_sound_algorithm_passes() -> None:
    check_algorithm(Sound())


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
