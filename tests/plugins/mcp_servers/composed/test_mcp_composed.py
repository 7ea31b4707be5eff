"""Composed environments and MCP, in both directions: a foreign server as a part, and a server of several parts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

import callwright as cw
from callwright.errors import UnknownName, UsageError
from callwright_plugins.mcp_servers.serving.service import Service


def test_a_foreign_server_is_a_part_like_any_other(wrap: Callable[..., Any]) -> None:
    environment = cw.compose(wrap("odd_server.py", "plain", pool=2), "calendar")
    session: Any = environment.open("typical", 3)
    session.keep_time(cw.environments.ClockPolicy())
    first = session.digest()
    assert session.call("list_notes", {}).executed
    assert session.call("add_note", {"text": "ink"}).executed
    assert session.call("list_calendars", {}).executed
    assert session.now == 1_772_442_000 + 60
    assert session.digest() != first
    assert session.call("list_notes", {}).value is not None
    with pytest.raises(UsageError, match="conversation with a server"):
        deepcopy(session)
    fork = session.fork()
    assert fork.digest() == session.digest()
    fork.close()
    session.reset()
    assert session.digest() == first
    session.close()


def test_a_foreign_server_without_scenarios_takes_the_name_of_none(wrap: Callable[..., Any]) -> None:
    server = wrap("odd_server.py", "plain")
    environment = cw.compose(server, "calendar")
    assert environment.scenarios == ("typical", "sparse", "adversarial")  # type: ignore[attr-defined]
    environment.open("sparse").close()
    session = environment.open(f"{server.name}=nowhere")
    with pytest.raises(UnknownName, match="nowhere"):
        session.call("list_notes", {})


def test_a_server_of_several_parts_answers_as_they_do_here() -> None:
    from callwright_plugins.mcp_servers.wrapping.environment import MCPEnvironment

    here = cw.compose("email", "calendar")
    there = MCPEnvironment([sys.executable, "-m", "callwright", "env", "serve", "email+calendar", "--stdio"], pool=1)
    try:
        served = there.open("email=sparse,calendar=typical", 4)
        session = here.open("email=sparse,calendar=typical", 4)
        assert served.digest() == session.digest()
        for tool in ("list_folders", "list_calendars"):
            assert served.call(tool, {}) == session.call(tool, {})
        assert set(there.tools) == set(here.tools)
    finally:
        there.stop()
    assert Service(here).instructions().count("Signed in") >= 1
