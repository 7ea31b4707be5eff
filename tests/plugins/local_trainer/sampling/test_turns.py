"""Episodes of several turns in the trainer: what is sampled, what is trained on, what is logged, killed and resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from attrs import evolve

from callwright import InfrastructureFailure, Outcome, UsageError
from callwright.episodes import Codec, TokenEpisode, converse
from callwright.language.program import Program
from callwright.pipeline import Pipeline, build_pipeline
from callwright.plugins import Registry
from callwright.recipe_file import load_recipe, parse_recipe
from callwright.training.evaluation import evaluate
from callwright.training.run_folder import Run
from callwright.walk.conditions import Conditions, Progress
from callwright.walk.limits import SINGLE_TURN, TurnLimits
from callwright.walk.reward import RewardComponent
from callwright.walk.sampling import SamplingRequest
from callwright_plugins.local_trainer.forward.generation import Sampled, continue_contexts, generate
from callwright_plugins.local_trainer.learning.update import descend
from callwright_plugins.local_trainer.learning.warm_start import examples
from callwright_plugins.local_trainer.models.policy import Policy, load_policy
from callwright_plugins.local_trainer.options import Options, WarmStart
from callwright_plugins.local_trainer.run.training import make_policy
from callwright_plugins.local_trainer.sampling.episodes import Engine, demonstrate, longest, sample_groups, turn_limits
from callwright_plugins.local_trainer.sampling.local_model import LocalModelSampler, PolicySampler
from callwright_plugins.local_trainer.trainer import LocalTrainer

Make = Callable[[str], Policy]

#: A warm start that is long enough for calls that execute, so that there are observations.
TURNS = """
[turns]
assistant_turns = 3
total_tokens = 160
observation_tokens = 60
"""
LEARNING = (
    "model.tiny.width=32",
    "model.tiny.ffn=64",
    "trainer.warm_start={steps=70, count=30, batch=12, warm_up=5, learning_rate=0.01, demonstrations={simple=1.0}}",
    "trainer.max_new_tokens=24",
    "trainer.depths=[1]",
    "trainer.rollouts_per_step=6",
)


@pytest.fixture
def make_turns(registry: Registry, small_recipe: str, small_corpus: Any) -> Callable[..., Pipeline]:
    """A pipeline of the small recipe with ``[turns]``."""

    def make(*overrides: str, **more: Any) -> Pipeline:
        loaded = parse_recipe(small_recipe + TURNS, "small.toml", (*LEARNING, *overrides))
        return build_pipeline(loaded, registry, corpus=small_corpus, **more)

    return make


def train(pipeline: Pipeline, folder: Path) -> Run:
    run = Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    LocalTrainer(**pipeline.recipe.recipe.trainer.options).train(pipeline, run)
    return run


def files(folder: Path) -> dict[str, bytes]:
    kept = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in kept
        if path.name not in ("timings.jsonl", "training.pt", "digests.json")
    }


# Engine ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mistral"])
def test_contexts_of_different_lengths_are_continued_as_each_alone(kind: str, make_policy: Make) -> None:
    policy = make_policy(kind)
    contexts = [(9, 30, 41), (17, 3, 8, 8, 21, 5, 6, 6), (9, 30, 41), (60,) * 20]
    rooms = [5, 9, 2, 7]
    together = continue_contexts(policy, contexts, rooms, temperature=0)
    for context, room, found in zip(contexts, rooms, together, strict=True):
        ((alone,),) = generate(policy, [context], copies=1, max_new_tokens=room, temperature=0)
        assert (found.ids, found.truncated) == (alone.ids, alone.truncated)
        assert found.logprobs == pytest.approx(alone.logprobs, abs=1e-4)
        assert len(found.ids) <= room
    apart = continue_contexts(policy, contexts, rooms, temperature=0, rows_at_once=1)
    assert [one.ids for one in apart] == [one.ids for one in together]


def test_sampling_is_fixed_by_the_generator_and_ends_where_there_is_no_room(make_policy: Make) -> None:
    policy = make_policy("llama")
    contexts, rooms = [(9, 30, 41)] * 6, [12, 12, 12, 3, 0, 12]
    one, other = (
        continue_contexts(policy, contexts, rooms, temperature=1.0, generator=torch.Generator().manual_seed(4))
        for _ in range(2)
    )
    assert one == other
    assert len({found.ids for found in one}) > 3
    assert len(one[3].ids) <= 3
    assert (one[4].ids, one[4].truncated) == ((), True)


def test_the_engine_keeps_within_the_model(make_policy: Make) -> None:
    policy = make_policy("llama")  # of 128 positions
    engine = Engine(policy, 0.0, None, 8, 30)
    live: list[Any] = [
        SimpleNamespace(context=(5,) * length, room=room, history=(), conditions=Conditions())
        for length, room in ((120, None), (128, 4), (10, 6))
    ]
    found = engine(live)
    assert [len(one.token_ids) for one in found][1] == 0
    assert len(found[0].token_ids) <= 8
    assert len(found[2].token_ids) <= 6
    assert not found[1].finished


def test_limits_that_the_recipe_leaves_open(make_turns: Callable[..., Pipeline], make_policy: Make) -> None:
    policy = make_policy("llama")
    limits = turn_limits(make_turns(), policy, Options(max_new_tokens=24))
    assert limits == TurnLimits(3, 5, 24, 160, 60, 128)
    given = turn_limits(make_turns("turns.turn_tokens=9", "turns.context_tokens=90"), policy, Options())
    assert (given.turn_tokens, given.context_tokens) == (9, 90)
    assert longest(limits, Options()) == 160
    assert longest(TurnLimits(4, 1, 30), Options()) == 120
    assert longest(SINGLE_TURN, Options(max_new_tokens=7)) == 7


def test_a_recipe_without_turns_is_one_turn_of_the_longest_completion(
    make_pipeline: Callable[..., Pipeline], make_policy: Make
) -> None:
    limits = turn_limits(make_pipeline(), make_policy("llama"), Options(max_new_tokens=24))
    assert limits == TurnLimits(1, 1, 24, None, None, 128)
    assert limits.single
    assert longest(limits, Options(max_new_tokens=24)) == 24


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("turns", [1, 3])
def test_a_task_fixes_its_world(
    seed: int, turns: int, vault: Any, registry: Registry, make_policy: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the recipe's seed is, the trainer and its evaluation open sessions with the task's."""
    policy = evolve(make_policy("llama"), form="compact", compact=vault.prompt_text)
    limits = TurnLimits(turns, 1, 600, context_tokens=5000)
    pipeline = Pipeline(vault, conditions=Conditions(seed=seed, limits=limits), registry=registry)
    golds = [policy.completion_ids(pipeline.parser.render(task.program)) for task in vault["train"]]
    done = policy.completion_ids(pipeline.parser.render(Program()))
    first = {policy.codec().prompt_ids((), task): ids for task, ids in zip(vault["train"], golds, strict=True)}

    def scripted(policy: Policy, contexts: Any, rooms: Any, **_: Any) -> list[Sampled]:
        texts = [first.get(tuple(context), done) for context in contexts]
        return [Sampled(ids, (0.0,) * len(ids), False) for ids in texts]

    monkeypatch.setattr("callwright_plugins.local_trainer.sampling.episodes.continue_contexts", scripted)
    options = Options(group=2)
    groups = sample_groups(
        pipeline, policy, vault["train"], options, limits, (seed, "sampling"), Progress(0, 1), lambda part: None
    )
    assert [[one.reward.total for one in group.rollouts] for group in groups] == [[1.0] * 2] * 2
    assert [len(group.rollouts[0].attempt.turns) for group in groups] == [min(turns, 2)] * 2
    assert vault.opened == [5, 5, 9, 9]
    verdicts = evaluate(pipeline, vault["train"], PolicySampler(policy, 600), seed=seed)
    assert [verdict.answer for verdict in verdicts] == [True, True]
    assert vault.opened == [5, 5, 9, 9, 5, 9]


