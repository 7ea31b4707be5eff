"""Worlds that are opened once: conversations of one scenario and seed begin in forks of the same session, and what is
tried out with them goes on from where they have been.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from typing import Any, Final

from callwright.environments.protocol import Environment, OutOfProcess, Session, declares
from callwright.plugins import Registry
from callwright_plugins.synthesis.exploration.remembering import Remembered, goes_by_calls

#: Worlds that a thread keeps: conversations are planned world by world.
_KEPT: Final = 4
#: Places of a world that are remembered: those of a few conversations with all that is tried out.
_PLACES: Final = 400
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


class RememberingEnvironment:
    """An environment whose sessions begin where one stands that is open: in forks of it. Where what they come to hangs
    on the calls alone, each call is executed once, for whoever makes it there.
    """

    def __init__(self, environment: Environment) -> None:
        self._inner = environment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open(self, scenario: str = "", seed: int = 0) -> Session:
        """A fresh session."""
        fork = getattr(_first(self._inner, scenario, seed), "fork", None)
        made: Session = self._inner.open(scenario, seed) if fork is None else fork()
        return made


def remembering(environment: Environment) -> Environment:
    """The environment as :class:`RememberingEnvironment`; one whose sessions live elsewhere as it is."""
    if declares(environment, OutOfProcess):
        return environment
    made: Any = _remembering_class(type(environment))(environment)
    return made  # type: ignore[no-any-return]


def is_remembered(environment: Environment, scenario: str, seed: int) -> bool:
    """Whether sessions of an environment of :func:`remembering` execute each call once in this world."""
    inner: Any = getattr(environment, "_inner", None)
    return inner is not None and isinstance(_first(inner, scenario, seed), Remembered)


@functools.cache
def _remembering_class(kind: type[Any]) -> type[RememberingEnvironment]:
    """A class of its own for each class of environments: what one can do is looked up by its class, once."""
    return type(f"Remembering{kind.__name__}", (RememberingEnvironment,), {})


def _first(environment: Environment, scenario: str, seed: int) -> Any:
    kept: OrderedDict[Any, tuple[Environment, Any]] | None = getattr(_threads, "kept", None)
    if kept is None:
        kept = _threads.kept = OrderedDict()
    key = id(environment), scenario, seed
    if key not in kept:
        session: Any = environment.open(scenario, seed)
        if goes_by_calls(session):
            session = Remembered.of(session)
        kept[key] = environment, session  # the environment, so that its id stays its own
        if len(kept) > _KEPT:
            _, gone = kept.popitem(last=False)[1]
            if isinstance(gone, Remembered):
                gone.forget()  # places know one another: none would go by itself
            gone.close()
    kept.move_to_end(key)
    first = kept[key][1]
    if isinstance(first, Remembered) and first.places > _PLACES:
        first.forget()
    return first
