"""The walk, put together from a recipe: components by name, errors with a line, events on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.environments import FunctionEnvironment
from callwright.errors import MissingExtra, RecipeError, UnknownName
from callwright.pipeline import build_pipeline, create_trainer
from callwright.recipe_file import LoadedRecipe, parse_recipe
from callwright.walk import Progress, answers_match

TEXT = """\
time_limit = 5.0
[corpus]
name = "small"
size = 3
[ir]
name = "list"
[reward]
name = "right"
[algorithm]
name = "none"
[trainer]
name = "none"
"""
ALGORITHM: Any = SimpleNamespace(name="none")


class Right(cw.RewardComponent):
    name = "right"

    def score(self, attempt: cw.Attempt) -> cw.Score:
        assert attempt.trace is not None
        right = answers_match(attempt.task.answer, attempt.trace.returned)
        return cw.Score(float(right), evidence=() if right else (cw.Evidence("wrong", "wrong"),))


class SmallCorpus:
    """Three tasks; the n-th expects n."""

    name = "small"

    def __init__(self, make_task: Callable[..., cw.Task], size: int = 2) -> None:
        if size > 100:
            raise ValueError("size is at most 100")
        self.tasks = [make_task(number, id=str(number)) for number in range(size)]
        self.environment = make_task(0).environment
        self.splits = {"train": size, "evaluation": 1}

    def __getitem__(self, split: str) -> Sequence[cw.Task]:
        if split not in self.splits:
            raise UnknownName("split", split, self.splits)
        return self.tasks[: self.splits[split]]


@pytest.fixture
def registry(make_task: Callable[..., cw.Task], list_parser: Any) -> cw.Registry:
    def corpus(size: int = 2, broken: str = "") -> SmallCorpus:
        if broken:
            raise MissingExtra("'small'", "mcp", "mcp")
        return SmallCorpus(make_task, size)

    def lazies(*found: cw.Lazy) -> Any:
        return cw.hookimpl(lambda: found)

    made = cw.Registry()
    made.add(
        SimpleNamespace(
            callwright_corpora=lazies(cw.Lazy("small", corpus)),
            callwright_parsers=lazies(cw.Lazy("list", lambda: list_parser)),
            callwright_reward_recipes=lazies(cw.Lazy("right", lambda: cw.RewardRecipe("right", (cw.Term(Right()),)))),
            callwright_algorithms=lazies(cw.Lazy("none", lambda: ALGORITHM)),
            callwright_trainers=lazies(cw.Lazy("none", lambda steps=1: SimpleNamespace(steps=steps))),
        ),
        name="small",
    )
    return made


def load(*overrides: str, text: str = TEXT) -> LoadedRecipe:
    return parse_recipe(text, "r.toml", overrides)


def test_a_pipeline_scores_completions(registry: cw.Registry) -> None:
    pipeline = build_pipeline(load(), registry)
    assert (pipeline.corpus.splits["train"], pipeline.algorithm) == (3, ALGORITHM)
    tasks = pipeline.tasks("train")
    assert [task.id for task in tasks] == ["0", "1", "2"]
    assert [task.id for task in pipeline.tasks("train", 2)] == ["0", "1"]
    for limit in (-1, 0, True, 2.0):  # a slice takes the first of these, and leaves the last task out
        with pytest.raises(cw.UsageError, match=r"limit is .* a whole number from 1 on"):
            pipeline.tasks("train", limit)  # type: ignore[arg-type]
    assert pipeline.messages(tasks[2])[1].content == tasks[2].query
    rewards = [pipeline.score(pipeline.attempt(task, '[["double", {"number": 1}]]')) for task in tasks]
    assert [reward.total for reward in rewards] == [0.0, 0.0, 1.0]
    assert build_pipeline(load(), registry, with_algorithm=False).algorithm is None
    assert create_trainer(load("trainer.steps=9"), registry) == SimpleNamespace(steps=9)


def test_corpus_environment_and_rewards_can_be_given(
    registry: cw.Registry, make_task: Callable[..., cw.Task], small_environment: cw.Environment
) -> None:
    class Brevity(cw.RewardComponent):
        name = "brevity"

        def score(self, attempt: cw.Attempt) -> cw.Score:
            return cw.Score(0.5, evidence=(cw.Evidence("long", "long"),))

    other = FunctionEnvironment("other", [])
    corpus = SmallCorpus(make_task, 1)
    pipeline = build_pipeline(load(), registry, corpus=corpus, environment=other, extra_rewards=[Brevity()])  # type: ignore[arg-type]
    (task,) = pipeline.tasks("evaluation")
    assert task.environment is other
    assert corpus.tasks[0].environment is small_environment
    reward = pipeline.score(pipeline.attempt(task, "[]"))
    assert list(reward.scores) == ["right", "brevity"]
    assert reward.total == 0.25


@pytest.mark.parametrize(
    ("overrides", "text", "message"),
    [
        (
            (),
            ('name = "right"', 'name = "rihgt"'),
            "r.toml:8: There is no reward recipe named 'rihgt'. Did you mean 'right'?",
        ),
        (
            (),
            ("size = 3", "sice = 3"),
            "r.toml:4: There is no option of the corpus 'small' named 'sice'. Did you mean 'size'?",
        ),
        ((), ("size = 3", "size = 300"), "r.toml:3: corpus 'small': size is at most 100"),
        ((), ("size = 3", 'size = "x"'), "r.toml:3: corpus 'small' with size: "),
        (
            (),
            ("size = 3", 'train = "trian"'),
            "r.toml:4: corpus 'small' has no split 'trian'. Known: train, evaluation",
        ),
        (("ir=lisp",), ("", ""), "--set ir=lisp: There is no parser named 'lisp'. Did you mean 'list'?"),
        (("algorithm.name=x",), ("", ""), "--set algorithm.name=x: There is no algorithm named 'x'."),
        (("corpus.evaluation=test",), ("", ""), "--set corpus.evaluation=test: corpus 'small' has no split 'test'."),
    ],
)
def test_what_does_not_exist_is_blamed_on_its_line(
    registry: cw.Registry, overrides: tuple[str, ...], text: tuple[str, str], message: str
) -> None:
    with pytest.raises(RecipeError) as caught:
        build_pipeline(load(*overrides, text=TEXT.replace(*text) if text[0] else TEXT), registry)
    assert str(caught.value).startswith(message)


def test_a_missing_extra_is_not_an_error_of_the_recipe(registry: cw.Registry) -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'callwright\[mcp\]'"):
        build_pipeline(load("corpus.broken=yes"), registry)


def test_listeners_hear_of_calls_and_rewards(registry: cw.Registry) -> None:
    heard: list[Any] = []

    @cw.hookimpl
    def callwright_attempt_scored(attempt: cw.Attempt, reward: cw.Reward) -> None:
        heard.append((attempt.task.id, reward.total))

    @cw.hookimpl(wrapper=True)
    def callwright_tool_call(call: cw.Call) -> Any:
        heard.append(call.tool)
        outcome = yield
        return cw.Outcome("ok", outcome.value + 1)

    pipeline = build_pipeline(load(), registry)
    task = pipeline.tasks("train")[2]
    text = '[["double", {"number": 1}]]'
    assert pipeline.score(pipeline.attempt(task, text)).total == 1.0
    assert heard == []
    registry.add(
        SimpleNamespace(callwright_attempt_scored=callwright_attempt_scored, callwright_tool_call=callwright_tool_call),
        name="listening",
    )
    assert pipeline.score(pipeline.attempt(task, text)).total == 0.0
    assert heard == ["double", ("2", 0.0)]


def test_seed_time_limit_and_progress_reach_the_attempt(
    registry: cw.Registry, make_task: Callable[..., cw.Task]
) -> None:
    opened: list[int] = []
    environment = FunctionEnvironment("e", [], state=lambda scenario, seed: opened.append(seed))
    pipeline = build_pipeline(load("seed=11"), registry, environment=environment)
    task = evolve(pipeline.tasks("train")[0], seed=4)
    attempt = pipeline.attempt(task, '[["double", {}]]', Progress(1, 2))
    assert attempt.trace is not None
    assert opened == [4]  # a task fixes its world; the recipe's seed draws samples
    assert attempt.conditions == cw.Conditions(seed=11, time_limit=5.0, progress=Progress(1, 2), isolation="auto")
    assert attempt.progress == Progress(1, 2)
