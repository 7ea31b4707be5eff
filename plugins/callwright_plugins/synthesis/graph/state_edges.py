"""State edges: calls that executed after a path, and fail when one call of the path is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from callwright.environments.protocol import Outcome
from callwright.language.program import Call
from callwright_plugins.synthesis.exploration.explorer import World
from callwright_plugins.synthesis.exploration.values import Key
from callwright_plugins.synthesis.exploration.witness import Witness
from callwright_plugins.synthesis.graph.edges import Edge, Proof
from callwright_plugins.synthesis.graph.references import Bound, replaced, said_to, value_at
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
        if turn.enabler.tool == turn.call.tool or _is_told(trials, with_it, turn.call, world.knowledge):
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
            yield from _left_out(trials, found.path, found.call, world.knowledge)


def _is_told(trials: Trials, path: tuple[Call, ...], call: Call, known: Mapping[Key, None]) -> bool:
    """Whether the last call of a path tells what the next one is given and nobody knows: a guessed value is
    information, too."""
    results = trials.results(path)
    if len(results) < len(path):
        return True
    asked = _asked_by(path)
    told = {
        key for _, key in trials.told_by(results[-1]) if key[0] == "string" and key not in asked and key not in known
    }
    return any(key in told for _, key in said_to(call))


def _asked_by(path: tuple[Call, ...]) -> set[Key]:
    """What was said to the calls of a path: whoever made them knew it."""
    return {key for call in path for _, key in said_to(call)}


def _left_out(trials: Trials, path: tuple[Call, ...], call: Call, known: Mapping[Key, None]) -> Iterator[Edge]:
    """The edges that leaving out one call of a path shows."""
    for number in range(len(path)):
        edge = left_out_at(trials, path, call, number, known)
        if edge is not None:
            yield edge


def left_out_at(
    trials: Trials, path: tuple[Call, ...], call: Call, number: int, known: Mapping[Key, None]
) -> Edge | None:
    """The edge that leaving out this call of a path shows, if the last call then comes to nothing.

    ``known`` is what people know: where an argument is such a value, the call was not needed to tell it.
    """
    given = trials.run(path, call)
    if given is None or not came_to_something(given):
        return None
    source = path[number]
    bound = [*trials.bound((*path, call))]
    last = dict(said_to(call))
    free = {**known, **dict.fromkeys(_asked_by(path[: number + 1]))}
    told = {where for where, (by, _) in bound[-1].items() if by == number and last[where] not in free}
    if source.tool == call.tool or told:
        return None  # an argument comes from it: that is information
    bound[-1] = {where: found for where, found in bound[-1].items() if found[0] != number}
    rest = _without(trials, (*path, call), bound, number)
    if rest is None:
        return None  # another call of the path needs it: the edge is to that one
    bare = trials.run(rest[:-1], rest[-1])
    if bare is None or not came_to_nothing(bare):
        return None
    proof = Proof(witness_of(trials, (*path, call), given), witness_of(trials, rest, bare), number)
    return Edge(source.tool, call.tool, "state", proofs=(proof,))


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
