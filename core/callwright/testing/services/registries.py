"""Which plugins the checks use beside what is checked: those of the command that checks them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from callwright.plugins import Registry, default_registry

_used: ContextVar[Registry | None] = ContextVar("callwright_testing_registry", default=None)


@contextmanager
def checking_with(registry: Registry) -> Iterator[None]:
    """Let checks in this block take forms, rewards and environments from a registry.

    A plugin that the user left out with ``-p no:NAME`` then plays no part in the checks of another one.
    """
    token = _used.set(registry)
    try:
        yield
    finally:
        _used.reset(token)


def registry_in_use() -> Registry:
    """The registry of the innermost :func:`checking_with`, or the default one."""
    return _used.get() or default_registry()
