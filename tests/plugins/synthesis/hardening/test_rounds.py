"""Hardening by a scripted solver: what it makes passes every gate, is solved no more often, and stays in its split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import evolve
from tests.plugins.synthesis.dialogue.talks import played

import callwright as cw
from callwright.environments.protocol import Environment
from callwright.errors import UsageError
from callwright.measuring.difficulty import Difficulty
from callwright.plugins import default_registry
from callwright.training.synthesis.synthesizer import Materials
from callwright.training.verdicts import judge
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint
from callwright_plugins.synthesis.blueprints.knowledge import Knowledge, known
from callwright_plugins.synthesis.dialogue.conversation import converse
from callwright_plugins.synthesis.gates import gate
from callwright_plugins.synthesis.gates.comparing import Compared, compared
from callwright_plugins.synthesis.grounded import Grounded
from callwright_plugins.synthesis.hardening.changes import CHANGES, Changing
from callwright_plugins.synthesis.hardening.rounds import HARDENED, Hardening

Solves = Callable[[cw.Task], float]


@pytest.fixture(scope="module")
def tasks(kept_knowledge: Path, tmp_path_factory: pytest.TempPathFactory) -> list[cw.Task]:
    materials = Materials(cw.environment("email"), seed=4, count=16)
    synthesizer = Grounded(cache=str(kept_knowledge), calls=1500, several_servers=0.0)
    found = [synthesizer.make(unit, materials) for unit in synthesizer.plan(materials)]
    rows = [one.row for one in found if hasattr(one, "row")]
    path = tmp_path_factory.mktemp("hardening") / "tasks.jsonl"
    from callwright.walk.task_rows.writing import write_rows

    write_rows(path, rows, limits=synthesizer.limits)
    return list(cw.read_tasks(path))


@pytest.fixture(scope="module")
def knowledge(kept_knowledge: Path) -> Callable[[Environment], Knowledge]:
    return lambda one: known(one, registry=default_registry(), calls=1500, cache=kept_knowledge)


def solver(solves: Solves, asked: list[list[str]] | None = None) -> Any:
    """Attempts each task eight times, of which the share ``solves`` is right."""

    def measure(number: int, some: Sequence[cw.Task]) -> Mapping[str, Difficulty]:
        if asked is not None:
            asked.append([task.id for task in some])
        return {task.id: Difficulty(8, round(8 * solves(task))) for task in some}

    return measure


def hardened(tasks: Sequence[cw.Task], knowledge: Any, solves: Solves, rounds: int = 1, **more: Any) -> Any:
    asked: list[list[str]] = []
    measure = solver(solves, asked)
    work = Hardening(default_registry(), knowledge, **more)
    return work.run(tasks, measure(0, tasks), rounds, measure), asked


def fewer_for_more(task: cw.Task) -> float:
    """A solver that fails the more often the more it has to do, to ask for, and to tell apart."""
    stages = task.facts["stages"]
    effort = task.depth + 2 * sum(len(one["withheld"]) for one in stages) + len(task.tools) / 4
    return max(0.0, 1.0 - 0.02 * effort)


def test_what_is_made_harder_passes_every_gate_in_an_episode_and_is_solved_no_more_often(
    tasks: list[cw.Task], knowledge: Any
) -> None:
    found, _ = hardened(tasks, knowledge, fewer_for_more, rounds=2, too_easy=0.5)
    assert len(found.tasks) >= 0.7 * len(tasks)
    known_changes = set()
    by_id = {task.id: task for task in tasks}
    for origin, task in found.tasks.items():
        before = by_id[origin]
        assert task.id == f"{origin}+{task.facts[HARDENED]}"
        assert (task.facts["hardened_of"], task.split, task.seed) == (origin, before.split, before.seed)
        assert gate(task).rejected is None
        assert judge(played(task, "hermes").attempt).answer
        assert found.measured[task.id].solved <= found.measured[origin].solved
        known_changes.update(task.facts[HARDENED].split("+"))
    assert known_changes <= set(CHANGES)
    assert len(known_changes) >= 3


def test_what_the_solver_finds_easier_is_dropped_and_the_task_stays(tasks: list[cw.Task], knowledge: Any) -> None:
    found, asked = hardened(tasks, knowledge, lambda task: 1.0 if HARDENED in task.facts else 0.75, too_easy=0.7)
    assert found.tasks == {}
    reasons = Counter((one.rejected.stage, one.rejected.reason) for one in found.refused)
    assert reasons["difficulty", "became easier"] == len(asked[1]) > 0
    easier = [one.rejected for one in found.refused if one.rejected.stage == "difficulty"]
    assert dict(easier[0].evidence) == {"before": 0.75, "after": 1.0, "attempts": 8}


def test_only_what_is_too_easy_is_changed_and_nothing_is_attempted_in_vain(
    tasks: list[cw.Task], knowledge: Any
) -> None:
    easy = {task.id for task in tasks[::3]}
    found, asked = hardened(tasks, knowledge, lambda task: 1.0 if task.id in easy else 0.25, rounds=3)
    assert set(found.tasks) <= easy
    assert len(asked) == 2  # the changed ones are no longer too easy, so that there is no further round
    nothing, asked = hardened(tasks, knowledge, lambda task: 0.5, rounds=3)
    assert (nothing.tasks, nothing.refused, len(asked)) == ({}, [], 1)


def test_the_same_seed_makes_the_same_tasks(tasks: list[cw.Task], knowledge: Any) -> None:
    def told(seed: int) -> list[Any]:
        found, _ = hardened(tasks[:6], knowledge, lambda task: 1.0, rounds=2, seed=seed)
        return [(origin, task.id, task.query, task.facts["gold"]) for origin, task in found.tasks.items()]

    assert told(1) == told(1) != told(2)


def test_a_task_that_holds_no_blueprint_stays_and_is_told_of_once(tasks: list[cw.Task], knowledge: Any) -> None:
    bare = evolve(tasks[0], facts={name: value for name, value in tasks[0].facts.items() if name != "blueprint"})
    found, _ = hardened([bare], knowledge, lambda task: 1.0, rounds=3)
    assert [one.rejected.stage for one in found.refused] == ["plan"]
    assert found.tasks == {}


def test_a_harder_task_that_calls_what_is_held_out_is_taken_back(tasks: list[cw.Task], knowledge: Any) -> None:
    first, _ = hardened(tasks, knowledge, lambda task: 1.0, changes=["step"])
    origin, longer = next((name, one) for name, one in first.tasks.items() if one.depth > 0)
    calls = [
        {"tool": call.get("tool", call.get("name")), "arguments": {f"other {number}": number}}
        for number, call in enumerate(call for step in longer.facts["steps"] for call in step["calls"])
    ]
    held = evolve(longer, id="held", split="validation", query="x", user=None)
    held = evolve(held, facts={**held.facts, "steps": [{"calls": calls}]})
    learnt = next(task for task in tasks if task.id == origin)
    measured = {origin: Difficulty(1, 1)}
    work = Hardening(default_registry(), knowledge, changes=["step"])
    found = work.run([learnt, held], measured, 1, solver(lambda task: 1.0))
    assert found.tasks == {}
    assert [(one.rejected.stage, one.change) for one in found.refused] == [("splits", "step")]


def test_a_harder_task_that_is_nearly_a_later_one_is_taken_back_also_if_it_was_hardened_before(
    tasks: list[cw.Task], knowledge: Any
) -> None:
    learnt = [evolve(task, id=f"{task.id}+step") for task in tasks]
    first, _ = hardened(learnt, knowledge, lambda task: 1.0, changes=["step"])
    pairs = [(task, evolve(first.tasks[task.id], id="later")) for task in learnt if task.id in first.tasks]
    easy, later = next(pair for pair in pairs if compared([*map(Compared.of_task, pair)]) == [None, None])
    work = Hardening(default_registry(), knowledge, changes=["step"])
    found = work.run([easy, later], {easy.id: Difficulty(1, 1)}, 1, solver(lambda task: 1.0))
    assert found.tasks == {}
    assert [(one.task, one.rejected.stage) for one in found.refused] == [(easy.id, "duplicates")]


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_says_what_it_changes_and_the_calls_come_to_what_it_says(
    change: str, tasks: list[cw.Task], knowledge: Any
) -> None:
    environment = cw.environment("email")
    changing = Changing(environment, default_registry(), knowledge)
    made = 0
    for number, task in enumerate(tasks):
        before = Blueprint.from_json(task.facts["blueprint"])
        after = changing(change, before, Random(number))
        if after is None:
            continue
        calls = [[(call.tool, dict(call.arguments)) for call in stage.calls] for stage in before.stages]
        now = [[(call.tool, dict(call.arguments)) for call in stage.calls] for stage in after.stages]
        if change == "step":
            assert now[:-1] == calls
            assert now[-1]
        elif change == "constraint":
            flat, longer = [one for stage in calls for one in stage], [one for stage in now for one in stage]
            assert [tool for tool, _ in longer] == [tool for tool, _ in flat]
            assert sum(len(one) for _, one in longer) == 1 + sum(len(one) for _, one in flat)
        else:
            assert now == calls
            field = "distractors" if change == "distractors" else "stages"
            assert getattr(after, field) != getattr(before, field)
        assert isinstance(converse(after, Materials(environment), 7, "x"), cw.Task)
        made += 1
    assert made >= 1


def test_a_share_that_is_none_is_refused(knowledge: Any) -> None:
    with pytest.raises(UsageError, match="too easy"):
        Hardening(default_registry(), knowledge, too_easy=0)
