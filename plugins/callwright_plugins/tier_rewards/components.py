"""The four rewards of TIER, section 2.2, as components; each value lies in [0, 1] and the recipe weights it.

What the paper leaves open is decided in ``docs/divergences.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from callwright.errors import UsageError
from callwright.language.shortening import brief
from callwright.tools.validation import Mismatch
from callwright.walk.answers import answers_match, first_difference
from callwright.walk.attempt import Attempt
from callwright.walk.reward import Evidence, RewardComponent, Score
from callwright.walk.tasks import Answer
from callwright.walk.trace import Trace

#: The paper's lambda_p: what one mismatch costs.
PENALTY: Final = 0.25

FULL: Final = Score(1.0)


class Format(RewardComponent):
    """R_format in {0, 1}: a well-formed envelope and tree, increasing ids, references only to earlier calls.

    A tree whose calls are well formed except that some arguments are not a table of names and values keeps its format:
    what it loses is everything that a schema could have confirmed.
    """

    name: ClassVar[str] = "format"
    stage: ClassVar[str] = "format"

    def score(self, attempt: Attempt) -> Score:
        """1 or 0."""
        failure = attempt.failure
        if failure is not None:
            if failure.stage == "arguments":
                return FULL
            start, end = failure.span
            reason = f"{failure.message} (characters {start}-{end})"
            return Score(0.0, evidence=(Evidence(failure.code, reason, found=attempt.completion.text[start:end][:80]),))
        program = attempt.program
        assert program is not None
        evidence = []
        previous = -1
        for call in program.calls:
            if call.id <= previous:
                reason = f"call {call.id} stands after call {previous}; ids must increase"
                evidence.append(Evidence("id_order", reason, call.id))
            previous = call.id
        for position, path, reference in program.dangling:
            call = program.calls[position]
            reason = f"call {call.id} {call.tool}.{path} refers to {reference}, which is no earlier call"
            evidence.append(Evidence("dangling_reference", reason, call.id, path, "an earlier call", str(reference)))
        return Score(0.0, evidence=tuple(evidence)) if evidence else FULL


class Names(RewardComponent):
    """R_name in {0, 1}: every called tool is one of those offered in the task."""

    name: ClassVar[str] = "names"
    stage: ClassVar[str] = "parse"

    def score(self, attempt: Attempt) -> Score:
        """1 or 0."""
        validation = attempt.validation
        if validation is None:
            return unreadable(attempt)
        return Score(0.0, evidence=_explain(validation.names)) if validation.names else FULL


class Parameters(RewardComponent):
    """R_param = clip(1 - lambda p, 0, 1), p = missing required (nested ones too) plus unexpected, over all calls.

    ``penalty`` is lambda_p, at least 0; the paper's is 0.25. Raises :class:`callwright.UsageError` for another number.
    """

    name: ClassVar[str] = "parameters"
    stage: ClassVar[str] = "parse"

    def __init__(self, penalty: float = PENALTY) -> None:
        self.penalty = checked_penalty(penalty)

    def score(self, attempt: Attempt) -> Score:
        """With the paper's penalty 1, 0.75, 0.5, 0.25 or 0."""
        validation = attempt.validation
        return unreadable(attempt) if validation is None else graded(validation.parameters, self.penalty)


class Types(RewardComponent):
    """R_dtype = clip(1 - lambda p, 0, 1), p = values that are not of their parameter's JSON type, over all calls.

    An integer is a number and a bool is neither; a reference has the type that the referenced result's schema states.
    ``penalty`` is the lambda_p of :class:`Parameters`.
    """

    name: ClassVar[str] = "types"
    stage: ClassVar[str] = "parse"

    def __init__(self, penalty: float = PENALTY) -> None:
        self.penalty = checked_penalty(penalty)

    def score(self, attempt: Attempt) -> Score:
        """With the paper's penalty 1, 0.75, 0.5, 0.25 or 0."""
        validation = attempt.validation
        return unreadable(attempt) if validation is None else graded(validation.types, self.penalty)


