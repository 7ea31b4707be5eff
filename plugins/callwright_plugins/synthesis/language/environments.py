"""The grammar of an environment: its tools, with the phrases that it ships."""

from __future__ import annotations

from typing import Final

from callwright.environments.composed.environment import ComposedEnvironment
from callwright.environments.protocol import Environment
from callwright.plugins import Registry
from callwright_plugins.synthesis.language.grammar import Grammar
from callwright_plugins.synthesis.language.overrides import shipped_phrases

#: Grammars that are kept, each with what it was made of.
_KEPT: Final = 64
_made: Final[dict[tuple[int, int], tuple[Environment, Registry, Grammar]]] = {}


def phrases_for(environment: Environment, registry: Registry) -> dict[str, tuple[str, ...]]:
    """The phrases that an environment ships, by tool; those of its parts where it is several as one.

    Empty for one that is not registered, such as a server. Raises :class:`callwright.errors.DataError` for a file of
    phrases that cannot be read.
    """
    if isinstance(environment, ComposedEnvironment):
        found: dict[str, tuple[str, ...]] = {}
        for part in environment.name.split("+"):
            names = {original: name for name in environment.tools if (original := environment.names_in(part)(name))}
            shipped = shipped_phrases(registry, part) if registry.knows("environment", part) else {}
            found |= {names[tool]: phrases for tool, phrases in shipped.items() if tool in names}
        return found
    return shipped_phrases(registry, environment.name) if registry.knows("environment", environment.name) else {}


def grammar_for(environment: Environment, registry: Registry) -> Grammar:
    """The grammar of an environment's tools with the phrases that it ships: made once in a process.

    Raises :class:`callwright.errors.DataError` for phrases that cannot be read, or with a place for no parameter.
    """
    key = id(environment), id(registry)
    known = _made.get(key)
    if known is None:
        if len(_made) >= _KEPT:
            _made.clear()
        tools = {name: spec for name, spec in environment.tools.items() if not spec.hidden}
        phrases = {tool: given for tool, given in phrases_for(environment, registry).items() if tool in tools}
        known = _made[key] = environment, registry, Grammar(tools, phrases=phrases)
    return known[2]
