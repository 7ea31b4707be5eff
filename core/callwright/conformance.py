"""What a component declares to the conformance kit (:mod:`callwright.testing`): services, known failures, environments.

A component that asks a live service (a judge, a remote environment) is never checked against that service: nobody wants
``callwright plugins check`` to send hundreds of requests. It says so with :class:`NeedsNetwork`, and names a stand-in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class NeedsNetwork(Protocol):
    """A capability of components of any kind: some checks of them would ask a live service.

    The kit runs these checks on the stand-in, or skips them where there is none; the others it runs on the component
    itself. ``callwright plugins check`` refuses every connection while it checks, so that a component that says nothing
    is found out at the first one.
    """

    @property
    def network_checks(self) -> Collection[str]:
        """The names of the checks that would ask the service; ``("*",)`` for all."""

    def stand_in(self) -> Any | None:
        """The same component with a recording, or a script, in place of the service; ``None`` where there is none."""


@runtime_checkable
class ExpectsFailures(Protocol):
    """A capability of components of any kind: checks that they are known to fail.

    They are run all the same; one that passes is reported, so that the list stays true.
    """

    @property
    def expected_failures(self) -> Mapping[str, str]:
        """Names of checks, each with the reason in words."""


@runtime_checkable
class TriedIn(Protocol):
    """A capability of synthesizers: the environment in which the kit tries them, where its own shop gives them nothing.

    Whoever checks by hand may name another one.
    """

    @property
    def tried_in(self) -> str:
        """The registered name of the environment."""
