"""The shipped environments composed: by name, and coming to what they come to alone."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

import callwright as cw
from callwright.environments.composed.environment import ComposedEnvironment
from callwright.environments.goals.comparing import compare
from callwright.errors import UnknownName, UsageError
from callwright.plugins import load_plugins
from callwright.testing import checks_for
from callwright_plugins.mcp_environments import TOOLS

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
#: Together all twenty.
GROUPS = [list(TOOLS)[start : start + 4] for start in range(0, len(TOOLS), 4)]
PAIRS = [("email", "calendar"), ("food_delivery", "banking"), ("team_chat", "issue_tracker")]


def scripts() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    from environment_speed import scripts as found

    return {name: calls for name, (calls, _) in found().items()}


def composed(*names: str) -> ComposedEnvironment:
    made = cw.compose(*names)
    assert isinstance(made, ComposedEnvironment)
    return made


@pytest.mark.parametrize("names", GROUPS, ids="+".join)
def test_a_session_of_several_comes_to_what_several_sessions_come_to(names: list[str]) -> None:
    environment = cw.compose(*names, people="own", money="own")
    public = {(environment.parts[number].name, tool): name for name, (number, tool) in environment.routes.items()}
    calls = {name: list(script) for name, script in scripts().items() if name in names}
    whole = environment.open("typical", 0)
    apart: dict[str, Any] = {name: cw.environment(name).open("typical", 0) for name in names}
    for session in apart.values():
        session.wait_until(whole.now)  # some begin at another time of the day
    rng = Random(5)
    while calls:
        name = rng.choice(sorted(calls))
        tool, arguments = calls[name].pop(0)
        assert whole.call(public[name, tool], arguments) == apart[name].call(tool, arguments)
        if not calls[name]:
            del calls[name]
    for name, session in apart.items():
        part = whole.part(name)
        assert part.digest() == session.digest()
        assert compare(None, session.goal_state(), part.goal_state()).equal
    assert whole.goal_state()["parts"] == {
        name: session.goal_state() for name, session in apart.items() if session.goal_state()["tables"]
    }


@pytest.mark.parametrize("check", checks_for("environment"), ids=str)
@pytest.mark.parametrize("names", PAIRS, ids="+".join)
def test_pairs_pass_the_conformance_kit(names: tuple[str, str], check: Any) -> None:
    check(composed(*names))


def test_a_registry_knows_them_by_name_and_so_do_other_processes() -> None:
    environment = cw.environment("email+calendar")
    assert environment is cw.compose("email", "calendar")
    assert environment.name == "email+calendar"
    assert pickle.loads(pickle.dumps(environment)) is environment
    bigger = cw.compose("email", "calendar", scale=2, email={"scale": 3})
    assert [part.scale for part in bigger.parts] == [3.0, 2.0]  # type: ignore[attr-defined]
    assert len(pickle.dumps(bigger)) < 1000
    assert pickle.loads(pickle.dumps(bigger)) is bigger
    registry = load_plugins()
    assert registry.knows("environment", "email+calendar")
    assert not registry.knows("environment", "email+calender")
    assert not registry.knows("corpus", "email+calendar")
    with pytest.raises(UnknownName, match="calendar"):
        cw.environment("email+calender")
    with pytest.raises(UnknownName, match="option of the environment"):
        cw.environment("email+calendar", scales=2)
    with pytest.raises(UsageError, match="must be an object"):
        cw.environment("email+calendar", email=3)


def test_names_and_environments_are_composed_alike() -> None:
    mine = cw.environment("mine", tools=[])
    environment = cw.compose(mine, "maps", maps={"scale": 0.5})
    assert environment.name == "mine+maps"
    assert environment.parts[1].scale == 0.5  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="'email'"):
        cw.compose(mine, "maps", email={"scale": 2})


def test_what_a_part_reaches_for_is_said_of_the_whole() -> None:
    registry = load_plugins()
    spec = registry.spec("environment", "mcp+email")
    (reach,) = spec.reach({"mcp": {"command": ["server", "--flag"]}})
    assert reach.kind == "process"
    assert "server --flag" in reach.what
    assert "mcp" in reach.options
    assert not registry.spec("environment", "email+calendar").reach({})


def test_all_twenty_are_one_environment() -> None:
    environment = composed(*TOOLS)
    assert len(environment.tools) == 343
    session = environment.open("typical", 1)
    session.keep_time(cw.environments.ClockPolicy())
    session.elapse(3600)
    assert session.call("list_calendars", {}).executed
    assert session.briefing().count("Now: ") == 1