def test_a_session_of_a_reward_that_fails_is_tried_again(
    vault: Any, registry: Registry, make_policy: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The released rules execute an attempt again in a session of their own; the attempt itself is not lost with it."""

    class Second:
        """The environment, whose second session fails."""

        def __init__(self, inner: Any) -> None:
            self.inner, self.opened = inner, 0
            self.name, self.tools, self.pure = inner.name, inner.tools, inner.pure

        def open(self, scenario: str = "", seed: int = 0) -> Any:
            self.opened += 1
            if self.opened == 2:
                raise InfrastructureFailure("the server is down")
            return self.inner.open(scenario, seed)

    policy = evolve(make_policy("llama"), form="compact", compact=vault.prompt_text)
    gold = policy.completion_ids(registry.create("parser", "json").render(vault["train"][0].program))
    monkeypatch.setattr(
        "callwright_plugins.local_trainer.sampling.episodes.continue_contexts",
        lambda policy, contexts, rooms, **_: [Sampled(gold, (0.0,) * len(gold), False)] * len(contexts),
    )
    found = []
    for retries in (1, 0):
        pipeline = Pipeline(vault, "tier-released", environment=Second(vault.environment), registry=registry)
        tasks, options = pipeline.tasks("train", 1), Options(group=1, retries=retries)
        limits = TurnLimits(1, 1, 600, context_tokens=5000)
        ((group,),) = [sample_groups(pipeline, policy, tasks, options, limits, (0,), Progress(0, 1), lambda part: None)]
        (one,) = group.rollouts
        found.append((one.reward.total, one.verdict.answer, one.verdict.masked, one.episode.retried))
    assert found == [(1.0, True, False, 0), (None, False, True, 0)]


# Warm start -----------------------------------------------------------------------------------------------------------


def test_demonstrations_are_episodes_with_what_their_calls_came_to(make_turns: Callable[..., Pipeline]) -> None:
    pipeline = make_turns("turns.total_tokens=400")
    policy = make_policy(pipeline, Options())
    limits = turn_limits(pipeline, policy, Options(max_new_tokens=100))
    options, heard = WarmStart(count=12, demonstrations={"simple": 1.0}), 0
    for example in examples(pipeline, policy, options, 7, limits=limits):
        assert example.mask is not None
        assert len(example.mask) == len(example.completion)
        assert example.tokens == sum(example.mask) > 0
        read = [token for token, ours in zip(example.completion, example.mask, strict=True) if not ours]
        heard += bool(read)
        assert not read or '"name":' in policy.text(read)
        assert policy.text(example.completion).rstrip().endswith("{}\n</tool_call>")
    assert heard > 3


def test_a_demonstration_that_is_too_long_says_so(make_turns: Callable[..., Pipeline]) -> None:
    pipeline = make_turns()
    policy = make_policy(pipeline, Options())
    task = next(task for task in pipeline.tasks("train") if task.program is not None and task.depth == 6)
    rollout = pipeline.token_episode(task, policy.codec(), conditions=Conditions(limits=TurnLimits(3, 1, 20)))
    assert task.program is not None
    with pytest.raises(UsageError, match=r"has \d+ tokens where the limits of turns leave 20"):
        demonstrate(rollout, policy, task.program)


# Runs -----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, registry: Registry, small_recipe: str, small_corpus: Any) -> Run:
    loaded = parse_recipe(small_recipe + TURNS, "small.toml", LEARNING)
    return train(build_pipeline(loaded, registry, corpus=small_corpus), tmp_path_factory.mktemp("turns"))


def test_metrics_tell_of_turns_and_count_sampled_tokens_alone(trained: Run) -> None:
    rows = trained.rows("metrics.jsonl")
    assert len(rows) == 4
    assert sum(row["environment_tokens"] for row in rows) > 0
    for row in rows:
        assert 1 <= row["turns"] <= 3
        assert (row["turns"] > 1) == (row["environment_tokens"] > 0)
        assert sum(row["stops"].values()) == row["rollouts"] == 6
        assert row["length"] == pytest.approx(row["tokens"] / 6)
        assert row["tokens"] <= 6 * 3 * 24
        assert row["entropy"] > 0


def test_logged_rollouts_have_their_turns(trained: Run) -> None:
    rows = trained.rows("rollouts.jsonl")
    assert len(rows) == 4 * 6
    several = [row for row in rows if len(row["turns"]) > 1]
    assert several
    for row in rows:
        assert row["completion"] == row["turns"][-1]["completion"]
        assert sum(turn["calls"] for turn in row["turns"]) == len(row["observations"] or row["turns"][:0])
        assert row["turns"][-1]["observation"] == ""
    for row in several:
        assert '"name":' in row["turns"][0]["observation"]
        assert row["stop"] in ("answered", "unparsed", "assistant_turns", "tokens", "context")


def test_the_evaluation_is_of_episodes_too(trained: Run, small_corpus: Any, registry: Registry) -> None:
    sampler = LocalModelSampler(str(trained.path), max_new_tokens=24, corpus=small_corpus, registry=registry)
    loaded = load_recipe(trained.path / "recipe.toml")
    pipeline = build_pipeline(loaded, registry, corpus=small_corpus)
    found = evaluate(pipeline, small_corpus["evaluation"], sampler, batch=8)
    after = trained.read_json("evaluation.json")["after"]
    assert sum(verdict.answer for verdict in found) / len(found) == after["overall"]
    assert after["by_depth"]["1"]["n"] == 1


def test_the_sampler_converses_with_copies(trained: Run, make_turns: Callable[..., Pipeline]) -> None:
    pipeline = make_turns()
    policy = load_policy(trained.checkpoints / "final", device=torch.device("cpu"), compact=pipeline.corpus.prompt_text)
    requests = [SamplingRequest(pipeline.messages(task), task) for task in pipeline.tasks("train")[:3]]

    def start(request: SamplingRequest, codec: Codec, copy: int) -> TokenEpisode:
        return pipeline.token_episode(request.task, codec, conditions=evolve(pipeline.conditions, seed=copy))

    found = PolicySampler(policy, 24).converse(requests, start, n=2, seed=3)
    assert [len(group) for group in found] == [2, 2, 2]
    for group in found:
        for rollout in group:
            assert rollout.over
            sampled = [token for token, ours in zip(rollout.response_ids, rollout.mask, strict=True) if ours]
            assert len(sampled) <= 3 * 24
    with pytest.raises(UsageError, match="n must be at least 1"):
        PolicySampler(policy, 24).converse(requests, start, n=0)


def test_what_an_episode_draws_hangs_on_its_task_alone(trained: Run, make_turns: Callable[..., Pipeline]) -> None:
    pipeline = make_turns()
    policy = load_policy(trained.checkpoints / "final", device=torch.device("cpu"), compact=pipeline.corpus.prompt_text)
    requests = [SamplingRequest(pipeline.messages(task), task) for task in pipeline.tasks("train")[:10]]

    def drawn(some: list[SamplingRequest], rows: int = 256, n: int = 2, seed: int = 3) -> dict[str, list[Any]]:
        conditions = evolve(pipeline.conditions, seed=seed)
        sampler = PolicySampler(policy, 24, rows)
        groups = converse(pipeline, sampler, some, conditions=conditions, n=n, temperature=1.2)
        return {one.task.id: [found(episode) for episode in group] for one, group in zip(some, groups, strict=True)}

    def found(episode: Any) -> Any:
        return len(episode.attempt.turns), episode.response_ids

    together = drawn(requests)
    assert sum(one != other for one, other in together.values()) > 3
    assert any(turns > 1 for group in together.values() for turns, _ in group)
    assert drawn(requests[::-1]) == drawn(requests, rows=5) == together
    for request in requests:
        assert drawn([request])[request.task.id] == together[request.task.id]
        assert drawn([request], n=1)[request.task.id] == together[request.task.id][:1]
    assert drawn(requests, seed=4) != together


def test_a_seed_fixes_every_byte(trained: Run, tmp_path: Path, make_turns: Callable[..., Pipeline]) -> None:
    assert files(train(make_turns(), tmp_path).path) == files(trained.path)


@pytest.mark.parametrize("algorithm", ["bn-grpo", "ppo", "dapo"])
def test_a_run_that_was_stopped_ends_in_the_same_bytes(
    algorithm: str,
    tmp_path: Path,
    make_turns: Callable[..., Pipeline],
    variety: RewardComponent,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipeline = make_turns(f"algorithm={algorithm}", "trainer.checkpoint_every=1", extra_rewards=[variety])
    whole = train(pipeline, tmp_path / "whole")
    left = 2

    def dying(*arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return descend(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr("callwright_plugins.local_trainer.run.training.descend", dying)
        with pytest.raises(KeyboardInterrupt):
            train(pipeline, tmp_path / "stopped")
    assert files(train(pipeline, tmp_path / "stopped").path) == files(whole.path)


class _Failing:
    """The environment with machinery that fails, always or at every second session."""

    def __init__(self, inner: Any, always: bool) -> None:
        self.inner, self.always, self.opened = inner, always, 0
        self.name, self.tools, self.pure = inner.name, inner.tools, inner.pure

    def open(self, scenario: str = "", seed: int = 0) -> Any:
        self.opened += 1
        session = self.inner.open(scenario, seed)
        return _Down(session) if self.always or self.opened % 2 else session


class _Down:
    def __init__(self, inner: Any) -> None:
        self.digest, self.close = inner.digest, inner.close

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        return Outcome("infrastructure_error", code="server_down", message="the server is down")


def test_failures_of_the_machinery_are_tried_again_then_masked(
    trained: Run, tmp_path: Path, make_turns: Callable[..., Pipeline], small_corpus: Any
) -> None:
    down = _Failing(small_corpus.environment, always=True)
    shared = f'model={{path="{trained.checkpoints / "final"}"}}'
    run = train(make_turns(shared, "trainer.warm_start=0", "trainer.steps=2", environment=down), tmp_path / "down")
    rows = run.rows("metrics.jsonl")
    assert sum(row["masked"] for row in rows) > 0
    assert sum(row["retried"] for row in rows) > 0
    assert all(row["stops"].get("machinery", 0) == row["masked"] for row in rows)
    logged = [row for row in run.rows("rollouts.jsonl") if row["stop"] == "machinery"]
    assert all(row["total"] is None and row["advantage"] == 0 for row in logged)

    flaky = _Failing(small_corpus.environment, always=False)
    run = train(
        make_turns(shared, "trainer.warm_start=0", "trainer.steps=2", "trainer.retries=4", environment=flaky),
        tmp_path / "flaky",
    )
    assert sum(row["masked"] for row in run.rows("metrics.jsonl")) == 0
    assert sum(row["retried"] for row in run.rows("metrics.jsonl")) > 0


def test_a_prompt_that_leaves_no_room_is_named(tmp_path: Path, make_turns: Callable[..., Pipeline]) -> None:
    said = "have more than 11 tokens, .*, or raise 'context_tokens', which is 12$"
    with pytest.raises(UsageError, match=said):
        train(make_turns("turns.context_tokens=12", "trainer.warm_start=0"), tmp_path)
