"""Calling: one meaning of an outcome, whoever answers; threads; what a model reads; exceptions nobody declared."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Iterator
from enum import Enum
from random import Random
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

import callwright as cw
from callwright.environments import FunctionEnvironment, StatefulEnvironment, tell
from callwright.environments.protocol import EXECUTED, FAILED, Session
from callwright.errors import ComponentError, SessionInUse, UsageError
from callwright.tools import Refused
from callwright.walk import Attempt, ToolCalls

VALUES: dict[str, Any] = {
    "none": None,
    "list": [],
    "object": {},
    "page": {"items": [], "total": 0, "next_cursor": None},
    "items": {"items": []},
    "zero": 0,
    "text": "",
    "false": False,
    "basket": {"basket_id": "B00001", "items": []},
}
NOTHING = ["none", "list", "object", "page", "items"]


class Grade(Enum):
    """Thirty values."""

    A0, A1, A2, A3, A4, A5, A6, A7, A8, A9 = (f"a{n}" for n in range(10))
    B0, B1, B2, B3, B4, B5, B6, B7, B8, B9 = (f"b{n}" for n in range(10))
    C0, C1, C2, C3, C4, C5, C6, C7, C8, C9 = (f"c{n}" for n in range(10))


@cw.row("accounts", prefix="A")
class Account:
    id: str
    balance: int
    wrong: int = 0


class Bank:
    """The same state for functions."""

    def __init__(self) -> None:
        self.balance, self.wrong = 0, 0


# The same tools of a world of rows and of a plain object --------------------------------------------------------------


@cw.tool(read_only=True)
def look(world: cw.World, /, what: str, sort: Literal["name", "rating", "price", "date"] = "name") -> Any:
    """Look."""
    return VALUES[what]


@cw.tool
def write(world: cw.World, /, what: str) -> Any:
    """Write."""
    return VALUES[what]


@cw.tool(read_only=True)
def choose(world: cw.World, /, few: Literal["one"] | None = None, many: Grade | None = None, n: int = 1) -> int:
    """Choose."""
    return n


@cw.tool
def deposit(world: cw.World, /, cents: Annotated[int, Field(ge=1)]) -> int:
    """Deposit."""
    account = world.need(Account, "A00001")
    return world.update(account, balance=account.balance + cents).balance


@cw.tool
def withdraw(world: cw.World, /, pin: str) -> int:
    """Withdraw."""
    account = world.need(Account, "A00001")
    if pin != "1379":
        world.update(account, wrong=account.wrong + 1)
        raise Refused("BAD_PIN", f"wrong; {2 - account.wrong} left")
    raise cw.ToolError("NO_MONEY", "there is none")


@cw.tool
def deposit_there(bank: Bank, /, cents: Annotated[int, Field(ge=1)]) -> int:
    """Deposit."""
    balance = bank.balance
    bank.balance = balance + cents
    return bank.balance


@cw.tool
def withdraw_there(bank: Bank, /, pin: str) -> int:
    """Withdraw."""
    if pin != "1379":
        bank.wrong += 1
        raise Refused("BAD_PIN", f"wrong; {3 - bank.wrong} left")
    bank.balance -= 1
    raise cw.ToolError("NO_MONEY", "there is none")


@cw.tool
def break_there(bank: Bank, /, how: str = "") -> int:
    """Has a bug."""
    bank.balance += 100
    if how == "str":
        raise Unspeakable
    raise KeyError(f"{object()!r}")


class Unspeakable(Exception):
    """Cannot even be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no")


@cw.tool(read_only=True)
def look_there(what: str) -> Any:
    """Look."""
    return VALUES[what]


@cw.tool
def write_there(what: str) -> Any:
    """Write."""
    return VALUES[what]


def rows(rng: Random, scale: float) -> Iterator[Account]:
    yield Account("A00001", 0)


