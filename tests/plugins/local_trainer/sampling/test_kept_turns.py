"""Episodes whose keys and values are kept from turn to turn: the same rollouts, in the same bytes by every executor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from attrs import evolve

from callwright import UsageError
from callwright.episodes import Codec, TokenEpisode
from callwright.pipeline import Pipeline, build_pipeline
from callwright.plugins import Registry
from callwright.recipe_file import parse_recipe
from callwright.training.run_folder import Run
from callwright.walk.conditions import Progress
from callwright.walk.sampling import SamplingRequest
from callwright_plugins.local_trainer.forward.generation import continue_contexts
from callwright_plugins.local_trainer.forward.turn_cache import TurnCache
from callwright_plugins.local_trainer.models.policy import Policy, load_policy
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.sampling import episodes
from callwright_plugins.local_trainer.sampling.episodes import GIB, Engine, sample_groups, turn_limits
from callwright_plugins.local_trainer.sampling.local_model import LocalModelSampler, PolicySampler
from callwright_plugins.local_trainer.trainer import LocalTrainer

TURNS = """
[turns]
assistant_turns = 3
total_tokens = 160
observation_tokens = 60
"""
#: A warm start that is long enough for calls that execute, so that there are further turns.
LEARNING = (
    "model.tiny.width=32",
    "model.tiny.ffn=64",
    "trainer.warm_start={steps=70, count=30, batch=12, warm_up=5, learning_rate=0.01, demonstrations={simple=1.0}}",
    "trainer.max_new_tokens=24",
    "trainer.depths=[1]",
    "trainer.rollouts_per_step=12",
    "trainer.rollout_logprobs=true",
    "trainer.steps=1",
    "trainer.prompts=4",
)

Make = Callable[..., Pipeline]


@pytest.fixture(scope="module")
def make(registry: Registry, small_recipe: str, small_corpus: Any) -> Make:
    """A pipeline of the small recipe with several turns."""

    def made(*overrides: str) -> Pipeline:
        loaded = parse_recipe(small_recipe + TURNS, "small.toml", (*LEARNING, *overrides))
        return build_pipeline(loaded, registry, corpus=small_corpus)

    return made


def train(pipeline: Pipeline, folder: Path) -> Run:
    run = Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    LocalTrainer(**pipeline.recipe.recipe.trainer.options).train(pipeline, run)
    return run


@pytest.fixture(scope="module")
def trained(make: Make, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(make(), tmp_path_factory.mktemp("trained"))


@pytest.fixture
def policy(trained: Run, make: Make) -> Policy:
    corpus: Any = make().corpus
    return load_policy(trained.checkpoints / "final", device=torch.device("cpu"), compact=corpus.prompt_text)


@pytest.fixture
def caches(monkeypatch: pytest.MonkeyPatch) -> list[TurnCache]:
    """Every cache that is made."""
    made: list[TurnCache] = []

    def keep(gib: float) -> TurnCache | None:
        if not gib:
            return None
        made.append(TurnCache(gib * GIB))
        return made[-1]

    monkeypatch.setattr(episodes, "turn_cache", keep)
    monkeypatch.setattr("callwright_plugins.local_trainer.sampling.local_model.turn_cache", keep)
    return made


def test_rollouts_of_a_step_are_the_same(make: Make, policy: Policy, caches: list[TurnCache]) -> None:
    pipeline = make()

    def sampled(gib: float, rows: int) -> list[Any]:
        options = Options(group=6, max_new_tokens=24, turn_cache_gib=gib, sampling_rows=rows, temperature=0.8)
        limits = turn_limits(pipeline, policy, options)
        tasks = [task for task in pipeline.tasks("train") if task.depth is not None and task.depth <= 1]
        groups = sample_groups(
            pipeline, policy, tasks, options, limits, (3, "sampling"), Progress(0, 1), lambda part: None
        )
        return [one for group in groups for one in group.rollouts]

    for rows in (256, 7):
        plain, kept = sampled(0, rows), sampled(1.0, rows)
        assert sum(len(one.attempt.turns) > 1 for one in kept) > 7
        for one, other in zip(plain, kept, strict=True):
            assert one.episode.response_ids == other.episode.response_ids
            assert other.episode.logprobs == pytest.approx(one.episode.logprobs, abs=1e-5)
            assert one.reward.total == other.reward.total
    assert len(caches) == 2
    for cache in caches:
        assert cache.spared > cache.computed / 4


def test_an_evaluation_has_a_cache_of_its_own(make: Make, policy: Policy, caches: list[TurnCache]) -> None:
    pipeline = make()
    requests = [SamplingRequest(pipeline.messages(task), task) for task in pipeline.tasks("train")[:8]]

    def start(request: SamplingRequest, codec: Codec, copy: int) -> TokenEpisode:
        return pipeline.token_episode(request.task, codec, conditions=evolve(pipeline.conditions, seed=copy))

    found = [
        [
            one.response_ids
            for group in PolicySampler(policy, 24, turn_cache_gib=gib).converse(requests, start)
            for one in group
        ]
        for gib in (1.0, 0.0, 1.0)
    ]
    assert found[0] == found[1] == found[2]
    assert len(caches) == 2
    assert all(cache.spared > 0 for cache in caches)


@pytest.mark.parametrize("most", [2, 3])
def test_what_is_kept_goes_with_its_episode(most: int, make: Make, policy: Policy) -> None:
    """Of episodes that are over it is dropped as the next turn begins, and of a last turn nothing is kept."""
    pipeline = make(f"turns.assistant_turns={most}")
    tasks = [task for task in pipeline.tasks("train") if task.depth is not None and task.depth <= 1]
    limits = turn_limits(pipeline, policy, Options(max_new_tokens=24))
    live = [
        pipeline.token_episode(task, policy.codec(), conditions=evolve(pipeline.conditions, limits=limits, seed=copy))
        for task in tasks
        for copy in range(4)
    ]
    cache = TurnCache(GIB)
    engine = Engine(policy, 0.8, None, 5, 24, cache)
    counts = []
    for turn in range(2):
        begun = [one for one in live if not one.over]
        counts.append(len(begun))
        answers = [answer for at in range(0, len(begun), 5) for answer in engine(begun[at : at + 5])]
        assert set(cache.owners) == (set(begun) if turn + 1 < most else set())
        for one, answer in zip(begun, answers, strict=True):
            one.accept(answer)
    assert counts[0] > counts[1] > 5
    assert (cache.size > 0) == (most > 2)


def test_nothing_is_kept_of_single_turns(make: Make, policy: Policy, caches: list[TurnCache]) -> None:
    pipeline = make("turns.assistant_turns=1", "turns.user_turns=1")
    options = Options(group=3, max_new_tokens=24)
    limits = turn_limits(pipeline, policy, options)
    tasks = pipeline.tasks("train")[:2]
    sample_groups(pipeline, policy, tasks, options, limits, (3, "sampling"), Progress(0, 1), lambda part: None)
    (cache,) = caches
    assert (len(cache), cache.size, cache.spared) == (0, 0, 0)


@pytest.mark.parametrize("gib", [1.0, 1e-4])
def test_every_executor_writes_the_same_bytes(gib: float, make: Make, tmp_path: Path) -> None:
    """Also where there is room for some rows alone, whose log-probabilities have other last bits than the rest."""
    ways = ("trainer.executor=serial", "trainer.workers=1"), ("trainer.executor=thread", "trainer.workers=3")
    found = []
    for number, way in enumerate(ways):
        pipeline = make(f"trainer.turn_cache_gib={gib}", "trainer.sampling_rows=5", "trainer.steps=2", *way)
        run = train(pipeline, tmp_path / str(number))
        found.append([(run.path / name).read_bytes() for name in ("metrics.jsonl", "rollouts.jsonl")])
        found[-1].append((run.checkpoints / "final" / "model.safetensors").read_bytes())
    assert found[0] == found[1]


def test_the_cache_is_bounded_while_a_step_is_sampled(
    make: Make, policy: Policy, caches: list[TurnCache], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, seen = make(), []

    def watched(*given: Any, **named: Any) -> Any:
        found = continue_contexts(*given, **named)
        seen.append(named["kept"].size)
        return found

    monkeypatch.setattr(episodes, "continue_contexts", watched)
    options = Options(group=6, max_new_tokens=24, turn_cache_gib=1e-4, sampling_rows=5)
    limits = turn_limits(pipeline, policy, options)
    tasks = pipeline.tasks("train")[:6]
    sample_groups(pipeline, policy, tasks, options, limits, (3, "sampling"), Progress(0, 1), lambda part: None)
    assert 0 < max(seen) <= 1e-4 * GIB
    assert caches[0].spared > 0


@pytest.mark.parametrize("wrong", [-1, "much", True, float("nan")])
def test_what_is_wrong_is_said(wrong: Any, trained: Run) -> None:
    with pytest.raises(UsageError, match="'turn_cache_gib' must be a number, 0 or more"):
        LocalModelSampler(str(trained.path), turn_cache_gib=wrong)
