"""Goals that are shown by the end state of a session that reached them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import callwright as cw
from callwright.environments.goals import Goal
from callwright.errors import DataError
from callwright.walk.distractors.tasks import _placed

PEN = ("add_to_cart", {"variant_id": "V00001"})
INK = ("add_to_cart", {"variant_id": "V00003"})


def after(*calls: tuple[str, dict[str, Any]]) -> Any:
    session: Any = cw.environment("shopping").open("typical", seed=0)
    for tool, arguments in calls:
        assert session.call(tool, arguments).executed
    return session


def test_it_is_json_there_and_back() -> None:
    goal = Goal(state=after(PEN).goal_state())
    assert Goal.from_json(json.loads(json.dumps(goal.to_json()))) == goal
    with pytest.raises(DataError, match="states nothing else"):
        Goal.from_json({**goal.to_json(), "holds": []})


def test_whoever_leaves_the_same_reaches_it() -> None:
    goal = {"state": after(PEN, INK).goal_state()}
    assert after(INK, PEN).check_goal(goal).equal
    assert not after(PEN).check_goal(goal).equal
    assert after(PEN).check_goal(goal).credit == 0.5
    assert after().check_goal(goal).credit == 0
    assert not after(PEN, INK, PEN).check_goal(goal).equal


def test_doing_nothing_may_be_what_is_shown() -> None:
    goal = {"state": after().goal_state()}
    assert after().check_goal(goal).equal
    assert not after(PEN).check_goal(goal).equal


def test_a_state_of_something_else_is_refused() -> None:
    with pytest.raises(DataError, match="two environments"):
        after().check_goal({"state": {"items": ["ink"]}})


def test_it_is_shown_in_several_environments_at_once() -> None:
    many = "shopping+email"
    tool = next(name for name in cw.environment(many).tools if name.endswith("add_to_cart"))
    first, second, third = (cw.environment(many).open("", 0) for _ in range(3))
    states: list[Any] = [first, second, third]
    for one in states[:2]:
        assert one.call(tool, {"variant_id": "V00001"}).executed
    goal = {"state": states[0].goal_state()}
    assert states[1].check_goal(goal).equal
    assert not states[2].check_goal(goal).equal


def test_it_is_placed_among_distractors_as_a_part() -> None:
    state = after(PEN).goal_state()
    assert _placed({"state": state}, "shopping") == {"state": {"form": "parts", "parts": {"shopping": state}}}
    assert _placed({"state": after().goal_state()}, "shopping") == {"state": {"form": "parts", "parts": {}}}
    assert _placed({"state": "Ohio"}, "shopping") == {"state": "Ohio"}, "somebody knows of a state"


def task(goal: dict[str, Any]) -> cw.Task:
    shop = cw.environment("shopping")
    calls = (cw.Call(0, PEN[0], PEN[1]),)
    return cw.Task(
        "t",
        "A pen, please.",
        shop.tools,
        cw.Answer((None,)),
        shop,
        scenario="typical",
        program=cw.Program(calls),
        facts={"goal": goal},
        user=cw.UserSpec("scripted", {"satisfied": goal}),
    )


def test_rewards_and_users_know_it() -> None:
    made = task({"state": after(PEN).goal_state()})
    parser, component = cw.parser("json"), cw.default_registry().create("reward component", "final-state")
    right, wrong = (
        parser.render(cw.Program(calls, "one", ".")) for calls in ((cw.Call(0, *PEN),), (cw.Call(0, *INK),))
    )
    assert component.score(cw.Attempt(made, right, parser)).value == 1
    assert component.score(cw.Attempt(made, wrong, parser)).value == 0
    said: list[bool] = []
    for text in (right, wrong):
        episode = cw.episodes.Conversation(
            made, parser, [cw.Message.user(made.query)], cw.Conditions(limits=cw.TurnLimits(assistant_turns=4))
        )
        episode.accept(cw.Completion(text))
        episode.accept(cw.Completion(parser.render(cw.Program((), "one", "."))))
        said.append(episode.over)
    assert said == [True, False]
