"""Environments of functions that tell what a session has come to, wherever goals are asked for."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import callwright as cw
from callwright.capability import has
from callwright.environments.backends import SQLiteTemplate
from callwright.environments.capabilities import Forks
from callwright.environments.protocol import ChecksGoals, TellsGoalState
from callwright.errors import ComponentError, DataError
from callwright.walk.users.world import WorldView

SCHEMA = "CREATE TABLE loans (book TEXT PRIMARY KEY, member TEXT); INSERT INTO loans VALUES ('tea', 'ada')"


@cw.tool
def lend(library: Any, /, book: str, member: str) -> str:
    """Lend a book."""
    library.execute("INSERT INTO loans VALUES (?, ?)", (book, member))
    return "lent"


@cw.tool
def put(items: list[str], /, item: str) -> int:
    """Put an item down."""
    items.append(item)
    return len(items)


def loans(library: Any) -> dict[str, str]:
    return {row["book"]: row["member"] for row in library.tables()["loans"]}


def no_items(scenario: str, seed: int) -> list[str]:
    return []


def counted(items: list[str]) -> dict[str, Any]:
    return {"items": sorted(items)}


def broken(items: list[str]) -> dict[str, Any]:
    raise ValueError(f"{len(items)} items")


LIBRARY = cw.environment("library", tools=[lend], state=SQLiteTemplate(SCHEMA), goal_state=loans)
DESK = cw.environment("desk", tools=[put], state=no_items, goal_state=counted)


def lent(book: str, member: str) -> dict[str, Any]:
    return {"holds": [{"path": book, "is": member}], "changed": [{"path": book}]}


def task_of(environment: cw.Environment, goal: dict[str, Any]) -> cw.Task:
    return cw.Task("one", "Do it.", environment.tools, cw.Answer(), environment, facts={"goal": goal})


def test_a_state_says_what_it_has_come_to() -> None:
    session = LIBRARY.open()
    assert has(session, TellsGoalState)
    assert has(session, Forks)
    assert not has(session, ChecksGoals)
    assert session.goal_state() == {"tea": "ada"}
    fork = session.fork()
    assert fork.call("lend", {"book": "ink", "member": "bo"}).kind == "ok"
    assert (fork.goal_state(), session.goal_state()) == ({"tea": "ada", "ink": "bo"}, {"tea": "ada"})  # type: ignore[attr-defined]
    desk = DESK.open()
    assert has(desk, TellsGoalState)
    desk.call("put", {"item": "pen"})
    assert pickle.loads(pickle.dumps(desk)).goal_state() == {"items": ["pen"]}
    assert not has(cw.environment("desk", tools=[put], state=no_items).open(), TellsGoalState)


@pytest.mark.parametrize("environment", [LIBRARY, pickle.loads(pickle.dumps(LIBRARY))], ids=["here", "unpickled"])
def test_rewards_and_logs_hold_goals_against_it(environment: cw.Environment) -> None:
    reward = cw.RewardRecipe(
        "end",
        (cw.Term(cw.default_registry().create("reward component", "final-state")),),  # type: ignore[arg-type]
    )
    task = task_of(environment, lent("ink", "bo"))
    for calls, total in (
        ([("ink", "bo")], 1.0),
        ([("ink", "ada")], 0.0),
        ([("ink", "bo"), ("pen", "bo")], 0.0),
        ([], 0.0),
    ):
        with cw.Log(task) as log:
            for book, member in calls:
                log.call("lend", {"book": book, "member": member})
            live = reward.score_attempt(log.episode())
        after = reward.score_attempt(log.episode())
        program = cw.Program(
            tuple(cw.Call(at, "lend", {"book": book, "member": member}) for at, (book, member) in enumerate(calls))
        )
        ran = reward.score(task, cw.parser("json").render(program), ir="json")
        assert (live.total, after.total, ran.total) == (total, total, total)


def test_a_user_is_satisfied_by_it() -> None:
    execution = cw.Conditions().execution(task_of(LIBRARY, {}))
    try:
        view = WorldView(execution.look)
        assert not view.check_goal(lent("ink", "bo")).equal
        execution.run(cw.Program((cw.Call(0, "lend", {"book": "ink", "member": "bo"}),)))
        assert view.check_goal(lent("ink", "bo")).equal
    finally:
        execution.close()


def test_it_is_told_from_a_process_as_well() -> None:
    session = cw.isolated(DESK).open()
    try:
        session.call("put", {"item": "pen"})
        assert session.goal_state() == {"items": ["pen"]}  # type: ignore[attr-defined]
    finally:
        session.close()


def test_mistakes_are_said() -> None:
    with pytest.raises(cw.UsageError, match="goal_state is a function of the state"):
        cw.environment("desk", tools=[put], goal_state=counted)
    with pytest.raises(cw.UsageError, match="goal_state is a function of the state"):
        cw.environment("desk", tools=[put], state=no_items, goal_state={})
    session = cw.environment("desk", tools=[put], state=no_items, goal_state=broken).open()
    with pytest.raises(ComponentError, match="goal_state of the environment 'desk' raised ValueError: 0 items"):
        session.goal_state()  # type: ignore[attr-defined]
    plain = cw.environment("desk", tools=[put], state=no_items)
    with pytest.raises(DataError, match="neither check_goal"):
        WorldView(cw.Conditions().execution(task_of(plain, {})).look).check_goal({})
