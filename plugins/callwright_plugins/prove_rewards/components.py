"""The five rewards of Prove, section 3.3, and abstention. They score attempts and episodes alike.

Where nothing is due (G empty) all of them are out of play and abstention decides; else abstention is out of play.
Open points are decided in ``docs/toolrl-and-prove.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Final

from callwright.language.shortening import brief
from callwright.walk.attempt import Attempt
from callwright.walk.reward import Evidence, RewardComponent, Score
from callwright_plugins.prove_rewards.alignment import Alignment, Matching, agreement, align, covered_steps
from callwright_plugins.prove_rewards.truth import TRUTHS, calls_due

#: Nothing to earn and nothing to lose: the property is not in play for this task.
OUT_OF_PLAY: Final = Score(0.0, 0.0, 0.0)
FULL: Final = Score(1.0)


class Validity(RewardComponent):
    """R_validity in [0, 1]: a third each for a known name, fitting required parameters, and execution; mean over calls.

    The levels are graded: a call whose parameters do not fit gets a third, whether it executes or not.
    """

    name: ClassVar[str] = "validity"
    stage: ClassVar[str] = "execution"

    def score(self, attempt: Attempt) -> Score:
        """The mean over all calls; 0 without calls."""
        alignment = align(attempt)
        if not alignment.truth.steps:
            return OUT_OF_PLAY
        if alignment.masked is not None:
            return masked(alignment.masked)
        made = alignment.made
        if not made:
            return nothing_called(attempt)
        levels, evidence = self._levels(alignment)
        return Score(sum(levels) / (3.0 * len(levels)), evidence=evidence) if evidence else FULL

    def _levels(self, alignment: Alignment) -> tuple[list[int], tuple[Evidence, ...]]:
        validation = alignment.validation
        unknown = {mismatch.call: mismatch for mismatch in validation.names}
        unfit = {
            mismatch.call: mismatch
            for mismatch in (*validation.types, *validation.parameters)
            if mismatch.kind in ("missing", "type")
        }
        outcomes = {step.call: step.outcome for step in alignment.trace.records} if alignment.trace is not None else {}
        levels, evidence = [], []
        for call in alignment.made:
            mismatch = unknown.get(call.id) or unfit.get(call.id)
            if mismatch is not None:
                levels.append(0 if call.id in unknown else 1)
                evidence.append(
                    Evidence(mismatch.kind, str(mismatch), call.id, mismatch.path, mismatch.expected, mismatch.found)
                )
                continue
            outcome = outcomes.get(call.id)
            if outcome is not None and outcome.executed:
                levels.append(3)
                continue
            levels.append(2)
            kind = outcome.kind if outcome is not None else "not executed"
            why = (outcome.message or kind) if outcome is not None else kind
            reason = f"call {call.id} {call.tool} did not execute: {why}"
            evidence.append(Evidence(kind, reason, call.id, "", "a result", kind))
        return levels, tuple(evidence)


class Coverage(RewardComponent):
    """R_coverage = 1/|G| sum over g of m(g) o(g) (equation 1), in [0, 1]."""

    name: ClassVar[str] = "coverage"
    stage: ClassVar[str] = "answer"

    def __init__(self, matching: Matching = "first-unused") -> None:
        self.matching = matching

    def score(self, attempt: Attempt) -> Score:
        """The share of steps that are covered in dependency order."""
        alignment = align(attempt)
        truth = alignment.truth
        if not truth.steps:
            return OUT_OF_PLAY
        if alignment.masked is not None:
            return masked(alignment.masked)
        partner = alignment.partner(self.matching)
        covered = covered_steps(truth, partner)
        if all(covered):
            return FULL
        return Score(sum(covered) / len(covered), evidence=tuple(_uncovered(alignment, partner, covered)))


def _uncovered(alignment: Alignment, partner: Sequence[int], covered: Sequence[bool]) -> list[Evidence]:
    truth, found = alignment.truth, []
    for step, good in enumerate(covered):
        if good:
            continue
        mine = [(call, at) for call, at in zip(truth.calls, partner, strict=True) if call.step == step]
        missing = next((call for call, at in mine if at < 0), None)
        if missing is not None:
            keys = ", ".join(missing.arguments) or "no arguments"
            reason = f"step {step}: no call of {missing.tool} with {keys}"
            found.append(Evidence("missing_step", reason, expected=missing.tool))
            continue
        call = alignment.made[min(at for _, at in mine)]
        before = ", ".join(str(other) for other in truth.before[step])
        reason = f"step {step}: call {call.id} {call.tool} does not come after what it depends on (step {before})"
        found.append(Evidence("order", reason, call.id, "", f"after step {before}", "before"))
    return found


class Efficiency(RewardComponent):
    """R_efficiency = -alpha max(0, n - B) / B with B = n_gt + ceil(beta n_gt) (equation 2), counting calls.

    A penalty in [-64, 0]; the paper's has no lower end, which only matters for hundreds of calls. It looks at the
    program alone, so that it composes with recipes that execute nothing.
    """

    name: ClassVar[str] = "efficiency"
    low = -64.0
    high = 0.0

    def __init__(self, alpha: float = 0.5, beta: float = 0.5) -> None:
        if not (alpha >= 0 and beta >= 0):
            raise ValueError("alpha and beta must not be negative")
        self.alpha, self.beta = alpha, beta

    def budget(self, calls: int) -> int:
        """B for a ground truth of so many calls; what a product misses an integer by in binary is no extra call."""
        return calls + math.ceil(calls * self.beta - 1e-9)

    def score(self, attempt: Attempt) -> Score:
        """0 within the budget."""
        due = calls_due(attempt.task)
        if not due:
            return OUT_OF_PLAY
        made = len(attempt.whole.calls)
        budget = self.budget(due)
        if made <= budget or not self.alpha:
            return _NO_PENALTY
        value = max(self.low, -self.alpha * (made - budget) / budget)
        reason = f"{made} calls, the budget is {budget} ({due} are due)"
        return Score(value, self.low, 0.0, (Evidence("over_budget", reason, None, "", str(budget), str(made)),))


class NameBonus(RewardComponent):
    """R_name in [0, 1]: the share of calls whose tool is one of the ground truth's (equation 3)."""

    name: ClassVar[str] = "name"
    stage: ClassVar[str] = "parse"

    def score(self, attempt: Attempt) -> Score:
        alignment = align(attempt)
        if not alignment.truth.steps:
            return OUT_OF_PLAY
        if alignment.masked is not None:
            return masked(alignment.masked)
        made, names = alignment.made, alignment.truth.names
        if not made:
            return nothing_called(attempt)
        wrong = [call for call in made if call.tool not in names]
        if not wrong:
            return FULL
        evidence = tuple(
            Evidence("other_tool", f"call {call.id} {call.tool[:80]} is no tool of the solution", call.id)
            for call in wrong
        )
        return Score((len(made) - len(wrong)) / len(made), evidence=evidence)


