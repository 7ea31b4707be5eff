"""Commands take environments of several by name."""

from __future__ import annotations

from collections.abc import Callable

from click.testing import Result

import callwright as cw


def test_commands_know_them_by_name(invoke: Callable[..., Result]) -> None:
    known = cw.default_registry()
    words = ("env", "call", "email+calendar", "list_calendars", "--scenario", "calendar=sparse")
    found = invoke(*words, plugins=known)
    assert found.exit_code == 0, found.output
    assert found.output.startswith("ok")
    listed = invoke("env", "tools", "email+team_chat", "--json", plugins=known)
    assert "email__search_messages" in listed.output
    wrong = invoke("env", "call", "email+calender", "list_calendars", plugins=known)
    assert wrong.exit_code != 0
    assert "'calendar'" in wrong.stderr


def test_in_the_shell_time_passes_for_all_parts_and_there_are_no_helpers(invoke: Callable[..., Result]) -> None:
    lines = "create_draft subject=Tea\n:wait 60\n:helper\n:undo\n:reset sparse\n"
    found = invoke("env", "shell", "email+calendar", "--clock", "on", input=lines, plugins=cw.default_registry())
    assert found.exit_code == 0, found.output
    assert "email.drafts" in found.output
    assert "clock" in found.output
    assert ":helper needs helper()" in found.stderr
