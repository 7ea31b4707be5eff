"""Policies: every rule of every environment is broken once, and the code that it names is what comes of it.

The programs that break them lie in ``rules/``: by environment, one for each rule, in the order of the policy.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.environments.briefing.policy import Rule
from callwright.environments.rows import table_of
from callwright.environments.stateful import StatefulEnvironment
from callwright_plugins.mcp_environments import TOOLS

#: What a model is told of an environment: a part of a prompt that others have to fit into, too.
LONGEST_BRIEFING = 2500
#: Environments that nobody signs in to: a counter, a car, a map, whoever has the tablet of the household.
NOBODY = {"banking", "payments", "retail_chain", "budget", "trading", "vehicle", "maps"}


class Play:
    """A session with what the programs need: its rows by table, and a hand in them."""

    def __init__(self, environment: StatefulEnvironment, scenario: str = "") -> None:
        self.session = environment.open(scenario, 1)
        self.world = self.session.world
        self.kinds = {table_of(kind).name: kind for kind in environment.kinds}

    def call(self, tool: str, **arguments: Any) -> cw.Outcome:
        return self.session.call(tool, arguments)

    def ok(self, tool: str, **arguments: Any) -> Any:
        """The value of a call that has to succeed, as a step to the one that breaks the rule."""
        outcome = self.call(tool, **arguments)
        assert outcome.executed, outcome
        return outcome.value

    def rows(self, table: str, fits: Callable[[Any], bool] | None = None, **fields: Any) -> Iterator[Any]:
        for row in list(self.world.rows(self.kinds[table])):
            if all(getattr(row, name) == value for name, value in fields.items()) and (fits is None or fits(row)):
                yield row

    def row(self, table: str, fits: Callable[[Any], bool] | None = None, **fields: Any) -> Any:
        return next(self.rows(table, fits, **fields))

    def edit(self, row: Any, **fields: Any) -> Any:
        return self.world.update(row, **fields)

    def need(self, table: str, key: Any) -> Any:
        return self.world.need(self.kinds[table], key)

    def wait(self, seconds: int) -> None:
        self.session.helper("_advance_clock", {"seconds": seconds})


Program = Callable[[Play], cw.Outcome]


@cache
def programs() -> dict[str, list[tuple[str, Program]]]:
    found: dict[str, list[tuple[str, Program]]] = {}
    for path in sorted(Path(__file__).with_name("rules").glob("*.py")):
        found |= runpy.run_path(str(path))["BREAKING"]
    return found


@cache
def made(name: str) -> StatefulEnvironment:
    environment = cw.environment(name)
    assert isinstance(environment, StatefulEnvironment)
    return environment


def rules() -> Iterator[Any]:
    for name in TOOLS:
        policy = made(name).policy
        for number, rule in enumerate(policy.rules if policy is not None else ()):
            yield pytest.param(name, number, rule, id=f"{name}-{number}-{rule.code}")


@pytest.mark.parametrize(("name", "number", "rule"), list(rules()))
def test_breaking_a_rule_comes_to_its_code(name: str, number: int, rule: Rule) -> None:
    code, program = programs()[name][number]
    assert code == rule.code, "the programs are in the order of the rules"
    outcome = program(Play(made(name)))
    assert outcome.code == rule.code, f"{rule.text}\n{outcome}"
    assert outcome.kind in ("execution_error", "refused", "partial", "empty"), outcome


@pytest.mark.parametrize("name", TOOLS)
def test_every_environment_has_a_short_briefing(name: str) -> None:
    environment = made(name)
    policy = environment.policy
    assert policy is not None
    assert len(programs()[name]) == len(policy.rules) >= 6
    for scenario in environment.scenarios:
        told = environment.briefing(environment.open(scenario))
        assert len(told) < LONGEST_BRIEFING
        assert told.startswith(policy.role)
        assert "\nNow: Monday, 2026-03-02T09:00:00Z." in told or environment.scenarios[scenario].now != 1_772_442_000
        assert ("\nSigned in: " in told) == (name not in NOBODY)
        assert told.count("\n- ") == len(policy.rules)


@pytest.mark.parametrize("name", TOOLS)
def test_a_rule_names_a_code_that_the_environment_knows(name: str) -> None:
    """Codes are looked for in the source beside the policy, so that a typing error is found without a program."""
    folder = Path(__file__).parents[3] / "plugins" / "callwright_plugins" / "mcp_environments"
    source = "".join(
        path.read_text("utf-8") for path in (folder / name).glob("*.py") if path.name != "policy.py"
    ) + "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    policy = made(name).policy
    assert policy is not None
    assert [rule.code for rule in policy.rules if f'"{rule.code}"' not in source] == []


def test_the_time_that_is_told_is_the_sessions() -> None:
    environment = made("calendar")
    session = environment.open()
    session.helper("_advance_clock", {"seconds": 86_400})
    assert "Now: Tuesday, 2026-03-03T09:00:00Z." in environment.briefing(session)
