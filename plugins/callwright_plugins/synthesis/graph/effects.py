"""Effects: what a call of a server came to, where the server itself says that all went well.

An environment in this process fails where something is missing. Others' servers often do not: deleting what is not
there is a success, and a search that finds nothing is an object of empty lists. So of a session elsewhere a call that
may change something and leaves the digest as it was has come to nothing, and so has a result that holds nothing but
empty lists and objects. Both are ``empty`` here, which is what proofs by leaving out calls go by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from callwright.environments.protocol import Environment, Outcome, OutOfProcess, Session, declares
from callwright.language.program import Call
from callwright_plugins.synthesis.exploration.witness import made


def made_in_effect(environment: Environment, session: Session, call: Call) -> Outcome:
    """Make a call; its outcome, ``empty`` where it is a server's and has come to nothing."""
    if not declares(environment, OutOfProcess):
        return made(session, call)
    spec = environment.tools.get(call.tool)
    if spec is None or spec.read_only:
        outcome = made(session, call)
        return evolve(outcome, kind="empty") if outcome.kind == "ok" and holds_nothing(outcome.value) else outcome
    before = session.digest()
    outcome = made(session, call)
    if outcome.kind == "ok" and session.digest() == before:
        return evolve(outcome, kind="empty")
    return outcome


def holds_nothing(value: Any) -> bool:
    """Whether a value is nothing but empty lists and objects: ``{"entities": [], "relations": []}``."""
    if isinstance(value, Mapping):
        return all(map(holds_nothing, value.values()))
    return isinstance(value, list) and all(map(holds_nothing, value))
