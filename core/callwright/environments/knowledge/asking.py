"""Asking what somebody knows, wherever the session lives: here, under a time limit, or in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from callwright.capability import has
from callwright.environments.protocol import Knows, Session
from callwright.environments.undeclared import bugs_of
from callwright.errors import ComponentError, UsageError
from callwright.machines.awaiting import finished

#: The one whose session it is.
ME: Final = "me"


def knowledge_of(session: Session, entity: str = ME) -> dict[str, Any]:
    """What ``entity`` knows in this session: JSON by name, the caller's own; empty where nobody says so.

    ``entity`` is ``"me"``, the user whose session it is, or whoever else the environment knows the knowledge of: by
    id, name or address, as its page says. Asking changes nothing.

    Raises :class:`callwright.errors.ComponentError` for knowledge that is not JSON by name.
    """
    if not has(session, Knows):
        return {}
    return checked(finished(session.knowledge(entity)), entity, "a session")


def tell(known: Callable[[Any, str], Mapping[str, Any] | None], world: Any, entity: str, owner: str) -> dict[str, Any]:
    """What a function of an environment says that ``entity`` knows. It is given a copy of the world.

    Raises :class:`callwright.UsageError` for an entity that is not a text, :class:`callwright.errors.ComponentError`
    where the function raises, and as :func:`knowledge_of`.
    """
    if not isinstance(entity, str):
        raise UsageError(f"knowledge is asked for by the name of somebody, not by {entity!r:.80}")
    with bugs_of(owner, f"the knowledge of {entity!r:.80}"):
        found = known(world.fork(), entity)
    return checked(found, entity, f"the environment {owner!r}")


def checked(found: Any, entity: str, owner: str) -> dict[str, Any]:
    """Knowledge as JSON by name. Raises :class:`callwright.errors.ComponentError` for anything else."""
    if found is None:
        return {}
    wrong = not isinstance(found, Mapping) or not all(isinstance(name, str) and name for name in found)
    try:
        text = "" if wrong else json.dumps(dict(found), allow_nan=False)
    except (TypeError, ValueError):
        wrong = True
    if wrong:
        raise ComponentError(
            f"{owner} says what {entity!r:.80} knows by {found!r:.200}; it has to be JSON values by name. "
            "This is a bug of the environment"
        )
    made: dict[str, Any] = json.loads(text)
    return made
