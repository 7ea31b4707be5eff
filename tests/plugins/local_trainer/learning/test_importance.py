"""Importance correction: TRL's weights on the same tensors, and a step that is weighed by them."""

from __future__ import annotations

import ast
import copy
import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from attrs import evolve
from torch import Tensor

from callwright.errors import UsageError
from callwright.options import read_options
from callwright_plugins.local_trainer.forward.generation import generate
from callwright_plugins.local_trainer.learning.importance import CORRECTIONS, Importance
from callwright_plugins.local_trainer.learning.update import Batch, descend, make_batch, prepare
from callwright_plugins.local_trainer.models.policy import Policy, weights
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO
from callwright_plugins.policy_gradient.grpo import GRPO
from callwright_plugins.policy_gradient.reinforce_plus_plus import ReinforcePlusPlus
from callwright_plugins.policy_gradient.rloo import RLOO

MODES = CORRECTIONS[1:]
BATCH = Batch(
    [(9, 30, 41), (17, 3, 8, 8)],
    [0, 0, 0, 1, 1, 1],
    [(4, 5, 6, 7, 2), (8, 2), (9, 10, 2), (44, 2), (3, 5, 1, 99, 2), (60, 2)],
    torch.tensor([1.0, -0.5, -0.5, 0.9, 0.3, -1.2]),
)
ALGORITHMS = [GRPO(kl_weight=0.0), BatchNormalisedGRPO(kl_weight=0.0), RLOO(kl_weight=0.0), ReinforcePlusPlus()]
Make = Callable[[str], Policy]


def tensors() -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities of the trainer and of an engine that is far off, one of them unknown, and a mask with holes."""
    generator = torch.Generator().manual_seed(4)
    old = -torch.rand(6, 9, generator=generator)
    engine = old + 0.9 * torch.randn(6, 9, generator=generator)
    mask = (torch.arange(9) < torch.tensor([9, 4, 1, 7, 8, 2]).unsqueeze(1)).long()
    mask[0, 3] = mask[4, 2] = 0
    engine[3, 2] = math.nan
    return old, engine, mask


def by_hand(old: Tensor, engine: Tensor, mask: Tensor, mode: str, most: float) -> Tensor:
    """Token by token, in Python's own floats."""
    table = torch.ones(old.shape)
    of, cut = mode.split("_")
    for row in range(len(old)):
        places = [place for place in range(old.shape[1]) if mask[row, place]]
        logs = {place: float(old[row, place]) - float(engine[row, place]) for place in places}
        logs = {place: 0.0 if math.isnan(value) else value for place, value in logs.items()}
        for place in places:
            ratio = math.exp(sum(logs.values()) if of == "sequence" else logs[place])
            table[row, place] = min(ratio, most) if cut == "truncate" else ratio * (ratio <= most)
    return table


@pytest.mark.parametrize("mode", MODES)
def test_weights_are_the_formulas(mode: Any) -> None:
    found = Importance(mode, 1.5).weights(*tensors())
    torch.testing.assert_close(found, by_hand(*tensors(), mode, 1.5))
    assert len(found.unique()) > 3


@pytest.mark.skipif(importlib.util.find_spec("trl") is None, reason="TRL is not installed: pip install trl==1.16.0")
@pytest.mark.parametrize("mode", MODES)
def test_weights_are_trls(mode: Any) -> None:
    """The statements of its trainer that make the ratio for vLLM's log-probabilities, run on our tensors."""
    old, engine, mask = tensors()
    names: dict[str, Any] = {
        "self": SimpleNamespace(
            use_vllm=True,
            vllm_importance_sampling_correction=True,
            vllm_importance_sampling_mode=mode,
            vllm_importance_sampling_clip_min=None,
            vllm_importance_sampling_clip_max=1.5,
        ),
        "torch": torch,
        "math": math,
        "old_per_token_logps": old,
        "sampling_per_token_logps": engine,
        "completion_mask": mask,
        "tool_mask": None,
    }
    exec(_trls_statements(), names)
    expected = names["vllm_importance_sampling_ratio"].expand_as(old)
    found = Importance(mode, 1.5).weights(old, engine, mask)
    torch.testing.assert_close(found[mask != 0], expected[mask != 0])


