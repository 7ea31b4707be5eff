"""What a task says of its user, and what users say and do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import Attribute, field, frozen

from callwright.errors import ComponentError, DataError
from callwright.language.program import Call
from callwright.walk.trace import Trace


def _options(given: Any) -> dict[str, Any]:
    try:
        read = json.loads(json.dumps(given, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"the options of a user must be JSON: {error}") from error
    if not isinstance(read, dict):
        raise DataError(f"the options of a user are an object, not {given!r:.80}")
    return read


def _name(_: Any, attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise DataError(f"the name of a user is a text, not {value!r:.80}")


@frozen
class UserSpec:
    """Who talks with the agent about a task: the registered name of a kind of user, and its options (JSON).

    Raises :class:`callwright.errors.DataError` for anything else.
    """

    name: str = field(validator=_name)
    options: Mapping[str, Any] = field(factory=dict, converter=_options)

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON: what :meth:`from_json` reads."""
        return {"name": self.name, "options": _options(self.options)}

    @classmethod
    def from_json(cls, stated: Any) -> UserSpec | None:
        """The user that a file states: an object with ``name`` and ``options``; ``None`` for ``null``.

        Raises :class:`callwright.errors.DataError` for anything else.
        """
        if stated is None or isinstance(stated, UserSpec):
            return stated
        if not isinstance(stated, Mapping) or not {"name"} <= stated.keys() <= {"name", "options"}:
            raise DataError(f'a user is an object such as {{"name": "scripted", "options": {{}}}}, not {stated!r:.80}')
        return cls(stated["name"], stated.get("options", {}))


def _text(_: Any, attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, str):
        raise ComponentError(f"what a user says is a text, not {value!r:.80}; this is a bug of the user")


def _listed(calls: Iterable[Call]) -> tuple[Call, ...]:
    return tuple(calls)


@frozen
class Said:
    """What a user answers: a text, calls of its own tools, and whether it is done, which ends the episode.

    ``calls`` run on the world of the agent, by the tools that the environment has for users; their arguments are
    literals. A user that only calls
    (no text, not done) is asked again, with what came of it.

    Raises :class:`callwright.errors.ComponentError` for a text that is none.
    """

    text: str = field(default="", validator=_text)
    calls: tuple[Call, ...] = field(default=(), converter=_listed)
    done: bool = False


@frozen
class UserTurn:
    """What a user said after a turn of the agent, all calls that it made meanwhile, and what these came to.

    ``trace`` holds a record for each call and, in ``final_state``, the digest of the world when the turn was over;
    ``None`` if nobody ran them, as in the record of somebody else.
    """

    said: Said
    trace: Trace | None = field(default=None, repr=False)
