"""Right in all worlds: programs that have results by heart are wrong in one of them, right ones are right in each."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner

import callwright as cw
from callwright.cli.root import root as root_command
from callwright.commands.app import App
from callwright.errors import UsageError
from callwright.plugins import load_plugins
from callwright.training.evaluation import judge
from callwright.walk.answers import wrong_instance
from callwright.walk.attempt import Attempt
from callwright.walk.execution import execute
from callwright.walk.tasks import Answer, Instance, Task
from callwright_plugins.depthbench.corpus import DepthBenchCorpus
from callwright_plugins.depthbench.instances import (
    FRESH_WORLDS,
    MOST,
    WORLDS_TRIED,
    answer_in,
    by_heart,
    fresh_tasks,
    is_right,
    reason_of,
    search,
)
from callwright_plugins.depthbench.proofs import equals
from callwright_plugins.depthbench.world import FIRST, WORLDS, roll, stream, within, world

CORPUS = DepthBenchCorpus(instances=True)
PLAIN = DepthBenchCorpus()
TASKS: list[Task] = [task for split in CORPUS.splits for task in CORPUS[split] if task.depth > 1]
JSON = cw.parser("json")


def test_by_default_there_is_one_world() -> None:
    assert all(task.instances == () for split in PLAIN.splits for task in PLAIN[split])
    for split in PLAIN.splits:
        for plain, with_others in zip(PLAIN[split], CORPUS[split], strict=True):
            assert evolve(with_others, instances=()) == plain


def test_of_495_last_calls_with_literals_none_is_right_in_all_worlds() -> None:
    one, every = 0, []
    for task in TASKS:
        last = next(by_heart(task), None)
        if last is None or not is_right(task, last.program, task.scenario, task.answer):
            continue
        one += 1
        assert judge(Attempt(PLAIN.task(task.id), JSON.render(last.program), JSON)).answer
        verdict = judge(Attempt(task, JSON.render(last.program), JSON))
        if verdict.answer:
            every.append(task)
        else:
            assert (verdict.failure, verdict.valid) == ("answer:other_world", False)
    assert one == 495
    assert every == []


def test_without_edits_four_are_left_each_for_a_reason() -> None:
    edited = [task for task in TASKS if any("{" in other.scenario for other in task.instances)]
    assert [task.id for task in edited] == ["validation-0615", "validation-0644", "validation-0654", "validation-0658"]
    assert {reason_of(task) for task in edited} == {"what it asks for is geography, which only an edit makes different"}
    for task in edited:
        assert all(other.scenario.startswith(f'{task.scenario}{{"cities":') for other in task.instances)


def test_reference_programs_and_their_reorderings_are_right_in_all_worlds() -> None:
    tier = cw.reward("tier")
    for number, task in enumerate(TASKS):
        assert task.program is not None
        others = list(equals(task.program)) if number % 9 == 0 else []
        for program in (task.program, *others[-2:]):
            attempt = Attempt(task, JSON.render(program), JSON)
            assert judge(attempt).valid
            assert wrong_instance(attempt) is None
        if number % 9 == 0:
            assert tier.score(task, JSON.render(task.program)).total == pytest.approx(1.0)


def test_rewards_ask_in_all_worlds_as_well() -> None:
    task = next(one for one in TASKS if one.instances)
    last = next(by_heart(task))
    tier = cw.reward("tier")
    text = JSON.render(last.program)
    inside = tier.score(PLAIN.task(task.id), text).total
    outside = tier.score(task, text)
    assert inside is not None
    assert inside > 0.9
    assert outside.total == pytest.approx(inside - 0.5)
    assert "other_world" in [one.code for one in outside.scores["answer"].score.evidence]


def test_instances_are_what_the_search_finds_and_few() -> None:
    for task in TASKS[::23]:
        scenarios, _ = search(PLAIN.task(task.id))
        assert [one.scenario for one in task.instances] == scenarios
        assert len(scenarios) <= MOST
        for one in task.instances:
            assert answer_in(task, one.scenario) == one.answer


def test_several_turns_are_judged_in_the_first_world() -> None:
    task = next(one for one in TASKS if one.instances and one.structure == "linear")
    assert task.program is not None
    turns = [JSON.render(evolve(task.program, calls=())), JSON.render(task.program)]
    assert (
        wrong_instance(Attempt(evolve(task, instances=(Instance("user-0001@3", Answer((1,))),)), turns, JSON)) is None
    )


def test_a_machine_that_fails_in_another_world_masks() -> None:
    class Failing(type(PLAIN.environment)):  # type: ignore[misc]
        def open(self, scenario: str = "", seed: int = 0) -> Any:
            if "@" in scenario:
                raise cw.InfrastructureFailure("the other world is down")
            return super().open(scenario, seed)

    task = next(one for one in TASKS if any("@" in other.scenario for other in one.instances))
    assert task.program is not None
    assert judge(Attempt(evolve(task, environment=Failing()), JSON.render(task.program), JSON)).masked


# Worlds ---------------------------------------------------------------------------------------------------------------


def test_a_world_is_an_object_of_its_number() -> None:
    assert world(0) is FIRST
    assert world(3) is world(3)
    drawn = roll("key", 10**6), stream("key").random()
    with within(world(3)):
        other = roll("key", 10**6), stream("key").random()
        with within(FIRST):
            assert (roll("key", 10**6), stream("key").random()) == drawn
        assert (roll("key", 10**6), stream("key").random()) == other
    assert other != drawn
    assert (roll("key", 10**6), stream("key").random()) == drawn


def test_sessions_of_several_worlds_do_not_mix_in_threads() -> None:
    environment = PLAIN.environment
    scenarios = ["user-0007", "user-0007@1", "user-0007@2"]

    def ask(scenario: str) -> list[Any]:
        session = environment.open(scenario)
        city = session.call("get_current_city", {}).value["city"]
        return [city, session.call("list_kitchens", {"city": city}).value, session.digest()]

    alone = {scenario: ask(scenario) for scenario in scenarios}
    assert len({json.dumps(value) for value in alone.values()}) == 3
    with ThreadPoolExecutor(6) as pool:
        for scenario, found in zip(scenarios * 40, pool.map(ask, scenarios * 40), strict=True):
            assert found == alone[scenario]


@pytest.mark.parametrize(
    "scenario", ["user-0001@0", "user-0001@", "user-0001@01", f"user-0001@{WORLDS}", "user-1024@1"]
)
def test_what_is_no_scenario_is_refused(scenario: str) -> None:
    with pytest.raises(UsageError, match="user-0000@1 to user-1023@99999"):
        PLAIN.environment.open(scenario)


# Fresh tasks ----------------------------------------------------------------------------------------------------------


def test_fresh_tasks_have_ids_and_answers_of_their_own() -> None:
    corpus = DepthBenchCorpus(fresh=2)
    assert corpus.splits["validation"] == PLAIN.splits["validation"]
    tasks = list(corpus["train"])
    assert len(tasks) == corpus.splits["train"] > 944 + 1400
    assert len({task.id for task in tasks}) == len(tasks)
    assert [task.id for task in tasks[:944]] == [task.id for task in PLAIN["train"]]
    worlds = set()
    for task in tasks[944::17]:
        source = PLAIN.task(task.id.partition("@")[0])
        assert task.answer != source.answer
        assert (task.query, task.program, dict(task.tools)) == (source.query, source.program, dict(source.tools))
        assert task.program is not None
        trace = execute(task.program, task.environment, task.tools, scenario=task.scenario)
        assert json.loads(json.dumps(trace.returned)) == list(task.answer.values)
        assert corpus.task(task.id) == task
        worlds.add(int(task.scenario.partition("@")[2]))
    assert worlds <= set(FRESH_WORLDS)
    assert not worlds & set(range(WORLDS_TRIED + 1))
    copy = pickle.loads(pickle.dumps(corpus))
    assert copy.task(tasks[-1].id) == tasks[-1]
    assert [one.id for one in fresh_tasks(PLAIN.task("train-0505"), 3)] == [f"train-0505@{n}" for n in (1, 2, 3)]
    assert fresh_tasks(PLAIN["train"][0], 3) == []  # nothing is to be called


@pytest.mark.parametrize("options", [{"fresh": -1}, {"fresh": True}, {"fresh": 65}, {"instances": 1}])
def test_other_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        DepthBenchCorpus(**options)


def test_the_command_judges_in_all_worlds() -> None:
    words = ["evaluate", "--corpus", "depthbench-v1", "--sampler", "gold", "--limit", "40", "--instances", "--json"]
    done = CliRunner().invoke(root_command, words, obj=App(registry=load_plugins()), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert cw.corpus("depthbench-v1", instances=True)["validation"][700].instances
    words = ["evaluate", "--recipe", "tier-mini", "--instances"]
    refused = CliRunner().invoke(root_command, words, obj=App(registry=load_plugins()))
    assert refused.exit_code == 2
