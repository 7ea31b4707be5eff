"""Goals that are stated: this holds, this has changed, and nothing else has."""

from __future__ import annotations

import json
from typing import Any

import pytest

import callwright as cw
from callwright.environments.base import Base
from callwright.environments.goals import Comparison, Goal, check_paths, check_rows
from callwright.errors import DataError


@cw.row("accounts", prefix="A", index=("owner",))
class Account:
    """Money."""

    id: str
    owner: str
    cents: int
    tags: tuple[str, ...] = ()


@cw.row("payments", prefix="P", stamps=("at",))
class Payment:
    """Money that went."""

    id: str
    account: str
    cents: int
    note: str
    at: int = 0


@cw.row("log", prefix="L", bookkeeping=True)
class Entry:
    """What happened."""

    id: str


def world() -> cw.World:
    rows = [
        Account("A00001", "ada", 900),
        Account("A00002", "bo", 500, ("joint",)),
        Payment("P00001", "A00002", 1, "tea"),
    ]
    return cw.World(Base(rows, now=1000, kinds=[Account, Payment, Entry]))


def pay(state: cw.World, cents: int = 200, note: str = "rent for May") -> None:
    account = state.need(Account, "A00001")
    state.update(account, cents=account.cents - cents)
    state.put(Payment(state.new_id(Payment), "A00001", cents, note, state.now))
    state.put(Entry(state.new_id(Entry)))


RENT: dict[str, Any] = {
    "holds": [
        {
            "table": "payments",
            "where": {"account": "A00001"},
            "has": {"cents": 200, "note": {"contains": "RENT"}},
            "count": 1,
        },
        {"table": "accounts", "where": {"id": "A00001"}, "has": {"cents": {"at_least": 1}}},
    ],
    "changed": [{"table": "accounts", "where": {"owner": "ada"}, "fields": ["cents"]}],
}


def checked(goal: Any, state: cw.World, before: cw.World | None = None) -> Comparison:
    return check_rows(Goal.from_json(goal), state, before)


def told(comparison: Comparison) -> list[str]:
    return list(map(str, comparison.differences))


def test_what_was_asked_for_and_nothing_else() -> None:
    state = world()
    assert checked(RENT, state).credit == 0.0
    pay(state)
    done = checked(RENT, state)
    assert done.equal
    assert done.right == 2  # that the account is not empty held before


def test_a_foreign_change_is_named_and_costs() -> None:
    state = world()
    pay(state)
    state.update(state.need(Account, "A00001"), owner="eve")
    state.drop(state.need(Payment, "P00001"))
    state.put(Payment(state.new_id(Payment), "A00002", 3, "gum"))
    found = checked(RENT, state)
    assert told(found) == [
        'accounts[A00001].owner is {"owner": "eve"}, expected as it was',
        "payments[P00001] is gone, expected as it was",
        'payments[P00003] is {"id": "P00003", "account": "A00002", "cents": 3, "note": "gum", "at": 0}, '
        "expected as it was",
    ]
    assert (found.right, found.wrong, found.credit) == (2, 3, 0.4)
    assert checked({**RENT, "nothing_else": False}, state).equal


def test_what_does_not_hold_is_named() -> None:
    state = world()
    pay(state, 250, "tea")
    found = checked(RENT, state)
    assert told(found)[0] == (
        'payments{"account": "A00001"} is {"cents": 250, "note": "tea"}, expected '
        '{"cents": 200, "note": {"contains": "RENT"}}'
    )
    pay(state)
    assert told(checked(RENT, state))[0] == 'payments{"account": "A00001"} is 2 of them, expected 1 of them'


def test_a_goal_of_nothing_is_that_nothing_changes() -> None:
    state = world()
    assert checked({}, state) == Comparison()
    state.put(Entry(state.new_id(Entry)))
    assert checked({}, state).equal
    pay(state)
    assert checked({}, state).credit == 0.0


def test_what_is_gone() -> None:
    goal = {"holds": [{"table": "payments", "where": {"note": "tea"}, "count": 0}]}
    state = world()
    assert told(checked(goal, state)) == ['payments{"note": "tea"} is 1 of them, expected 0 of them']
    state.drop(state.need(Payment, "P00001"))
    assert checked(goal, state) == Comparison(1)


def test_from_where_it_went_out() -> None:
    begun = world()
    pay(begun)
    state = begun.fork()
    assert not checked({}, state).equal
    assert checked({}, state, begun).equal
    assert checked(RENT, state, begun).right == 0


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ({"at_least": 500}, True), ({"at_least": 501}, False), ({"at_most": 500}, True), ({"at_most": "x"}, False),
        ({"one_of": [1, 500]}, True), ({"not": 500}, False), ({"not": {"at_least": 501}}, True), (500.0, True),
        (True, False), ({"contains": "x"}, False), ({"odd": 1}, False),
    ],
)  # fmt: skip
def test_operators(wanted: Any, fits: bool) -> None:
    goal = {"holds": [{"table": "accounts", "where": {"id": "A00002"}, "has": {"cents": wanted}}]}
    assert checked(goal, world()).equal is fits
    assert not checked({"holds": [{"table": "accounts", "where": {"id": {"contains": 2}}}]}, world())
    assert checked({"holds": [{"table": "accounts", "where": {"tags": {"contains": "joint"}}, "count": 1}]}, world())


def test_a_goal_survives_json() -> None:
    for given in (RENT, {}, {"holds": [{"path": "a.b", "is": None}], "changed": [{"path": "c", "must": False}]}):
        goal = Goal.from_json(given)
        assert Goal.from_json(json.loads(json.dumps(goal.to_json()))) == goal
    assert Goal.from_json(RENT).to_json() == {**RENT, "nothing_else": True}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([], "a goal must be an object"),
        ({"hold": []}, "no part of a goal named 'hold'. Did you mean 'holds'"),
        ({"holds": {}}, "'holds' of a goal must be a list"),
        ({"holds": [{}]}, r"holds\[0\] of a goal must have a 'table' or a 'path'"),
        ({"holds": [{"path": "a"}]}, "'path' and 'is' go together"),
        ({"holds": [{"table": "accounts", "count": -1}]}, r"count of holds\[0\]"),
        ({"holds": [{"table": "accounts", "where": 3}]}, r"where of holds\[0\] must be an object"),
        ({"changed": [{"table": "accounts", "fields": "cents"}]}, "fields a list of names"),
        ({"nothing_else": 1}, "nothing_else"),
        ({"holds": [{"table": "acounts"}]}, "Did you mean 'accounts'"),
        ({"changed": [{"table": "accounts", "fields": ["cent"]}]}, "Did you mean 'cents'"),
        ({"changed": [{"path": "a"}]}, "this state is of rows"),
    ],
)
def test_bad_goals_are_named(given: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        checked(given, world())


def test_other_states_are_named_by_path() -> None:
    before = {"items": {"1": "pen"}, "open": True, "count": 1}
    after = {"items": {"1": "pen", "2": "ink"}, "open": True, "count": 2}
    goal = Goal.from_json({"holds": [{"path": "items.2", "is": "ink"}], "changed": [{"path": "count"}]})
    assert check_paths(goal, before, after) == Comparison(2)
    assert told(check_paths(goal, before, {**after, "open": False})) == ["open is false, expected as it was"]
    assert told(check_paths(goal, before, before)) == [
        'items.2 is not there, expected "ink"',
        "count is as it was, expected changed",
    ]
    with pytest.raises(DataError, match="not of rows"):
        check_paths(Goal.from_json(RENT), before, after)