class ArgumentValues(RewardComponent):
    """R_arg in [0, 1]: the share of agreeing argument values, mean over the aligned pairs (equation 4).

    Values are compared after references were resolved on both sides. A call without arguments agrees. 0 without pairs.
    """

    name: ClassVar[str] = "argument"
    stage: ClassVar[str] = "answer"

    def __init__(self, matching: Matching = "first-unused") -> None:
        self.matching = matching

    def score(self, attempt: Attempt) -> Score:
        alignment = align(attempt)
        if not alignment.truth.steps:
            return OUT_OF_PLAY
        if alignment.masked is not None:
            return masked(alignment.masked)
        made = alignment.made
        pairs = [
            (c, made[at])
            for c, at in zip(alignment.truth.calls, alignment.partner(self.matching), strict=True)
            if at >= 0
        ]
        if not pairs:
            reason = "no call answers to a true one"
            return Score(0.0, evidence=(Evidence("nothing_aligned", reason),)) if made else nothing_called(attempt)
        value = sum(agreement(call, other) for call, other in pairs) / len(pairs)
        if value >= 1.0:
            return FULL
        evidence = []
        for call, other in pairs:
            for key, expected in call.arguments.items():
                if agreement(type(call)(call.step, call.tool, {key: expected}), other) < 1.0:
                    given = other.values.get(key)
                    reason = f"call {other.id} {other.tool}.{key} is {_shown(given)}, expected {_shown(expected)}"
                    evidence.append(Evidence("wrong_value", reason, other.id, key, _shown(expected), _shown(given)))
        return Score(value, evidence=tuple(evidence))


class Abstention(RewardComponent):
    """1 for calling nothing where nothing is due, 0 for calling something; out of play where something is due."""

    name: ClassVar[str] = "abstention"
    stage: ClassVar[str] = "answer"

    def score(self, attempt: Attempt) -> Score:
        """1 or 0. A completion that cannot be read does not abstain."""
        if TRUTHS.of(attempt.task).steps:
            return OUT_OF_PLAY
        alignment = align(attempt)
        if alignment.made:
            names = ", ".join(call.tool[:40] for call in alignment.made[:3])
            reason = f"no tool can answer this; nothing should be called, found {names}"
            return Score(0.0, evidence=(Evidence("should_abstain", reason, None, "", "no calls", names),))
        if attempt.failure is not None:
            return nothing_called(attempt)
        return FULL


def nothing_called(attempt: Attempt) -> Score:
    """0, because there are no calls; with the reason where the completion cannot be read."""
    failure = attempt.failure
    if failure is not None:
        return Score(0.0, evidence=(Evidence(failure.code, failure.message),))
    return Score(0.0, evidence=(Evidence("nothing_called", "nothing was called"),))


def masked(reason: str) -> Score:
    """Nothing is known, because the machinery failed."""
    return Score(0.0, evidence=(_lost(reason),), masked=reason)


def _shown(value: object) -> str:
    return brief(value, 60)


def _lost(reason: str) -> Evidence:
    return Evidence("infrastructure_error", reason)


_NO_PENALTY: Final = Score(0.0, Efficiency.low, 0.0)
