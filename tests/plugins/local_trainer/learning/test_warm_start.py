"""The warm start: what is shown, what the loss is over, and that it learns."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from attrs import evolve

from callwright.errors import InfrastructureFailure, UsageError
from callwright.pipeline import Pipeline
from callwright_plugins.local_trainer.learning.steps import adamw
from callwright_plugins.local_trainer.learning.warm_start import Example, demonstrations, examples, warm_start_step
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import Options, WarmStart
from callwright_plugins.local_trainer.randomness import python_generator
from callwright_plugins.local_trainer.run.training import make_policy as policy_of

Make = Callable[[str], Policy]
Pipelines = Callable[..., Pipeline]


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_the_loss_is_over_completion_tokens_only(micro_batches: int, make_policy: Make) -> None:
    """Against Hugging Face's own loss with prompt labels of -100, weighted by tokens."""
    policy = make_policy("llama")
    shown = [Example((9, 30, 41), (4, 5, 2)), Example((17, 3), (8, 2)), Example((33,) * 6, (60, 61, 62, 63, 2))]
    options = WarmStart(steps=10, batch=5, warm_up=0, micro_batches=micro_batches, clip_norm=1e9)
    model = copy.deepcopy(policy.model)
    row = warm_start_step(evolve(policy, model=model), adamw(model, 0.0, (0.9, 0.95)), shown, options, seed=3, step=0)

    rng = python_generator(3, "warm start", 0)
    drawn = [shown[rng.randrange(3)] for _ in range(5)]
    total: Any = 0
    for example in drawn:
        ids = torch.tensor([[*example.prompt, *example.completion]])
        labels = ids.clone()
        labels[0, : len(example.prompt)] = -100
        total = total + policy.model(input_ids=ids, labels=labels).loss * len(example.completion)
    expected = total / sum(len(example.completion) for example in drawn)
    expected.backward()
    norm = torch.cat([p.grad.flatten() for p in policy.model.parameters()]).norm()
    assert row["loss"] == pytest.approx(float(expected.detach()), rel=1e-5)
    assert row["gradient_norm"] == pytest.approx(float(norm), rel=1e-4)


def test_demonstrations_are_the_corpus_own(make_pipeline: Pipelines) -> None:
    pipeline = make_pipeline()
    clean = WarmStart(count=30, demonstrations={"simple": 0.0, "alias": 0.0, "unfiltered": 0.0})
    sloppy = WarmStart(count=30, demonstrations={"simple": 0.0, "alias": 1.0})
    wrong = [sum(p != t.program for t, p in demonstrations(pipeline, o, seed=1)) for o in (clean, sloppy)]
    assert wrong[0] < wrong[1]
    with pytest.raises(UsageError, match="annotator"):
        demonstrations(pipeline, WarmStart(demonstrations={"aliass": 0.5}), seed=1)


class _Plain:
    """A corpus without demonstrations."""

    def __init__(self, corpus: Any) -> None:
        self._corpus = corpus
        self.name, self.environment, self.splits = corpus.name, corpus.environment, corpus.splits

    def __getitem__(self, split: str) -> Any:
        return self._corpus[split]


def test_without_demonstrations_reference_programs_are_shown(make_pipeline: Pipelines, small_corpus: Any) -> None:
    pipeline = make_pipeline(corpus=_Plain(small_corpus))
    shown = demonstrations(pipeline, WarmStart(count=5), seed=1)
    assert [task.id for task, _ in shown] == [f"train-{number}" for number in range(5)]
    assert all(task.program is program for task, program in shown)
    with pytest.raises(UsageError, match="makes no demonstrations"):
        demonstrations(pipeline, WarmStart(demonstrations={"alias": 1.0}), seed=1)


def test_every_demonstration_comes_back_from_its_tokens(make_pipeline: Pipelines) -> None:
    pipeline = make_pipeline()
    policy = policy_of(pipeline, Options())
    options = WarmStart(count=200)
    shown = demonstrations(pipeline, options, seed=5)
    encoded = examples(pipeline, policy, options, seed=5)
    for (task, program), example in zip(shown, encoded, strict=True):
        assert pipeline.parser.parse(policy.text(example.completion)) == program
        assert policy.text(example.prompt[1:]) == pipeline.corpus.prompt_text(task)  # type: ignore[attr-defined]
        assert example.completion[-1] in policy.ends
    assert max(len(example.prompt) for example in encoded) < 100
    with pytest.raises(UsageError, match="max_tokens"):
        examples(pipeline, policy, WarmStart(count=2, max_tokens=10), seed=5)


def test_a_single_turn_is_shown_whatever_its_calls_come_to(make_pipeline: Pipelines, small_corpus: Any) -> None:
    """Nothing of the environment is learnt from, so that a server that is down leaves no demonstration out."""

    class Down:
        def __init__(self, inner: Any) -> None:
            self.name, self.tools, self.pure = inner.name, inner.tools, inner.pure

        def open(self, scenario: str = "", seed: int = 0) -> Any:
            raise InfrastructureFailure("the server is down")

    whole = make_pipeline(corpus=_Plain(small_corpus))
    down = evolve(whole, environment=Down(small_corpus.environment))
    policy = policy_of(make_pipeline(), Options())
    shown = examples(whole, policy, WarmStart(count=5), seed=5)
    assert len(shown) == 5
    assert examples(down, policy, WarmStart(count=5), seed=5) == shown


def test_a_tokenizer_that_loses_text_is_refused(make_pipeline: Pipelines) -> None:
    pipeline = make_pipeline()
    policy = policy_of(pipeline, Options())

    class Lossy:
        def __getattr__(self, name: str) -> Any:
            return getattr(policy.tokenizer, name)

        def decode(self, ids: Any, **options: Any) -> str:
            return str(policy.tokenizer.decode(ids, **options)).replace("{", "( ")

    with pytest.raises(UsageError, match="does not give back the demonstration"):
        examples(pipeline, evolve(policy, tokenizer=Lossy()), WarmStart(count=2), seed=5)


def test_it_learns(make_pipeline: Pipelines) -> None:
    pipeline = make_pipeline("model.tiny.width=32", "model.tiny.ffn=64")
    policy = policy_of(pipeline, Options())
    options = WarmStart(steps=60, count=60, batch=12, warm_up=5, learning_rate=1e-2)
    shown = examples(pipeline, policy, options, seed=5)
    optimiser = adamw(policy.model, 0.0, (0.9, 0.95))
    losses = [warm_start_step(policy, optimiser, shown, options, 5, step)["loss"] for step in range(60)]
    assert sum(losses[-5:]) < 0.35 * sum(losses[:5])
