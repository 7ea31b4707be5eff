"""Unused: what the knowledge of an environment holds that no task of a synthesis uses, where that knowledge is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen

from callwright.errors import CallwrightError
from callwright.plugins import Registry
from callwright_plugins.synthesis.grounded import Grounded
from callwright_plugins.synthesis.report.measuring import Measured

#: Two tools of which one needs the other, or a tool and a code that it fails with.
Pair = tuple[str, str]


@frozen
class Unused:
    """Of one environment: how many edges and failures are known, and which of them no task has."""

    environment: str
    edges: int
    unused_edges: tuple[Pair, ...]
    failures: int
    unused_failures: tuple[Pair, ...]


def unused(manifest: Mapping[str, Any], found: Measured, registry: Registry) -> list[Unused]:
    """For each environment of a synthesis by ``grounded`` whose knowledge is in the cache that its recipe names.

    Of others nothing is said: of those whose cache is elsewhere now, of those that are made by other plugins than
    ``registry`` has, and of those whose making starts a process or asks a host, such as a server's: a page may be of
    anybody's folder. Nothing is explored for it.
    """
    settings = manifest.get("settings")
    if not isinstance(settings, Mapping):
        return []
    options = dict(settings.get("synthesizer") or {})
    if options.pop("name", "") != Grounded.name:
        return []
    told = []
    for stated in settings.get("environments") or ():
        choice = dict(stated) if isinstance(stated, Mapping) else {"name": stated}
        try:
            named = choice.pop("name")
            if registry.spec("environment", named).reach(choice):
                continue
            environment = registry.create("environment", named, **choice)
            knowledge = Grounded(**options).already_known(environment, registry)
        except (CallwrightError, TypeError, KeyError):
            continue
        if knowledge is None:
            continue
        name = environment.name
        edges = sorted(knowledge.graph.pairs())
        cells = sorted((tool, code) for tool, codes in knowledge.explored.failures.items() for code in codes)
        used, met = _of(name, found.pairs), _of(name, found.met)
        told.append(
            Unused(
                name,
                len(edges),
                tuple(one for one in edges if one not in used),
                len(cells),
                tuple(one for one in cells if one not in met),
            )
        )
    return told


def _of(environment: str, by_environment: Mapping[str, Iterable[Pair]]) -> set[Pair]:
    """What tasks of an environment have, those over several environments included, where tools keep their names."""
    return {pair for name, pairs in by_environment.items() if environment in name.split("+") for pair in pairs}
