"""Worlds that are opened once: conversations of one scenario and seed begin in forks of the same session."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from typing import Any, Final

from callwright.environments.protocol import Environment, OutOfProcess, Session, declares
from callwright.plugins import Registry

#: Worlds that a thread keeps: conversations are planned world by world.
_KEPT: Final = 4
_threads: Final = threading.local()
_made: Final[dict[tuple[int, str], tuple[Registry, Environment]]] = {}


def environment_of(registry: Registry, name: str) -> Environment:
    """A registered environment, made once. Raises :class:`callwright.errors.UnknownName`."""
    key = id(registry), name
    if key not in _made:
        if len(_made) >= 64:
            _made.clear()
        _made[key] = registry, registry.create("environment", name)
    return _made[key][1]


class ForkedEnvironment:
    """An environment whose sessions are forks of ones that are open, where they can be: opening one is what costs."""

    def __init__(self, environment: Environment) -> None:
        self._inner = environment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open(self, scenario: str = "", seed: int = 0) -> Session:
        """A fresh session."""
        fork = getattr(_first(self._inner, scenario, seed), "fork", None)
        made: Session = self._inner.open(scenario, seed) if fork is None else fork()
        return made


def forked(environment: Environment) -> Environment:
    """The environment as :class:`ForkedEnvironment`; one whose sessions live elsewhere as it is."""
    if declares(environment, OutOfProcess):
        return environment
    made: Any = _forked_class(type(environment))(environment)
    return made  # type: ignore[no-any-return]


@functools.cache
def _forked_class(kind: type[Any]) -> type[ForkedEnvironment]:
    """A class of its own for each class of environments: what one can do is looked up by its class, once."""
    return type(f"Forked{kind.__name__}", (ForkedEnvironment,), {})


def _first(environment: Environment, scenario: str, seed: int) -> Session:
    kept: OrderedDict[Any, tuple[Environment, Session]] | None = getattr(_threads, "kept", None)
    if kept is None:
        kept = _threads.kept = OrderedDict()
    key = id(environment), scenario, seed
    if key not in kept:
        kept[key] = environment, environment.open(scenario, seed)  # the environment, so that its id stays its own
        if len(kept) > _KEPT:
            kept.popitem(last=False)[1][1].close()
    kept.move_to_end(key)
    return kept[key][1]