WORLD = StatefulEnvironment(
    "bank",
    rows=[Account],
    tools=[look, write, choose, deposit, withdraw],
    scenarios={"typical": cw.Scenario(rows)},
)


def functions(**options: Any) -> FunctionEnvironment:
    tools = [look_there, write_there, deposit_there, withdraw_there, break_there]
    return FunctionEnvironment("bank", tools, state=lambda scenario, seed: Bank(), **options)


@pytest.mark.parametrize("what", VALUES)
def test_values_mean_the_same_everywhere(what: str) -> None:
    kind = "empty" if what in NOTHING else "ok"
    assert WORLD.open().call("look", {"what": what}) == cw.Outcome(kind, VALUES[what])  # type: ignore[arg-type]
    assert functions().open().call("look_there", {"what": what}) == cw.Outcome(kind, VALUES[what])  # type: ignore[arg-type]
    assert WORLD.open().call("write", {"what": what}) == cw.Outcome("ok", VALUES[what])
    assert functions().open().call("write_there", {"what": what}) == cw.Outcome("ok", VALUES[what])


def test_every_kind_counts_once() -> None:
    assert not EXECUTED & FAILED
    assert [cw.Outcome("refused").executed, cw.Outcome("refused").failed] == [False, True]
    assert not cw.Outcome("unknown").failed
    assert not cw.Outcome("infrastructure_error").failed


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "message"),
    [
        ("look", {}, "missing", "look.what: expected a value (the parameter is required), found nothing"),
        ("look", {"what": 5}, "type", "look.what: expected string, found integer 5"),
        (
            "look",
            {"what": "none", "sort": "cheapest"},
            "value",
            'look.sort: expected "name", "rating", "price" or "date", found string "cheapest"',
        ),
        ("look", {"what": "none", "x": 1}, "unexpected", "look.x: expected no parameter of this name, found one"),
        ("look", {"what": None}, "type", "look.what: expected string, found null"),
        ("choose", {"few": "two"}, "value", 'choose.few: expected "one", found string "two"'),
        ("deposit", {"cents": 0}, "value", "deposit.cents: expected at least 1, found integer 0"),
    ],
)
def test_mismatches_are_told(tool: str, arguments: dict[str, Any], code: str, message: str) -> None:
    outcome = WORLD.open().call(tool, arguments)
    assert (outcome.kind, outcome.code, outcome.message) == ("schema_error", code, message)


def test_twenty_values_are_spelt_out() -> None:
    message = WORLD.open().call("choose", {"many": "d9"}).message
    assert message.startswith('choose.many: expected "a0", "a1", ')
    assert '"b9" or 10 others, found string "d9"' in message


@pytest.mark.parametrize("session", [WORLD.open(), functions().open()], ids=["world", "functions"])
def test_a_refused_call_keeps_what_it_counted(session: Any) -> None:
    tool = "withdraw" if isinstance(session, cw.environments.StatefulSession) else "withdraw_there"
    for left in (2, 1):
        before = session.digest()
        outcome = session.call(tool, {"pin": "0000"})
        assert outcome == cw.Outcome("refused", None, "BAD_PIN", f"wrong; {left} left")
        assert session.digest() != before
    before = session.digest()
    assert session.call(tool, {"pin": "1379"}).kind == "execution_error"
    assert session.digest() == before


# What nobody declared -------------------------------------------------------------------------------------------------


def test_an_undeclared_failure_says_where_it_was() -> None:
    session = functions().open()
    before = session.digest()
    outcome = session.call("break_there", {})
    assert (outcome.kind, outcome.code) == ("execution_error", "KeyError")
    assert outcome.message == "'<object object at 0x…>'"
    first, *frames = outcome.undeclared.splitlines()
    assert first == "break_there raised KeyError: '<object object at 0x…>'"
    assert [frame.partition(",")[0].strip() for frame in frames] == [f"{__name__}.break_there"]
    assert session.digest() == before
    assert "/" not in outcome.undeclared
    assert outcome == cw.Outcome("execution_error", None, "KeyError", outcome.message), "it is no part of the outcome"
    assert "break_there" not in tell(outcome)


