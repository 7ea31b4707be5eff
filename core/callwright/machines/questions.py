"""Walks that stop to ask: generators that yield questions, are sent the answers, and end in a result.

    def walk():
        answer = yield Question(judge, attempt)      # what the judge raises is raised here
        yield Reward(answer)                         # the result, which is no question

:func:`in_order` goes through many of them in one thread. Questions wait concurrently, in the background event loop, as
many at once as whoever is asked allows; results come in the order of the walks, as if one had followed the other. So do
errors: where one walk raises, those after it are given up and those before it come first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

from attrs import define, field, frozen

from callwright.errors import InfrastructureFailure
from callwright.machines import event_loop, lifetimes

T = TypeVar("T")
#: Walks that are under way at once, at least; where more questions may wait, more.
_LEAST_WINDOW: Final = 64
#: How long one that is asked in batches waits for others to join, in seconds.
_JOINING: Final = 0.002
_leading: Final[set[asyncio.Task[None]]] = set()


@frozen(eq=False)
class Asked:
    """Who is asked, and how: ``ask`` takes a question's subject, or up to ``batch_size`` of them as a list.

    ``ask`` is ``async`` or an ordinary function, which then runs in a thread. ``concurrency`` is how many such calls
    may be under way, in the whole process. ``time_limit`` (seconds) ends one: :class:`InfrastructureFailure`. ``owner``
    is set up before it is first asked (:mod:`.lifetimes`).
    """

    owner: Any = field(repr=False)
    ask: Callable[..., Any] = field(repr=False)
    concurrency: int = 16
    batch_size: int | None = None
    time_limit: float | None = None

    _joining: list[tuple[Any, asyncio.Future[Any]]] = field(factory=list, init=False, repr=False)

    async def answers(self, subjects: Sequence[Any]) -> list[Any]:
        """An answer for each, or the exception that stands in its place. To be run in the background loop."""
        async with lifetimes.slots(self.owner, self.concurrency):
            return await self._answers(subjects)

    async def answer(self, subject: Any) -> Any:
        """The same for one, which joins a batch with others that come at about the same time."""
        if self.batch_size is None or self.batch_size == 1:
            return (await self.answers([subject]))[0]
        coming = asyncio.get_running_loop().create_future()
        self._joining.append((subject, coming))
        leading = asyncio.create_task(self._lead(self.batch_size))
        _leading.add(leading)  # not the caller's: if that is cancelled, the others of its batch go on
        leading.add_done_callback(_leading.discard)
        return await coming

    async def _lead(self, most: int) -> None:
        async with lifetimes.slots(self.owner, self.concurrency):
            if len(self._joining) < most:
                await asyncio.sleep(_JOINING)
            taken = [(subject, coming) for subject, coming in self._joining[:most] if not coming.done()]
            del self._joining[:most]
            if not taken:  # an earlier batch took all
                return
            found = await self._answers([subject for subject, _ in taken])
            for (_, coming), answer in zip(taken, found, strict=True):
                if not coming.done():
                    coming.set_result(answer)

    async def _answers(self, subjects: Sequence[Any]) -> list[Any]:
        try:
            await lifetimes.opened(self.owner)
            limit = asyncio.timeout(self.time_limit)
            try:
                async with limit:
                    found = await lifetimes.call(self.ask, subjects[0] if self.batch_size is None else subjects)
            except TimeoutError as error:
                if not limit.expired():
                    raise
                raise InfrastructureFailure(f"there is no answer after {self.time_limit:g} s") from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return [_as_error(error)] * len(subjects)
        except BaseException as error:  # what ends a process would end the loop, and everybody's answers with it
            return [_as_error(error)] * len(subjects)
        if self.batch_size is None:
            return [found]
        if isinstance(found, str | bytes) or not isinstance(found, Sequence) or len(found) != len(subjects):
            count = f"{len(found)}" if isinstance(found, Sequence) else type(found).__name__
            wrong = TypeError(f"it was asked about {len(subjects)} and must give a sequence of as many, not {count}")
            return [wrong] * len(subjects)
        return [_as_error(one) if isinstance(one, BaseException) else one for one in found]


def _as_error(error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    return RuntimeError(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


@frozen(slots=False, eq=False)
class Question:
    """Something to be answered before a walk goes on."""

    asked: Asked
    subject: Any


#: A walk yields questions and is sent their answers; the first thing that is no question is its result.
Walk = Generator[Question | T, Any, None]


def in_order(walks: Iterable[Walk[T]], concurrency: int = 1) -> Iterator[T]:
    """The results of walks in their order. ``concurrency`` is how many questions may wait at once, roughly.

    Raises what the first walk that fails raises, after the results of those before it.
    """
    under_way: _UnderWay[T] = _UnderWay(iter(walks), max(_LEAST_WINDOW, 2 * concurrency))
    try:
        yield from under_way.results()
    finally:
        under_way.give_up(-1)


@define(eq=False)
class _UnderWay(Generic[T]):
    """Walks by number: those that wait, what they wait for, and what came of the others."""

    rest: Iterator[Walk[T]]
    window: int
    walks: dict[int, Walk[T]] = field(factory=dict)
    done: dict[int, tuple[T | None, BaseException | None]] = field(factory=dict)
    asking: dict[Future[list[Any]], list[int]] = field(factory=dict)
    batches: dict[Asked, list[tuple[int, Any]]] = field(factory=dict)
    arrived: SimpleQueue[Future[list[Any]]] = field(factory=SimpleQueue)
    started: int = 0
    failed: int | None = None
    exhausted: bool = False

    def results(self) -> Iterator[T]:
        number = 0
        while True:
            while number in self.done:
                result, error = self.done.pop(number)
                if error is not None:
                    raise error
                yield result  # type: ignore[misc]  # a walk without an error has one
                number += 1
            if not self._start_next() and not self._hear():
                return

    def _start_next(self) -> bool:
        """Begin with one more walk, unless enough are under way or all that arrived is not heard yet."""
        if self.exhausted or self.failed is not None or len(self.walks) >= self.window or not self.arrived.empty():
            return False
        walk = next(self.rest, None)
        if walk is None:
            self.exhausted = True
            return False
        number, self.started = self.started, self.started + 1
        self.walks[number] = walk
        self._go_on(number, lambda: next(walk))
        return True

    def _hear(self) -> bool:
        """Wait for an answer and go on with those who asked; ``False`` if nobody waits for one."""
        if not self.asking:  # nobody else can come to fill the batches
            for asked, waiting in list(self.batches.items()):
                self._send(asked, waiting)
            self.batches.clear()
            if not self.asking:
                return False
        future = self.arrived.get()
        numbers = self.asking.pop(future, None)
        if numbers is None or future.cancelled():  # given up in the meantime
            return True
        for number, answer in zip(numbers, future.result(), strict=True):
            walk = self.walks.get(number)
            if walk is not None:
                self._go_on(number, _going_on(walk, answer))
        return True

    def _go_on(self, number: int, step: Callable[[], Question | T]) -> None:
        try:
            found = step()
        except Exception as error:
            self.done[number] = None, error
            del self.walks[number]
            self.give_up(number)
            self.failed = number
            return
        if not isinstance(found, Question):
            self.done[number] = found, None
            self.walks.pop(number).close()
        elif found.asked.batch_size is None:
            self._send(found.asked, [(number, found.subject)])
        else:
            waiting = self.batches.setdefault(found.asked, [])
            waiting.append((number, found.subject))
            if len(waiting) >= found.asked.batch_size:
                self._send(found.asked, self.batches.pop(found.asked))

    def _send(self, asked: Asked, waiting: Sequence[tuple[int, Any]]) -> None:
        future = event_loop.submit(asked.answers([subject for _, subject in waiting]))
        self.asking[future] = [number for number, _ in waiting]
        future.add_done_callback(self.arrived.put)

    def give_up(self, last: int) -> None:
        """Let go of the walks after ``last``, and of what only they have asked."""
        for number in [number for number in self.walks if number > last]:
            self.walks.pop(number).close()
        for asked, waiting in list(self.batches.items()):
            self.batches[asked] = [(number, subject) for number, subject in waiting if number <= last]
            if not self.batches[asked]:
                del self.batches[asked]
        for future, numbers in list(self.asking.items()):
            if all(number > last for number in numbers):
                del self.asking[future]
                future.cancel()


def _going_on(walk: Walk[T], answer: Any) -> Callable[[], Question | T]:
    return (lambda: walk.throw(answer)) if isinstance(answer, Exception) else (lambda: walk.send(answer))


async def finished(walk: Walk[T]) -> T:
    """The result of one walk, in any event loop, which is never blocked: what computes does so in a thread."""
    step: Callable[[], Question | T] = walk.__next__
    while True:
        found = await event_loop.in_thread(step)
        if not isinstance(found, Question):
            walk.close()
            return found
        answer = await event_loop.arun(found.asked.answer(found.subject))
        step = _going_on(walk, answer)
