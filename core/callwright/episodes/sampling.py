"""Sampling episodes: any sampler takes tasks through as many turns as the conditions allow; one turn is the least.

A sampler that only writes texts is asked again with the messages that came of its last answer; one that keeps token ids
drives :class:`callwright.episodes.TokenEpisode` itself.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from attrs import evolve

from callwright.capability import has
from callwright.episodes.conversation import Conversation
from callwright.episodes.driving import Do, Episode, answer_of, answered, do_here, drive, drive_alone, goes_on
from callwright.episodes.token_episode import Codec, EngineOutput, TokenEpisode
from callwright.errors import CallwrightError, ComponentError
from callwright.language.shortening import shortened
from callwright.walk.completion import Completion
from callwright.walk.conditions import Conditions
from callwright.walk.sampling import AskedOneByOne, ChoosesRole, Sampler, SamplingRequest, offers_tools
from callwright.walk.tasks import Task

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline

#: Makes one of the episodes of a request, by its number, for a codec; everything else about it is settled.
Start = Callable[[SamplingRequest, Codec, int], TokenEpisode]


@runtime_checkable
class EpisodeSampler(Protocol):
    """What a sampler offers in addition if it keeps the token ids of several turns itself."""

    def converse(
        self,
        requests: Sequence[SamplingRequest],
        start: Start,
        *,
        n: int = 1,
        seed: int = 0,
        temperature: float = 1.0,
        retries: int = 0,
    ) -> Sequence[Sequence[Episode]]:
        """``[B][n]`` finished episodes: those that ``start`` made, driven to their end.

        What is sampled hangs on ``conditions.seed`` of each episode, never on the others in the batch.
        """


class ContinuesOneByOne(Protocol):
    """What such a sampler is while it is connected to a server: it belongs to one event loop."""

    @property
    def codec(self) -> Codec:
        """Between messages and token ids."""

    async def continue_one(self, episode: TokenEpisode, *, temperature: float = 1.0) -> EngineOutput:
        """What follows the ids of an episode. Raises :class:`callwright.InfrastructureFailure`; that one is masked."""


@runtime_checkable
class ConversesConcurrently(EpisodeSampler, Protocol):
    """What it offers in addition if it waits for a server: episodes one by one, many at a time.

    What :class:`callwright.walk.sampling.SamplesConcurrently` is for samplers of texts.
    """

    @property
    def concurrency(self) -> int:
        """How many requests may be under way: 1 or more, or 0 if, made as it is, it waits for no server at all."""

    def connected(self) -> AbstractAsyncContextManager[ContinuesOneByOne]:
        """A connection, to be entered in the event loop that asks."""


def _starting(pipeline: Pipeline, conditions: Conditions) -> Start:
    def start(request: SamplingRequest, codec: Codec, copy: int) -> TokenEpisode:
        drawn = evolve(conditions, seed=draw_seed(conditions.seed, request.task.id, copy))
        return pipeline.token_episode(request.task, codec, messages=request.messages, conditions=drawn)

    return start


def converse(
    pipeline: Pipeline,
    sampler: Sampler,
    requests: Sequence[SamplingRequest],
    *,
    conditions: Conditions | None = None,
    n: int = 1,
    temperature: float = 1.0,
    retries: int = 0,
) -> Sequence[Sequence[Episode]]:
    """``[B][n]`` episodes of a sampler, each driven to its end in a session of its own.

    ``conditions`` are the pipeline's unless given; their seed is what samples are drawn with. A sampler without a
    method ``converse`` is only held to the limits of turns, and its completions to what it says of them
    (``truncated``): its tokens cannot be counted here. An episode whose session failed is retried up to ``retries``
    times, then left masked.
    """
    conditions = pipeline.conditions if conditions is None else conditions
    if isinstance(sampler, EpisodeSampler):
        start = _starting(pipeline, conditions)
        return sampler.converse(requests, start, n=n, seed=conditions.seed, temperature=temperature, retries=retries)
    role, native = role_of(sampler), offers_tools(sampler)
    groups = [
        [
            pipeline.conversation(request.task, request.messages, of_copy(conditions, request.task, copy), role, native)
            for copy in range(n)
        ]
        for request in requests
    ]
    copy_of = {id(one): copy for group in groups for copy, one in enumerate(group)}

    def ask(live: list[Conversation]) -> list[Completion]:
        """Groups that begin share a prompt and are asked for together; later each conversation has its own."""
        answers: dict[int, Completion] = {}
        beginning = [group for group in groups if _share_a_prompt(group) and not any(one.over for one in group)]
        _ask(sampler, beginning, n, conditions.seed, temperature, answers)
        going_on: dict[tuple[int, int], list[list[Conversation]]] = {}
        for one in live:
            if id(one) not in answers:
                going_on.setdefault((copy_of[id(one)], len(one.history)), []).append([one])
        for (copy, turn), some in sorted(going_on.items()):
            _ask(sampler, some, 1, turn_seed(conditions.seed, turn, copy), temperature, answers)
        return [answers[id(one)] for one in live]

    drive([one for group in groups for one in group], ask, retries=retries)
    return groups


def of_copy(conditions: Conditions, task: Task, copy: int, step: int = 0) -> Conditions:
    """The conditions of one sample of a task, which its user draws from: the samples of a prompt differ.

    ``step`` is that of a training, for engines whose conditions know none in their seed.
    """
    if task.user is None:
        return conditions
    seed = turn_seed(conditions.seed, step) if step else conditions.seed
    return evolve(conditions, seed=draw_seed(seed, task.id, copy))


def _ask(
    sampler: Sampler,
    groups: Sequence[list[Conversation]],
    n: int,
    seed: int,
    temperature: float,
    answers: dict[int, Completion],
) -> None:
    if not groups:
        return
    requests = [
        SamplingRequest(one.messages, one.task, one.turns, one.parser, one.conditions.limits) for one, *_ in groups
    ]
    with _bugs_named(sampler.name):
        sampled = sampler.sample(requests, n=n, seed=seed, temperature=temperature)
        if [len(completions) for completions in sampled] != [n] * len(groups):
            raise _another_number(sampler.name, n, len(groups))
    _check_completions(sampler.name, (one for completions in sampled for one in completions))
    for group, completions in zip(groups, sampled, strict=True):
        for conversation, completion in zip(group, completions, strict=True):
            answers[id(conversation)] = completion


def _share_a_prompt(group: Sequence[Conversation]) -> bool:
    """Whether all are at their beginning, and the same was said in each: a user may begin in its own words."""
    return not any(one.history or one.retried or one.messages != group[0].messages for one in group)


def _following(one: Conversation) -> SamplingRequest:
    """What a sampler of texts is asked for next."""
    return SamplingRequest(one.messages, one.task, one.turns, one.parser, one.conditions.limits)


def _another_number(sampler: str, n: int, requests: int) -> ComponentError:
    return ComponentError(f"sampler {sampler!r} did not give {n} completions for each of {requests} requests")


@contextmanager
def _bugs_named(sampler: str) -> Iterator[None]:
    """What a sampler raises beside errors of ours and of the machine is a bug of it, and said to be one.

    What it asks may be away: an :class:`OSError` is no bug, but whose it is has to be said.
    """
    try:
        yield
    except (CallwrightError, MemoryError, BrokenPipeError):
        raise
    except OSError as error:
        raise CallwrightError(f"sampler {sampler!r} raised {type(error).__name__}: {error}") from error
    except (Exception, SystemExit) as error:
        said = f"sampler {sampler!r} raised {type(error).__name__}: {error}. This is a bug of the sampler"
        raise ComponentError(f"{said} (where: run it again as callwright --traceback …)") from error


def _check_completions(sampler: str, found: Iterable[object]) -> None:
    for one in found:
        if not isinstance(one, Completion):
            raise ComponentError(
                f"sampler {sampler!r} gave {shortened(repr(one), 200)}, which is no callwright.Completion"
            )
        if not isinstance(one.text, str):
            text = shortened(repr(one.text), 200)
            raise ComponentError(f"sampler {sampler!r} gave a completion whose text is {text}; it must be a str")


def role_of(sampler: Sampler) -> Literal["tool", "user"]:
    """In which role a sampler wants to see the results of calls."""
    return "tool" if has(sampler, ChoosesRole) and sampler.observation_role == "tool" else "user"


# One request by itself ------------------------------------------------------------------------------------------------


async def aconverse(
    pipeline: Pipeline,
    asked: AskedOneByOne,
    request: SamplingRequest,
    *,
    name: str,
    role: Literal["tool", "user"] = "user",
    native: bool = False,
    conditions: Conditions | None = None,
    n: int = 1,
    temperature: float = 1.0,
    retries: int = 0,
    gate: AbstractAsyncContextManager[Any] | None = None,
    do: Do = do_here,
) -> list[Conversation]:
    """``[n]`` episodes of one request, each driven to its end by itself: those that :func:`converse` makes of it.

    Nothing is waited for that another request needs, so that many of these go on at the same time, in one event loop.
    ``gate`` is held while the sampler is asked, and bounds how many are; ``do`` says where the pipeline's and the
    environment's code runs, which may be slow. ``name`` and ``role`` (see :func:`role_of`) are the sampler's;
    ``native`` says whether it hands the tools to its model by itself.
    """
    import contextlib

    from callwright.machines.model_server.reply_cache import asking

    conditions = pipeline.conditions if conditions is None else conditions
    open_gate = gate if gate is not None else contextlib.nullcontext()
    group = [
        await do(
            pipeline.conversation, request.task, request.messages, of_copy(conditions, request.task, copy), role, native
        )
        for copy in range(n)
    ]

    async def ask(one: Conversation, copy: int, count: int, seed: int) -> list[Completion]:
        following = _following(one)
        async with open_gate:
            with asking(f"{one.task.id}\n{copy}/{len(one.history)}"), _bugs_named(name):
                found = await asked.sample_one(following, n=count, seed=seed, temperature=temperature)
                if len(found) != count:
                    raise _another_number(name, count, 1)
        _check_completions(name, found)
        return found

    async def go_on(one: Conversation, copy: int) -> None:
        async def ask_alone(one: Conversation) -> Completion:
            return (await ask(one, copy, 1, turn_seed(conditions.seed, len(one.history), copy)))[0]

        await drive_alone(one, ask_alone, retries=retries, do=do)

    live = [await do(goes_on, one, retries) for one in group]
    if all(live) and _share_a_prompt(group):
        first = await answer_of(ask(group[0], 0, n, conditions.seed))
        each = first if isinstance(first, list) else [first] * n
        for one, answer in zip(group, each, strict=True):
            await do(answered, one, answer)
    if n == 1:
        await go_on(group[0], 0)
    else:
        await _together([go_on(one, copy) for copy, one in enumerate(group)])
    return group


async def aconverse_ids(
    pipeline: Pipeline,
    connection: ContinuesOneByOne,
    request: SamplingRequest,
    *,
    conditions: Conditions | None = None,
    n: int = 1,
    temperature: float = 1.0,
    retries: int = 0,
    gate: AbstractAsyncContextManager[Any] | None = None,
    do: Do = do_here,
) -> list[TokenEpisode]:
    """The same with a sampler that keeps token ids: the ``[n]`` episodes that its ``converse`` makes of a request."""
    import contextlib

    from callwright.machines.model_server.reply_cache import asking

    start = _starting(pipeline, pipeline.conditions if conditions is None else conditions)
    open_gate = gate if gate is not None else contextlib.nullcontext()
    group = [await do(start, request, connection.codec, copy) for copy in range(n)]

    async def go_on(one: TokenEpisode, copy: int) -> None:
        async def ask(one: TokenEpisode) -> EngineOutput:
            async with open_gate:
                with asking(f"{request.task.id}\n{copy}/{len(one.history)}"):
                    return await connection.continue_one(one, temperature=temperature)

        await drive_alone(one, ask, retries=retries, do=do)

    if n == 1:
        await go_on(group[0], 0)
    else:
        await _together([go_on(one, copy) for copy, one in enumerate(group)])
    return group


async def _together(work: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Await all; the first error stops the others and is raised."""
    import asyncio  # here, as a scorer has no use for what it costs to import

    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def draw_seed(seed: int, task: str, copy: int = 0) -> int:
    """The seed of one sample of a task: 31 bits that hang on nothing else."""
    return _bits(f"{seed}/{task}/{copy}")


def turn_seed(seed: int, turn: int, copy: int = 0) -> int:
    """The seed of a later turn: 31 bits drawn from the seed, the turn and the number of the copy."""
    return _bits(f"{seed}/{turn}/{copy}")


def _bits(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest()) >> 1