def test_an_exception_that_cannot_be_printed_is_told_all_the_same() -> None:
    outcome = functions().open().call("break_there", {"how": "str"})
    assert (outcome.code, outcome.message) == ("Unspeakable", "")


def test_the_owner_says_what_undeclared_failures_become() -> None:
    masked = functions(undeclared="mask").open().call("break_there", {})
    assert masked.kind == "infrastructure_error"
    assert masked.undeclared
    session = functions(undeclared="raise").open()
    before = session.digest()
    with pytest.raises(ComponentError, match=r"break_there raised KeyError(?s:.*)bug of the tool"):
        session.call("break_there", {})
    assert session.digest() == before
    with pytest.raises(UsageError, match="execution_error, mask, raise"):
        functions(undeclared="ignore")


def attempt_of(environment: FunctionEnvironment, *calls: cw.Call) -> Attempt:
    task = cw.Task("t", "?", environment.tools, cw.Answer(()), environment=environment)
    parser = cw.parser("json")
    return Attempt(task, parser.render(cw.Program(calls)), parser)


def test_undeclared_failures_are_counted_by_tool() -> None:
    fine = cw.Call(0, "deposit_there", {"cents": 1})
    attempt = attempt_of(functions(), fine, cw.Call(1, "break_there"), cw.Call(2, "deposit_there", {"cents": 0}))
    counted, other = ToolCalls(), ToolCalls()
    counted.add(attempt)
    assert not counted.calls, "an attempt was executed to count its calls"
    assert attempt.trace is not None
    for _ in range(49):
        counted.add(attempt_of(functions(), fine))
    counted.add(attempt)
    other.add_row(counted.to_row())
    assert other == counted
    other.merge(counted)
    assert other.to_json()["break_there"] | {"account": ""} == {
        "calls": 2,
        "failures": 2,
        "share": 1.0,
        "alarming": True,
        "account": "",
    }
    assert "deposit_there" not in other.to_json()
    assert other.alarm is not None
    assert "break_there in 2 of 2 calls (100.0%)" in other.alarm
    assert ToolCalls().alarm is None
    assert ToolCalls().sentence is None


def test_two_per_cent_are_no_alarm() -> None:
    counted = ToolCalls()
    counted.calls["t"], counted.undeclared["t"] = 100, 2
    assert counted.alarm is None
    assert counted.sentence == "undeclared failures: t in 2 of 100 calls (2.0%)"
    counted.undeclared["t"] = 3
    assert counted.alarm is not None


def test_a_session_of_others_that_raises_is_undeclared_and_misuse_is_not() -> None:
    class Odd(Session):
        def __init__(self, error: Exception) -> None:
            self.error = error

        def call(self, tool: str, arguments: dict[str, Any]) -> cw.Outcome:
            raise self.error

        def digest(self) -> str:
            return ""

        def close(self) -> None:
            return

    from callwright.environments.sessions import call_session

    outcome = call_session(Odd(ValueError("no")), cw.Call(0, "t"), {})
    assert (outcome.kind, outcome.code) == ("execution_error", "ValueError")
    assert outcome.undeclared.startswith("t raised ValueError: no")
    for error in (SessionInUse("two"), ComponentError("bug")):
        with pytest.raises(type(error)):
            call_session(Odd(error), cw.Call(0, "t"), {})


# Threads --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [WORLD.open, lambda: functions().open()], ids=["world", "functions"])
def test_of_two_thousand_deposits_of_eight_threads_none_is_lost_in_silence(make: Any) -> None:
    session = make()
    tool = "deposit" if isinstance(session, cw.environments.StatefulSession) else "deposit_there"
    landed: list[int] = []

    def work() -> None:
        done = 0
        for _ in range(2000):
            try:
                done += session.call(tool, {"cents": 1}).kind == "ok"
            except SessionInUse as error:
                assert "two threads use one session" in str(error)  # noqa: PT017
        landed.append(done)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert len(landed) == 8
    assert session.call(tool, {"cents": 1}).value == sum(landed) + 1


