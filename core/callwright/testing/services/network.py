"""Live services, kept out of the checks: stand-ins for components that declare them, no connections for the rest."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from attrs import evolve

from callwright.conformance import NeedsNetwork
from callwright.walk.reward import RewardRecipe


def checked_as(component: Any, check: str) -> Any | None:
    """What a check is made on: the component, or its stand-in if the check would ask its live service.

    ``None`` where it names no stand-in. The stand-in of a reward recipe is the recipe over the stand-ins of its terms.
    """
    if isinstance(component, RewardRecipe):
        placed = []
        for term in component.terms:
            found = _placed(term.component, check)
            if found is None:
                return None
            placed.append(found)
        if all(one is term.component for one, term in zip(placed, component.terms, strict=True)):
            return component
        terms = [evolve(term, component=one) for one, term in zip(placed, component.terms, strict=True)]
        return evolve(component, terms=tuple(terms))
    return _placed(component, check)


def _placed(component: Any, check: str) -> Any | None:
    if isinstance(component, NeedsNetwork) and not {"*", check}.isdisjoint(component.network_checks):
        return component.stand_in()
    return component


class WouldConnect(BaseException):
    """Something tried to connect where nothing may. Not an ``Exception``: a client's retries would swallow that."""


_AUDITED: Final = frozenset({"socket.connect", "socket.getaddrinfo", "socket.sendto"})
#: Lists of those who refuse now; the hook is added once and stays, since hooks cannot be taken away.
_refusing: Final[list[list[str]]] = []
_hooked: Final[list[bool]] = []


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if not _refusing or event not in _AUDITED:
        return
    if event == "socket.getaddrinfo":
        where = f"{arguments[0]}:{arguments[1]}"
    else:
        address = arguments[1]
        if not isinstance(address, tuple):  # a socket of this machine's own, such as those between processes
            return
        where = f"{address[0]}:{address[1]}"
    for tried in list(_refusing):
        tried.append(where)
    raise WouldConnect(where)


@contextmanager
def no_connections() -> Iterator[list[str]]:
    """Refuse every connection over the network that this process would open; the list says where to, in order.

    All threads are kept from it, processes that are started meanwhile are not. What tries gets :class:`WouldConnect`.
    """
    if not _hooked:
        sys.addaudithook(_heard)
        _hooked.append(True)
    tried: list[str] = []
    _refusing.append(tried)
    try:
        yield tried
    finally:
        _refusing[:] = [other for other in _refusing if other is not tried]
