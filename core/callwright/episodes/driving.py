"""Driving: any engine takes episodes to their end, with retries, many in a batch or each by itself.

An engine of texts (a sampler) drives :class:`callwright.episodes.Conversation`, one of token ids
:class:`callwright.episodes.TokenEpisode`; what follows is the same for both. An episode whose session or engine failed
is retried up to ``retries`` times, then left masked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from callwright.capability import has
from callwright.episodes.token_episode import EngineOutput, TokenEpisode
from callwright.errors import ComponentError, InfrastructureFailure
from callwright.language.messages import Message
from callwright.walk.attempt import Attempt
from callwright.walk.limits import StopReason
from callwright.walk.users.user import Waits

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from callwright.episodes.pool import EpisodePool

#: Threads in which users are asked that wait for a server.
MOST_WAITING: Final = 32


class Episode(Protocol):
    """What a driver knows of an episode, as token ids or as messages."""

    @property
    def context(self) -> Any:
        """What the engine continues or answers next."""

    @property
    def history(self) -> Sequence[tuple[Any, Any]]:
        """Every answer of the engine with the context that it belongs to."""

    @property
    def attempt(self) -> Attempt:
        """What was made so far, as a value that every reward scores."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """Everything that was said."""

    @property
    def over(self) -> bool:
        """Whether no completion follows."""

    @property
    def stop(self) -> StopReason | None:
        """Why the episode is over; ``None`` while it goes on."""

    @property
    def masked(self) -> str | None:
        """Why this sample must not become a number; ``None`` if nothing failed but the model."""

    @property
    def retried(self) -> int:
        """How often the episode was begun again."""

    def accept(self, answer: Any, /) -> None:
        """Take the engine's next answer."""

    def fail(self, reason: str) -> None:
        """The engine failed: the episode is over and masked."""

    def begin_again(self) -> None:
        """Forget every turn: a fresh session, the first context."""


T = TypeVar("T")
E = TypeVar("E", bound=Episode)
#: One answer for each episode, in their order; an :class:`callwright.InfrastructureFailure` in place of one that failed
#: alone. It may also raise one, for all of them.
Ask = Callable[[list[E]], Sequence[Any]]
#: For each context, with the most new tokens that each may get (``None``: no bound), what the engine made of it.
BatchEngine = Callable[
    [Sequence[tuple[int, ...]], Sequence[int | None]], Sequence[EngineOutput | InfrastructureFailure]
]
#: The same for one context, awaited. Raises :class:`callwright.InfrastructureFailure`.
Engine = Callable[[tuple[int, ...], int | None], Awaitable[EngineOutput]]


class Do(Protocol):
    """Call a function somewhere, such as in a thread, and wait for what it returns or raises."""

    def __call__(self, call: Callable[..., T], /, *arguments: Any) -> Awaitable[T]:
        """What the call returns."""


async def do_here(call: Callable[..., T], /, *arguments: Any) -> T:
    """Call it at once, in this thread."""
    return call(*arguments)


def goes_on(episode: Episode, retries: int) -> bool:
    """Whether an episode is to be continued; begins it again where the machinery failed and tries are left."""
    while episode.stop == "machinery" and episode.retried < retries:
        _begin_again(episode)
    return not episode.over


def _begin_again(episode: Episode) -> None:
    """A fresh session, in which the same answers are replayed as long as their contexts come out the same.

    A retry therefore neither wastes tokens nor favours completions that do not trouble the machinery.
    """
    past = episode.history
    episode.begin_again()
    for context, answer in past:
        if episode.over or episode.context != context:
            break
        episode.accept(answer)


def answered(episode: Episode, answer: Any) -> None:
    """Give an episode the engine's answer, or the failure that is there in place of one."""
    if isinstance(answer, InfrastructureFailure):
        episode.fail(str(answer))
    else:
        episode.accept(answer)


def drive(
    episodes: Sequence[E],
    ask: Ask[E],
    *,
    retries: int = 0,
    pool: EpisodePool | None = None,
    at_once: int | None = None,
    ended: Callable[[E], object] | None = None,
) -> None:
    """Drive episodes to their end, each turn of all that are live in one batch, in their order.

    With ``at_once`` an engine is asked for so many at a time. A ``pool`` takes the answers: what they call is executed
    there, while the engine is asked for the next of the turn. Without one this thread takes them, but for episodes
    whose user waits for a server: up to :data:`MOST_WAITING` threads do, so that the users of a turn are asked
    together. ``ended`` is told of each episode that is over for good, as soon as it is, from within the pool or thread.

    A failure of the whole batch counts for every episode in it. Raises :class:`callwright.errors.ComponentError` for
    another number of answers.
    """
    if pool is not None:
        for episode in episodes:
            pool.adopt(episode)
    live = [episode for episode in episodes if goes_on(episode, retries)]
    with ExitStack() as stack:
        here = pool is None or not pool.parallel
        lanes = stack.enter_context(_lanes()) if here and any(map(_waits, live)) else None
        _drive(live, ask, retries, None if here else pool, at_once, ended, lanes)


