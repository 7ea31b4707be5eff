"""Calls to try in the sessions of an environment, and what they are answered; the same ones for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from callwright.environments.protocol import Environment, Session
from callwright.environments.sessions import open_session
from callwright.errors import InfrastructureFailure
from callwright.testing.arguments import WORDS, fitting_arguments, wrong_arguments
from callwright.testing.expectations import shown, snapshot
from callwright.testing.services.progress import calling
from callwright.walk.execution import copy_json

Calls = Sequence[tuple[str, dict[str, Any]]]
#: How often every tool is called, and how many texts of the answers are remembered for further calls.
_ROUNDS: Final = 3
_HEARD: Final = 60


def drawn_calls(
    environment: Environment, scenario: str, given: Calls | None, *, wrong: bool = False
) -> list[tuple[str, dict[str, Any]]]:
    """The given calls, then some of every tool with drawn arguments; with ``wrong`` also some that do not fit.

    A session is explored for them: texts in its answers are arguments of the next calls, so that ids and names which
    only the environment knows are tried too.
    """
    calls = [(tool, copy_json(arguments)) for tool, arguments in given or ()]
    rng, heard = Random(11), dict.fromkeys(WORDS[:3])
    session = open_session(environment, scenario, 0)
    for tool, arguments in calls:
        _listen(ask(session, tool, arguments), heard)
    for _ in range(_ROUNDS):
        for name, spec in sorted(environment.tools.items()):
            fitting = fitting_arguments(spec, rng, list(heard)[-_HEARD:])
            if fitting is not None:
                calls.append((name, fitting))
                _listen(ask(session, name, fitting), heard)
    close_all(session)
    if wrong:
        for name, spec in sorted(environment.tools.items()):
            calls += [(name, arguments) for arguments in wrong_arguments(spec, rng)]
    return calls


def _listen(outcome: Any, heard: dict[str, None]) -> None:
    """Remember the short texts of an answer."""
    left = [getattr(outcome, "value", None)]
    while left and len(heard) < _HEARD:
        value = left.pop()
        if isinstance(value, str) and len(value) <= 60:
            heard[value] = None
        elif isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value[:5])


def ask(session: Session, tool: str, arguments: dict[str, Any], *, copied: bool = True) -> Any:
    """The outcome; ``None`` if the session says that its machinery failed."""
    try:
        with calling(tool, arguments):
            return session.call(tool, copy_json(arguments) if copied else arguments)
    except InfrastructureFailure:
        return None
    except Exception as error:
        raise AssertionError(
            f"{tool}({shown(arguments)}) raised {type(error).__name__}: {error}; a session's failures are Outcomes, or "
            "InfrastructureFailure if the machinery failed"
        ) from error


def same_answer(one: Any, other: Any) -> bool:
    """Whether two answers are equal: kind, code and value, or the machinery failed both times."""
    return type(one) is type(other) and (
        one is None or (one.kind, one.code, snapshot(one.value)) == (other.kind, other.code, snapshot(other.value))
    )


def close_all(*sessions: Session) -> None:
    """Close sessions."""
    for session in sessions:
        session.close()
