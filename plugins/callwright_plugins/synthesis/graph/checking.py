"""Checking: the proofs of a graph, made again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from callwright.environments.protocol import Environment
from callwright.errors import DataError
from callwright.language.program import Call
from callwright_plugins.synthesis.exploration.explored import schema_hash
from callwright_plugins.synthesis.exploration.witness import Witness
from callwright_plugins.synthesis.graph.edges import Edge, Graph, Proof
from callwright_plugins.synthesis.graph.effects import made_in_effect
from callwright_plugins.synthesis.graph.references import value_at


@frozen
class Finding:
    """A proof that no longer proves its edge, and why."""

    edge: Edge
    proof: Proof
    reason: str


@frozen
class Checked:
    """How many proofs were made again, and what did not come out as it did."""

    proofs: int
    findings: tuple[Finding, ...]


def check_graph(environment: Environment, graph: Graph, advance: Callable[[int], None] | None = None) -> Checked:
    """Make the calls of every proof again, each path in a fresh session.

    Raises :class:`callwright.errors.DataError` for a graph of another environment, or of tools that are others now.
    """
    if graph.environment != environment.name:
        raise DataError(f"this is the graph of {graph.environment!r}, not of {environment.name!r}")
    if graph.schema != schema_hash(environment.tools):
        raise DataError(
            f"the tools of {environment.name!r} are not those of this graph any more (their schema hash is another); "
            "build it anew"
        )
    findings: list[Finding] = []
    proofs = 0
    for edge in graph.edges:
        for proof in edge.proofs:
            proofs += 1
            reason = _wrong(environment, edge, proof)
            if reason:
                findings.append(Finding(edge, proof, reason))
            if advance is not None:
                advance(1)
    return Checked(proofs, tuple(findings))


def _wrong(environment: Environment, edge: Edge, proof: Proof) -> str:
    given, without = proof.given.calls, proof.without.calls
    if not given or given[-1].tool != edge.target or not 0 <= proof.step < len(given) - 1:
        return "its path does not end in the target, after the source"
    if given[proof.step].tool != edge.source or not without or without[-1].tool != edge.target:
        return "the source or the target is not where it says"
    results: list[object] = []
    reason = _differs(environment, proof.given, results)
    if reason:
        return f"with the source: {reason}"
    if edge.kind == "information":
        told = value_at(results[proof.step], proof.found)
        taken = value_at(dict(given[-1].arguments), proof.place)
        if told is None or told != taken:
            return f"the source tells {told!r:.60}, and the target takes {taken!r:.60}"
        if _tools(given) != _tools(without):
            return "the two paths differ in more than the argument"
    elif _tools(without) != [*_tools(given)[: proof.step], *_tools(given)[proof.step + 1 :]]:
        return "the two paths differ in more than the source"
    reason = _differs(environment, proof.without, [])
    return f"without the source: {reason}" if reason else ""


def _tools(calls: Sequence[Call]) -> list[str]:
    return [call.tool for call in calls]


def _differs(environment: Environment, witness: Witness, results: list[object]) -> str:
    """How the outcome of a witness differs from what it says; empty where it does not."""
    session = environment.open(witness.scenario, witness.seed)
    try:
        found = [made_in_effect(environment, session, call) for call in witness.calls]
    finally:
        session.close()
    results += [outcome.value for outcome in found]
    broken = next((n for n, outcome in enumerate(found[:-1]) if not outcome.executed), None)
    if broken is not None:
        return f"call {broken + 1} of its path ({witness.calls[broken].tool}) comes to {found[broken].kind}"
    last = found[-1]
    if (last.kind, last.code) == (witness.kind, witness.code):
        return ""
    return f"the target comes to {last.kind} {last.code}, not to {witness.kind} {witness.code}".replace("  ", " ")
