"""Building: a graph from what was explored in two worlds or more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import evolve, frozen

from callwright.environments.protocol import Environment, OutOfProcess, declares
from callwright.errors import UsageError
from callwright.training.reporter import SILENT, Reporter
from callwright_plugins.synthesis.exploration.explored import Explored
from callwright_plugins.synthesis.exploration.states import OutOfCalls
from callwright_plugins.synthesis.graph.directed import Directing, suggested
from callwright_plugins.synthesis.graph.edges import Edge, Graph, merged
from callwright_plugins.synthesis.graph.information_edges import Candidate, Informing
from callwright_plugins.synthesis.graph.proposals import Pair
from callwright_plugins.synthesis.graph.shortening import shortened
from callwright_plugins.synthesis.graph.state_edges import state_edges
from callwright_plugins.synthesis.graph.trials import Trials

#: Tries for a candidate at first, and in a world where another one has proven it.
_TRIES: Final = 5
_TRIES_AGAIN: Final = 16
#: Seeds that prove an information edge.
_SEEDS: Final = 2
#: Proofs that an edge keeps of each seed.
_PROOFS: Final = 2
#: Tries for each pair that is suggested and unproven, in each world, and how often all of them are gone through.
_DIRECTED: Final = 16
_ROUNDS: Final = 6
#: Calls of that in each world, as a multiple of those that exploring made there, and at most so many.
_DIRECTED_CALLS: Final = 5
_MOST_DIRECTED: Final = 40_000


@frozen
class Effort:
    """What building took: calls by world, and candidates that were tried, proven in one world, and kept."""

    calls: int
    candidates: int
    once: int
    kept: int
    #: Whether the calls were used up before every candidate was tried.
    cut: bool


def build(
    environment: Environment,
    explored: Explored,
    calls: int | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    reporter: Reporter = SILENT,
) -> tuple[Graph, Effort]:
    """The graph of what was explored.

    ``calls`` are made in each world at most, those of the paths that proofs need among them; the default is ten times
    what exploring took where sessions are in this process, and five times elsewhere. Information edges are kept where
    two worlds of different seeds prove them; in one alone nothing tells chance from telling. ``settings`` are kept with
    the graph. Raises :class:`callwright.UsageError` where nothing is left of exploring but its JSON.
    """
    explorer, worlds = explored.explorer, explored.worlds
    if explorer is None or not worlds:
        raise UsageError("a graph is built from what explore() returns, not from what was read from a file")
    if calls is None:
        elsewhere = declares(environment, OutOfProcess)
        calls = explored.calls // len(worlds) * (5 if elsewhere else 10)
    # Where texts are suggested, what fills their gaps says which pairs to try: half of the calls are for those.
    kept_back = calls // 2 if explorer.drawer.suggestions is not None else 0
    reporter.start(f"proving what needs what in {environment.name}, calls at most", calls * len(worlds))
    trials = [Trials(environment, world.scenario, world.seed, calls - kept_back, reporter) for world in worlds]
    cut = False
    states: list[Edge] = []
    tried: dict[Candidate, None] = {}
    proven: dict[Candidate, dict[int, Edge]] = {}
    try:
        informing = []
        for world, trial in zip(worlds, trials, strict=True):
            informing.append(Informing(trial, world, explorer.drawer, environment.tools))
            informing[-1].begin()
            try:  # what is found before the calls are used up is kept
                for edge in state_edges(trial, world):
                    states.append(edge)
            except OutOfCalls:
                cut = True
            tried.update(dict.fromkeys(informing[-1].candidates()))
        for tries in (_TRIES, _TRIES_AGAIN):
            for number, one in enumerate(informing):
                cut |= _prove_all(one, number, tried, proven, tries, again=tries == _TRIES_AGAIN)
        seeds = [world.seed for world in worlds]
        directing = [
            Directing(trial, world, explorer, one, min(_DIRECTED_CALLS * world.calls, _MOST_DIRECTED))
            for trial, world, one in zip(trials, worlds, informing, strict=True)
        ]
        for trial in trials:
            trial.left += kept_back
        pairs = suggested(explorer.specs, explorer.drawer.suggestions)
        cut |= _direct(directing, informing, seeds, pairs, states, proven)
        kept = [
            edge
            for found in proven.values()
            if len({seeds[number] for number in found}) >= _SEEDS
            for edge in found.values()
        ]
        edges = merged([*states, *kept], _PROOFS)
        try:
            edges = merged([_shortened(edge, trials) for edge in edges], _PROOFS)
        except OutOfCalls:
            cut = True
    finally:
        for trial in trials:
            trial.close()
    reporter.finish()
    edges = sorted(edges, key=lambda edge: edge.key)
    told = {"scenario": explored.scenario, "seeds": list(explored.seeds), "explored": explored.calls, "calls": calls}
    graph = Graph(environment.name, explored.schema, explored.tools, tuple(edges), {**told, **(settings or {})})
    return graph, Effort(sum(trial.made for trial in trials), len(tried), len(proven), len(edges), cut)


def _shortened(edge: Edge, trials: Sequence[Trials]) -> Edge:
    """The edge with its proofs as short as they can be."""
    of_seed = {trial.seed: trial for trial in trials}
    return evolve(edge, proofs=tuple(shortened(of_seed[proof.given.seed], proof) for proof in edge.proofs))


def _direct(
    directing: Sequence[Directing],
    informing: Sequence[Informing],
    seeds: Sequence[int],
    pairs: Mapping[Pair, bool],
    states: list[Edge],
    proven: dict[Candidate, dict[int, Edge]],
) -> bool:
    """Try the suggested pairs that nothing has proven yet, in every world. Whether the calls were used up."""
    cut = False
    for _ in range(_ROUNDS):
        for number, one in enumerate(directing):
            informing[number].begin()
            done = {(edge.source, edge.target) for edge in states}
            done |= {
                (candidate.source, candidate.target)
                for candidate, found in proven.items()
                if len({seeds[where] for where in found}) >= _SEEDS
            }
            try:
                for pair, likely in pairs.items():
                    tries = _DIRECTED if likely else _DIRECTED // 4
                    for edge in one.edges(pair, tries) if pair not in done else ():
                        if edge.kind == "state":
                            states.append(edge)
                        else:
                            candidate = Candidate(edge.source, edge.result, edge.target, edge.argument)
                            proven.setdefault(candidate, {}).setdefault(number, edge)
            except OutOfCalls:
                cut = True
        for number, other in enumerate(informing):
            cut |= _prove_all(other, number, dict.fromkeys(proven), proven, _TRIES_AGAIN, again=True)
    return cut


def _prove_all(
    informing: Informing,
    number: int,
    tried: Mapping[Candidate, None],
    proven: dict[Candidate, dict[int, Edge]],
    tries: int,
    *,
    again: bool,
) -> bool:
    """Prove candidates in a world; ``again``: those that another world has proven. Whether the calls were used up."""
    informing.begin()
    for candidate in tried:
        known = proven.get(candidate, {})
        if number in known or (again and not known):
            continue
        try:
            edge = informing.prove(candidate, tries)
        except OutOfCalls:
            return True
        if edge is not None:
            proven.setdefault(candidate, {})[number] = edge
    return False
