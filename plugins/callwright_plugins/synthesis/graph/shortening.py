"""Shortening: a proof without the calls of its paths that prove nothing."""

from __future__ import annotations

from attrs import evolve

from callwright.language.program import Call
from callwright_plugins.synthesis.exploration.witness import Witness, text_of
from callwright_plugins.synthesis.graph.edges import Proof
from callwright_plugins.synthesis.graph.references import value_at
from callwright_plugins.synthesis.graph.trials import Trials


def shortened(trials: Trials, proof: Proof) -> Proof:
    """The proof without each call, from the last to the first, without which both paths come to what they did.

    Raises :class:`.OutOfCalls` where no calls are left to try it with.
    """
    *path, target = proof.given.calls
    *bare, other = proof.without.calls
    state = not proof.place
    if [text_of(call) for call in bare] != [
        text_of(call) for n, call in enumerate(path) if not (state and n == proof.step)
    ]:
        return proof  # what was left out moved ids: the paths are not one path
    step = proof.step
    for number in reversed(range(len(path))):
        if number == step:
            continue
        rest, at = [*path[:number], *path[number + 1 :]], step - (number < step)
        if not _comes_to(trials, rest, target, proof.given):
            continue
        if not _comes_to(trials, [*rest[:at], *rest[at + 1 :]] if state else rest, other, proof.without):
            continue
        if not state:
            told = value_at(trials.results(rest)[at], proof.found)
            if told is None or told != value_at(dict(target.arguments), proof.place):
                continue
        path, step = rest, at
    without = [*path[:step], *path[step + 1 :]] if state else path
    return evolve(
        proof,
        given=evolve(proof.given, calls=_numbered([*path, target])),
        without=evolve(proof.without, calls=_numbered([*without, other])),
        step=step,
    )


def _comes_to(trials: Trials, path: list[Call], call: Call, witness: Witness) -> bool:
    outcome = trials.run(path, call)
    return outcome is not None and (outcome.kind, outcome.code) == (witness.kind, witness.code)


def _numbered(calls: list[Call]) -> tuple[Call, ...]:
    return tuple(Call(number, call.tool, call.arguments) for number, call in enumerate(calls))
