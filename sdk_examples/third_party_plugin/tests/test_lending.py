"""What is special about the components. That they fit the system is said by the conformance checks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import callwright as cw
from callwright.commands import App
from callwright.plugins import load_plugins
from callwright.testing import Check, checks_for

COMPONENTS = [(kind, lazy.name) for kind, lazy in load_plugins().components() if lazy.plugin == "lending"]
CHECKS = [
    pytest.param(kind, name, check, id=f"{name}-{check.name}")
    for kind, name in COMPONENTS
    for check in checks_for(kind)
]


def test_everything_is_registered() -> None:
    assert COMPONENTS == [
        ("toolset", "banking-goals"),
        ("environment", "banking-with-pledges"),
        ("environment", "lending-v1"),
        ("reward component", "look-first"),
        ("reward recipe", "tier-look-first"),
        ("corpus", "lending-mini-v1"),
        ("command", "lending hasty"),
    ]


@pytest.mark.parametrize(("kind", "name", "check"), CHECKS)
def test_conformance(kind: str, name: str, check: Check) -> None:
    check(cw.default_registry().create(kind, name))


@pytest.fixture
def score() -> Callable[[str], cw.Reward]:
    """Scores a body of calls for the task that lends a book."""
    task = cw.corpus("lending-mini-v1")["evaluation"][0]

    def of(body: str) -> cw.Reward:
        text = f'<think>.</think>\n<tool_call return="one">\n{body}\n</tool_call>'
        return cw.reward("tier-look-first").score(task, text)

    return of


def test_looking_first_earns_every_point(score: Callable[[str], cw.Reward]) -> None:
    body = (
        '{"0": {"find_books": {"topic": "tea"}},'
        ' "1": {"borrow": {"title": "API_RESPONSE_0[0].title", "member": "Ann"}}}'
    )
    assert score(body).total == pytest.approx(1)


def test_a_guess_that_happens_to_be_right_loses_this_point_only(score: Callable[[str], cw.Reward]) -> None:
    reward = score('{"0": {"borrow": {"title": "Leaves", "member": "Ann"}}}')
    assert reward.total == pytest.approx(10 / 11)
    assert "look-first 0/1: call 0 borrow changes something" in reward.explain()


def test_the_command_lists_those_who_do_not_look(tmp_path: Path) -> None:
    """Of Callwright it needs the kit alone; the command line would find it by its hook."""
    rows = tmp_path / "rows.jsonl"
    body = '{"0": {"borrow": {"title": "Leaves", "member": "Ann"}}}'
    guess = f'<think>.</think>\n<tool_call return="one">\n{body}\n</tool_call>'
    good = {"id": 1, "task": "evaluation-3", "completion": "no program"}
    rows.write_text("".join(json.dumps(row) + "\n" for row in (good, {**good, "id": 2, "completion": guess}, {}, 3)))
    hasty = cw.default_registry().create("command", "lending hasty")
    done = CliRunner().invoke(hasty, [str(rows), "--json"], obj=App(registry=cw.default_registry()))
    assert done.exit_code == 1
    assert [(found["id"], found["call"]) for found in json.loads(done.stdout)] == [("2", 0)]
    assert done.stderr.splitlines() == [
        f"{rows}:3: the row needs 'task', the id of a task, and 'completion', a string",
        f"{rows}:4: expected an object, found a number",
    ]
    drawn = CliRunner().invoke(hasty, [str(rows)], obj=App(registry=cw.default_registry()))
    assert "nothing was looked up about" in " ".join(drawn.stdout.split())


def test_a_failed_call_changes_nothing() -> None:
    session = cw.environment("lending-v1").open("closed")
    before = session.digest()
    assert session.call("borrow", {"title": "Leaves", "member": "Ann"}).code == "none_free"
    assert session.digest() == before


def test_a_toolset_joins_the_bank() -> None:
    bank = cw.environment("banking", toolsets=["banking-goals"])
    assert isinstance(bank, cw.StatefulEnvironment)
    session, plain = bank.open(), cw.environment("banking").open()
    account = session.call("list_accounts", {"customer_id": "C00001"}).value["items"][0]["account_id"]
    goal = {"account_id": account, "label": "a boat", "target_cents": 10_000_00}
    first = session.digest()
    assert session.call("set_savings_goal", goal).value["id"] == "G00001"
    assert [session.call("set_savings_goal", goal).kind for _ in range(3)] == ["ok", "ok", "execution_error"]
    assert session.call("set_savings_goal", goal).code == "TOO_MANY_GOALS"
    assert len(session.call("list_savings_goals", {"account_id": account}).value) == 3
    assert session.digest() != first
    session.reset()
    assert session.digest() == first
    assert plain.call("set_savings_goal", goal).kind == "unknown_tool"


def test_an_extended_bank_has_its_own_tables_and_the_banks_worlds() -> None:
    bank = cw.environment("banking-with-pledges")
    assert isinstance(bank, cw.StatefulEnvironment)
    session, plain = bank.open("typical", seed=3), cw.environment("banking").open("typical", seed=3)
    for tool, arguments in (("list_accounts", {"customer_id": "C00001"}), ("find_customer", {"query": "a"})):
        assert session.call(tool, arguments).value == plain.call(tool, arguments).value
    account = session.call("list_accounts", {"customer_id": "C00001"}).value["items"][0]["account_id"]
    assert len(session.call("list_pledges", {"account_id": account}).value) == 1
    before = session.digest()
    assert session.call("pledge", {"account_id": account, "cents": 10**12}).code == "PLEDGED_TOO_MUCH"
    assert session.digest() == before
    assert session.call("pledge", {"account_id": account, "cents": 1}).executed
    assert list(session.diff()["pledges"]) == ["added"]
    assert session.goal_state() != bank.open("typical", seed=3).goal_state()
    assert "PLEDGED_TOO_MUCH" in session.briefing()
    session.reset()
    assert session.digest() == before
    assert plain.call("list_pledges", {"account_id": account}).kind == "unknown_tool"
