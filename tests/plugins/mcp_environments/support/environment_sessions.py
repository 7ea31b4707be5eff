"""What the tests of the environments do with a session, in one vocabulary.

``ok`` and ``executed`` give the value of a call, ``partial`` that of one that came to a part only; ``fails`` gives the
message and ``code`` the code of one that failed and changed nothing.
"""

from __future__ import annotations

from typing import Any

from callwright.environments.stateful import StatefulSession


def ok(session: StatefulSession, tool: str, /, **arguments: Any) -> Any:
    outcome = session.call(tool, arguments)
    assert outcome.kind in ("ok", "empty"), (tool, outcome)
    return outcome.value


def executed(session: StatefulSession, tool: str, /, **arguments: Any) -> Any:
    """Like ``ok``; a part of what was asked for will do."""
    outcome = session.call(tool, arguments)
    assert outcome.executed, (tool, arguments, outcome)
    return outcome.value


def all_executed(session: StatefulSession, *calls: tuple[str, dict[str, Any]]) -> Any:
    """The value of the last one."""
    value = None
    for tool, arguments in calls:
        value = executed(session, tool, **arguments)
    return value


def partial(session: StatefulSession, code: str, tool: str, /, **arguments: Any) -> Any:
    outcome = session.call(tool, arguments)
    assert (outcome.kind, outcome.code) == ("partial", code), outcome
    return outcome.value


def fails(session: StatefulSession, code: str, tool: str, /, **arguments: Any) -> str:
    before = session.digest()
    outcome = session.call(tool, arguments)
    assert (outcome.kind, outcome.code) == ("execution_error", code), outcome
    assert session.digest() == before
    return outcome.message


def code(session: StatefulSession, tool: str, /, **arguments: Any) -> str:
    before = session.digest()
    outcome = session.call(tool, arguments)
    assert outcome.kind == "execution_error", outcome
    assert session.digest() == before
    return outcome.code


def wait(session: StatefulSession, seconds: int) -> None:
    assert session.helper("_advance_clock", {"seconds": seconds}).executed


def need(session: StatefulSession, kind: Any, key: Any) -> Any:
    found = session.world.get(kind, key)
    assert found is not None
    return found