def _trls_statements() -> Any:
    specification = importlib.util.find_spec("trl")
    assert specification is not None
    assert specification.origin is not None
    source = (Path(specification.origin).parent / "trainer" / "grpo_trainer.py").read_text(encoding="utf-8")
    (block,) = (
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.If) and any("per_token_logps_diff = (old" in ast.unparse(one) for one in node.body)
        if not any(isinstance(one, ast.With) for one in node.body)
    )
    return compile(ast.Module([block], []), "trl", "exec")


def test_what_is_seen_of_them() -> None:
    old, engine, mask = tensors()
    importance = Importance("token_truncate", 1.5)
    for rows in (slice(0, 2), slice(2, 6)):
        importance.weights(old[rows], engine[rows], mask[rows])
    known = (mask != 0) & ~engine.isnan()
    logs = (old - engine)[known].double()
    assert importance.figures == pytest.approx(
        {
            "importance_mean": float(logs.exp().mean()),
            "importance_max": float(logs.exp().max()),
            "importance_clipped": float((logs.exp() > 1.5).double().mean()),
            "engine_kl": float((logs.exp() - 1 - logs).mean()),
        }
    )
    assert 0.1 < importance.figures["importance_clipped"] < 0.9
    nothing = Importance("token_truncate", 1.5)
    assert nothing.weights(old, engine * math.nan, mask).unique().tolist() == [1.0]
    assert set(nothing.figures.values()) == {0.0}


def trained_by(policy: Policy, batch: Batch, algorithm: Any, **given: Any) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights after one step of plain descent, and the figures."""
    mine = evolve(policy, model=copy.deepcopy(policy.model))
    options = Options(**{"clip_norm": 1e9, **given})
    reference = policy if algorithm.kl_weight else None
    prepared = prepare(mine, reference, algorithm, batch, options)
    optimiser: Any = torch.optim.SGD(mine.model.parameters(), lr=0.0)
    figures = descend(mine, algorithm, optimiser, prepared, options, 0.1)
    return weights(mine.model), figures


def own_logprobs(policy: Policy, batch: Batch, **given: Any) -> list[tuple[float, ...]]:
    """The trainer's own log-probabilities of a batch, to the last bit."""
    options = Options(correction="token_mask", **given)
    rows: dict[int, tuple[float, ...]] = {}
    for mini in prepare(policy, None, GRPO(kl_weight=0.0), evolve(batch, engine=None), options).minis:
        for part in mini.parts:
            assert part.old is not None
            rows |= {
                row: tuple(line[: len(mini.batch.completions[row])].tolist())
                for row, line in zip(part.rows, part.old, strict=True)
            }
    return [rows[row] for row in range(len(batch.completions))]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda one: one.name)
def test_an_engine_that_is_the_trainer_changes_no_byte(algorithm: Any, mode: str, make_policy: Make) -> None:
    policy = make_policy("llama")
    exact = evolve(BATCH, engine=own_logprobs(policy, BATCH))
    plain, _ = trained_by(policy, exact, algorithm)
    corrected, figures = trained_by(policy, exact, algorithm, correction=mode)
    assert all(torch.equal(plain[name], tensor) for name, tensor in corrected.items())
    assert (figures["importance_mean"], figures["importance_max"]) == (1.0, 1.0)
    assert (figures["importance_clipped"], figures["engine_kl"]) == (0.0, 0.0)
    assert any(not torch.equal(tensor, plain[name]) for name, tensor in weights(policy.model).items())