def test_whatever_else_a_second_thread_asks_for_it_is_told() -> None:
    session = WORLD.open()
    with session._turn:
        for ask in (
            session.digest,
            session.fork,
            session.reset,
            lambda: session.call("deposit", {"cents": 1}),
            lambda: session.helper("_digest"),
        ):
            with pytest.raises(SessionInUse):
                ask()
    assert session.call("deposit", {"cents": 1}).kind == "ok"
    copy = pickle.loads(pickle.dumps(WORLD.base("typical", 0).total))  # what a session is made of travels
    assert copy == WORLD.base("typical", 0).total


def test_helpers_run_in_the_turn_of_their_caller() -> None:
    session = WORLD.open()
    first = session.digest()
    session.call("deposit", {"cents": 1})
    assert session.helper("_reset").value == {"digest": first}
    assert session.helper("_load_scenario", {"seed": 1}).kind == "ok"


# What a model reads ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (cw.Outcome("ok", {"a": "é"}), '{"result":{"a":"é"}}'),
        (cw.Outcome("empty", []), '{"result":[]}'),
        (
            cw.Outcome("partial", [1], "CUT", "one is missing"),
            '{"result":[1],"warning":{"code":"CUT","message":"one is missing"}}',
        ),
        (cw.Outcome("refused", None, "BAD_PIN", "wrong"), '{"error":{"code":"BAD_PIN","message":"wrong"}}'),
        (cw.Outcome("unknown"), '{"unknown":{"code":"unknown","message":""}}'),
        (cw.Outcome("ok", "\ud800"), '{"result":"\\ud800"}'),
    ],
)
def test_a_model_reads(outcome: cw.Outcome, text: str) -> None:
    assert tell(outcome) == text
    assert tell(outcome, id=3, name="t") == '{"id":3,"name":"t",' + text[1:]


def test_what_is_no_json_is_told_as_such() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert '"code":"not_json"' in tell(cw.Outcome("ok", circle))
    assert tell(cw.Outcome("ok", {1, 2})) == '{"result":"<set>"}'


@pytest.mark.parametrize("arguments", [{1: 2}, {"name": {1: 2}}, {"name": {"a", "b"}}, {"name": object()}])
def test_arguments_that_are_no_json_are_the_callers_mistake_and_no_bug_of_the_environment(arguments: Any) -> None:
    @cw.tool
    def greet(name: str) -> str:
        """Greet."""
        return name

    for environment in (cw.environment("mine", tools=[greet]), cw.environment("banking", toolsets=[[greet]])):
        outcome = environment.open().call("greet", arguments)
        assert (outcome.kind, outcome.code) == ("schema_error", "value")
        assert outcome.message.startswith("greet: the arguments are no JSON: ")


@cw.tool(read_only=True)
def spell(world: cw.World, /, counts: dict[str, int], numbers: list[int] | dict[str, int] | float = 0.5) -> list[Any]:
    """Letters, so many times."""
    return [letter * count for letter, count in counts.items()] + [repr(numbers)]


def test_whole_numbers_are_whole_wherever_a_schema_says_integer() -> None:
    """Also in objects with any names, and in more than one of several kinds."""
    session = StatefulEnvironment(
        "letters", rows=[Account], tools=[spell], scenarios={"typical": cw.Scenario(rows)}
    ).open()
    for numbers, shown in (([3.0], "[3]"), ({"x": 3.0}, "{'x': 3}"), (3.0, "3.0")):
        outcome = session.call("spell", {"counts": {"a": 2.0, "b": 1}, "numbers": numbers})
        assert outcome == cw.Outcome("ok", ["aa", "b", shown])
