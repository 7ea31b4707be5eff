"""Capabilities: what a component offers beyond its kind, each a small protocol in the module of that kind.

A component has one by having its members; it registers nothing. Whoever uses it asks ``has(value, Forks)``, so a
misspelt member is found by name (``callwright plugins check``) and by the type checker, where a string would be
silently nothing. :data:`callwright.capability.listed.CAPABILITIES` lists them all, by kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Capability = TypeVar("Capability")


_members: dict[Any, tuple[str, ...]] = {}


def members(capability: type[Any]) -> tuple[str, ...]:
    """The public members that a protocol asks for, those of the protocols that it extends included, in order."""
    known = _members.get(capability)
    if known is None:
        known = _members[capability] = _read(capability)
    return known


def _read(capability: type[Any]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for one in reversed(capability.__mro__):
        if getattr(one, "_is_protocol", False):
            names = {**vars(one).get("__annotations__", {}), **vars(one)}
            found.update({name: None for name in names if not name.startswith("_")})
    return tuple(found)


def has(value: object, capability: type[Capability]) -> TypeIs[Capability]:
    """Whether a value has every member of a protocol.

    ``isinstance`` asks the class alone from Python 3.12 on; this asks the value, so that a wrapper which hands on what
    it wraps has what that has. ``None`` in place of a method or mapping is the same as not having it.
    """
    for name in _members.get(capability) or members(capability):  # noqa: SIM110 - half the time, and the walk asks
        if getattr(value, name, None) is None:
            return False
    return True


@runtime_checkable
class SetsUp(Protocol):
    """A component with something to open, such as a connection: once a process, before its first attempt."""

    def setup(self) -> Any:
        """Open it; may be ``async``."""


@runtime_checkable
class Closes(Protocol):
    """A component with something to give back: when its recipe is closed, at the latest when the process ends."""

    def close(self) -> Any:
        """Give it back; may be ``async``."""
