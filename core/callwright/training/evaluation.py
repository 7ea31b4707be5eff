"""Evaluation: a sampler attempts tasks, once each or several times, and every attempt is judged."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from math import isfinite
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
from callwright.errors import UsageError
from callwright.language.shortening import shortened
from callwright.statistics.shares import wilson as wilson
from callwright.training.summary import summarise as summarise
from callwright.training.verdicts import Verdict as Verdict
from callwright.training.verdicts import judge as judge
from callwright.training.verdicts import thought_words as thought_words
from callwright.walk.attempt import Attempt
from callwright.walk.conditions import Conditions
from callwright.walk.limits import TurnLimits
from callwright.walk.prompt import draw_shots
from callwright.walk.sampling import AskedOneByOne, Sampler, SamplesConcurrently, SamplingRequest, offers_tools
from callwright.walk.tasks import Task

if TYPE_CHECKING:
    from callwright.language.messages import Message
    from callwright.pipeline import Pipeline

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)
#: Threads in which the tasks of a sampler that waits for a server are executed and judged.
MOST_LANES: Final = 32
_LEAST_AHEAD: Final = 4096


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
    samples: int = 1,
    on_batch: Callable[[int], object] | None = None,
    keep: Callable[[Attempt, Verdict], object] | None = None,
) -> list[Verdict]:
    """``samples`` attempts per task, judged: those of a task stand together, in the order of their numbers.

    ``on_batch`` hears how many attempts are done, ``keep`` sees each.

    Attempts have the turns of ``limits``, else of the pipeline's conditions; those whose session failed are begun again
    up to ``retries`` times. What is sampled for a task hangs on ``seed`` and the task, whatever ``batch`` it is in; for
    how a sampler that waits for a server is asked see :func:`evaluated`. ``shots`` worked examples stand in every
    prompt (see :func:`callwright.walk.prompt.draw_shots`, which says what it raises).

    Raises :class:`callwright.UsageError` for what is no sampler, such as the name of one.
    """
    _check_sampler(sampler)
    plan = Plan(
        temperature=temperature, seed=seed, batch=batch, shots=shots, limits=limits, retries=retries, samples=samples
    )
    verdicts: list[Verdict] = []
    for some in evaluated(pipeline, tasks, sampler, plan, lambda attempt, verdict, *_: (attempt, verdict)):
        for attempt, verdict in some:
            verdicts.append(verdict)
            if keep is not None:
                keep(attempt, verdict)
        if on_batch is not None:
            on_batch(len(verdicts))
    return verdicts


def _check_sampler(given: object) -> None:
    if isinstance(given, str):
        raise UsageError(f"a sampler is given as an object, not by its name: callwright.sampler({given!r}, …)")
    if not isinstance(given, Sampler):
        raise UsageError(
            f"a sampler is an object with a 'name' and a method sample(requests, *, n, seed, temperature), which "
            f"{shortened(repr(given), 80)} is not (docs/write-a-sampler.md)"
        )


@frozen(kw_only=True)
class Plan:
    """How an evaluation samples; see :func:`evaluate`.

    ``workers`` share the ``concurrency`` of a sampler that waits for a server: each has at least 1 of it. Raises
    :class:`callwright.UsageError` for a temperature that is none.
    """

    temperature: float = 0.0
    seed: int = 0
    batch: int = 64
    shots: int = 0
    limits: TurnLimits | None = None
    retries: int = 0
    workers: int = 1
    samples: int = 1

    def __attrs_post_init__(self) -> None:
        if not (isfinite(self.temperature) and self.temperature >= 0):
            raise UsageError(f"a temperature is a number from 0, not {self.temperature}")


class Then(Protocol[R_co]):
    """What is made of an attempt."""

    def __call__(self, attempt: Attempt, verdict: Verdict, messages: Sequence[Message], seconds: float, /) -> R_co:
        """``messages`` are everything that was said, from the system message on.

        ``seconds`` is how long the task took, from its prompt to the end of its last episode; of tasks that a sampler
        is asked for together, each has its share.
        """


def evaluated(
    pipeline: Pipeline,
    tasks: Sequence[Task],
    sampler: Sampler,
    plan: Plan,
    then: Then[T],
) -> Iterator[list[T]]:
    """What ``then`` makes of each attempt, its verdict and what was said, in the order of the tasks, in lists.

    A list holds all ``plan.samples`` attempts at each of its tasks.

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
        begun = time.perf_counter()
        requests = [_request(pipeline, task, plan, native) for task in tasks[start : start + plan.batch]]
        made = converse(
            pipeline,
            sampler,
            requests,
            conditions=conditions,
            n=plan.samples,
            temperature=plan.temperature,
            retries=plan.retries,
        )
        each = (time.perf_counter() - begun) / max(len(requests), 1)
        yield [_judged(one, sample, then, each) for group in made for sample, one in enumerate(group)]


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
    then: Then[T],
) -> Iterator[list[T]]:
    import asyncio  # here, as who samples by itself has no use for what these cost to import

    from callwright.machines.lanes import Lanes
    from callwright.machines.window import in_window

    role, native, conditions = role_of(sampler), offers_tools(sampler), _conditions(pipeline, plan)
    concurrency = max(1, sampler.concurrency // plan.workers)
    # While some execute their calls others wait for the server, so that it always has as many as it may have.
    width = 2 * concurrency

    @asynccontextmanager
    async def opened() -> AsyncIterator[Callable[[Task], Awaitable[list[T]]]]:
        gate, lanes = asyncio.Semaphore(concurrency), Lanes(min(width, MOST_LANES))

        async def work(task: Task) -> list[T]:
            with lanes.one() as lane:
                begun = time.perf_counter()
                request = await lane.do(_request, pipeline, task, plan, native)
                made = await converse_one(request, lane.do)
                took = time.perf_counter() - begun
                return [await lane.do(_judged, one, sample, then, took) for sample, one in enumerate(made)]

        async def converse_one(request: SamplingRequest, do: Do) -> Sequence[Episode]:
            how: Any = {"n": plan.samples, "temperature": plan.temperature, "retries": plan.retries}
            how |= {"conditions": conditions, "gate": gate, "do": do}
            if isinstance(sampler, ConversesConcurrently):
                return await aconverse_ids(pipeline, connection, request, **how)
            return await aconverse(pipeline, connection, request, name=sampler.name, role=role, native=native, **how)

        try:
            connection: Any
            async with sampler.connected() as connection:
                yield work
        finally:
            lanes.close()

    with closing(in_window(opened, tasks, width=width, ahead=most_ahead(concurrency))) as window:
        for some in window:
            yield [one for group in some for one in group]


def _conditions(pipeline: Pipeline, plan: Plan) -> Conditions:
    return evolve(pipeline.conditions, seed=plan.seed, limits=plan.limits or pipeline.conditions.limits)


def _request(pipeline: Pipeline, task: Task, plan: Plan, native: bool) -> SamplingRequest:
    shots = draw_shots(pipeline.corpus, task, plan.shots)
    return SamplingRequest(pipeline.messages(task, shots, native=native, limits=plan.limits), task)


def _judged(episode: Episode, sample: int, then: Then[T], seconds: float) -> T:
    attempt = episode.attempt
    return then(attempt, judge(attempt, sample), episode.messages, seconds)