@pytest.mark.parametrize("temperature", [1.0, 0.6, 1.7])
def test_what_the_policy_itself_sampled_has_weights_of_1(temperature: float, make_policy: Make) -> None:
    """Sampling keeps log-probabilities at its temperature, which the trainer's are of, too."""
    policy = make_policy("llama")
    sampled = generate(
        policy, BATCH.prompts, copies=3, max_new_tokens=9, temperature=temperature, generator=torch.Generator()
    )
    rows = [one for group in sampled for one in group]
    batch = evolve(BATCH, completions=[one.ids for one in rows], engine=[one.logprobs for one in rows])
    algorithm = BatchNormalisedGRPO(kl_weight=0.0)
    given = {"correction": "token_truncate", "temperature": temperature}
    _, figures = trained_by(policy, batch, algorithm, **given)
    assert figures["importance_max"] == pytest.approx(1, abs=1e-4)
    assert figures["engine_kl"] < 1e-9
    _, other = trained_by(policy, batch, algorithm, **{**given, "temperature": 2.5})
    assert other["engine_kl"] > 1e-3


@pytest.mark.parametrize("mode", MODES)
def test_a_step_is_weighed_by_hand(mode: str, make_policy: Make) -> None:
    """What the correction trains is what the same advantages, weighed token by token before, train without it."""
    policy, algorithm = make_policy("llama"), BatchNormalisedGRPO(kl_weight=0.3)
    generator = torch.Generator().manual_seed(9)
    own = own_logprobs(policy, BATCH)
    engine = [[value + 0.7 * float(torch.randn((), generator=generator)) for value in row] for row in own]
    sampled = [tuple(1 for _ in row) for row in own]
    sampled[0] = (1, 1, 0, 1, 1)  # the environment's, whose entry no engine gave
    engine[0][2] = 0.0
    batch = evolve(BATCH, engine=engine, sampled=sampled)
    found, figures = trained_by(policy, batch, algorithm, correction=mode, correction_max=1.2)

    width = 5
    padded = [torch.tensor([[*row, *[0.0] * (width - len(row))] for row in rows]) for rows in (own, engine)]
    table = by_hand(padded[0], padded[1], batch.mask.long(), mode, 1.2)

    class Weighed:
        name, kl_weight = "weighed", 0.3
        normaliser = staticmethod(algorithm.normaliser)
        order = (1, 3, 5, 2, 0, 4)  # by length, as micro-batches take them

        def loss(self, given: Any) -> Any:
            rows, length = given.mask.shape
            part, self.order = self.order[:rows], self.order[rows:]
            return algorithm.loss(evolve(given, advantages=given.advantages.unsqueeze(1) * table[list(part), :length]))

    expected, _ = trained_by(policy, batch, Weighed())
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, atol=1e-6, rtol=1e-5)
    plain, _ = trained_by(policy, batch, algorithm)
    assert max(float((plain[name] - tensor).abs().max()) for name, tensor in found.items()) > 1e-4
    assert figures["importance_clipped"] > 0


def test_rows_keep_their_log_probabilities_in_mini_batches_and_parts(make_policy: Make) -> None:
    policy = make_policy("llama")
    exact = evolve(BATCH, engine=own_logprobs(policy, BATCH))
    for given in ({"mini_batches": 2}, {"micro_batches": 3}, {"tokens_per_micro_batch": 20}, {"iterations": 2}):
        _, figures = trained_by(policy, exact, GRPO(kl_weight=0.0), correction="sequence_mask", **given)
        assert figures["importance_max"] == pytest.approx(1, abs=1e-5)
        assert figures["engine_kl"] < 1e-10


def test_the_batch_of_a_step_has_what_its_rollouts_were_sampled_with() -> None:
    sampled = SimpleNamespace(ids=(4, 2), logprobs=(-0.5, -0.25), mask=None, length=2)
    unknown = SimpleNamespace(ids=(4, 2), logprobs=(), mask=None, length=2)
    rollouts: Any = tuple(SimpleNamespace(sampled=one, lines=None) for one in (sampled, unknown))
    group: Any = SimpleNamespace(prompt=(1,), rollouts=rollouts)
    batch = make_batch([group], torch.tensor([[1.0, -1.0]]), torch.tensor([[True, True]]))
    assert batch.engine == [(-0.5, -0.25), ()]


def test_the_options() -> None:
    for wrong in ({"correction": "clip"}, {"correction_max": 1.0}):
        with pytest.raises(UsageError, match="correction"):
            read_options(Options, wrong, "the trainer 'local'")
