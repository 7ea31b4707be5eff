"""Sessions that remember their calls stand where sessions stand that make them: outcomes, digests, end states, time."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import callwright as cw
from callwright.environments.hazards.policy import Hazards, RateLimit
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.protocol import Outcome
from callwright_plugins.synthesis.exploration.explored import explore
from callwright_plugins.synthesis.exploration.forking import Remembered, opened
from callwright_plugins.synthesis.exploration.remembering import goes_by_calls
from callwright_plugins.synthesis.exploration.witness import Witness, copied


@pytest.fixture(scope="module")
def bakery() -> tuple[Any, list[Witness]]:
    environment = cw.environment("village-bakery")
    explored = explore(environment, seeds=(0,), calls=200)
    paths = [one for found in explored.witnesses.values() for one in found]
    paths += [one for by_code in explored.failures.values() for one in by_code.values()]
    return environment, paths


@pytest.mark.parametrize("seed", range(12))
def test_whoever_remembers_stands_where_others_stand(bakery: tuple[Any, list[Witness]], seed: int) -> None:
    environment, paths = bakery
    rng = Random(seed)
    remembered, plain = opened(environment, "", 0), environment.open("", 0)
    assert isinstance(remembered, Remembered)
    both = [(remembered, plain)]
    for _ in range(60):
        one, other = rng.choice(both)
        if rng.random() < 0.3:
            both.append((one.fork(), other.fork()))
            continue
        call = rng.choice(rng.choice(paths).calls)
        found: Outcome = one.call(call.tool, copied(call.arguments))
        assert found == other.call(call.tool, copied(call.arguments))
        assert one.digest() == other.digest()
        assert one.goal_state() == other.goal_state()
        assert one.tell_time() == other.tell_time()
        assert one.knowledge() == other.knowledge()
    assert remembered.digest() == plain.digest(), "its forks went their own ways"


class Counting:
    """A session that counts the calls that are made in it and in its forks."""

    def __init__(self, made: list[str], state: int = 0) -> None:
        self.made, self.state = made, state

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        self.made.append(tool)
        if tool == "add":
            self.state += arguments["n"]
        arguments["n"] = "changed by the tool"
        return Outcome("ok", self.state)

    def digest(self) -> str:
        return str(self.state)

    def fork(self) -> Counting:
        return Counting(self.made, self.state)

    def close(self) -> None:
        self.made.append("closed")


def test_no_call_is_made_twice_at_one_place() -> None:
    made: list[str] = []

    class Environment:
        name = "counting"

        def open(self, scenario: str, seed: int) -> Counting:
            return Counting(made)

    session = opened(Environment(), "", 0)  # type: ignore[arg-type]
    arguments = {"n": 2}
    for _ in range(3):
        fork = session.fork()
        assert [fork.call("add", arguments).value, fork.call("look", {}).value, fork.digest()] == [2, 2, "2"]
        # What changes nothing leads nowhere else, so that what was found out there holds on.
        assert [fork.call("look", {}).value, fork.call("add", {"n": 3}).value] == [2, 5]
    assert arguments == {"n": 2}, "a tool changes what it was given itself"
    assert made == ["add", "look", "add"]
    assert session.call("add", {"n": True}).value == 1, "1, True and 1.0 are three arguments"
    session.close()
    assert made == ["add", "look", "add", "add", "closed"]


def test_ways_that_come_to_the_same_go_on_together() -> None:
    made: list[str] = []
    session = Remembered.of(Counting(made))  # type: ignore[arg-type]
    one, other = session.fork(), session.fork()
    for fork, numbers in ((one, (1, 2)), (other, (2, 1))):
        assert [fork.call("add", {"n": n}).value for n in numbers][-1] == 3
        assert fork.call("look", {}).value == 3
    assert one.place is other.place
    assert made.count("look") == 1
    one.close()
    assert "closed" not in made, "the session is not its own"
    session.close()
    assert made[-1] == "closed"


def test_goals_and_calls_of_users_are_those_of_plain_sessions(bakery: tuple[Any, list[Witness]]) -> None:
    environment, paths = bakery
    remembered, plain = opened(environment, "", 0), environment.open("", 0)
    goal = {"state": environment.open("", 0).goal_state()}
    for path in paths[:6]:
        for call in path.calls:
            one, other = (session.call(call.tool, copied(call.arguments)) for session in (remembered, plain))
            assert one == other
            for _ in range(2):
                assert remembered.check_goal(goal) == plain.check_goal(goal)
    assert remembered.user_call("no such tool", {}) == plain.user_call("no such tool", {})


def test_only_what_goes_by_calls_alone_is_remembered_by_gates(bakery: tuple[Any, list[Witness]]) -> None:
    session = bakery[0].open("", 0)
    assert goes_by_calls(session)
    session.keep_time(ClockPolicy())
    assert not goes_by_calls(session), "its time moves"
    hazardous = bakery[0].open("", 0)
    hazardous.meet_hazards(Hazards(limits=(RateLimit(calls=2),)))
    assert not goes_by_calls(hazardous), "what befalls a call hangs on how many there were"
    assert not goes_by_calls(Counting([])), "nothing is known of it"


def test_what_is_forgotten_is_found_out_again() -> None:
    made: list[str] = []
    session = Remembered.of(Counting(made))  # type: ignore[arg-type]
    session.fork().call("add", {"n": 1})
    session.forget()
    assert session.fork().call("add", {"n": 1}).value == 1
    assert made == ["add", "add"]
