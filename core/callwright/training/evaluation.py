"""Evaluation: accuracy of a sampler on tasks, by depth and structure, with intervals and the commonest failures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeGuard, TypeVar

from attrs import evolve, frozen

from callwright.episodes.driving import Do, Episode
from callwright.episodes.sampling import (
    ContinuesOneByOne,
    ConversesConcurrently,
    EpisodeSampler,
    aconverse,
    aconverse_ids,
    converse,
    role_of,
)
from callwright.errors import Abstention
from callwright.language.envelope import read_thought
from callwright.language.program import Program
from callwright.tools.validation import Validation
from callwright.walk.answers import answer_collected, answers_match, wrong_instance
from callwright.walk.attempt import Attempt
from callwright.walk.conditions import Conditions
from callwright.walk.limits import TurnLimits
from callwright.walk.prompt import draw_shots
from callwright.walk.sampling import AskedOneByOne, Sampler, SamplesConcurrently, SamplingRequest, offers_tools
from callwright.walk.tasks import Task
from callwright.walk.trace import Trace

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline

T = TypeVar("T")
#: Threads in which the tasks of a sampler that waits for a server are executed and judged.
MOST_LANES: Final = 32
_LEAST_AHEAD: Final = 4096


@frozen
class Verdict:
    """How one attempt went.

    ``answer``: the returned values are the expected ones, or where all results are wanted those of all turns;
    in every world of the task, where it has several.
    ``valid``: the answer is right and every call also fits its schema and executed (the stricter accuracy of TIER's
    released evaluator). ``failure`` is empty for a right answer, else a short stable name of the first thing that went
    wrong. ``masked``: the machinery failed, and it hangs on what was lost whether the answer is right.
    ``thought_words``: see :func:`thought_words`; ``None`` for a masked attempt, too.
    """

    task: str
    depth: int
    structure: str
    answer: bool
    valid: bool
    failure: str = ""
    masked: bool = False
    thought_words: int | None = None


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


def judge(attempt: Attempt) -> Verdict:
    """The verdict on one attempt, independent of any reward recipe."""
    verdict = _judge(attempt)
    return verdict if verdict.masked else evolve(verdict, thought_words=thought_words(attempt))


def _judge(attempt: Attempt) -> Verdict:
    task = attempt.task
    base = (task.id, task.depth, task.structure)
    masked = Verdict(*base, answer=False, valid=False, failure="masked", masked=True)
    if attempt.cut_short is not None:
        return masked
    if attempt.failure is not None:
        return Verdict(*base, answer=False, valid=False, failure=f"format:{attempt.failure.code}")
    program, validation, trace = attempt.program, attempt.validation, attempt.trace
    assert program is not None
    assert validation is not None
    assert trace is not None
    if attempt.masked is not None:
        certain = _certain_failure(attempt, program, validation, trace)
        return evolve(masked, failure=certain, masked=False) if certain else masked
    try:
        executed = trace.answer_executed
        right = (executed and answers_match(task.answer, trace.returned)) or answer_collected(task, trace)
        if right and task.instances and wrong_instance(attempt) is not None:
            return Verdict(*base, answer=False, valid=False, failure="answer:other_world")
        valid = right and trace.executed and not (validation.names or validation.parameters or validation.types)
    except Abstention:
        return masked
    if right:
        return Verdict(*base, answer=True, valid=valid)
    if validation.names:
        failure = "schema:unknown_tool"
    elif validation.parameters:
        failure = f"schema:{validation.parameters[0].kind}_parameter"
    elif validation.types:
        failure = "schema:wrong_type"
    elif not executed:
        failed = trace.failures[0].outcome
        failure = f"execution:{failed.code or failed.kind}"
    elif not program.calls:
        failure = "answer:abstained"
    elif task.answer.is_no_call:
        failure = "answer:should_abstain"
    else:
        failure = "answer:wrong"
    return Verdict(*base, answer=False, valid=False, failure=failure)


def _certain_failure(attempt: Attempt, program: Program, validation: Validation, trace: Trace) -> str:
    """What makes a masked attempt wrong whatever its lost calls would have come to; empty if that hangs on them.

    A call of a tool that is not offered never executes, nor one whose arguments do not fit, one that refers to no
    earlier call, or one that failed before the machinery did; and a program that returns fewer or more values than are
    expected is not right. Of several turns nothing is said: a later one may put an earlier one right.
    """
    if len(attempt.parts) > 1:
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
    returned = len(program.calls) if program.returns == "all" else 1
    return "" if returned == len(attempt.task.answer.values) else "answer:wrong"


def wilson(right: int, count: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Wilson's score interval for a proportion (95% unless ``z`` says otherwise); ``(0, 1)`` for no observations."""
    if count == 0:
        return 0.0, 1.0
    share = right / count
    centre = share + z * z / (2 * count)
    spread = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def _cell(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    right = sum(verdict.answer for verdict in verdicts)
    low, high = wilson(right, len(verdicts))
    return {
        "accuracy": right / len(verdicts),
        "n": len(verdicts),
        "low": low,
        "high": high,
        "valid_accuracy": sum(verdict.valid for verdict in verdicts) / len(verdicts),
        "thought_words": _mean_words(verdicts),
    }


def _mean_words(verdicts: Sequence[Verdict]) -> float | None:
    known = [verdict.thought_words for verdict in verdicts if verdict.thought_words is not None]
    return sum(known) / len(known) if known else None


def summarise(verdicts: Iterable[Verdict]) -> dict[str, Any]:
    """``overall`` (share of right answers), ``by_depth``, ``by_structure``, ``failures`` per depth, and counts.

    ``thought_words`` is the mean over the attempts with a thought that can be read, of each cell and of all.
    """
    counted: list[Verdict] = []
    masked = 0
    for verdict in verdicts:  # once: they may come from an iterator
        if verdict.masked:
            masked += 1
        else:
            counted.append(verdict)
    depths: dict[int, list[Verdict]] = {}
    structures: dict[str, list[Verdict]] = {}
    for verdict in counted:
        depths.setdefault(verdict.depth, []).append(verdict)
        structures.setdefault(verdict.structure, []).append(verdict)
    failures = {
        str(depth): dict(Counter(verdict.failure for verdict in group if verdict.failure).most_common(5))
        for depth, group in sorted(depths.items())
    }
    right = sum(verdict.answer for verdict in counted)
    return {
        "overall": right / len(counted) if counted else None,
        "valid_overall": sum(verdict.valid for verdict in counted) / len(counted) if counted else None,
        "thought_words": _mean_words(counted),
        "n": len(counted),
        "masked": masked,
        "by_depth": {str(depth): _cell(group) for depth, group in sorted(depths.items())},
        "by_structure": {name: _cell(group) for name, group in sorted(structures.items())},
        "failures": {depth: counts for depth, counts in failures.items() if counts},
    }


def evaluate(
    pipeline: Pipeline,
    tasks: Sequence[Task],
    sampler: Sampler,
    *,
    temperature: float = 0.0,
    seed: int = 0,
    batch: int = 64,
    shots: int = 0,
    limits: TurnLimits | None = None,
    retries: int = 0,
    on_batch: Callable[[int], object] | None = None,
    keep: Callable[[Attempt, Verdict], object] | None = None,
) -> list[Verdict]:
    """One attempt per task, judged. ``on_batch`` hears how many tasks are done, ``keep`` sees every attempt.

    Attempts have the turns of ``limits``, else of the pipeline's conditions; those whose session failed are begun again
    up to ``retries`` times. What is sampled for a task hangs on ``seed`` and the task, whatever ``batch`` it is in; for
    how a sampler that waits for a server is asked see :func:`evaluated`. ``shots`` worked examples stand in every
    prompt (see :func:`callwright.walk.prompt.draw_shots`, which says what it raises).
    """
    plan = Plan(temperature=temperature, seed=seed, batch=batch, shots=shots, limits=limits, retries=retries)
    verdicts: list[Verdict] = []
    for some in evaluated(pipeline, tasks, sampler, plan, lambda attempt, verdict: (attempt, verdict)):
        for attempt, verdict in some:
            verdicts.append(verdict)
            if keep is not None:
                keep(attempt, verdict)
        if on_batch is not None:
            on_batch(len(verdicts))
    return verdicts


@frozen(kw_only=True)
class Plan:
    """How an evaluation samples; see :func:`evaluate`.

    ``workers`` share the ``concurrency`` of a sampler that waits for a server: each has at least 1 of it.
    """

    temperature: float = 0.0
    seed: int = 0
    batch: int = 64
    shots: int = 0
    limits: TurnLimits | None = None
    retries: int = 0
    workers: int = 1


def evaluated(
    pipeline: Pipeline,
    tasks: Sequence[Task],
    sampler: Sampler,
    plan: Plan,
    then: Callable[[Attempt, Verdict], T],
) -> Iterator[list[T]]:
    """What ``then`` makes of each attempt and its verdict, in the order of the tasks, in lists of what is there.

    A sampler is asked for ``plan.batch`` tasks at a time. One that waits for a server
    (:class:`callwright.walk.sampling.SamplesConcurrently`, and :class:`callwright.episodes.ConversesConcurrently` where
    it keeps token ids) is asked for each by itself, at most its ``concurrency`` at a time (of ``plan.workers``
    together): a task begins when another one ends. Its tasks are prepared, executed and judged in up to
    :data:`MOST_LANES` threads, each task in one of them; ``then`` is called there, too. What is finished and waits for
    a slower task before it is bounded: :func:`most_ahead` tasks.
    """
    if asked_one_by_one(sampler):
        yield from _in_window(pipeline, tasks, sampler, plan, then)
        return
    conditions, native = _conditions(pipeline, plan), offers_tools(sampler)
    for start in range(0, len(tasks), plan.batch):
        requests = [_request(pipeline, task, plan, native) for task in tasks[start : start + plan.batch]]
        made = converse(
            pipeline, sampler, requests, conditions=conditions, temperature=plan.temperature, retries=plan.retries
        )
        yield [_judged(group[0], then) for group in made]


class _Waits(Sampler, Protocol):
    """What is asked for each task by itself."""

    @property
    def concurrency(self) -> int: ...

    def connected(self) -> AbstractAsyncContextManager[AskedOneByOne | ContinuesOneByOne]: ...


def asked_one_by_one(sampler: Sampler) -> TypeGuard[_Waits]:
    """Whether an evaluation asks this sampler for each task by itself."""
    if isinstance(sampler, EpisodeSampler):
        return isinstance(sampler, ConversesConcurrently) and sampler.concurrency > 0
    return isinstance(sampler, SamplesConcurrently) and sampler.concurrency > 0


def most_ahead(concurrency: int) -> int:
    """How many tasks after the first unfinished one may be begun: 16 times the requests at a time, 4,096 or more."""
    return max(_LEAST_AHEAD, 16 * concurrency)


def _in_window(
    pipeline: Pipeline,
    tasks: Sequence[Task],
    sampler: _Waits,
    plan: Plan,
    then: Callable[[Attempt, Verdict], T],
) -> Iterator[list[T]]:
    import asyncio  # here, as who samples by itself has no use for what these cost to import

    from callwright.machines.lanes import Lanes
    from callwright.machines.window import in_window

    role, native, conditions = role_of(sampler), offers_tools(sampler), _conditions(pipeline, plan)
    concurrency = max(1, sampler.concurrency // plan.workers)
    # While some execute their calls others wait for the server, so that it always has as many as it may have.
    width = 2 * concurrency

    @asynccontextmanager
    async def opened() -> AsyncIterator[Callable[[Task], Awaitable[T]]]:
        gate, lanes = asyncio.Semaphore(concurrency), Lanes(min(width, MOST_LANES))

        async def work(task: Task) -> T:
            with lanes.one() as lane:
                request = await lane.do(_request, pipeline, task, plan, native)
                made = await converse_one(request, lane.do)
                return await lane.do(_judged, made, then)

        async def converse_one(request: SamplingRequest, do: Do) -> Episode:
            how: Any = {"conditions": conditions, "temperature": plan.temperature, "retries": plan.retries}
            if isinstance(sampler, ConversesConcurrently):
                (by_ids,) = await aconverse_ids(pipeline, connection, request, gate=gate, do=do, **how)
                return by_ids
            (by_texts,) = await aconverse(
                pipeline, connection, request, name=sampler.name, role=role, gate=gate, do=do, **how
            )
            return by_texts

        try:
            connection: Any
            async with sampler.connected() as connection:
                yield work
        finally:
            lanes.close()

    yield from in_window(opened, tasks, width=width, ahead=most_ahead(concurrency))


def _conditions(pipeline: Pipeline, plan: Plan) -> Conditions:
    return evolve(pipeline.conditions, seed=plan.seed, limits=plan.limits or pipeline.conditions.limits)


def _request(pipeline: Pipeline, task: Task, plan: Plan, native: bool) -> SamplingRequest:
    shots = draw_shots(pipeline.corpus, task, plan.shots)
    return SamplingRequest(pipeline.messages(task, shots, native=native, limits=plan.limits), task)


def _judged(episode: Episode, then: Callable[[Attempt, Verdict], T]) -> T:
    attempt = episode.attempt
    return then(attempt, judge(attempt))
