"""One factory for the twenty environments: what differs between them lies in the modules of their packages."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from callwright.environments.stateful import StatefulEnvironment, Toolsets

#: Parts of every environment: the keyword of :class:`callwright.StatefulEnvironment`, and where a package has it.
_EVERY: Final = {
    "rows": "rows:ROWS",
    "tools": "tools:TOOLS",
    "scenarios": "scenarios:SCENARIOS",
    "policy": "policy:POLICY",
    "knowledge": "knowledge:known",
    "people": "people:named",
}
#: Parts of some.
_SOME: Final = {
    "person": "policy:signed_in",
    "bank": "card:BANK",
    "charges": "charges:CHARGES",
    "events": "events:EVENTS",
}


class Factory(Protocol):
    """What makes an environment."""

    def __call__(self, *, toolsets: Toolsets = (), scale: float = 1.0) -> StatefulEnvironment: ...


def factory(package: str, *parts: str) -> Factory:
    """What makes the environment of a package, with those ``parts`` that not every environment has.

    The package's modules are imported when an environment is made.
    """
    places = _EVERY | {part: _SOME[part] for part in parts}

    def environment(*, toolsets: Toolsets = (), scale: float = 1.0) -> StatefulEnvironment:
        """The environment; ``toolsets`` and ``scale`` as in :class:`callwright.StatefulEnvironment`."""
        from callwright.environments.stateful import StatefulEnvironment

        found = dict(_found(package, places.items()))
        return StatefulEnvironment(package.rpartition(".")[2], **found, toolsets=toolsets, scale=scale)

    environment.__module__, environment.__qualname__ = package, "environment"  # where pickle finds it
    return environment


def _found(package: str, places: Iterable[tuple[str, str]]) -> Iterable[tuple[str, Any]]:
    for part, place in places:
        module, _, name = place.partition(":")
        yield part, getattr(importlib.import_module(f"{package}.{module}"), name)