def _drive(
    live: list[E],
    ask: Ask[E],
    retries: int,
    pool: EpisodePool | None,
    at_once: int | None,
    ended: Callable[[E], object] | None,
    lanes: ThreadPoolExecutor | None,
) -> None:
    while live:
        begun: list[Any] = []
        waited: list[Any] = []
        size = at_once or len(live)
        for start in range(0, len(live), size):
            some = live[start : start + size]
            for episode, answer in zip(some, _answers(ask, some), strict=True):
                take = partial(_take, episode, answer, retries, ended)
                if pool is not None:
                    begun.append(pool.begin(episode, take))
                elif lanes is not None and _waits(episode):
                    waited.append(lanes.submit(take))
                else:
                    take()
        for job in waited:
            job.result()
        for job in begun:
            assert pool is not None
            pool.wait(job)
        live = [episode for episode in live if not episode.over]


def _waits(episode: Episode) -> bool:
    return has(episode, Waits) and episode.waits is True


def _lanes() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(MOST_WAITING, thread_name_prefix="callwright users")


def _answers(ask: Ask[E], live: list[E]) -> Sequence[Any]:
    try:
        answers = ask(live)
    except InfrastructureFailure as error:
        answers = [error] * len(live)
    if len(answers) != len(live):
        raise ComponentError(f"the engine gave {len(answers)} completions for {len(live)} contexts; this is its bug")
    return answers


def _take(episode: E, answer: Any, retries: int, ended: Callable[[E], object] | None) -> None:
    answered(episode, answer)
    if not goes_on(episode, retries) and ended is not None:
        ended(episode)


async def drive_alone(episode: E, ask: Callable[[E], Awaitable[Any]], *, retries: int = 0, do: Do = do_here) -> None:
    """Drive one episode to its end, whatever becomes of others. ``do`` says where its calls are executed."""
    while await do(goes_on, episode, retries):
        await do(answered, episode, await answer_of(ask(episode)))


async def answer_of(asked: Awaitable[Any]) -> Any:
    """The engine's answer, or the :class:`callwright.InfrastructureFailure` that is there in place of one."""
    try:
        return await asked
    except InfrastructureFailure as error:
        return error


def drive_batch(
    episodes: Sequence[TokenEpisode], generate: BatchEngine, *, retries: int = 0, pool: EpisodePool | None = None
) -> None:
    """:func:`drive` with an engine that is asked by contexts and rooms alone."""
    drive(
        episodes,
        lambda live: generate([episode.context for episode in live], [episode.room for episode in live]),
        retries=retries,
        pool=pool,
    )


async def drive_one(episode: TokenEpisode, generate: Engine, *, retries: int = 0, threads: bool = False) -> None:
    """Drive one episode to its end. ``threads`` executes calls in a thread, so that slow tools hold nobody else up."""
    await drive_alone(
        episode,
        lambda one: generate(one.context, one.room),
        retries=retries,
        do=_in_thread if threads else do_here,
    )


async def drive_many(
    episodes: Iterable[TokenEpisode],
    generate: Engine,
    *,
    retries: int = 0,
    concurrency: int | None = None,
    threads: bool = False,
) -> None:
    """Drive episodes at the same time, at most ``concurrency`` of them. The first error stops all and is raised."""
    import asyncio  # here, as a scorer has no use for what it costs to import

    gate = asyncio.Semaphore(concurrency) if concurrency is not None else None

    async def run(episode: TokenEpisode) -> None:
        if gate is None:
            return await drive_one(episode, generate, retries=retries, threads=threads)
        async with gate:
            return await drive_one(episode, generate, retries=retries, threads=threads)

    tasks = [asyncio.ensure_future(run(episode)) for episode in episodes]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _in_thread(call: Callable[..., T], /, *arguments: Any) -> T:
    import asyncio

    from callwright.machines.event_loop import called

    return await asyncio.to_thread(called, call, *arguments)
