"""Rewards that read costs: the cheaper of two right programs earns more, and nobody earns by doing nothing."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import callwright as cw
from callwright.environments import ClockPolicy, Fault, Hazards, RateLimit
from callwright.environments.goals import Comparison
from callwright.environments.protocol import Outcome
from callwright.errors import DataError
from callwright.walk.turn import Turn
from callwright_plugins.cost_rewards.components import Cost, Latency, RateLimits, Recovery
from callwright_plugins.cost_rewards.irreversible import Irreversible
from callwright_plugins.cost_rewards.spending import NEEDS

PARSER = cw.parser("json")


@cw.row("parcels", prefix="P")
class Parcel:
    id: str
    sent: bool
    shelf: int


@cw.row("letters", prefix="L")
class Letter:
    id: str
    to: str


@cw.tool(read_only=True)
def weigh(world: cw.World, /, parcel_id: str) -> dict[str, int]:
    """Weigh a parcel."""
    return {"grams": 100 + len(world.need(Parcel, parcel_id).id)}


@cw.tool(cost=100, latency=2)
def send(world: cw.World, /, parcel_id: str) -> dict[str, bool]:
    """Send a parcel."""
    return {"sent": world.update(world.need(Parcel, parcel_id), sent=True).sent}


@cw.tool(cost="bill.fee_cents + tax_cents", latency=1)
def express(world: cw.World, /, parcel_id: str) -> dict[str, Any]:
    """Send a parcel at once."""
    world.update(world.need(Parcel, parcel_id), sent=True)
    return {"sent": True, "bill": {"fee_cents": 350}, "tax_cents": 50}


@cw.tool(irreversible=True)
def write(world: cw.World, /, to: str) -> dict[str, str]:
    """Write to somebody."""
    return {"letter_id": world.put(Letter(world.new_id(Letter), to)).id}


@cw.tool
def shelve(world: cw.World, /, parcel_id: str, shelf: int) -> dict[str, int]:
    """Put a parcel on a shelf."""
    return {"shelf": world.update(world.need(Parcel, parcel_id), shelf=shelf).shelf}


def build(rng: Random, scale: float) -> Iterator[Any]:
    yield Parcel("P1", False, 1)
    yield Parcel("P2", False, 1)


POST = cw.StatefulEnvironment(
    "post",
    rows=[Parcel, Letter],
    tools=[weigh, send, express, write, shelve],
    scenarios={
        "one": cw.Scenario(build),
        "limited": cw.Scenario(build, limits=(RateLimit(3),)),
    },
)
P1 = {"parcel_id": "P1"}
CALLS = list[tuple[str, dict[str, Any]]]


def program(*calls: tuple[str, dict[str, Any]]) -> cw.Program:
    return cw.Program(tuple(cw.Call(at, tool, arguments) for at, (tool, arguments) in enumerate(calls)))


GOLD = program(("send", P1))


def task(gold: cw.Program | None = GOLD, answer: Any = ({"sent": True},), **more: Any) -> cw.Task:
    return cw.Task("t", "Send P1.", POST.tools, cw.Answer(tuple(answer)), POST, program=gold, **more)


def attempt(given: cw.Task, *calls: tuple[str, dict[str, Any]], **conditions: Any) -> cw.Attempt:
    return cw.Attempt(given, PARSER.render(program(*calls)), PARSER, cw.Conditions(**conditions))


def value(component: cw.RewardComponent, given: cw.Attempt) -> tuple[float, list[str]]:
    score = component.score(given)
    assert score.masked is None
    return score.value, [one.code for one in score.evidence]


# End to end -----------------------------------------------------------------------------------------------------------


def totals(reward: cw.RewardRecipe, given: cw.Task, *programs: CALLS) -> list[float]:
    found = [reward.score_attempt(attempt(given, *calls)).total for calls in programs]
    assert None not in found
    return [round(total or 0.0, 6) for total in found]


def test_the_cheaper_of_two_right_programs_earns_more_and_doing_nothing_earns_less() -> None:
    cheap: CALLS = [("send", P1)]
    dear: CALLS = [("express", P1), ("send", P1)]
    rash: CALLS = [("write", {"to": "all"}), ("send", P1)]
    wrong: CALLS = [("weigh", P1)]
    given, costs = task(), cw.reward("tier-costs")
    assert totals(cw.reward("tier"), given, cheap, rash) == [1.0, 1.0]  # which sees no difference
    right, slower, rasher, nothing, none = totals(costs, given, cheap, dear, rash, wrong, [])
    assert right == 1.0
    assert 0.5 < slower < right
    assert 0.5 < rasher < right
    assert nothing < min(slower, rasher)
    assert none < min(slower, rasher)
    assert totals(cw.reward("state-costs"), given, cheap) == [1.0]
    assert 0.0 < totals(cw.reward("state-costs"), given, dear)[0] < 1.0
    assert totals(cw.reward("state-costs"), given, []) == [0.0]


def test_where_costs_are_not_declared_nothing_is_earned_or_lost_by_them() -> None:
    corpus = cw.corpus("toolworld-mini-v1")
    tier, costs = cw.reward("tier"), cw.reward("tier-costs")
    for one in corpus["train"][:5]:
        assert one.program is not None
        text = PARSER.render(one.program)
        assert tier.score(one, text).total == costs.score(one, text).total == 1.0
        assert (tier.score(one, "no").total, costs.score(one, "no").total) == (0.0, 0.0)


def test_weights_and_bases_can_be_chosen() -> None:
    only = cw.reward("tier-costs", latency=0.0, irreversible=0.0, rate_limits=0.0)
    assert [term.name for term in only.terms][-2:] == ["answer", "cost"]
    assert sum(only.weights.values()) == pytest.approx(1.0)
    with pytest.raises(cw.UsageError, match="doing nothing"):
        cw.reward("tier-costs", base="prove")
    with pytest.raises(cw.UsageError, match="cost is -1"):
        cw.reward("tier-costs", cost=-1.0)
    assert pickle.loads(pickle.dumps(only)).weights == only.weights


# Money and time -------------------------------------------------------------------------------------------------------


def test_cost_is_the_share_that_was_needed() -> None:
    assert value(Cost(), attempt(task(), ("weigh", P1), ("send", P1))) == (1.0, [])
    assert value(Cost(), attempt(task(), ("express", P1))) == (0.25, ["too_much_cost", "cost"])
    assert value(Cost(slack=100), attempt(task(), ("express", P1)))[0] == 0.5
    assert value(Cost(slack=300), attempt(task(), ("express", P1)))[0] == 1.0
    twice = attempt(task(), ("send", P1), ("send", P1))
    score = Cost().score(twice)
    assert score.value == 0.5
    assert str(score.evidence[0]) == "200 cents were spent on calls; the task needs 100"
    assert value(Cost(), attempt(task(), ("send", {"parcel_id": "P9"}))) == (1.0, [])  # which was not done
    nothing_due = task(gold=program(("weigh", P1)))
    assert value(Cost(), attempt(nothing_due, ("send", P1)))[0] == 0.0


def test_latency_is_that_of_tools_that_were_reached() -> None:
    assert value(Latency(), attempt(task(), ("express", P1))) == (1.0, [])
    assert value(Latency(), attempt(task(), ("send", P1), ("send", P1)))[0] == 0.5
    assert value(Latency(), attempt(task(), ("send", {"parcel_id": "P9"}), ("send", P1)))[0] == 0.5
    assert value(Latency(), attempt(task(), ("send", {}), ("send", P1)))[0] == 1.0


def test_a_budget_takes_the_place_of_a_program() -> None:
    given = task(gold=None, facts={"budget": {"cents": 400}})
    assert value(Cost(), attempt(given, ("express", P1))) == (1.0, [])
    assert value(Cost(), attempt(given, ("express", P1), ("express", P1)))[0] == 0.5
    assert value(Cost(), attempt(task(facts={"budget": {"seconds": 9}}), ("express", P1)))[0] == 0.25
    with pytest.raises(DataError, match="neither a reference program nor a fact 'budget'"):
        Cost().score(attempt(task(gold=None), ("express", P1)))
    for wrong in (5, {"cents": -1}, {"euros": 3}):
        with pytest.raises(DataError, match="budget"):
            Cost().score(attempt(task(facts={"budget": wrong}), ("express", P1)))
    for slack in (-1, 0.5, True):
        with pytest.raises(cw.UsageError, match="slack"):
            Cost(slack=slack)  # type: ignore[arg-type]


def test_the_reference_program_meets_no_hazards() -> None:
    given = task(hazards=Hazards((Fault("unavailable", 1.0, tools=("send",)),), in_a_row=0))
    assert NEEDS.of(given, None).cents == 100
    assert value(Cost(), attempt(given, ("send", P1))) == (1.0, [])  # it was never sent, so nothing was spent
    lost = task(hazards=Hazards((Fault("lost_reply", 1.0),), in_a_row=1))
    assert value(Cost(), attempt(lost, ("send", P1), ("send", P1)))[0] == 0.5  # it was sent twice


# What cannot be undone ------------------------------------------------------------------------------------------------

ANNOUNCED = program(("send", P1), ("write", {"to": "Ada"}))


def test_an_irreversible_call_is_needless_if_as_much_is_reached_without_it() -> None:
    given = task(gold=ANNOUNCED)
    assert value(Irreversible(), attempt(given, ("send", P1), ("write", {"to": "Ada"}))) == (1.0, [])
    assert value(Irreversible(), attempt(given, ("send", P1))) == (1.0, [])  # what is missing is the answer's matter
    more = attempt(given, ("send", P1), ("write", {"to": "Ada"}), ("write", {"to": "Bela"}))
    score = Irreversible().score(more)
    assert (score.value, score.evidence[0].call) == (0.5, 2)
    assert str(score.evidence[0]) == "call 2 write cannot be undone, and as much is reached without it"
    assert Irreversible(penalty=1.0).score(more).value == 0.0
    twice = attempt(given, ("write", {"to": "Ada"}), ("write", {"to": "Ada"}), ("send", P1))
    assert value(Irreversible(), twice) == (0.5, ["needless_irreversible"])
    wrong = attempt(given, ("write", {"to": "Bela"}), ("write", {"to": "Cem"}), ("write", {"to": "Dora"}))
    assert value(Irreversible(), wrong)[0] == 0.0


GOAL_LETTER = {"holds": [{"table": "letters", "where": {"to": "Bela"}, "count": 1}]}


def test_a_call_in_other_words_is_needed_if_the_goal_is() -> None:
    reference = task(gold=ANNOUNCED)
    assert value(Irreversible(), attempt(reference, ("write", {"to": "Bela"})))[0] == 0.5
    stated = task(gold=program(("send", P1)), facts={"goal": GOAL_LETTER})
    assert value(Irreversible(), attempt(stated, ("write", {"to": "Bela"}))) == (1.0, [])
    assert value(Irreversible(), attempt(stated, ("write", {"to": "Ada"})))[0] == 0.5


class Told:
    """Letters that a goal wants written, and told of in the end."""

    name, pure = "told", False
    tools = {"write": cw.ToolSpec("write", parameters={"type": "object"}, irreversible=True)}  # noqa: RUF012

    def open(self, scenario: str = "", seed: int = 0) -> Any:
        return ToldSession()


class ToldSession:
    def __init__(self) -> None:
        self.letters = 0

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        self.letters += 1
        return Outcome("ok", self.letters)

    def check_goal(self, goal: Any) -> Comparison:
        return self.check_answer(goal, "")

    def check_answer(self, goal: Any, answer: str) -> Comparison:
        return Comparison(1, 0) if self.letters and answer == "It is written." else Comparison(0, 1)

    def digest(self) -> str:
        return str(self.letters)

    def close(self) -> None:
        pass


def test_a_call_is_needed_by_a_goal_that_hears_what_is_said_in_the_end() -> None:
    hermes, place = cw.parser("hermes"), Told()
    given = cw.Task("t", "", place.tools, cw.Answer(), place, facts={"goal": {}})
    made = cw.Attempt(given, [hermes.render(program(("write", {}))), "It is written."], hermes)
    assert value(Irreversible(), made) == (1.0, [])
    written = hermes.render(program(("write", {})))
    twice = cw.Attempt(given, [written, written, "It is written."], hermes)
    assert value(Irreversible(), twice)[0] == 0.0


def test_calls_that_a_hazard_kept_from_being_made_are_not_held_against_anybody() -> None:
    hazards = Hazards((Fault("unavailable", 1.0, tools=("write",)),), in_a_row=1)
    given = task(gold=ANNOUNCED, hazards=hazards)
    again = attempt(given, ("send", P1), ("write", {"to": "Ada"}), ("write", {"to": "Ada"}))
    assert [record.outcome.injected for record in again.whole_trace.records] == ["", "unavailable", ""]
    assert value(Irreversible(), again) == (1.0, [])
    lost = task(gold=ANNOUNCED, hazards=Hazards((Fault("lost_reply", 1.0, tools=("write",)),), in_a_row=1))
    assert value(Irreversible(), once_more(again, lost))[0] == 0.5  # it was written twice


def once_more(made: cw.Attempt, given: cw.Task) -> cw.Attempt:
    return cw.Attempt(given, made.completion, PARSER, made.conditions)


def test_without_end_states_the_reference_program_decides() -> None:
    @cw.tool(irreversible=True)
    def shout(words: str) -> str:
        """Shout."""
        return words

    loud = cw.environment("loud", tools=[shout])
    given = cw.Task("t", "?", loud.tools, cw.Answer(("a",)), loud, program=program(("shout", {"words": "a"})))
    assert value(Irreversible(), attempt(given, ("shout", {"words": "a"}))) == (1.0, [])
    assert value(Irreversible(), attempt(given, ("shout", {"words": "b"})))[0] == 0.5


@pytest.mark.parametrize("wrong", [0, -1, 2, True, "x"])
def test_a_penalty_is_a_share(wrong: Any) -> None:
    with pytest.raises(cw.UsageError, match="penalty"):
        Irreversible(wrong)


# Limits and recovery --------------------------------------------------------------------------------------------------


def test_room_under_a_limit_is_not_wasted() -> None:
    again: CALLS = [("weigh", P1), ("weigh", P1), ("send", P1), ("send", P1)]
    assert value(RateLimits(), attempt(task(), *again)) == (1.0, [])  # nothing is limited
    limited = attempt(task(scenario="limited"), *again)
    assert value(RateLimits(), limited) == (0.5, ["asked_again", "over_the_limit"])
    wide = Hazards(limits=(RateLimit(9),))
    assert value(RateLimits(), attempt(task(), *again, hazards=wide))[0] == 0.5
    useful = attempt(task(), ("shelve", {**P1, "shelf": 2}), ("shelve", {**P1, "shelf": 3}), hazards=wide)
    assert value(RateLimits(), useful) == (1.0, [])
    assert value(RateLimits(), attempt(task(scenario="limited"), *again, hazards=Hazards())) == (1.0, [])


def episode(given: cw.Task, *turns: CALLS) -> cw.Attempt:
    """An attempt of several turns, as it was run."""
    conditions = cw.Conditions()
    execution = conditions.execution(given)
    made = []
    for calls in turns:
        written = program(*calls)
        made.append(Turn(cw.Completion(PARSER.render(written)), written, execution.run(written)))
    execution.close()
    return cw.Attempt.of(given, PARSER, made, conditions)


FLAKY = Hazards((Fault("unavailable", 1.0, tools=("send",)),), in_a_row=1)


def test_execution_is_as_before_where_no_hazard_is() -> None:
    assert value(Recovery(), attempt(task(), ("send", P1))) == (1.0, [])
    assert value(Recovery(), attempt(task(), ("send", {"parcel_id": "P9"}), ("send", P1)))[0] == 0.0
    garbage = cw.Attempt(task(), "no program", PARSER)
    assert Recovery().score(garbage).value == 0.0


def test_a_call_that_a_hazard_hit_is_put_right_by_making_it_again() -> None:
    given = task(hazards=FLAKY)
    assert value(Recovery(), attempt(given, ("send", P1), ("send", P1))) == (1.0, [])
    assert value(Recovery(), attempt(given, ("send", P1))) == (1.0, [])  # there was no turn to do so
    tier = cw.reward("tier").score_attempt(attempt(given, ("send", P1), ("send", P1)))
    costs = cw.reward("tier-costs").score_attempt(attempt(given, ("send", P1), ("send", P1)))
    assert tier.total is not None
    assert tier.total < 0.5
    assert costs.total == 1.0


def test_who_had_a_turn_to_make_the_call_again_and_did_not_loses() -> None:
    given = task(hazards=FLAKY)
    recovered = episode(given, [("send", P1)], [("send", P1)])
    assert [record.outcome.code for record in recovered.whole_trace.records] == ["UNAVAILABLE", ""]
    assert value(Recovery(), recovered) == (1.0, [])
    assert cw.reward("tier-costs").score_attempt(recovered).total == 1.0
    gave_up = episode(given, [("send", P1)], [("weigh", P1)])
    score = Recovery().score(gave_up)
    assert score.value == 0.0
    assert "it was not made again" in str(score.evidence[0])
    too_late = episode(given, [("weigh", P1)], [("send", P1)])
    assert value(Recovery(), too_late) == (1.0, [])


def test_episodes_pay_for_all_of_their_turns() -> None:
    twice = episode(task(), [("send", P1)], [("send", P1)])
    assert value(Cost(), twice)[0] == 0.5
    told = episode(task(gold=ANNOUNCED), [("write", {"to": "Ada"})], [("write", {"to": "Bela"}), ("send", P1)])
    assert value(Irreversible(), told) == (0.5, ["needless_irreversible"])


def test_time_that_moves_is_no_latency_of_tools() -> None:
    given = task(clock=ClockPolicy(call=600))
    assert value(Latency(), attempt(given, ("send", P1))) == (1.0, [])
    assert value(Latency(), attempt(given, ("send", P1), ("send", P1)))[0] == 0.5
