"""The final state as a reward: equivalent work earns the same, and every other change is named."""

from __future__ import annotations

import pickle
from typing import Any

import attrs
import pytest

import callwright as cw
from callwright.environments.goals import Comparison
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.protocol import Outcome
from callwright.errors import Abstention, DataError
from callwright.walk.trace import CallRecord, Trace
from callwright.walk.turn import Turn
from callwright_plugins.prove_rewards import final_state
from callwright_plugins.prove_rewards.final_state import FinalState

SHOP, PARSER = cw.environment("shopping"), cw.parser("json")
FIRST, SECOND, THIRD = ({"variant_id": name} for name in ("V00001", "V00003", "V00005"))


def program(*calls: tuple[str, dict[str, Any]]) -> cw.Program:
    return cw.Program(tuple(cw.Call(at, tool, arguments) for at, (tool, arguments) in enumerate(calls)))


GOLD = program(("add_to_cart", FIRST), ("add_to_cart", SECOND))


def task(gold: cw.Program | None = GOLD, environment: Any = SHOP, **facts: Any) -> cw.Task:
    return cw.Task("t", "", environment.tools, cw.Answer((1,)), environment, program=gold, facts=facts)


def attempt(given: cw.Task, *calls: tuple[str, dict[str, Any]]) -> cw.Attempt:
    return cw.Attempt(given, PARSER.render(program(*calls)), PARSER)


def scored(component: FinalState, given: cw.Task, *calls: tuple[str, dict[str, Any]]) -> tuple[float, list[str]]:
    score = component.score(attempt(given, *calls))
    return score.value, [str(one) for one in score.evidence]


def test_equivalent_work_earns_the_same() -> None:
    given, component = task(), FinalState()
    assert scored(component, given, ("add_to_cart", SECOND), ("add_to_cart", FIRST)) == (1.0, [])
    looked = ("add_to_cart", THIRD), ("remove_from_cart", {"cart_item_id": "CI00001"})
    assert scored(component, given, *looked, ("add_to_cart", FIRST), ("add_to_cart", SECOND)) == (1.0, [])
    assert scored(component, task(cw.Program()), ("add_to_cart", FIRST), ("clear_cart", {})) == (1.0, [])


def test_every_other_change_is_named() -> None:
    given, component = task(), FinalState()
    value, evidence = scored(component, given, ("add_to_cart", FIRST))
    assert value == 0.0
    assert len(evidence) == 1
    assert evidence[0].startswith("cart_items[CI00002] is not there, expected {")
    value, evidence = scored(component, given, ("add_to_cart", FIRST), ("add_to_cart", {**SECOND, "quantity": 2}))
    assert (value, evidence) == (0.0, ["cart_items[CI00002].quantity is 2, expected 1"])
    more = ("set_shipping_address", {"address_id": "A00002"})
    value, evidence = scored(component, given, more, ("add_to_cart", FIRST), ("add_to_cart", SECOND))
    assert value == 0.0
    assert evidence == ["carts[CART] is changed, expected as it was"]


def test_partial_credit_is_by_row() -> None:
    given, component = task(), FinalState(partial=True)
    assert scored(component, given, ("add_to_cart", FIRST))[0] == 0.5
    assert scored(component, given, ("add_to_cart", FIRST), ("add_to_cart", SECOND), ("add_to_cart", THIRD))[
        0
    ] == pytest.approx(2 / 3)
    assert scored(component, given)[0] == 0.0
    assert scored(component, given, ("add_to_cart", SECOND), ("add_to_cart", FIRST))[0] == 1.0


def test_exact_compares_digests() -> None:
    given, component = task(), FinalState(exact=True, partial=True)
    assert scored(component, given, ("add_to_cart", FIRST), ("add_to_cart", SECOND))[0] == 1.0
    assert scored(component, given, ("add_to_cart", SECOND), ("add_to_cart", FIRST))[0] == 0.0
    again = pickle.loads(pickle.dumps(component))
    assert (again.exact, again.partial) == (True, True)
    reward = cw.reward("state", exact=True)
    assert reward.score_attempt(attempt(given, ("add_to_cart", SECOND), ("add_to_cart", FIRST))).total == 0.0
    reward = cw.reward("prove-state")
    assert reward.score_attempt(attempt(given, ("add_to_cart", SECOND), ("add_to_cart", FIRST))).total == pytest.approx(
        reward.high, abs=0.2
    )


GOAL = {
    "holds": [{"table": "cart_items", "where": {"variant_id": "V00001"}, "has": {"quantity": {"at_least": 1}}}],
    "changed": [{"table": "carts", "must": False}],
}


def test_a_task_may_state_its_goal() -> None:
    given, component = task(None, goal=GOAL), FinalState(partial=True)
    assert scored(component, given, ("add_to_cart", FIRST)) == (1.0, [])
    more = ("set_shipping_address", {"address_id": "A00002"})
    assert scored(component, given, more, ("add_to_cart", {**FIRST, "quantity": 3})) == (1.0, [])
    value, evidence = scored(component, given, ("add_to_cart", FIRST), ("add_to_cart", SECOND))
    assert value == 0.5
    assert evidence[0].endswith(", expected as it was")
    assert scored(component, given) == (0.0, ['cart_items{"variant_id": "V00001"} is none, expected there'])


