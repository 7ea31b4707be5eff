"""The same thing again: "the same account" is the account that was told of last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from callwright.language.program import Call, Reference
from callwright_plugins.synthesis.language.values.hints import Hint


@frozen
class Same:
    """A value that was told before, until it is known which: the last thing of its ``kind``."""

    kind: str


class Told:
    """The things that were told of so far, the last one of each kind."""

    def __init__(self) -> None:
        self._last: dict[str, str | Reference] = {}

    def take(self, call: Call, hints: Mapping[str, Hint], *, before: bool = False) -> None:
        """Take up what a call is told. What one of a turn ``before`` refers to is nothing to refer to now."""
        for name in sorted(call.arguments):
            value = call.arguments[name]
            if name in hints and hints[name].kind and isinstance(value, str | Reference):
                if isinstance(value, str) or not before:
                    self._last[hints[name].kind] = value
                else:
                    self._last.pop(hints[name].kind, None)

    def is_last(self, value: Any, kind: str) -> bool:
        """Whether a value is the last thing of its kind."""
        return bool(kind) and isinstance(value, str | Reference) and self._last.get(kind) == value

    def resolved(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """Arguments with the things that were meant; ``None`` where nothing of the kind was told of."""
        made: dict[str, Any] = {}
        for name, value in arguments.items():
            if isinstance(value, Same):
                if value.kind not in self._last:
                    return None
                made[name] = self._last[value.kind]
            else:
                made[name] = value
        return made


def told_by(calls: Iterable[Call], hints: Mapping[str, Mapping[str, Hint]]) -> Told:
    """What calls of turns before have told of; ``hints`` are those of the parameters, by tool. Calls of other tools
    tell nothing.
    """
    found = Told()
    for call in calls:
        found.take(call, hints.get(call.tool, {}), before=True)
    return found
