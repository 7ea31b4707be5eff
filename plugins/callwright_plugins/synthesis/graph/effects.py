"""Effects: what a call of a server came to, where the server itself says that all went well.

An environment in this process fails where something is missing. Others' servers often do not: deleting what is not
there is a success, and a search that finds nothing is an object of empty lists. So of a session elsewhere a call of a
tool that takes something away (which a server's tool does unless it says otherwise) and leaves the state as it was has
come to nothing, and so has a result that holds nothing but empty lists and objects. Both are ``empty`` here, which is
what proofs by leaving out calls go by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from callwright.capability import has
from callwright.environments.protocol import Environment, Outcome, OutOfProcess, Session, TellsGoalState, declares
from callwright.language.program import Call
from callwright_plugins.synthesis.exploration.witness import made

#: Empty lists and objects as servers write them into a text.
_NOTHING: Final = frozenset({"", "[]", "{}"})


def made_in_effect(environment: Environment, session: Session, call: Call) -> Outcome:
    """Make a call; its outcome, ``empty`` where it is a server's and has come to nothing."""
    if not declares(environment, OutOfProcess):
        return made(session, call)
    spec = environment.tools.get(call.tool)
    if spec is None or not spec.destructive:
        outcome = made(session, call)
        return evolve(outcome, kind="empty") if outcome.kind == "ok" and holds_nothing(outcome.value) else outcome
    before = state_of(session)
    outcome = made(session, call)
    if outcome.kind == "ok" and state_of(session) == before:
        return evolve(outcome, kind="empty")
    return outcome


def state_of(session: Any) -> Any:
    """What a session has come to: its end state where it tells one, since other bytes may hold the same; or digest."""
    return session.goal_state() if has(session, TellsGoalState) else session.digest()


def holds_nothing(value: Any) -> bool:
    """Whether a value is nothing but empty lists and objects (``{"items": [], "links": []}``), or a text of one."""
    if isinstance(value, str):
        return value.strip() in _NOTHING
    if isinstance(value, Mapping):
        return all(not isinstance(inner, str) and holds_nothing(inner) for inner in value.values())
    return isinstance(value, list) and not any(isinstance(inner, str) or not holds_nothing(inner) for inner in value)
