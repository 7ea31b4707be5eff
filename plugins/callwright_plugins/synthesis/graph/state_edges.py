"""State edges: calls that executed after a path, and fail when one call of the path is left out."""

from __future__ import annotations

from collections.abc import Iterator

from callwright.environments.protocol import Outcome
from callwright.language.program import Call
from callwright_plugins.synthesis.exploration.explorer import World
from callwright_plugins.synthesis.exploration.witness import Witness
from callwright_plugins.synthesis.graph.edges import Edge, Proof
from callwright_plugins.synthesis.graph.references import Bound, bindings, located, replaced, value_at
from callwright_plugins.synthesis.graph.trials import Trials

#: Paths of a tool that are looked at, and how long one may be.
_PATHS = 14
_LONGEST = 6


def came_to_nothing(outcome: Outcome | None) -> bool:
    """Whether a call failed for a reason of the world, or found nothing. Arguments of a wrong form are no reason."""
    return outcome is not None and (outcome.kind == "empty" or (outcome.failed and outcome.kind != "schema_error"))


def came_to_something(outcome: Outcome | None) -> bool:
    """Whether a call executed and found or did something."""
    return outcome is not None and outcome.kind in ("ok", "partial")


def witness_of(trials: Trials, calls: tuple[Call, ...], outcome: Outcome) -> Witness:
    """The witness of a path whose last call came to this outcome."""
    numbered = tuple(Call(number, call.tool, call.arguments) for number, call in enumerate(calls))
    return Witness(trials.scenario, trials.seed, numbered, outcome.kind, outcome.code)


def state_edges(trials: Trials, world: World) -> Iterator[Edge]:
    """The state edges of one world: from the calls that turned a failure, and by leaving out calls of paths."""
    for turn in world.turns.values():
        with_it, without = (*turn.path, turn.enabler), turn.path
        if turn.enabler.tool == turn.call.tool or _is_told(trials, with_it, turn.call):
            continue
        given, bare = trials.run(with_it, turn.call), trials.run(without, turn.call)
        if given is None or bare is None:
            continue
        if came_to_something(given) and came_to_nothing(bare):
            proof = Proof(
                witness_of(trials, (*with_it, turn.call), given),
                witness_of(trials, (*without, turn.call), bare),
                len(turn.path),
            )
            yield Edge(turn.enabler.tool, turn.call.tool, "state", proofs=(proof,))
    for tool in world.successes:
        ways = [found for found in world.paths(tool) if 0 < len(found.path) <= _LONGEST and found.kind != "empty"]
        for found in ways[:_PATHS]:
            yield from _left_out(trials, found.path, found.call)


def _is_told(trials: Trials, path: tuple[Call, ...], call: Call) -> bool:
    """Whether the last call of a path tells what the next one is given: a guessed value is information, too."""
    results = trials.results(path)
    if len(results) < len(path):
        return True
    asked = {key for _, key in located(dict(path[-1].arguments))}
    told = {key for _, key in located(results[-1]) if key[0] == "string" and key not in asked}
    return any(key in told for _, key in located(dict(call.arguments)))


def _left_out(trials: Trials, path: tuple[Call, ...], call: Call) -> Iterator[Edge]:
    """The edges that leaving out one call of a path shows."""
    given = trials.run(path, call)
    if given is None or not came_to_something(given):
        return
    bound = bindings((*path, call), trials.results(path))
    for number, source in enumerate(path):
        if source.tool == call.tool or any(number == told for told, _ in bound[len(path)].values()):
            continue  # an argument comes from it: that is information
        rest = _without(trials, (*path, call), bound, number)
        if rest is None:
            continue  # another call of the path needs it: the edge is to that one
        bare = trials.run(rest[:-1], rest[-1])
        if bare is not None and came_to_nothing(bare):
            proof = Proof(witness_of(trials, (*path, call), given), witness_of(trials, rest, bare), number)
            yield Edge(source.tool, call.tool, "state", proofs=(proof,))


def _without(trials: Trials, calls: tuple[Call, ...], bound: Bound, left_out: int) -> tuple[Call, ...] | None:
    """The calls without one of them, each with what the others now tell; ``None`` where one no longer executes.

    Ids count up, so what a call after the one left out made has another id now.
    """
    kept = list(calls[:left_out])
    place = {number: number for number in range(left_out)}
    for number in range(left_out + 1, len(calls)):
        arguments = dict(calls[number].arguments)
        results = trials.results(kept)
        if len(results) < len(kept):
            return None
        for where, (told, path) in bound[number].items():
            if told == left_out:
                return None
            value = value_at(results[place[told]], path)
            if value is not None:
                arguments = replaced(arguments, where, value)
        place[number] = len(kept)
        kept.append(Call(len(kept), calls[number].tool, arguments))
    return tuple(kept)
