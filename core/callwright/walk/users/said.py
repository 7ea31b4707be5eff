"""What a task says of its user, and what users say and do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import Attribute, field, frozen

from callwright.errors import ComponentError, DataError, UsageError
from callwright.language.program import Call, plain
from callwright.walk.trace import Trace, observations


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


def need_no_user(task: Any, driver: str, instead: str) -> None:
    """Raise :class:`callwright.UsageError` for a task with a user where ``driver`` leads the conversation: nobody would
    answer in its place, and what is scored would be another task. ``instead`` says what knows users.
    """
    if task.user is not None:
        raise UsageError(
            f"task {task.id!r} has a user ({task.user.name!r}), and {driver} leads the conversation here, in which "
            f"nobody answers for it: {instead}"
        )


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

    ``sign`` is the stop sign by which it is done, of those that a kind of user knows (tau2's ``###TRANSFER###``).

    ``usage`` is what the request behind it took, as :class:`callwright.walk.Completion` has it.

    Raises :class:`callwright.errors.ComponentError` for a text that is none.
    """

    text: str = field(default="", validator=_text)
    calls: tuple[Call, ...] = field(default=(), converter=_listed)
    done: bool = False
    sign: str = ""
    usage: Mapping[str, float] | None = field(default=None, eq=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON: what :meth:`from_json` reads. What is empty is left out, but for the text."""
        calls = [{"tool": call.tool, "arguments": plain(call.arguments)} for call in self.calls]
        told: dict[str, Any] = {"text": self.text, **({"calls": calls} if calls else {})}
        return told | ({"done": True} if self.done else {}) | ({"sign": self.sign} if self.sign else {})

    @classmethod
    def from_json(cls, stated: Any) -> Said:
        """What a row holds. Raises :class:`callwright.errors.DataError` for anything else."""
        if not isinstance(stated, Mapping) or not isinstance(stated.get("text"), str):
            raise DataError(f"what a user said is an object with 'text', not {stated!r:.80}")
        calls = stated.get("calls", [])
        if not isinstance(calls, list) or not all(map(_is_call, calls)):
            raise DataError(f"the calls of a user are objects with 'tool' and 'arguments', not {calls!r:.80}")
        made = tuple(Call(number, one["tool"], dict(one["arguments"])) for number, one in enumerate(calls))
        return cls(stated["text"], made, stated.get("done") is True, str(stated.get("sign", "")))


def _is_call(stated: Any) -> bool:
    return (
        isinstance(stated, Mapping)
        and isinstance(stated.get("tool"), str)
        and isinstance(stated.get("arguments"), Mapping)
    )


@frozen
class UserTurn:
    """What a user said after a turn of the agent, all calls that it made meanwhile, and what these came to.

    ``trace`` holds a record for each call and, in ``final_state``, the digest of the world when the turn was over;
    ``None`` if nobody ran them, as in the record of somebody else.
    """

    said: Said
    trace: Trace | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """What the user said as an object of JSON, and ``observations`` of the calls that it made."""
        found = self.said.to_json()
        if self.said.calls and self.trace is not None:
            found["observations"] = observations(self.trace)
        return found
