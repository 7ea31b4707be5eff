"""The environment: sessions that answer calls in microseconds, because nothing in this world ever changes."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from callwright.environments.calling import ReadyTool, call_tool, ready
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import UsageError
from callwright.pickling import made_by
from callwright.tools.spec import FunctionTool, ToolSpec
from callwright_plugins.toolworld import NAME, world
from callwright_plugins.toolworld.tools import FUNCTIONS, MULTIPLYING, Context

_SPECS: Final[Mapping[str, ToolSpec]] = MappingProxyType({name: tool.spec for name, tool in FUNCTIONS.items()})
#: The tools by name, made ready at the first call.
_ready: dict[str, ReadyTool] = {}


def _prepare() -> None:
    _ready.update(
        {name: ready(tool.spec, tool.function, measured=name in MULTIPLYING) for name, tool in FUNCTIONS.items()}
    )


def scenario_of(context: Context) -> str:
    """The text that opens a session with this context: ``location|hour|currency|home``."""
    return f"{context.location}|{context.hour}|{context.currency}|{context.home}"


def read_scenario(scenario: str) -> Context:
    """The context of a scenario. Raises :class:`callwright.UsageError` for a text that is not one."""
    parts = scenario.split("|")
    if len(parts) == 4:
        location, hour, currency, home = parts
        if location in world.CITIES and home in world.CITIES and currency in world.CURRENCIES and hour in _HOURS_OF_DAY:
            return Context(location, int(hour), currency, home)
    raise UsageError(
        f"{scenario[:80]!r} is no scenario of {NAME}; one is 'location|hour|currency|home', such as 'Paris|18|EUR|Oslo'"
    )


_HOURS_OF_DAY: Final = frozenset(map(str, range(24)))


def random_context(rng: random.Random) -> Context:
    """A context whose user is away from home, at one of the hours that queries mention."""
    location, home = world.shuffled(rng, world.CITIES)[:2]
    return Context(location, world.pick(rng, world.HOURS), world.pick(rng, world.CURRENCIES), home)


class ToolWorldSession(Session):
    """One user's view of the world. All tools only read, so the state is the context and no call changes it."""

    __slots__ = ("_context",)
    bounds_results = True

    def __init__(self, context: Context) -> None:
        self._context = context

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Run one tool.

        The codes of ``execution_error`` are ``out_of_range``, ``not_a_table``, ``missing_column`` and ``unknown_`` with
        city, cuisine, make, colour, dealer, item or currency.
        """
        if not _ready:
            _prepare()
        return call_tool(_ready, tool, arguments, self._context)

    def digest(self) -> str:
        """SHA-256 of the world's name and the context."""
        return _digest(self._context)

    def close(self) -> None:
        """Nothing to give back."""


_digests: Final[dict[Context, str]] = {}


def _digest(context: Context) -> str:
    digest = _digests.get(context)
    if digest is None:
        digest = _digests[context] = hashlib.sha256(f"{NAME}|{scenario_of(context)}".encode()).hexdigest()
    return digest


class ToolWorld(Environment):
    """The environment ``toolworld-mini-v1``. Its tables are made once per process and shared by all sessions."""

    def __init__(self) -> None:
        self._contexts: dict[str, Context] = {}

    def __reduce__(self) -> Any:
        return made_by(self, ToolWorld)

    @property
    def name(self) -> str:
        return NAME

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The thirty tools by name."""
        return _SPECS

    @property
    def functions(self) -> Mapping[str, FunctionTool]:
        """The same tools with their functions, for use outside of sessions."""
        return MappingProxyType(FUNCTIONS)

    @property
    def pure(self) -> bool:
        """True: tools read, and what they hand out is never changed afterwards."""
        return True

    def open(self, scenario: str = "", seed: int = 0) -> ToolWorldSession:
        """A session for ``location|hour|currency|home``; without a scenario the seed draws one.

        Raises :class:`callwright.UsageError` for another text.
        """
        context = self._contexts.get(scenario)
        if context is None:
            if not scenario:
                return ToolWorldSession(random_context(random.Random(f"{NAME}/context/{seed}")))
            context = self._contexts[scenario] = read_scenario(scenario)
        return ToolWorldSession(context)
