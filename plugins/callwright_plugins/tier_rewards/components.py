"""The four rewards of TIER, section 2.2, as components; each value lies in [0, 1] and the recipe weights it.

What the paper leaves open is decided in ``docs/divergences.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from attrs import evolve

from callwright.errors import UsageError
from callwright.language.parser import ParseFailure, Span
from callwright.language.program import Program
from callwright.language.shortening import brief
from callwright.tools.validation import Mismatch
from callwright.walk.answers import answer_collected, answers_match, first_difference, value_counts, wrong_instance
from callwright.walk.attempt import Attempt
from callwright.walk.reward import Deferred, Evidence, RewardComponent, Score
from callwright.walk.tasks import Answer
from callwright.walk.trace import Trace

#: The paper's lambda_p: what one mismatch costs.
PENALTY: Final = 0.25

FULL: Final = Score(1.0)


class Format(RewardComponent):
    """R_format in {0, 1}: a well-formed envelope and tree, increasing ids, and no second tool-call block in any turn.

    A reference to no earlier call is well formed and parsable (section 2.2): it fails where it is resolved, in
    execution. A tree whose calls are well formed except that some arguments are not a table of names and values keeps
    its format too: what it loses is everything that a schema could have confirmed.
    """

    name: ClassVar[str] = "format"
    stage: ClassVar[str] = "format"

    def score(self, attempt: Attempt) -> Score:
        failure = attempt.parsed
        if type(failure) is ParseFailure and failure.stage != "arguments":
            start, end = failure.span
            reason = f"{failure.message} (characters {start}-{end})"
            return Score(0.0, evidence=(Evidence(failure.code, reason, found=attempt.completion.text[start:end][:80]),))
        faults = self._faults(attempt)
        return Score(0.0, evidence=tuple(faults)) if faults else FULL

    def _faults(self, attempt: Attempt) -> list[Evidence]:
        """What is wrong with completions that can be read."""
        faults = []
        for number, span in attempt.second_blocks:
            what = "a second tool-call block; a completion has one"
            faults.append(_misplaced(attempt, number, span, "second_block", what))
        program = attempt.parsed
        if type(program) is Program:
            previous = -1
            for call in program.calls:
                if call.id <= previous:
                    reason = f"call {call.id} stands after call {previous}; ids must increase"
                    faults.append(Evidence("id_order", reason, call.id))
                previous = call.id
        return faults


class StrictFormat(Format):
    """R_format in {0, 1}, stricter than the paper: also references only to earlier calls, and nothing but the blocks.

    White space may stand before the think block, between the two blocks and after the tool-call block; other text
    closes the gate, but for what an answer without calls says to the task's user.
    """

    def _faults(self, attempt: Attempt) -> list[Evidence]:
        faults = super()._faults(attempt)
        form = attempt.one_block
        for number, completion in enumerate(attempt.completions if form is not None else ()):
            span = form.stray_text(completion.text) if form is not None else None
            if span is not None and not _is_speech(attempt, number, span):
                faults.append(_misplaced(attempt, number, span, "stray_text", "text outside of the two blocks"))
        program = attempt.program or Program()
        for position, path, reference in program.dangling:
            call = program.calls[position]
            reason = f"call {call.id} {call.tool}.{path} refers to {reference}, which is no earlier call"
            faults.append(Evidence("dangling_reference", reason, call.id, path, "an earlier call", str(reference)))
        return faults


def _is_speech(attempt: Attempt, number: int, span: Span) -> bool:
    """Whether what stands there is what the task's user hears."""
    part = attempt.parts[number]
    said = part.text if isinstance(part, Program) and attempt.task.user is not None else None
    return bool(said) and attempt.completions[number].text[slice(*span)] == said


class Names(RewardComponent):
    """R_name in {0, 1}: every called tool is one of those offered in the task.

    Where the arguments of a call are no table of names and values, nothing of R_parse can be confirmed. Then this is 0
    too, and the term ``parameters`` tells why.
    """

    name: ClassVar[str] = "names"
    stage: ClassVar[str] = "parse"

    def score(self, attempt: Attempt) -> Score:
        validation = attempt.validation
        if validation is None:
            failure, score = attempt.failure, unreadable(attempt)
            if failure is not None and failure.stage == "arguments":
                return Deferred(0.0, evidence=score.evidence, told=Parameters.name)
            return score
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
        if validation is None:
            return unreadable(attempt)
        found = validation.parameters
        return graded(found, self.penalty) if found else FULL


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
        if validation is None:
            return unreadable(attempt)
        found = validation.types
        return graded(found, self.penalty) if found else FULL


