"""What is learnt from: the loss and gradient against transformers' own, and which tokens are masked."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from attrs import evolve

from callwright.pipeline import Pipeline, build_pipeline
from callwright.plugins import Registry
from callwright.recipe_file import parse_recipe
from callwright_plugins.local_trainer.learning.demonstrations import Bound, Example, encode, of_tasks
from callwright_plugins.local_trainer.learning.supervised import mean_loss, supervised_step
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import SupervisedOptions
from callwright_plugins.local_trainer.run.training import make_policy as policy_of
from callwright_plugins.local_trainer.sampling.episodes import turn_limits

Make = Callable[[str], Policy]

SINGLE = [Example((9, 30, 41), (4, 5, 2)), Example((17, 3), (8, 2)), Example((33,) * 6, (60, 61, 62, 63, 2))]
#: The policy writes, reads, and writes again; the last of them ends with what it wrote.
SEVERAL = [
    Example((9, 30, 41), (4, 5, 2, 70, 71, 72, 6, 7, 2), (1, 1, 1, 0, 0, 0, 1, 1, 1)),
    Example((17, 3), (8, 2), (1, 1)),
    Example((33,) * 6, (60, 2, 90, 61, 2, 91, 92, 62, 2), (1, 1, 0, 1, 1, 0, 0, 1, 1)),
]


def expected(policy: Policy, shown: Sequence[Example]) -> tuple[float, dict[str, torch.Tensor]]:
    """Transformers' loss over labels that are -100 for the prompt and the environment, and its gradient."""
    model = copy.deepcopy(policy.model)
    total: Any = 0
    for example in shown:
        ids = torch.tensor([[*example.prompt, *example.completion]])
        mask = example.mask or (1,) * len(example.completion)
        written = [token if ours else -100 for token, ours in zip(example.completion, mask, strict=True)]
        labels = torch.tensor([[-100] * len(example.prompt) + written])
        total = total + model(input_ids=ids, labels=labels).loss * example.tokens
    loss = total / sum(example.tokens for example in shown)
    loss.backward()
    return float(loss.detach()), {name: p.grad for name, p in model.named_parameters()}


def descended(policy: Policy, shown: Sequence[Example], micro_batches: int) -> tuple[Any, dict[str, torch.Tensor]]:
    """The figures of one step, and the gradient as what plain descent at a rate of 1 took off the weights."""
    model = copy.deepcopy(policy.model)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimiser = torch.optim.SGD(model.parameters(), lr=0.0)
    figures = supervised_step(evolve(policy, model=model), optimiser, shown, micro_batches, 1.0, 1e9)
    return figures, {name: before[name] - p.detach() for name, p in model.named_parameters()}


@pytest.mark.parametrize("kind", ["llama", "qwen2", "gpt2", "mistral"])
@pytest.mark.parametrize("shown", [SINGLE, SEVERAL], ids=["single", "several"])
@pytest.mark.parametrize("micro_batches", [1, 2, 3])
def test_loss_and_gradient_are_those_of_transformers(
    kind: str, shown: list[Example], micro_batches: int, make_policy: Make
) -> None:
    policy = make_policy(kind)
    loss, gradients = expected(policy, shown)
    figures, found = descended(policy, shown, micro_batches)
    assert figures["loss"] == pytest.approx(loss, rel=1e-5)
    assert figures["tokens"] == sum(example.tokens for example in shown)
    norm = torch.cat([gradient.flatten() for gradient in gradients.values()]).norm()
    assert figures["gradient_norm"] == pytest.approx(float(norm), rel=1e-4)
    for name, gradient in gradients.items():
        torch.testing.assert_close(found[name], gradient, atol=2e-6 * max(1.0, float(norm)), rtol=1e-4)
    assert mean_loss(policy, shown, 2) == pytest.approx(loss, rel=1e-5)


def test_what_the_environment_said_is_read_and_not_learnt(make_policy: Make) -> None:
    """The same without a mask is another loss; other environment tokens change the loss of what follows them."""
    policy = make_policy("llama")
    masked = mean_loss(policy, SEVERAL, 3)
    bare = mean_loss(policy, [evolve(example, mask=None) for example in SEVERAL], 3)
    heard = [evolve(SEVERAL[0], completion=(4, 5, 2, 80, 81, 82, 6, 7, 2)), *SEVERAL[1:]]
    assert len({round(value or 0.0, 4) for value in (masked, bare, mean_loss(policy, heard, 3))}) == 3
    assert mean_loss(policy, [], 3) is None


TURNS = """
[turns]
assistant_turns = 3
observation_tokens = 80
"""


@pytest.mark.parametrize("turns", ["", TURNS], ids=["single", "several"])
def test_programs_are_shown_with_loss_on_what_the_policy_writes_alone(
    turns: str, registry: Registry, small_recipe: str, small_corpus: Any
) -> None:
    """The policy's tokens are the rendered program with its end and, in several turns, the answer without calls."""
    pipeline = build_pipeline(parse_recipe(small_recipe + turns, "small.toml"), registry, corpus=small_corpus)
    policy = policy_of(pipeline, SupervisedOptions(device="cpu"))
    limits = turn_limits(pipeline, policy, SupervisedOptions(max_new_tokens=200))
    shown = of_tasks(pipeline, pipeline.tasks("train"))
    encoded = encode(pipeline, policy, shown, Bound(900, "'max_tokens'"), limits)
    assert len(encoded.examples) == len(shown) == 20
    heard = 0
    for (task, program), example in zip(shown, encoded.examples, strict=True):
        assert program is task.program
        assert task.program is not None
        texts = [pipeline.parser.render(task.program)]
        if turns and task.program.calls:
            texts.append(pipeline.parser.render(type(task.program)()))
        expected_ids = [token for text in texts for token in policy.completion_ids(text)]
        mask = example.mask or (1,) * len(example.completion)
        ours = [token for token, written in zip(example.completion, mask, strict=True) if written]
        assert ours == expected_ids
        heard += len(mask) - sum(mask)
        assert policy.text(example.prompt[1:]) == small_corpus.prompt_text(task)
    assert (heard > 0) == bool(turns)


def test_longer_ones_are_refused_or_left_out_and_counted(make_pipeline: Callable[..., Pipeline]) -> None:
    pipeline = make_pipeline()
    policy = policy_of(pipeline, SupervisedOptions(device="cpu"))
    shown = of_tasks(pipeline, pipeline.tasks("train"))
    whole = encode(pipeline, policy, shown, Bound(900, "'max_tokens'")).examples
    middle = sorted(example.length for example in whole)[10]
    kept = encode(pipeline, policy, shown, Bound(middle, "'max_tokens'", leave_out=True))
    assert list(kept.examples) == [example for example in whole if example.length <= middle]
    assert kept.too_long == len(whole) - len(kept.examples) > 0
    with pytest.raises(Exception, match=rf"tokens, more than the {middle} of 'max_tokens'"):
        encode(pipeline, policy, shown, Bound(middle, "'max_tokens'"))
