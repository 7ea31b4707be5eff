"""Which predicted call answers to which true one: M and mu of Prove, section 3.3."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

from callwright.errors import Abstention
from callwright.language.program import Call, Program, plain
from callwright.tools.validation import Validation, validate
from callwright.walk.answers import values_equal
from callwright.walk.attempt import Attempt
from callwright.walk.trace import Trace
from callwright_plugins.prove_rewards.truth import TRUTHS, TrueCall, Truth

Matching = Literal["first-unused", "optimal"]
#: How many partial alignments the optimal matching looks at before it settles for the best found.
_MOST_TRIED: Final = 5_000


class Made(NamedTuple):
    """A call that the model made. ``arguments`` has its keys as written, ``values`` what they came to when it ran."""

    id: int
    tool: str
    arguments: Mapping[str, Any]
    values: Mapping[str, Any]


class Alignment:
    """A truth and the calls of an attempt; ``partner(matching)[i]`` is the position mu of true call ``i``, or -1."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.truth: Truth = TRUTHS.of(attempt.task)
        self.program: Program = attempt.whole
        self.trace: Trace = attempt.whole_trace
        self.masked: str | None = self.trace.masked
        self._partners: dict[Matching, list[int]] = {}

    @cached_property
    def made(self) -> list[Made]:
        """The calls of all turns, in order."""
        ran = {record.call: record.arguments for record in self.trace.records}
        if self.attempt.is_told and any(Call(0, "", arguments).located for arguments in ran.values()):
            raise Abstention("the record does not say what a reference in the arguments of a call stood for")
        return [
            Made(call.id, call.tool, call.arguments, ran.get(call.id) or plain(call.arguments))
            for call in self.program.calls
        ]

    @cached_property
    def validation(self) -> Validation:
        """Every schema mismatch of the calls."""
        found = self.attempt.validation
        return found if found is not None else validate(self.program, self.attempt.tools)

    def partner(self, matching: Matching) -> list[int]:
        """mu, by true call."""
        found = self._partners.get(matching)
        if found is None:
            found = first_unused(self.truth.calls, self.made)
            if matching == "optimal":
                found = best(self.truth, self.made, found)
            self._partners[matching] = found
        return found


_LAST: tuple[Attempt, Alignment] | None = None


def align(attempt: Attempt) -> Alignment:
    """The alignment of an attempt; that of the last one is kept, since the components ask for it in turn."""
    global _LAST
    last = _LAST
    if last is not None and last[0] is attempt:
        return last[1]
    alignment = Alignment(attempt)
    _LAST = attempt, alignment
    return alignment


def fits(call: TrueCall, made: Made) -> bool:
    """Same name, and all of the true call's argument keys."""
    return made.tool == call.tool and call.arguments.keys() <= made.arguments.keys()


def agreement(call: TrueCall, made: Made) -> float:
    """The share of the true call's argument values that agree, in [0, 1]; 1 for a call without arguments."""
    if not call.arguments:
        return 1.0
    values = made.values
    same = sum(1 for key, value in call.arguments.items() if key in values and values_equal(value, values[key]))
    return same / len(call.arguments)


def first_unused(calls: Sequence[TrueCall], made: Sequence[Made]) -> list[int]:
    """For each true call, in order, the first call that fits and is not taken."""
    taken = [False] * len(made)
    partner = []
    for call in calls:
        at = next((at for at, other in enumerate(made) if not taken[at] and fits(call, other)), -1)
        if at >= 0:
            taken[at] = True
        partner.append(at)
    return partner


def covered_steps(truth: Truth, partner: Sequence[int]) -> list[bool]:
    """m(g) o(g): every call of the step has a partner, after all partners of the steps that it depends on.

    A step of several calls stands where its calls do: the first of them has to come after the last of those before.
    What depends on a step without a partner is not covered, because its position is not there to be compared.
    """
    count = truth.steps
    first, last, matched = [sys.maxsize] * count, [-1] * count, [True] * count
    for call, at in zip(truth.calls, partner, strict=True):
        if at < 0:
            matched[call.step] = False
        else:
            first[call.step] = min(first[call.step], at)
            last[call.step] = max(last[call.step], at)
    return [
        matched[step] and all(matched[other] and last[other] < first[step] for other in truth.before[step])
        for step in range(count)
    ]


def best(truth: Truth, made: Sequence[Made], start: list[int]) -> list[int]:
    """The alignment with the most covered steps and, among those, the most agreement; ``start`` is the one to beat.

    Exact unless more than 5,000 partial alignments would have to be looked at: then the best of those.
    """
    calls = truth.calls
    options: list[list[int]] = []
    for call in calls:
        ranked = [(-agreement(call, other), at) for at, other in enumerate(made) if fits(call, other)]
        options.append([at for _, at in sorted(ranked)])
    most = [agreement(call, made[found[0]]) if found else 0.0 for call, found in zip(calls, options, strict=True)]
    ahead = [sum(most[index:]) for index in range(len(calls) + 1)]
    lost = {call.step for call, found in zip(calls, options, strict=True) if not found}
    steps_ahead = [len({call.step for call in calls[index:]} - lost) for index in range(len(calls) + 1)]
    tried, chosen, taken = 0, [-1] * len(calls), [False] * len(made)
    winner, record = list(start), _merit(truth, made, start)

    def extend(index: int, agreed: float) -> None:
        nonlocal tried, winner, record
        tried += 1
        if tried > _MOST_TRIED:
            return
        if index == len(calls):
            merit = _merit(truth, made, chosen)
            if merit > record:
                winner, record = list(chosen), merit
            return
        step = calls[index].step
        done = sum(covered_steps(truth, chosen)[: step + 1]) if index else 0
        bound = (done + steps_ahead[index], agreed + ahead[index] + 1e-9)
        if bound <= record:
            return
        for at in options[index]:
            if not taken[at]:
                taken[at], chosen[index] = True, at
                extend(index + 1, agreed + agreement(calls[index], made[at]))
                taken[at], chosen[index] = False, -1
        extend(index + 1, agreed)

    extend(0, 0.0)
    return winner


def _merit(truth: Truth, made: Sequence[Made], partner: Sequence[int]) -> tuple[int, float]:
    agreed = sum(agreement(call, made[at]) for call, at in zip(truth.calls, partner, strict=True) if at >= 0)
    return sum(covered_steps(truth, partner)), agreed
