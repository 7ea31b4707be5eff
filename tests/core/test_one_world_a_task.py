"""A task fixes its world: whatever a recipe's seed, every session opens the scenario and the seed of the task.

And what is varied for speed changes nothing that is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.environments import Environment, Session
from callwright.episodes import (
    Conversation,
    EngineOutput,
    PlainCodec,
    TokenEpisode,
    converse,
    drive_batch,
)
from callwright.language import Program
from callwright.walk import Attempt, ExecutionRules, replay
from callwright.walk.limits import SINGLE_TURN, TurnLimits

SEEDS = (0, 1, 2)
WORLD = 5
PARSER = cw.parser("json")


class Watched:
    """An environment that remembers which worlds it opened."""

    def __init__(self, inner: Environment) -> None:
        self.inner = inner
        self.opened: list[tuple[str, int]] = []

    name = property(lambda self: self.inner.name)
    pure = property(lambda self: self.inner.pure)
    tools = property(lambda self: self.inner.tools)

    def open(self, scenario: str = "", seed: int = 0) -> Session:
        self.opened.append((scenario, seed))
        return self.inner.open(scenario, seed)


@pytest.fixture
def bank() -> Watched:
    return Watched(cw.environment("banking"))


@pytest.fixture
def task(bank: Watched) -> cw.Task:
    """A customer of world 5 is looked up, then by what was found looked at: no other world has this customer."""
    session = bank.inner.open("typical", WORLD)
    row = session.call("find_customer", {"query": "a"}).value["items"][0]
    program = Program(
        (
            cw.Call(0, "find_customer", {"query": row["name"]}),
            cw.Call(1, "find_customer", {"query": cw.Reference(0, ("items", 0, "name"))}),
        )
    )
    answer = session.call("find_customer", {"query": row["name"]}).value
    session.close()
    return cw.Task(
        "t", "Who is it?", bank.tools, cw.Answer((answer,)), bank, scenario="typical", seed=WORLD, program=program
    )


class One:
    """A corpus of one task."""

    name, splits = "one", {"train": 1, "evaluation": 1}

    def __init__(self, task: cw.Task) -> None:
        self.only, self.environment = task, task.environment

    def __getitem__(self, split: str) -> Sequence[cw.Task]:
        return [self.only]

    def task(self, task_id: str) -> cw.Task:
        return self.only


@pytest.fixture
def corpus(task: cw.Task) -> cw.Corpus:
    return One(task)


class Bytes:
    """The least that a codec needs of a tokenizer."""

    eos_token_id, bos_token_id, all_special_tokens = 0, None, ()

    def encode(self, text: str, **options: Any) -> list[int]:
        return list(text.encode())

    def decode(self, ids: list[int], **options: Any) -> str:
        return bytes(ids).decode()


CODEC = PlainCodec(Bytes(), lambda task: task.query)


def gold(task: cw.Task) -> str:
    assert task.program is not None
    return PARSER.render(task.program)


def by_score(pipeline: cw.Pipeline, task: cw.Task) -> Attempt:
    return pipeline.attempt(task, gold(task))


def by_turns(pipeline: cw.Pipeline, task: cw.Task) -> Attempt:
    return pipeline.attempt(task, [gold(task), PARSER.render(Program())])


def by_conversation(pipeline: cw.Pipeline, task: cw.Task) -> Attempt:
    conversation = pipeline.conversation(task, conditions=evolve(pipeline.conditions, limits=TurnLimits()))
    for text in (gold(task), PARSER.render(Program())):
        conversation.accept(cw.Completion(text))
    return conversation.attempt


def by_token_ids(pipeline: cw.Pipeline, task: cw.Task) -> Attempt:
    episode = pipeline.token_episode(task, CODEC)
    drive_batch([episode], lambda *_: [EngineOutput((*CODEC.tokenizer.encode(gold(task)), 0))])
    return episode.attempt


def by_sampler(pipeline: cw.Pipeline, task: cw.Task) -> Attempt:
    ((episode,),) = converse(
        pipeline, cw.sampler("gold"), [cw.SamplingRequest(pipeline.messages(task), task)], retries=1
    )
    return episode.attempt


WAYS = (by_score, by_turns, by_conversation, by_token_ids, by_sampler)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("way", WAYS)
def test_a_gold_program_earns_everything_under_every_seed(
    corpus: cw.Corpus, task: cw.Task, bank: Watched, way: Callable[[cw.Pipeline, cw.Task], Attempt], seed: int
) -> None:
    for name in ("tier", "tier-released", "prove-state", "state"):
        pipeline = cw.Pipeline(corpus, name, PARSER, conditions=cw.Conditions(seed=seed))
        attempt = way(pipeline, task)
        reward = pipeline.score(attempt)
        assert reward.masked is None
        assert reward.total == pytest.approx(pipeline.reward.high)
        assert replay(attempt).same
    assert attempt.conditions.seed == seed
    assert set(bank.opened) == {("typical", WORLD)}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("limits", [None, SINGLE_TURN, TurnLimits()])
def test_an_evaluation_opens_the_worlds_of_its_tasks(
    corpus: cw.Corpus, task: cw.Task, bank: Watched, seed: int, limits: TurnLimits | None
) -> None:
    pipeline = cw.Pipeline(corpus, "tier", PARSER, conditions=cw.Conditions(seed=seed))
    (verdict,) = cw.evaluate(pipeline, [task], cw.sampler("gold"), seed=seed, limits=limits)
    assert verdict.valid
    assert set(bank.opened) == {("typical", WORLD)}


def test_a_reward_that_is_asked_without_a_pipeline_opens_it_too(task: cw.Task, bank: Watched) -> None:
    assert cw.reward("tier").score(task, gold(task), ir=PARSER).total == 1.0
    conditions = cw.Conditions(seed=1, limits=TurnLimits())
    attempt = Attempt(task, gold(task), PARSER, conditions)
    assert attempt.execution(ExecutionRules(unresolved="literal")) == attempt.trace
    conversation = Conversation(task, PARSER, (), conditions)
    conversation.accept(cw.Completion(gold(task)))
    episode = TokenEpisode(task, PARSER, CODEC, (), conditions)
    episode.accept(EngineOutput((*CODEC.tokenizer.encode(gold(task)), 0)))
    for one in (conversation, episode):
        assert cw.reward("tier").score_attempt(one.attempt).total == 1.0
        one.begin_again()
        assert cw.reward("tier").score_attempt(one.attempt).total != 1.0
        one.close()
    assert set(bank.opened) == {("typical", WORLD)}


def test_in_another_world_the_same_program_is_wrong(task: cw.Task) -> None:
    """So that the tests above say something."""
    for seed in SEEDS:
        assert cw.reward("tier").score(evolve(task, seed=seed), gold(task), ir=PARSER).total != 1.0


def test_the_ground_truth_is_that_of_the_tasks_world(task: cw.Task, bank: Watched) -> None:
    """Prove's truth is the reference program's own arguments, resolved in the world of the task."""
    from callwright_plugins.prove_rewards.truth import TRUTHS

    found = {seed: TRUTHS.of(evolve(task, seed=seed)) for seed in (*SEEDS, WORLD)}
    assert set(bank.opened) == {("typical", seed) for seed in found}
    assert task.program is not None
    name = task.program.calls[0].arguments["query"]
    assert found[WORLD].calls[1].arguments == {"query": name}
    reward = cw.reward("prove").score_attempt(Attempt(task, gold(task), PARSER, cw.Conditions(seed=1)))
    assert reward.total == pytest.approx(1.3)
    assert reward.scores["argument"].score.value == 1.0


# What is varied for speed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [SINGLE_TURN, TurnLimits()])
def test_the_size_of_a_batch_changes_no_verdict(limits: TurnLimits) -> None:
    pipeline = cw.Pipeline("toolworld-mini-v1")
    tasks, sampler = pipeline.tasks("evaluation", 48), cw.sampler("noisy-gold", p=0.7)
    found = {
        batch: cw.evaluate(pipeline, tasks, sampler, seed=3, temperature=1.0, batch=batch, limits=limits)
        for batch in (1, 3, 16)
    }
    assert found[1] == found[3] == found[16]
    assert 0 < sum(verdict.answer for verdict in found[1]) < len(tasks)
    other = cw.evaluate(pipeline, tasks, sampler, seed=4, temperature=1.0, batch=16, limits=limits)
    assert other != found[16], "the seed draws the samples"
    assert [verdict.task for verdict in other] == [task.id for task in tasks]


def test_what_is_sampled_for_a_task_does_not_hang_on_those_beside_it() -> None:
    pipeline = cw.Pipeline("toolworld-mini-v1")
    tasks, sampler = pipeline.tasks("evaluation", 12), cw.sampler("noisy-gold", p=0.5)
    whole = cw.evaluate(pipeline, tasks, sampler, seed=3, temperature=1.0)
    backwards = cw.evaluate(pipeline, tasks[::-1], sampler, seed=3, temperature=1.0, batch=5)
    assert backwards[::-1] == whole
    assert cw.evaluate(pipeline, tasks[7:8], sampler, seed=3, temperature=1.0) == whole[7:8]