class Execution(RewardComponent):
    """R_exec in {0, 1}: every call executes. Calling nothing executes, vacuously.

    A call that failed by the program's own fault decides it, whatever the machinery did later; if only the machinery
    failed, nothing is known and the sample is masked.
    """

    name: ClassVar[str] = "execution"
    stage: ClassVar[str] = "execution"

    def score(self, attempt: Attempt) -> Score:
        """1 or 0."""
        trace = attempt.trace
        if trace is None:
            return unreadable(attempt)
        if trace.executed:
            return FULL
        evidence = tuple(
            Evidence(
                step.outcome.code or step.outcome.kind,
                f"call {step.call} {step.tool} did not execute: {step.outcome.message or step.outcome.kind}",
                step.call,
                expected="a result",
                found=step.outcome.kind,
            )
            for step in trace.failures
            if step.outcome.kind != "infrastructure_error"
        )
        if not evidence:
            return masked(trace)
        return Score(0.0, evidence=evidence)


class RightAnswer(RewardComponent):
    """R_answer in {0, 1}, times 5 in the recipe: the returned values are the expected multiset, compared by value."""

    name: ClassVar[str] = "answer"
    stage: ClassVar[str] = "answer"

    def score(self, attempt: Attempt) -> Score:
        """1 or 0."""
        trace = attempt.trace
        if trace is None:
            return unreadable(attempt)
        if trace.infrastructure is not None:
            return masked(trace)
        answer = attempt.task.answer
        if answers_match(answer, trace.returned):
            return FULL
        return Score(0.0, evidence=(wrong_answer(answer, trace),))


class Abstention(RewardComponent):
    """In {0, 1}: 0 for calling nothing where something had to be called. Meant as a gate of weight 0."""

    name: ClassVar[str] = "abstention"
    stage: ClassVar[str] = "answer"

    def score(self, attempt: Attempt) -> Score:
        """1 or 0."""
        program = attempt.program
        if program is None or program.calls or attempt.task.answer.is_no_call:
            return FULL
        reason = "nothing was called, but the task can be solved with the offered tools"
        return Score(0.0, evidence=(Evidence("wrong_abstention", reason, expected="calls", found="no calls"),))


def unreadable(attempt: Attempt) -> Score:
    """Nothing to look at: the completion is not a program."""
    failure = attempt.failure
    reason = failure.message if failure is not None else "there is no program"
    code = failure.code if failure is not None else "no_program"
    return Score(0.0, evidence=(Evidence(code, reason),))


def masked(trace: Trace) -> Score:
    """Nothing is known, because the machinery failed."""
    reason = trace.masked or "the machinery failed"
    return Score(0.0, evidence=(Evidence("infrastructure_error", reason),), masked=reason)


def graded(mismatches: tuple[Mismatch, ...], penalty: float = PENALTY) -> Score:
    """``clip(1 - penalty p, 0, 1)`` for ``p`` mismatches."""
    if not mismatches:
        return FULL
    return Score(max(0.0, 1.0 - penalty * len(mismatches)), evidence=_explain(mismatches))


def checked_penalty(penalty: float) -> float:
    """The penalty. Raises :class:`callwright.UsageError` unless it is a finite number of at least 0."""
    if isinstance(penalty, bool) or not isinstance(penalty, int | float) or not 0 <= penalty < math.inf:
        raise UsageError(f"penalty is {penalty!r}; what one mismatch costs is a finite number of at least 0")
    return float(penalty)


def _explain(mismatches: Iterable[Mismatch]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(mismatch.kind, str(mismatch), mismatch.call, mismatch.path, mismatch.expected, mismatch.found)
        for mismatch in mismatches
    )


def wrong_answer(answer: Answer, trace: Trace) -> Evidence:
    """How the returned values differ from the expected ones."""
    expected, returned = answer.values, trace.returned
    if not expected:
        return Evidence("should_abstain", "no tool can answer this; nothing should be called", found="calls")
    if not returned:
        return Evidence("no_answer", "nothing was called, so nothing was returned", expected=_shown(expected[0]))
    if len(expected) != len(returned):
        reason = f"{len(returned)} values were returned (return={trace.returns!r}), {len(expected)} are expected"
        return Evidence("answer_count", reason, expected=str(len(expected)), found=str(len(returned)))
    if len(expected) == 1:
        difference = first_difference(expected[0], returned[0])
        path, mine, theirs = difference if difference else ("", expected[0], returned[0])
        reason = f"the result differs{f' at {path}' if path else ''}: expected {_shown(mine)}, found {_shown(theirs)}"
        return Evidence("wrong_value", reason, trace.records[-1].call, path, _shown(mine), _shown(theirs))
    lost = sum(not any(answers_match(Answer((value,)), (other,)) for other in returned) for value in expected)
    return Evidence("wrong_values", f"{lost or 1} of {len(expected)} expected values were not returned")


def _shown(value: Any) -> str:
    return brief(value, 80, keep=77)