def test_a_bad_goal_names_the_task() -> None:
    with pytest.raises(DataError, match=r"task 't': the fact 'goal' cannot be read: .*Did you mean 'holds'"):
        FinalState().score(attempt(task(None, goal={"hold": []})))
    with pytest.raises(DataError, match=r"task 't': .*Did you mean 'carts'"):
        FinalState().score(attempt(task(None, goal={"changed": [{"table": "cart"}]}), ("clear_cart", {})))
    with pytest.raises(DataError, match="neither a goal nor a reference program"):
        FinalState().score(attempt(task(None)))


def test_time_that_moves_is_no_difference() -> None:
    clock = ClockPolicy()
    given, component = attrs.evolve(task(), clock=clock), FinalState()
    looked = ("view_cart", {}), ("add_to_cart", SECOND), ("add_to_cart", FIRST)
    assert scored(component, given, *looked) == (1.0, [])
    said = [PARSER.render(program(*calls)) for calls in ((looked[1],), (), (looked[2],))]
    assert component.score(cw.Attempt(given, said, PARSER)).value == 1.0
    assert component.score(cw.Attempt(given, said[:2], PARSER)).value == 0.0
    order = ("post_message", {"channel_id": "C00001", "text": "late"})
    chat = cw.environment("team_chat")
    if chat.open().call(*order).executed:
        late = attrs.evolve(task(program(order), chat), clock=clock)
        value, _ = scored(component, late, ("list_channels", {}), ("list_channels", {}), order)
        assert value == 1.0


class Notes:
    """Notes with running numbers, whose state is told without these."""

    name = "notes"
    pure = True
    tools = {"note": cw.ToolSpec("note", parameters={"type": "object", "properties": {"text": {"type": "string"}}})}  # noqa: RUF012

    def open(self, scenario: str = "", seed: int = 0) -> Pad:
        return Pad()


class Pad:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        self.texts.append(arguments["text"])
        return Outcome("ok", len(self.texts))

    def goal_state(self) -> Any:
        return {"texts": dict.fromkeys(sorted(set(self.texts)), True)}

    def digest(self) -> str:
        return repr(self.texts)

    def close(self) -> None:
        pass


def test_any_session_may_tell_its_goal_state() -> None:
    one, other = ("note", {"text": "a"}), ("note", {"text": "b"})
    given = task(program(one, other), Notes())
    component = FinalState(partial=True)
    assert scored(component, given, other, one, one) == (1.0, [])
    assert scored(component, given, other) == (0.5, ["texts.a is not there, expected true"])
    stated = task(None, Notes(), goal={"holds": [{"path": "texts.a", "is": True}]})
    assert scored(component, stated, one) == (1.0, [])
    assert scored(component, stated, one, other) == (0.5, ["texts.b is true, expected as it was"])


class Mute:
    """An environment whose sessions tell nothing but their digest."""

    name, pure, tools = "mute", True, Notes.tools

    def open(self, scenario: str = "", seed: int = 0) -> Any:
        pad = Pad()
        return type("MutePad", (), {"call": pad.call, "digest": pad.digest, "close": pad.close})


def test_a_goal_needs_a_session_that_tells() -> None:
    with pytest.raises(DataError, match="give them a method goal_state"):
        FinalState().score(attempt(task(None, Mute(), goal={}), ("note", {"text": "a"})))


def told(given: cw.Task, digest: str) -> cw.Attempt:
    one = program(("add_to_cart", FIRST))
    record = CallRecord(0, "add_to_cart", FIRST, Outcome("ok", {}), digest)
    return cw.Attempt.told(given, PARSER, [Turn(cw.Completion(PARSER.render(one)), one, Trace((record,), state="s"))])


def test_of_what_was_made_elsewhere_only_the_digest_is_known() -> None:
    component, given = FinalState(), task()
    assert component.score(told(given, "other")).value == 0.0
    session = SHOP.open()
    for call in GOLD.calls:
        session.call(call.tool, dict(call.arguments))
    assert component.score(told(given, session.digest())).value == 1.0
    with pytest.raises(Abstention, match="whether what it left is the goal"):
        component.score(told(task(None, goal=GOAL), "other"))


def test_equal_end_states_of_a_group_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    leave = final_state.leave
    monkeypatch.setattr(final_state, "leave", lambda *given: (runs.append(1), leave(*given))[1])
    given, component = task(), FinalState()
    for _ in range(8):
        assert scored(component, given, ("add_to_cart", SECOND), ("add_to_cart", FIRST))[0] == 1.0
        assert scored(component, given, ("add_to_cart", SECOND))[0] == 0.0
    assert len(runs) == 3


class Listening(Notes):
    """Notes whose goals hear what the agent said in the end."""

    def open(self, scenario: str = "", seed: int = 0) -> Pad:
        return Heard()


class Heard(Pad):
    def check_goal(self, goal: Any) -> Comparison:
        return self.check_answer(goal, "")

    def check_answer(self, goal: Any, answer: str) -> Comparison:
        return Comparison(1, 0) if answer == "seven" else Comparison(0, 1)


def test_what_was_said_in_the_end_is_not_that_of_another_attempt_with_the_same_state() -> None:
    component, given = FinalState(), task(None, Listening(), goal={})
    hermes = cw.parser("hermes")
    noted = hermes.render(program(("note", {"text": "a"})))
    for said, value in (("six", 0.0), ("seven", 1.0), ("eight", 0.0), ("seven", 1.0)):
        assert component.score(cw.Attempt(given, [noted, said], hermes)).value == value
