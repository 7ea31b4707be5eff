"""Environments of plain functions: isolated sessions, failures that change nothing, digests of any state."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import os
import random
import subprocess
import sys
from collections import OrderedDict, deque
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import callwright as cw
from callwright.digests import digest_of
from callwright.environments import FunctionEnvironment
from callwright.errors import NameClash
from callwright.walk import execute


@dataclasses.dataclass
class Bank:
    owner: str
    balance: float = 100.0
    log: list[str] = dataclasses.field(default_factory=list)
    tags: set[str] = dataclasses.field(default_factory=set)


@cw.tool(read_only=True)
def balance(bank: Bank, /) -> float:
    """The balance."""
    return bank.balance


@cw.tool
def pay(bank: Bank, /, amount: float, to: str = "shop") -> dict[str, Any]:
    """Pay."""
    bank.log.append(f"{to} {amount:g}")
    bank.balance -= amount
    if bank.balance < 0:
        raise cw.ToolError("insufficient", f"{-bank.balance:g} too little")
    return {"paid": amount, "log": bank.log}


@cw.tool
def explode(bank: Bank, /) -> None:
    """A bug."""
    bank.balance = -1
    raise ZeroDivisionError("by nothing")


@cw.tool
def vanish(bank: Bank, /) -> None:
    """The machinery fails."""
    bank.balance = -1
    raise cw.InfrastructureFailure("gone")


@cw.tool(hidden=True)
def audit(bank: Bank, /) -> list[str]:
    """For synthesis only."""
    return bank.log


TOOLS = [balance, pay, explode, vanish, audit]


def bank(scenario: str, seed: int) -> Bank:
    return Bank(scenario or "nobody", 100.0 + seed)


@pytest.fixture
def environment() -> FunctionEnvironment:
    return FunctionEnvironment("bank", TOOLS, state=bank)


def test_it_is_an_environment(environment: FunctionEnvironment) -> None:
    assert isinstance(environment, cw.Environment)
    assert isinstance(environment.open(), cw.Session)
    assert (environment.name, environment.pure) == ("bank", False)
    assert list(environment.tools) == ["balance", "pay", "explode", "vanish", "audit"]


def test_scenario_and_seed_make_the_state(environment: FunctionEnvironment) -> None:
    assert environment.open("ann", 5).call("balance", {}) == cw.Outcome("ok", 105.0)
    assert environment.open("ann", 5).digest() == environment.open("ann", 5).digest()
    assert environment.open("ann", 5).digest() != environment.open("ann", 6).digest()
    assert environment.open("ann", 5).digest() != environment.open("bob", 5).digest()


def test_sessions_do_not_see_each_other(environment: FunctionEnvironment) -> None:
    first, second = environment.open(), environment.open()
    before = second.digest()
    assert first.call("pay", {"amount": 30}).value == {"paid": 30.0, "log": ["shop 30"]}
    assert first.call("balance", {}).value == 70.0
    assert second.call("balance", {}).value == 100.0
    assert second.digest() == before != first.digest()


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "code"),
    [
        ("steal", {}, "unknown_tool", "unknown_tool"),
        ("pay", {}, "schema_error", "missing"),
        ("pay", {"amount": "30"}, "schema_error", "type"),
        ("pay", {"amount": 30, "bank": {}}, "schema_error", "unexpected"),
        ("pay", {"amount": "API_RESPONSE_0"}, "schema_error", "type"),
        ("pay", {"amount": 500}, "execution_error", "insufficient"),
        ("explode", {}, "execution_error", "ZeroDivisionError"),
    ],
)
def test_a_failed_call_changes_nothing(
    environment: FunctionEnvironment, tool: str, arguments: dict[str, Any], kind: str, code: str
) -> None:
    session = environment.open()
    session.call("pay", {"amount": 1})
    before = session.digest()
    outcome = session.call(tool, arguments)
    assert (outcome.kind, outcome.code, outcome.value) == (kind, code, None)
    assert outcome.message
    assert session.digest() == before
    assert session.call("balance", {}).value == 99.0


def test_a_failure_of_the_machinery_changes_nothing_and_is_passed_on(environment: FunctionEnvironment) -> None:
    session = environment.open()
    before = session.digest()
    with pytest.raises(cw.InfrastructureFailure):
        session.call("vanish", {})
    assert session.digest() == before


def test_a_hidden_tool_is_for_whoever_holds_the_session(environment: FunctionEnvironment) -> None:
    assert environment.open().call("audit", {}) == cw.Outcome("ok", [])
    trace = execute(cw.Program((cw.Call(0, "audit", {}),)), environment, environment.tools)
    assert trace.records[0].outcome.kind == "unknown_tool"


def test_empty_results_are_results_of_reading() -> None:
    values: dict[str, Any] = {
        "list": [],
        "object": {},
        "null": None,
        "page": {"items": [], "total": 0, "next_cursor": None},
        "zero": 0,
        "text": "",
        "false": False,
        "cart": {"id": "B1", "items": []},
    }

    @cw.tool(read_only=True)
    def look(kind: str) -> Any:
        return values[kind]

    @cw.tool
    def write(kind: str) -> Any:
        return values[kind]

    session = FunctionEnvironment("e", [look, write]).open()
    found = {kind: session.call("look", {"kind": kind}) for kind in values}
    assert [kind for kind, outcome in found.items() if outcome.kind == "empty"] == ["list", "object", "null", "page"]
    assert all(outcome.executed for outcome in found.values())
    assert {session.call("write", {"kind": kind}).kind for kind in values} == {"ok"}


def test_what_is_no_toolset_is_refused() -> None:
    with pytest.raises(NameClash, match="two tools named 'balance'"):
        FunctionEnvironment("e", [balance, balance])
    with pytest.raises(cw.UsageError, match=r"is not a tool; decorate it with @callwright.tool"):
        FunctionEnvironment("e", [len])  # type: ignore[list-item]


def test_a_session_may_be_closed_twice(environment: FunctionEnvironment) -> None:
    session = environment.open()
    session.close()
    session.close()


# Digests --------------------------------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = 1


@attrs.define
class Slotted:
    x: Any
    y: set[str]


@dataclasses.dataclass(slots=True)
class SlottedData:
    x: Any


class Plain:
    def __init__(self, x: Any) -> None:
        self.x = x


class Model(BaseModel):
    x: Any = 1


STATES: list[Any] = [
    None,
    True,
    1,
    1.5,
    "1",
    "",
    b"1",
    [],
    {},
    set(),
    [1],
    ["1"],
    [[1]],
    {"a": 1},
    {"a": "1"},
    {"b": 1},
    {1: "a"},
    {"1": "a"},
    {(1, 2): 3},
    {None: 1},
    {"x"},
    ["x"],
    Colour.RED,
    datetime.date(2026, 1, 2),
    "2026-01-02",
    datetime.datetime(2026, 1, 2),
    datetime.timedelta(1),
    Decimal("1.0"),
    Decimal("1.00"),
    PurePosixPath("a/b"),
    Slotted(1, {"a"}),
    Slotted(2, {"a"}),
    SlottedData(1),
    Plain(1),
    Plain(2),
    Model(),
    Model(x=2),
    random.Random(1),
    random.Random(2),
    deque([1, 2]),
]


def test_different_states_have_different_digests() -> None:
    digests = [digest_of(state) for state in STATES]
    assert len(set(digests)) == len(STATES)
    assert all(len(digest) == 64 for digest in digests)


def test_equal_states_have_equal_digests() -> None:
    assert digest_of({"a": 1, "b": [2]}) == digest_of(OrderedDict(b=[2], a=1)) == digest_of({"b": (2,), "a": 1})
    assert digest_of(Model()) == digest_of(Model(x=1))
    assert digest_of(frozenset("abc")) == digest_of(set("cba"))
    path = PurePosixPath("a/b")
    before = digest_of(path)
    assert str(path)  # remembered inside of the path from now on
    assert digest_of(path) == before


@given(st.sets(st.text(max_size=3)), st.dictionaries(st.integers() | st.text(max_size=2), st.integers(), max_size=5))
def test_no_order_of_hashing_or_of_insertion_shows(texts: set[str], pairs: dict[Any, int]) -> None:
    assert digest_of([texts, pairs]) == digest_of([dict.fromkeys(sorted(texts)).keys(), dict(reversed(pairs.items()))])


def test_digests_are_the_same_in_every_process() -> None:
    """Sets of text are iterated in another order under another hash seed."""
    code = "from callwright.digests import digest_of; print(digest_of({'s': set('abcdefgh'), (1, 'x'): {'y', 'z'}}))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


@pytest.mark.parametrize("state", [lambda: 1, len, object(), [print], {"a": iter([])}])
def test_what_has_no_value_has_no_digest(state: Any) -> None:
    with pytest.raises(TypeError, match="no digest can be made of"):
        digest_of(state)
