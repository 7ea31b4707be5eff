"""The environment: one tool, a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from callwright.digests import digest_of
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import UnknownName
from callwright.pickling import made_by
from callwright.tools.spec import ToolSpec
from callwright_plugins.bamboogle import NAME
from callwright_plugins.bamboogle.search import Search

SEARCH: Final = ToolSpec(
    "Search",
    "Search the web for an answer to a query.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "The query to search for."}},
        "required": ["query"],
    },
    {"type": "string"},
    read_only=True,
)


class _Searching(Session):
    def __init__(self, search: Search) -> None:
        self._search = search

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """What the search found. Raises :class:`callwright.InfrastructureFailure`."""
        if tool != SEARCH.name:
            return Outcome("unknown_tool", None, "unknown_tool", f"no tool is called {tool!r}; there is {SEARCH.name}")
        query = arguments.get("query")
        if not isinstance(query, str):
            return Outcome("schema_error", None, "type", "'query' is a text")
        return Outcome("ok", self._search.find(query))

    def digest(self) -> str:
        return digest_of(None)

    def close(self) -> None:
        """Nothing."""


class Web(Environment):
    """A search. ``made`` is the call that makes the benchmark again, whose corpus has this environment."""

    def __init__(self, search: Search, made: tuple[Callable[..., Any], tuple[Any, ...]]) -> None:
        self._search, self._made = search, made

    def __reduce__(self) -> Any:
        return made_by(self, _environment_of, *self._made)

    @property
    def name(self) -> str:
        return NAME

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        return {SEARCH.name: SEARCH}

    @property
    def pure(self) -> bool:
        """True: results are texts."""
        return True

    @property
    def out_of_process(self) -> Literal[True]:
        """True: what searches lives elsewhere."""
        return True

    def open(self, scenario: str = "", seed: int = 0) -> Session:
        """A session; all are alike. Raises :class:`callwright.errors.UnknownName` for a scenario."""
        if scenario:
            raise UnknownName(f"scenario of {NAME}", scenario, [])
        return _Searching(self._search)


def _environment_of(make: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return make(*arguments).corpus.environment
