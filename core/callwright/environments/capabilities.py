"""What environments and sessions may offer beyond :mod:`callwright.environments.protocol`, for people and tools.

None of it is needed to execute calls and score them. What each makes possible stands in its docstring; the page on
environments lists them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, Self, runtime_checkable

from callwright.capability import has
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.tools.spec import ToolSpec


@runtime_checkable
class Forks(Session, Protocol):
    """A session that can be copied in the middle: exploring, gates and ``:undo`` of the shell, ``fork`` of a server."""

    def fork(self) -> Self:
        """Another session in the same state, apart from this one from now on."""


@runtime_checkable
class Resets(Session, Protocol):
    """A session that can begin again: ``:reset`` of the shell, ``reset`` of a server; others are closed and opened."""

    def reset(self, scenario: str | None = None, seed: int | None = None) -> None:
        """Put everything back to the start, of another scenario or seed if one is given."""


@runtime_checkable
class Diffs(Session, Protocol):
    """A session that says what changed: ``callwright env call`` and the shell show it, ``inspect`` and reports too."""

    def diff(self, since: Self | None = None) -> dict[str, Any]:
        """What is different from another session of this environment, by default from how this one began.

        ``{table: {"added": …, "removed": …, "changed": …}}`` where the state is tables, JSON otherwise.
        """


@runtime_checkable
class Snapshots(Session, Protocol):
    """A session whose state can be written down: what the probe measures, and what a fault report holds."""

    def snapshot(self) -> dict[str, Any]:
        """The state as JSON, or what of it differs from the scenario."""


@runtime_checkable
class Helps(Session, Protocol):
    """A session with tools for whoever runs the environment, of which no model is told: ``:helper`` of the shell."""

    def helper(self, name: str, arguments: Mapping[str, Any] | None = None) -> Outcome:
        """Call one of the environment's ``helpers``. Raises :class:`callwright.errors.UnknownName`."""


@runtime_checkable
class NamesHelpers(Protocol):
    """An environment that names such tools: servers with ``--helpers`` offer them, the shell completes them."""

    @property
    def helpers(self) -> Mapping[str, ToolSpec]:
        """The helper tools by name."""


@runtime_checkable
class NamesScenarios(Protocol):
    """An environment with names for its scenarios: for completion, ``env list`` and errors."""

    @property
    def scenarios(self) -> Collection[str]:
        """The names, the default first; a mapping by name where they hold more than names."""


@runtime_checkable
class GivesUsersTools(Protocol):
    """An environment whose users have tools of their own; sessions then have
    :meth:`callwright.environments.protocol.ServesUsers.user_call`.
    """

    @property
    def user_tools(self) -> Mapping[str, ToolSpec]:
        """Those tools by name. No agent is told of them."""


@runtime_checkable
class Blocks(Protocol):
    """An environment whose calls may take long: a server then gives each session a thread."""

    @property
    def blocking(self) -> bool:
        """Whether they may."""


@runtime_checkable
class HasVersion(Protocol):
    """An environment with a version of its own: files of tasks name it, and are refused where it is another."""

    @property
    def version(self) -> str:
        """The version."""


# What the parts of a composed environment share ---------------------------------------------------------------------


@runtime_checkable
class HasEvents(Protocol):
    """An environment in which something may fall due while time passes: parts without are not asked what is next."""

    @property
    def events(self) -> Collection[Any]:
        """The kinds of what may happen."""


@runtime_checkable
class Charges(Protocol):
    """An environment that charges the person: composed with a bank, charges are posted to the account of a card."""

    @property
    def charges(self) -> Any:
        """By which rows (:mod:`callwright.environments.money`); ``None`` for none."""


@runtime_checkable
class KeepsAccounts(Protocol):
    """An environment that can be the bank of others."""

    @property
    def bank(self) -> Any:
        """How charges are posted in it (:mod:`callwright.environments.money`); ``None`` if it is no bank."""


@runtime_checkable
class HasPeople(Protocol):
    """An environment that can be about given people: composed, all parts are about the same ones."""

    def people(self, *given: Any) -> Any:
        """Who is in a scenario of it (:mod:`callwright.environments.people`)."""


@runtime_checkable
class MeetsPeople(Protocol):
    """A session that can be told who is signed in and whom that person knows, before its first call."""

    def introduce(self, people: Any) -> None:
        """Put these people in the place of its own."""


@runtime_checkable
class HasPolicy(Protocol):
    """An environment with a role and rules that a model is told: composed, they stand together."""

    @property
    def policy(self) -> Any:
        """A :class:`callwright.environments.briefing.policy.Policy`; ``None`` for none."""


@runtime_checkable
class NamesPerson(Protocol):
    """An environment that says who is signed in: composed, it is said once for all parts."""

    def person(self, world: Any) -> str:
        """Who is signed in to a world."""


@runtime_checkable
class IsFitted(Protocol):
    """An environment that was made to fit a model with little room."""

    @property
    def fit(self) -> Any:
        """How (:class:`callwright.environments.paging.Fit`); ``None`` if it was not."""


@runtime_checkable
class HasTables(Protocol):
    """An environment whose state is tables of rows: an untouched part of it need not be opened to be compared."""

    @property
    def kinds(self) -> Any:
        """The classes of its rows."""


@runtime_checkable
class HasWorld(Protocol):
    """A session whose world of rows can be read in this process."""

    @property
    def world(self) -> Any:
        """The :class:`callwright.environments.world.World`."""


@runtime_checkable
class HoldsNotices(Protocol):
    """A session that keeps what its person was told meanwhile until somebody takes it."""

    def take_notices(self) -> Sequence[str]:
        """What was told since the last time."""


# What most ask --------------------------------------------------------------------------------------------------------


def user_tools_of(environment: Environment) -> Mapping[str, ToolSpec]:
    """The tools that users of an environment have; empty where they have none."""
    return environment.user_tools if has(environment, GivesUsersTools) else {}


def scenarios_of(environment: Environment) -> list[str]:
    """The names of an environment's scenarios, where it has names for them."""
    return list(environment.scenarios) if has(environment, NamesScenarios) else []


def helpers_of(environment: Environment) -> Mapping[str, ToolSpec]:
    """The helper tools of an environment; empty where it has none."""
    return environment.helpers if has(environment, NamesHelpers) else {}


def blocks(environment: Environment) -> bool:
    """Whether calls of an environment may take long."""
    return has(environment, Blocks) and environment.blocking
