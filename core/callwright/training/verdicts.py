"""Verdicts: how one attempt went, whatever a reward makes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Literal

from attrs import evolve, field, frozen

from callwright.errors import Abstention, InfrastructureFailure
from callwright.language.envelope import read_thought
from callwright.language.program import Call, Program, Reference
from callwright.tools.validation import Validation, validate
from callwright.walk.answers import (
    answer_collected,
    answers_match,
    first_difference,
    value_counts,
    values_equal,
    wrong_instance,
)
from callwright.walk.attempt import Attempt
from callwright.walk.tasks import Task
from callwright.walk.trace import Trace
from callwright.walk.users.world import GOAL

#: Characters of a fact that may still be the name of a group.
_LONGEST_NAME: Final = 64
#: What a call's arguments did not fit, by the code of its outcome.
_MISFITS: Final[Mapping[str, str]] = {
    "name": "unknown_tool",
    "missing": "missing_parameter",
    "unexpected": "unexpected_parameter",
    "type": "wrong_type",
    "value": "wrong_value",
}
_ANY_REFERENCE: Final = object()

#: What cut an attempt off before the model was done; empty if nothing did. ``tokens``: a limit of tokens. ``context``:
#: the model's positions. ``prompt``: its prompt already left no room, so that the model wrote nothing.
Cut = Literal["", "tokens", "context", "prompt"]


@frozen
class Verdict:
    """How one attempt went.

    ``answer``: the returned values are the expected ones, or where all results are wanted those of all turns; in every
    world of the task, where it has several (else ``answer:other_world``); of a task with a goal, that it was reached.
    ``valid``: the answer is right, every text was read, and every call also fits its schema and executed (the stricter
    accuracy of TIER's released evaluator). ``failure`` is empty for a right answer, else a short stable name of the
    first thing that went wrong; ``error`` is a finer one (see :func:`error_class`). ``masked``: the machinery failed,
    and it hangs on what was lost whether the answer is right; ``lost`` says how it failed. ``thought_words``: see
    :func:`thought_words`; ``None`` for a masked attempt, too. ``sample`` numbers the attempts at a task from 0.
    ``family`` names the tasks that succeed and fail together with this one (``facts["family"]``; empty: none does);
    ``groups`` is what else tables may be made by (see :func:`groups_of`). ``cut`` says what cut the attempt off, if
    something did, and ``cut_at`` after how many tokens of its last completion, where the sampler keeps them: the
    failure of such an attempt says little of the model.
    """

    task: str
    depth: int
    structure: str
    answer: bool
    valid: bool
    failure: str = ""
    masked: bool = False
    thought_words: int | None = None
    error: str = ""
    sample: int = 0
    family: str = ""
    groups: Mapping[str, Any] = field(factory=dict, hash=False)
    lost: str = ""
    cut: Cut = ""
    cut_at: int | None = None

    @property
    def cluster(self) -> str:
        """What this attempt is drawn together with: the family of its task, or the task."""
        return f"family\n{self.family}" if self.family else f"task\n{self.task}"


def groups_of(task: Task) -> dict[str, Any]:
    """What tables may be made by, beside depth and structure: the longest chain, ``returns``, and facts of a corpus.

    Facts are taken that are a short text, a whole number or a flag, such as ``category``, ``domain`` and ``kind``.
    """
    known = {
        name: value
        for name, value in task.facts.items()
        if type(value) in (int, bool) or (type(value) is str and len(value) <= _LONGEST_NAME)
    }
    known.pop("family", None)
    return {"chain": task.chain, "returns": task.returns, **known}


def thought_words(attempt: Attempt) -> int | None:
    """Words of the thoughts of an attempt, over all its turns: how long it reasoned (ToolRL, section 5.1).

    A word is what stands between white space, as in ToolRL's length reward. The thought of a program is the parser's
    (:attr:`callwright.Program.thought`; 0 words where the form lets it be left out); that of any other text is what its
    think block holds. A turn without a closed think block is left out; ``None`` if no turn is left.
    """
    thoughts = [
        part.thought if isinstance(part, Program) else read_thought(completion.text)
        for completion, part in zip(attempt.completions, attempt.parts, strict=True)
    ]
    counts = [len(thought.split()) for thought in thoughts if thought is not None]
    return sum(counts) if counts else None


def judge(attempt: Attempt, sample: int = 0) -> Verdict:
    """The verdict on one attempt, independent of any reward recipe; ``sample`` is its number at its task."""
    task = attempt.task
    family = task.facts.get("family")
    base = Verdict(
        task.id,
        task.depth,
        task.structure,
        answer=False,
        valid=False,
        sample=sample,
        family=family if isinstance(family, str) else "",
        groups=groups_of(task),
    )
    verdict = _judge(attempt, base)
    if verdict.masked:
        return verdict
    words = thought_words(attempt)
    if not attempt.truncated:
        return evolve(verdict, thought_words=words)
    cut, cut_at = _cut(attempt)
    return evolve(verdict, thought_words=words, cut=cut, cut_at=cut_at)


def _cut(attempt: Attempt) -> tuple[Cut, int | None]:
    """What cut off an attempt that is truncated, and after how many tokens."""
    last = attempt.completion
    ids = len(last.token_ids)
    # A server that was asked and thought in silence until its limit says in its usage how much it wrote.
    wrote = bool(last.text or ids or (last.usage or {}).get("completion_tokens"))
    if not wrote and len(attempt.completions) <= 1:
        return "prompt", None
    return "context" if not wrote or attempt.stop == "context" else "tokens", ids or None


def masked_verdict(task: Task, sample: int = 0, lost: str = "") -> Verdict:
    """The verdict on an attempt of which nothing is known, and why."""
    family = task.facts.get("family")
    return Verdict(
        task.id,
        task.depth,
        task.structure,
        answer=False,
        valid=False,
        failure="masked",
        masked=True,
        error="masked",
        sample=sample,
        family=family if isinstance(family, str) else "",
        groups=groups_of(task),
        lost=lost,
    )


def _judge(attempt: Attempt, base: Verdict) -> Verdict:
    task = attempt.task
    masked = evolve(base, failure="masked", error="masked", masked=True)
    if (cut_short := attempt.cut_short) is not None:
        return evolve(masked, lost=cut_short)
    unread = attempt.failure
    format_failed = "" if unread is None else f"format:{unread.code}"
    if unread is not None and attempt.conditions.limits.unparsed == "episode":
        return evolve(base, failure=format_failed, error=format_failed)
    # Under limits by which what cannot be read is an answer, it does not hide what the other turns came to.
    program, trace = attempt.whole, attempt.whole_trace
    validation = attempt.validation or validate(program, task.tools)
    if (lost := attempt.masked) is not None:
        certain = _certain_failure(attempt, program, validation, trace)
        return evolve(base, failure=certain, error=certain) if certain else evolve(masked, lost=lost)
    try:
        executed = trace.answer_executed
        reached = goal_reached(attempt)
        if reached is None:
            right = (executed and answers_match(task.answer, trace.returned)) or answer_collected(task, trace)
        else:
            right = reached
        if right and task.instances and wrong_instance(attempt) is not None:
            return evolve(base, failure="answer:other_world", error="answer:other_world")
        valid = right and fits(attempt)
    except (Abstention, InfrastructureFailure) as error:
        return evolve(masked, lost=str(error))
    if right:
        return evolve(base, answer=True, valid=valid)
    if format_failed:
        return evolve(base, failure=format_failed, error=format_failed)
    if validation.names:
        failure = "schema:unknown_tool"
    elif validation.parameters:
        failure = f"schema:{validation.parameters[0].kind}_parameter"
    elif validation.types:
        failure = "schema:wrong_type"
    elif not executed:
        failed = trace.failures[0].outcome
        failure = f"execution:{failed.code or failed.kind}"
    elif reached is False:
        failure = "goal:missed"
    elif not program.calls:
        failure = "answer:abstained"
    elif task.answer.is_no_call:
        failure = "answer:should_abstain"
    else:
        failure = "answer:wrong"
    return evolve(base, failure=failure, error=_finer(failure, task, program, validation, trace))


def fits(attempt: Attempt) -> bool:
    """Whether every text of an attempt was read, and every call fits its schema and executed; not what came of it.

    Raises :class:`callwright.errors.Abstention` or :class:`callwright.InfrastructureFailure` where nobody knows.
    """
    if attempt.failure is not None:
        return False
    validation = attempt.validation or validate(attempt.whole, attempt.task.tools)
    return not (validation.names or validation.parameters or validation.types) and attempt.whole_trace.executed


def goal_reached(attempt: Attempt) -> bool | None:
    """Whether what an attempt has left is the goal of its task, which stands in the fact ``goal``.

    The session in which it ran is asked (:attr:`callwright.walk.Attempt.goal`): nothing is done again. ``None`` where
    there is no goal, nobody knows what was left (an attempt of somebody else) or sessions check none: then the answer
    counts.

    Raises :class:`callwright.InfrastructureFailure` if the machinery fails, and :class:`callwright.errors.DataError`
    for a goal that is not of the task's environment.
    """
    found = attempt.goal
    return None if found is None else bool(found.equal)


def _certain_failure(attempt: Attempt, program: Program, validation: Validation, trace: Trace) -> str:
    """What makes a masked attempt wrong whatever its lost calls would have come to; empty if that hangs on them.

    A call of a tool that is not offered never executes, nor one whose arguments do not fit, one that refers to no
    earlier call, or one that failed before the machinery did; and a program that returns fewer or more values than are
    expected is not right. Of several turns nothing is said: a later one may put an earlier one right. Nor is anything
    of a task with a goal.
    """
    if len(attempt.parts) > 1 or GOAL in attempt.task.facts:
        return ""
    if validation.names:
        return "schema:unknown_tool"
    if validation.parameters:
        return f"schema:{validation.parameters[0].kind}_parameter"
    if validation.types:
        return "schema:wrong_type"
    failed = next((one.outcome for one in trace.failures if one.outcome.kind != "infrastructure_error"), None)
    if failed is not None:
        return f"execution:{failed.code or failed.kind}"
    earlier: set[int] = set()
    for call in program.calls:
        if any(reference.call not in earlier for _, reference in call.located):
            return "execution:unresolved_reference"
        earlier.add(call.id)
    if attempt.task.answer.is_no_call:
        return "answer:should_abstain"
    returned, answer = len(program.calls) if program.returns == "all" else 1, attempt.task.answer
    return "" if returned in map(len, (answer.values, *answer.others)) else "answer:wrong"


# Finer classes of errors ----------------------------------------------------------------------------------------------


def error_class(attempt: Attempt) -> str:
    """What went wrong, finer than :attr:`Verdict.failure`; empty for a right answer.

    A value outside of an enumeration, a pattern or a bound is ``schema:wrong_value``, whatever the environment calls
    it. ``answer:wrong`` is split by comparing with the reference program: ``answer:wrong_returns`` (right with the
    other ``return``), ``missing_call`` and ``extra_call`` (a tool is called too seldom, too often), ``wrong_tool`` (one
    in the place of another), ``wrong_argument`` (a literal differs) and ``wrong_reference`` (only references do). It
    stays ``answer:wrong`` where there is no reference, or the calls are the reference's and yet wrong.
    """
    return judge(attempt).error


def _finer(failure: str, task: Task, program: Program, validation: Validation, trace: Trace) -> str:
    stage, _, _ = failure.partition(":")
    if stage == "execution":
        failed = trace.failures[0].outcome
        if validation.values:
            return "schema:wrong_value"
        if failed.kind == "schema_error":  # of a value that a reference brought
            return f"schema:{_MISFITS.get(failed.code, 'wrong_value')}"
    if failure == "answer:wrong" and task.program is not None:
        return f"answer:{_against(task.program, task, program, trace)}"
    return failure


def _against(reference: Program, task: Task, program: Program, trace: Trace) -> str:
    """How a program whose calls all executed differs from the reference."""
    other = evolve(trace, returns="one" if trace.returns == "all" else "all")
    try:
        if answers_match(task.answer, other.returned):
            return "wrong_returns"
    except Abstention:
        pass
    wanted, made = (Counter(call.tool for call in one.calls) for one in (reference, program))
    missing, extra = wanted - made, made - wanted
    if missing or extra:
        return "wrong_tool" if missing and extra else "missing_call" if missing else "extra_call"
    left = list(program.calls)
    for call in reference.calls:
        for place, one in enumerate(left):
            if one.tool == call.tool and values_equal(_literals(call), _literals(one)):
                del left[place]
                break
        else:
            return "wrong_argument"
    return "wrong_reference" if any(call.located for call in (*reference.calls, *program.calls)) else "wrong"


def _literals(call: Call) -> Any:
    """The arguments of a call with all references alike."""

    def alike(value: Any) -> Any:
        if isinstance(value, Reference):
            return _ANY_REFERENCE
        if isinstance(value, Mapping):
            return {key: alike(inner) for key, inner in value.items()}
        return [alike(inner) for inner in value] if isinstance(value, list | tuple) else value

    return alike(call.arguments)


def difference_of(attempt: Attempt) -> tuple[str, Any, Any] | None:
    """The first place at which what was returned is not what the task expects: ``(path, expected, found)``.

    Of several values those that are equal are left out first. ``None`` for a right answer, and where nothing was
    returned that could be compared.
    """
    trace, answer = attempt.trace, attempt.task.answer
    expected = list(answer.values)
    if trace is None:
        return None
    try:
        if not trace.answer_executed:
            return None
        found = list(trace.returned)
    except Abstention:
        return None
    for value in list(expected):
        place = next(
            (at for at, one in enumerate(found) if values_equal(value, value_counts(answer, value, one))), None
        )
        if place is not None:
            del expected[next(at for at, one in enumerate(expected) if one is value)]  # remove() takes 1 for True
            del found[place]
    if not expected and not found:
        return None
    if len(expected) == len(found):
        return first_difference(expected[0], value_counts(answer, expected[0], found[0]))
    return "", expected[0] if expected else "nothing", found[0] if found else "nothing"
