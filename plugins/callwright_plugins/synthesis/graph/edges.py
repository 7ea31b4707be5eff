"""Edges and their proofs, and the graph that they make."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from attrs import field, frozen

from callwright.errors import DataError
from callwright.language.program import Path
from callwright_plugins.synthesis.exploration.witness import Witness

EdgeKind = Literal["state", "information"]
FORMAT: Final = "callwright-graph-1"


@frozen
class Proof:
    """Two paths that differ in one thing alone, and whose last calls come to different ends.

    ``given``: the target executes. ``without``: the source is left out (a state edge), or the argument is a value that
    the source did not tell (an information edge); the target fails, or comes back ``empty``. ``step`` is the position
    of the source in ``given``; ``found`` is where the argument stands in what the source told, ``place`` where in the
    arguments of the target. Both are empty for a state edge.
    """

    given: Witness
    without: Witness
    step: int
    found: Path = ()
    place: Path = ()

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "given": self.given.as_json(),
            "without": self.without.as_json(),
            "step": self.step,
            "found": list(self.found),
            "place": list(self.place),
        }

    @classmethod
    def from_json(cls, row: Any) -> Proof:
        """From JSON. Raises :class:`callwright.errors.DataError`."""
        match row:
            case {"given": given, "without": without, "step": int(step), "found": list(found), "place": list(place)}:
                parts = [*found, *place]
                if all(isinstance(part, str | int) for part in parts):
                    return cls(Witness.from_json(given), Witness.from_json(without), step, tuple(found), tuple(place))
        raise DataError(f"not a proof of an edge: {json.dumps(row, default=str)[:80]}")


@frozen
class Edge:
    """``source`` before ``target``: needed (``state``), or telling a value that is needed (``information``).

    ``result`` is the path of the value in the source's result, with ``[]`` for any place in a list, ``argument`` the
    parameter of the target, in the same form; both empty for a state edge. A state edge has one proof or more, an
    information edge one in each of two seeds at least, because values coincide.
    """

    source: str
    target: str
    kind: EdgeKind
    result: str = ""
    argument: str = ""
    proofs: tuple[Proof, ...] = field(default=(), repr=False)

    @property
    def strict(self) -> bool:
        """Whether the target fails without the source in every proof, and does not just find nothing."""
        return all(proof.without.kind != "empty" for proof in self.proofs)

    @property
    def key(self) -> tuple[str, ...]:
        """What tells edges apart."""
        return self.source, self.target, self.kind, self.result, self.argument

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "source": self.source,
            "target": self.target,
            "kind": self.kind,
            "result": self.result,
            "argument": self.argument,
            "proofs": [proof.as_json() for proof in self.proofs],
        }

    @classmethod
    def from_json(cls, row: Any) -> Edge:
        """From JSON. Raises :class:`callwright.errors.DataError`."""
        match row:
            case {
                "source": str(source),
                "target": str(target),
                "kind": "state" | "information" as kind,
                "result": str(result),
                "argument": str(argument),
                "proofs": list(proofs),
            }:
                return cls(source, target, kind, result, argument, tuple(Proof.from_json(one) for one in proofs))
        raise DataError(f"not an edge: {json.dumps(row, default=str)[:80]}")


@frozen
class Graph:
    """The tools of an environment and the proven edges between them.

    ``schema`` is the digest of what the tools say of themselves (:func:`schema_hash`); a graph of other tools is none
    of theirs. ``settings`` is what it was made with: scenario, seeds, numbers of calls.
    """

    environment: str
    schema: str
    tools: tuple[str, ...]
    edges: tuple[Edge, ...]
    settings: Mapping[str, Any] = field(factory=dict)

    def pairs(self, kind: EdgeKind | None = None) -> dict[tuple[str, str], list[Edge]]:
        """The edges by source and target."""
        found: dict[tuple[str, str], list[Edge]] = {}
        for edge in self.edges:
            if kind is None or edge.kind == kind:
                found.setdefault((edge.source, edge.target), []).append(edge)
        return found

    def network(self) -> Any:
        """The graph as a ``networkx.MultiDiGraph``: tools as nodes, each edge with its ``kind`` and ``edge``.

        Raises :class:`callwright.errors.MissingExtra` without networkx.
        """
        networkx = need_networkx()
        made = networkx.MultiDiGraph(environment=self.environment)
        made.add_nodes_from(self.tools)
        for edge in self.edges:
            made.add_edge(edge.source, edge.target, kind=edge.kind, edge=edge)
        return made

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "format": FORMAT,
            "environment": self.environment,
            "schema": self.schema,
            "settings": dict(self.settings),
            "tools": list(self.tools),
            "edges": [edge.as_json() for edge in self.edges],
        }

    @classmethod
    def from_json(cls, row: Any) -> Graph:
        """From JSON. Raises :class:`callwright.errors.DataError`."""
        match row:
            case {
                "format": str(found),
                "environment": str(environment),
                "schema": str(schema),
                "settings": dict(settings),
                "tools": list(tools),
                "edges": list(edges),
            } if found == FORMAT and all(isinstance(tool, str) for tool in tools):
                return cls(environment, schema, tuple(tools), tuple(Edge.from_json(one) for one in edges), settings)
        raise DataError(f"this is no dependency graph of the format {FORMAT}")


def merged(edges: Iterable[Edge], proofs: int) -> list[Edge]:
    """Edges of one key as one, with at most so many proofs for each seed; in the order of the first."""
    found: dict[tuple[str, ...], Edge] = {}
    for edge in edges:
        known = found.get(edge.key)
        kept: list[Proof] = []
        for proof in (*(known.proofs if known else ()), *edge.proofs):
            if proof not in kept and sum(one.given.seed == proof.given.seed for one in kept) < proofs:
                kept.append(proof)
        found[edge.key] = Edge(edge.source, edge.target, edge.kind, edge.result, edge.argument, tuple(kept))
    return list(found.values())


def need_networkx() -> Any:
    """The module ``networkx``."""
    from callwright.errors import MissingExtra

    try:
        import networkx
    except ModuleNotFoundError as error:
        raise MissingExtra("dependency graphs", "synthesis", "networkx") from error
    return networkx