class Execution(RewardComponent):
    """R_exec in {0, 1}: every call executes. Calling nothing executes, vacuously.

    A call that failed by the program's own fault decides it, whatever the machinery did later; if only the machinery
    failed, nothing is known and the sample is masked.
    """

    name: ClassVar[str] = "execution"
    stage: ClassVar[str] = "execution"

    def score(self, attempt: Attempt) -> Score:
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
    """R_answer in {0, 1}, times 5 in the recipe: the returned values are the expected multiset, compared by value.

    A call that did not execute returns nothing, also where ``null`` is expected.
    """

    name: ClassVar[str] = "answer"
    stage: ClassVar[str] = "answer"

    def score(self, attempt: Attempt) -> Score:
        trace = attempt.trace
        if trace is None:
            return unreadable(attempt)
        if trace.infrastructure is not None:
            return masked(trace)
        answer = attempt.task.answer
        if answers_match(answer, trace.returned):
            for record in trace.handed:
                if not record.outcome.executed:  # what stands in place of its value is no answer, whatever it is
                    reason = f"call {record.call} {record.tool} did not execute, so that it returned nothing"
                    return Score(0.0, evidence=(Evidence("failed_call", reason, record.call, expected="a result"),))
            return _in_all_worlds(attempt)
        if answer_collected(attempt.task, trace):
            return FULL
        return Score(0.0, evidence=(wrong_answer(answer, trace),))


def _in_all_worlds(attempt: Attempt) -> Score:
    """Full for an answer that is also right in the further worlds of its task, if it has any."""
    lost = wrong_instance(attempt) if attempt.task.instances else None
    if lost is None:
        return FULL
    reason = f"it is right in the task's world, but not in {lost.scenario!r}: something is written that was to be asked"
    return Score(0.0, evidence=(Evidence("other_world", reason),))


class Abstention(RewardComponent):
    """In {0, 1}: 0 for calling nothing where something had to be called. Meant as a gate of weight 0."""

    name: ClassVar[str] = "abstention"
    stage: ClassVar[str] = "answer"

    def score(self, attempt: Attempt) -> Score:
        program = attempt.program
        if program is None or program.calls or attempt.task.answer.is_no_call:
            return FULL
        reason = "nothing was called, but the task can be solved with the offered tools"
        return Score(0.0, evidence=(Evidence("wrong_abstention", reason, expected="calls", found="no calls"),))


def unreadable(attempt: Attempt) -> Score:
    """Nothing to look at: the completion is not a program."""
    failure = attempt.failure
    if failure is None:
        return Score(0.0, evidence=(Evidence("no_program", "there is no program"),))
    reason = failure.message
    if failure.stage == "arguments":
        start, end = failure.span
        reason = f"the arguments cannot be read: {reason} (characters {start}-{end})"
    return Score(0.0, evidence=(Evidence(failure.code, reason),))


def _misplaced(attempt: Attempt, number: int, span: Span, code: str, what: str) -> Evidence:
    """Evidence about a place in a completion; which of several it is, is said."""
    start, end = span
    turn = f"turn {number + 1} has " if len(attempt.completions) > 1 else "there is "
    found = attempt.completions[number].text[start:end]
    return Evidence(code, f"{turn}{what} (characters {start}-{end})", found=brief(found, 80, keep=77))


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
        difference = first_difference(expected[0], value_counts(answer, expected[0], returned[0]))
        path, mine, theirs = difference if difference else ("", expected[0], returned[0])
        reason = f"the result differs{f' at {path}' if path else ''}: expected {_shown(mine)}, found {_shown(theirs)}"
        return Evidence("wrong_value", reason, trace.records[-1].call, path, _shown(mine), _shown(theirs))
    alone = [evolve(answer, values=(value,), others=()) for value in expected]
    lost = sum(not any(answers_match(one, (other,)) for other in returned) for one in alone)
    return Evidence("wrong_values", f"{lost or 1} of {len(expected)} expected values were not returned")


def _shown(value: Any) -> str:
    return brief(value, 80, keep=77)
