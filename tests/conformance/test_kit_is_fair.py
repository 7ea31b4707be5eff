"""What is right conforms: clipping as papers have it, instructions in any language, plugins that were left out."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve, field, frozen

from callwright.language.program import Program
from callwright.plugins import load_plugins
from callwright.testing import check_component, checks_for
from callwright.testing.sample import SampleForm
from callwright.testing.services.registries import checking_with, registry_in_use
from callwright.training.algorithm import LossOutput, TokenBatch


@frozen(kw_only=True)
class GSPO:
    """Group Sequence Policy Optimization (Zheng et al. 2025), equation 5, with the range that the paper clips to."""

    kl_weight: float = field(default=0.0, init=False)
    name: str = "gspo"
    low: float = 3e-4
    high: float = 4e-4

    @property
    def smallest_group(self) -> int:
        return 2

    def shape_rewards(self, rewards: Any, lengths: Any, max_length: int) -> Any:
        return rewards

    def advantages(self, rewards: Any, valid: Any) -> Any:
        valid = valid.bool()
        known = rewards.masked_fill(~valid, 0)
        count = valid.sum(1, keepdim=True)
        centred = (known - known.sum(1, keepdim=True) / count.clamp(min=1)).masked_fill(~valid, 0)
        deviation = (centred.square().sum(1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
        return (centred / deviation.clamp(min=1e-6)).masked_fill(deviation < 1e-6, 0).masked_fill(count < 2, 0)

    def keep_groups(self, rewards: Any, valid: Any) -> Any:
        return valid.bool().any(1)

    def normaliser(self, mask: Any) -> float:
        return float(max(1, int((mask != 0).any(1).sum())))

    def loss(self, batch: TokenBatch) -> LossOutput:
        active = batch.mask != 0
        logprobs = batch.logprobs.masked_fill(~active, 0)
        moved = logprobs - batch.old_logprobs.detach().masked_fill(~active, 0)
        length = active.sum(1).clamp(min=1)
        ratio = (moved.sum(1) / length).exp()
        advantages = batch.advantages.detach().to(logprobs)
        tokens = advantages if advantages.dim() == 2 else advantages.unsqueeze(1).expand_as(logprobs)
        # Of each token the ratio of its sequence, with the gradient of its own log-probability.
        own = ratio.detach().unsqueeze(1) * (logprobs - logprobs.detach()).exp()
        clipped = own.clamp(1 - self.low, 1 + self.high)
        each = -(own * tokens).minimum(clipped * tokens).masked_fill(~active, 0).sum(1) / length
        whole = self.normaliser(batch.mask) if batch.normaliser is None else batch.normaliser
        return LossOutput(each.sum() / whole, {"ratio": float(ratio.detach().mean()) if ratio.numel() else 1.0})


def test_gspo_with_the_range_of_its_paper_conforms() -> None:
    pytest.importorskip("torch")
    failed = {}
    for check in checks_for("algorithm"):
        try:
            check(GSPO())
        except AssertionError as error:
            failed[check.name] = str(error)
    assert failed == {}


class InAnotherLanguage(SampleForm):
    """Says what to write in a language that the kit does not know."""

    def instructions(self) -> str:
        return f"Passt kein Werkzeug, so schreibe: {self.render(Program((), 'one'))}"


def test_instructions_may_be_in_any_language_if_the_empty_program_stands_there() -> None:
    form = InAnotherLanguage()
    (check,) = (one for one in checks_for("parser") if one.name == "check_instructions")
    check(form)


def test_checks_take_other_parts_from_the_registry_of_the_command() -> None:
    import callwright_plugins.json_ir

    alone = load_plugins(extra={"json-ir": callwright_plugins.json_ir}, entry_points=False)
    with checking_with(alone):
        assert registry_in_use() is alone
        assert registry_in_use().names("corpus") == []
    assert registry_in_use() is not alone


def test_a_declared_failure_that_is_none_is_told() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        check_component("parser", evolve(SampleForm()), expected_failures={"check_total": "reads everything"})
    assert "passes, though it is expected to fail: reads everything" in str(raised.value.exceptions[0])
