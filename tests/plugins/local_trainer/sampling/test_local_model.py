"""The sampler ``local-model``: of runs, of directories of other people, and with chat templates."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.episodes import converse
from callwright.errors import DataError, UsageError
from callwright.pipeline import Pipeline, create_trainer
from callwright.training.evaluation import evaluate, summarise
from callwright.training.run_folder import Run
from callwright.walk.sampling import Sampler, SamplingRequest
from callwright_plugins.local_trainer.forward.generation import continue_contexts
from callwright_plugins.local_trainer.models.policy import NOTE, Policy, load_policy, pick_device

Make = Callable[[str], Policy]
Pipelines = Callable[..., Pipeline]


@pytest.fixture
def trained(tmp_path: Path, make_pipeline: Pipelines) -> tuple[Pipeline, Run]:
    pipeline = make_pipeline("trainer.steps=1")
    run = Run.create(tmp_path / "run", recipe_text=pipeline.recipe.effective_text(), manifest={})
    create_trainer(pipeline.recipe, pipeline.registry).train(pipeline, run)
    return pipeline, run


def requests(pipeline: Pipeline, count: int = 5) -> list[SamplingRequest]:
    return [SamplingRequest(pipeline.messages(task), task) for task in pipeline.tasks("train", count)]


def test_a_run_folder_is_evaluated_as_the_trainer_did(trained: tuple[Pipeline, Run]) -> None:
    pipeline, run = trained
    sampler = pipeline.registry.create("sampler", "local-model", model=str(run.path), max_new_tokens=12)
    assert isinstance(sampler, Sampler)
    verdicts = evaluate(pipeline, pipeline.tasks("evaluation"), sampler)
    assert summarise(verdicts) == run.read_json("evaluation.json")["after"]


def test_damaged_weights_are_told_of(trained: tuple[Pipeline, Run], tmp_path: Path) -> None:
    pipeline, run = trained
    copy = tmp_path / "copy"
    shutil.copytree(run.path, copy)
    weights = copy / "checkpoints" / "final" / "model.safetensors"
    os.truncate(weights, 100)
    with pytest.raises(DataError, match=r"final are damaged: .*callwright doctor"):
        pipeline.registry.create("sampler", "local-model", model=str(copy)).sample(requests(pipeline, 1))


def test_a_seed_fixes_the_completions(trained: tuple[Pipeline, Run]) -> None:
    pipeline, run = trained
    make = lambda: pipeline.registry.create("sampler", "local-model", model=str(run.path), max_new_tokens=8, rows=4)  # noqa: E731
    first, second = make(), make()
    asked = requests(pipeline)
    drawn = first.sample(asked, n=3, seed=1)
    assert [len(group) for group in drawn] == [3] * 5
    assert drawn == first.sample(asked, n=3, seed=1) == second.sample(asked, n=3, seed=1)
    assert drawn != first.sample(asked, n=3, seed=2)
    for group in drawn:
        for completion in group:
            assert len(completion.token_ids) == len(completion.logprobs) <= 8
            assert all(logprob <= 0 for logprob in completion.logprobs)
    greedy = first.sample(asked, n=2, temperature=0)
    assert all(one == two for one, two in greedy)
    assert first.sample([]) == []


def test_what_is_drawn_hangs_on_the_task_alone(trained: tuple[Pipeline, Run]) -> None:
    """At temperature 1 a completion is the same alone and in any batch, by ``sample`` and as an episode of one turn."""
    pipeline, run = trained
    made = [
        pipeline.registry.create("sampler", "local-model", model=str(run.path), max_new_tokens=12, rows=rows)
        for rows in (256, 4)
    ]
    asked = requests(pipeline, 7)

    def ids(groups: Any) -> list[list[Any]]:
        return [[completion.token_ids for completion in group] for group in groups]

    together = ids(made[0].sample(asked, n=3, seed=1))
    assert len({found for group in together for found in group}) == 21
    assert ids(made[1].sample(asked, n=3, seed=1)) == together
    assert ids(made[0].sample(asked[::-1], n=3, seed=1)) == together[::-1]
    for request, group in zip(asked, together, strict=True):
        assert ids(made[0].sample([request], n=3, seed=1)) == [group]
        assert ids(made[0].sample([request], n=1, seed=1)) == [group[:1]]
    conditions = evolve(pipeline.conditions, seed=1)
    for sampler, some, expected in (
        (made[0], asked, together),
        (made[1], asked[::-1], together[::-1]),
        (made[0], asked[3:4], together[3:4]),
    ):
        episodes = converse(pipeline, sampler, some, conditions=conditions, n=3)
        assert ids([one.attempt.completion for one in group] for group in episodes) == expected


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_rows_with_seeds_of_their_own_are_continued_as_each_alone(kind: str, make_policy: Make) -> None:
    """Also where rooms differ, so that a row is asked for more draws than it needs."""
    policy = make_policy(kind)
    contexts, rooms, seeds = [(9, 30, 41), (17, 3, 8, 8, 21), (9, 30, 41), (60,) * 9], [5, 40, 17, 3], [4, 4, 5, 6]
    together = continue_contexts(policy, contexts, rooms, temperature=1.0, seeds=seeds)
    assert together[0].ids != together[2].ids[:5]
    for at, found in enumerate(together):
        (alone,) = continue_contexts(policy, contexts[at : at + 1], [rooms[at]], temperature=1.0, seeds=[seeds[at]])
        assert (found.ids, found.truncated) == (alone.ids, alone.truncated)
    apart = continue_contexts(policy, contexts, rooms, temperature=1.0, seeds=seeds, rows_at_once=1)
    assert [one.ids for one in apart] == [one.ids for one in together]


def test_a_chat_template_is_used(tmp_path: Path, make_policy: Make, make_pipeline: Pipelines) -> None:
    pipeline, policy = make_pipeline(), make_policy("qwen2")
    policy.tokenizer.chat_template = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
        "{% if add_generation_prompt %}<go{{ mood }}>{% endif %}"
    )
    policy.save(tmp_path)
    loaded = load_policy(tmp_path, device=pick_device("cpu"), template_options={"mood": "!"})
    task = pipeline.tasks("train", 1)[0]
    messages = pipeline.messages(task)
    text = loaded.text(loaded.prompt_ids(task, messages))
    assert text == f"<system>{messages[0].text}<user>{messages[1].text}<go!>"
    assert all(name in text for name in task.tools)


def test_without_a_template_the_messages_are_plain_text(
    tmp_path: Path, make_policy: Make, make_pipeline: Pipelines
) -> None:
    pipeline = make_pipeline()
    make_policy("gpt2").save(tmp_path)
    loaded = load_policy(tmp_path, device=pick_device("cpu"))
    task = pipeline.tasks("train", 1)[0]
    text = loaded.text(loaded.prompt_ids(task, pipeline.messages(task)))
    assert text.startswith(pipeline.parser.instructions().strip()[:40])
    assert text.endswith(f"{task.query}\n\n")


def test_a_sampled_end_token_is_not_text_but_others_stay_visible(make_policy: Make) -> None:
    policy = make_policy("llama")
    end, pad = policy.tokenizer.eos_token_id, policy.tokenizer.pad_token_id
    ids = policy.completion_ids("Paris in")
    assert ids[-1] == end
    assert policy.text(ids) == "Paris in"
    assert policy.text((ids[0], pad, *ids[1:])) == "Paris<|pad|> in"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"model": "/nowhere"}, DataError, "no config.json"),
        ({"model": "x", "rows": 0}, UsageError, "'rows'"),
        ({"model": "x", "max_new_tokens": "nine"}, UsageError, "'max_new_tokens'"),
        ({"model": "x", "devise": "cpu"}, UsageError, "Did you mean 'device'"),
    ],
)
def test_what_is_wrong_is_said(
    options: dict[str, Any], error: type[Exception], message: str, make_pipeline: Pipelines
) -> None:
    pipeline = make_pipeline()
    with pytest.raises(error, match=message):
        pipeline.registry.create("sampler", "local-model", **options).sample(requests(pipeline, 1))


def test_the_compact_prompt_needs_its_corpus(trained: tuple[Pipeline, Run], make_pipeline: Pipelines) -> None:
    pipeline, run = trained
    from callwright_plugins.local_trainer.sampling.local_model import LocalModelSampler

    alone = LocalModelSampler(str(run.path), max_new_tokens=4)
    with pytest.raises(UsageError, match="compact prompt"):
        alone.sample(requests(pipeline, 1))
    given = LocalModelSampler(str(run.path), max_new_tokens=4, corpus=pipeline.corpus)
    assert len(given.sample(requests(pipeline, 1))) == 1


def test_cuda_is_refused_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert pick_device("auto").type == "cpu"
    with pytest.raises(UsageError, match="no CUDA device"):
        pick_device("cuda")


def test_the_corpus_of_a_run_is_made_as_its_recipe_says(tmp_path: Path) -> None:
    """A policy with the short prompt of a corpus needs that corpus, which may need a file."""
    final = tmp_path / "run" / "checkpoints" / "final"
    final.mkdir(parents=True)
    (final / "config.json").write_text("{}")
    (final / NOTE).write_text('{"form": "compact", "corpus": "toolworld-mini-v1"}')
    (tmp_path / "run" / "recipe.toml").write_text(
        'name = "one"\ncorpus = {name = "toolworld-mini-v1", train_size = 7}\nmodel = "m"\n'
    )
    for model in (tmp_path / "run", final):
        sampler = cw.sampler("local-model", model=str(model))
        assert sampler._stated("toolworld-mini-v1") == {"train_size": 7}  # type: ignore[attr-defined]
        assert sampler._stated("village-v1") == {}  # type: ignore[attr-defined]
        assert sampler._compact() is not None  # type: ignore[attr-defined]


def test_answers_that_fill_the_context_are_not_said_to_need_more_tokens(trained: tuple[Pipeline, Run]) -> None:
    pipeline, run = trained
    for most, cut in ((1_000_000, "context"), (3, "tokens")):
        sampler = pipeline.registry.create("sampler", "local-model", model=str(run.path), max_new_tokens=most)
        verdicts = evaluate(pipeline, pipeline.tasks("evaluation")[:1], sampler)
        assert {verdict.cut for verdict in verdicts} == {cut}
        assert all(verdict.cut_at for verdict in verdicts)
