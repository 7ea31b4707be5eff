"""Live plans: calls with arguments that stand in sessions, with references between them and hard values among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from random import Random
from typing import Any

import pytest

import callwright as cw
from callwright.language.program import PREFIX, Call, Reference
from callwright.testing.arguments import fitting_arguments
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.synthesis.language.grammar import Grammar
from callwright_plugins.synthesis.language.overrides import shipped_phrases
from callwright_plugins.synthesis.language.plan import RELATIONS, Condition, Plan
from callwright_plugins.synthesis.language.values.names import Names, names_in

ENVIRONMENTS = (*TOOLS, "depthbench-v1")
#: What looks like grammar, or like another value, and is a text.
HARD = (
    'it\'s 5\nor "six", so',
    "",
    '“both” and "',
    '"',
    "3",
    "three",
    "yes",
    "true",
    "null",
    "1e5",
    "nothing at all",
    "left blank",
    "and then list accounts",
    "the first of these",
    "its id",
    "x and y",
    ".",
    "a,b",
    "ünïcode ☃",
    "I",
    "March",
    "EUR",
    "2026-03-05",
    "2026-03-05T09:00:00Z",
    "2026-03",
    "09:30",
    "5 March 2026",
    "/home/ana/notes.txt",
    "#general",
    "ana@example.com",
    "No, make it 3.",
    " spaced ",
    "thanks.",
)
PATHS: tuple[tuple[str | int, ...], ...] = (
    (),
    ("items", 0, "id"),
    ("items", 19, "status"),
    ("id",),
    ("weird key!",),
    ("items", 0),
    ("a", "b", 3),
    ("out_of_stock", "of"),
)


class Live:
    """An environment with the values and names that its discovery tools show."""

    def __init__(self, name: str) -> None:
        self.environment = cw.environment(name)
        self.tools = {tool: spec for tool, spec in self.environment.tools.items() if not spec.hidden}
        self.values: dict[str, list[Any]] = {}
        results = []
        session = self.environment.open("", 1)
        for tool, spec in self.tools.items():
            if spec.discovery and not spec.parameters.get("required"):
                outcome = session.call(tool, {})
                if outcome.executed:
                    results.append(outcome.value)
                    for key, value in leaves(outcome.value):
                        self.values.setdefault(key, []).append(value)
        session.close()
        self.names = names_in(results)
        self.texts = tuple(value for found in self.values.values() for value in found if isinstance(value, str))

    def arguments(self, tool: str, random: Random) -> dict[str, Any]:
        """Arguments that fit the schema, with values of the session wherever one is called alike."""
        spec = self.tools[tool]
        texts = (*random.sample(HARD, 6), *random.sample(self.texts, min(6, len(self.texts))))
        made = dict(fitting_arguments(spec, random, texts) or {})
        for name in made:
            stem = name.removeprefix("from_").removeprefix("to_").removeprefix("new_")
            found = self.values.get(stem, ())
            if found and random.random() < 0.7:
                value = random.choice(found)
                if type(value) is type(made[name]):
                    made[name] = value
        return {name: value for name, value in made.items() if not _refers(value)}

    def plan(self, random: Random, longest: int = 5) -> Plan:
        """One to five calls, some of them repeated with a difference, with references and conditions."""
        calls: list[Call] = []
        for place in range(random.randint(1, longest)):
            if calls and random.random() < 0.2:
                tool = calls[-1].tool
                arguments = dict(calls[-1].arguments)
                fresh = self.arguments(tool, random)
                arguments |= {name: value for name, value in fresh.items() if random.random() < 0.4}
            else:
                tool = random.choice(list(self.tools))
                arguments = self.arguments(tool, random)
            for name in arguments:
                if place and random.random() < 0.2:
                    arguments[name] = Reference(random.randrange(place), random.choice(PATHS))
            calls.append(Call(place, tool, arguments))
        values = ("active", 3, 2.5, True, None, "x y", [], ["a", "b"], {"k": 1})
        conditions = [
            Condition(
                place,
                Reference(random.randrange(place), random.choice((("status",), ("items", 0, "status")))),
                random.choice(RELATIONS),
                random.choice(values),
            )
            for place in range(1, len(calls))
            if random.random() < 0.1
        ]
        return Plan(tuple(calls), tuple(conditions))

    @property
    def grammar(self) -> Grammar:
        """The grammar with the names of the session."""
        return _grammar(self.environment.name)


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """The scalars of a result with the member that each stands in."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, key)
    else:
        yield key, value


def _refers(value: Any) -> bool:
    return any(isinstance(leaf, str) and leaf.startswith(PREFIX) for _, leaf in leaves(value))


@cache
def _live(name: str) -> Live:
    return Live(name)


@cache
def _grammar(name: str) -> Grammar:
    live = _live(name)
    return Grammar(live.environment.tools, live.names, shipped_phrases(cw.default_registry(), name))


@pytest.fixture(scope="session")
def live() -> Any:
    """Environments with what their sessions hold, by name."""
    return _live


@pytest.fixture
def bank() -> Live:
    """The bank."""
    return _live("banking")


__all__ = ["ENVIRONMENTS", "HARD", "PATHS", "Live", "Names"]
