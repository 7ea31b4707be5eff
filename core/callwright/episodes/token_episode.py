"""Rollouts: episodes as token ids. Every engine drives this one state machine, so ids and masks are always the same.

    rollout = Rollout(task, parser, codec, messages, limits=TurnLimits(total_tokens=16_384))
    while not rollout.over:
        rollout.advance(engine(rollout.context, rollout.room))
    reward = score_rollout(recipe.score_attempt, rollout)

Sampled ids are never tokenised again: the context of a completion is always the prompt and everything that followed it,
id for id. Environment tokens (results of calls, messages of the user, the template between two turns) have mask 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from attrs import evolve, field, frozen

from callwright.episodes.conversation import Conversation, ConversedEpisode
from callwright.episodes.results import fit_observation
from callwright.errors import ComponentError, DataError, InfrastructureFailure, UsageError
from callwright.language.parser import Parser
from callwright.walk.attempt import Attempt, Progress
from callwright.walk.execution import Caller
from callwright.walk.limits import StopReason, TurnLimits
from callwright.walk.reward import Reward
from callwright.walk.sampling import Completion, Message
from callwright.walk.tasks import Task


class PromptTooLong(DataError):
    """A prompt leaves no room in ``context_tokens``. Prompts are never cut: the list of tools would go first."""


@frozen
class Generated:
    """What an engine returned for one context.

    ``token_ids`` hold the end token if the completion ended itself with one. ``logprobs`` (nats, of the policy that
    sampled) are as many, or none. ``finished`` is False where a length limit cut the completion.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...] = field(default=(), repr=False)
    finished: bool = True


@runtime_checkable
class Codec(Protocol):
    """Between messages and token ids: a chat template with its tokenizer, or a plain form of text.

    A codec may also have ``prefix_text``: the end of the generation prompt that belongs to the completion's text, such
    as an opened ``<think>`` block. It is put before the text for parsing where the context ends with it; ids are not
    touched by it.
    """

    @property
    def ends(self) -> frozenset[int]:
        """The ids that end a completion."""

    def prompt_ids(self, messages: Sequence[Message], task: Task) -> tuple[int, ...]:
        """The prompt of a task, up to the first id of the first completion."""

    def observation_ids(
        self, messages: Sequence[Message], completion_ids: Sequence[int], observations: Sequence[Message]
    ) -> tuple[int, ...]:
        """The ids between the last sampled one and the first of the next completion.

        That is: what is left of the turn's end (all of it if the completion did not end itself), the new messages, and
        the generation prompt. ``messages`` are those before, the completion's text included.
        """

    def text(self, ids: Sequence[int]) -> str:
        """The text of sampled ids, without the final end token."""


#: For each context, with the most new tokens that each may get (``None``: no bound), what the engine made of it; an
#: :class:`callwright.InfrastructureFailure` in place of one that failed alone.
BatchEngine = Callable[[Sequence[tuple[int, ...]], Sequence[int | None]], Sequence["Generated | InfrastructureFailure"]]
#: The same for one context, awaited. Raises :class:`callwright.InfrastructureFailure`.
Engine = Callable[[tuple[int, ...], "int | None"], Awaitable[Generated]]


class Rollout:
    """One episode of a task as token ids.

    Raises :class:`PromptTooLong` if the prompt leaves no room in ``limits.context_tokens``.
    """

    def __init__(
        self,
        task: Task,
        parser: Parser,
        codec: Codec,
        messages: Sequence[Message],
        *,
        limits: TurnLimits | None = None,
        seed: int = 0,
        progress: Progress | None = None,
        caller: Caller | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.task, self.parser, self.codec, self.limits = task, parser, codec, limits or TurnLimits()
        self._conversation = Conversation(
            task,
            parser,
            messages,
            limits=self.limits,
            seed=seed,
            progress=progress,
            caller=caller,
            time_limit=time_limit,
        )
        self.prompt_ids: tuple[int, ...] = tuple(codec.prompt_ids(messages, task))
        room = self.limits.context_tokens
        if room is not None and len(self.prompt_ids) >= room:
            raise PromptTooLong(
                f"the prompt of task {task.id!r} has {len(self.prompt_ids)} tokens, which leaves no room in the "
                f"{room} of 'context_tokens'; offer fewer tools, raise the limit or leave the task out"
            )
        self._begin()

    def _begin(self) -> None:
        self._generated: list[Generated] = []
        self._response: list[int] = []
        self._mask: list[int] = []
        self._logprobs: list[float] = []
        self._has_logprobs = True
        self._ranges: list[tuple[int, int]] = []
        #: How many observations were cut to ``limits.observation_tokens``.
        self.observations_cut = 0

    # What is known ---------------------------------------------------------------------------------------------------

    @property
    def response_ids(self) -> tuple[int, ...]:
        """Everything after the prompt. The last id is a sampled one once the episode is over."""
        return tuple(self._response)

    @property
    def mask(self) -> tuple[int, ...]:
        """For each response id: 1 if it was sampled, 0 if it is the environment's."""
        return tuple(self._mask)

    @property
    def logprobs(self) -> tuple[float, ...]:
        """For each response id its log-probability in nats, 0.0 for the environment's; empty if engines gave none."""
        return tuple(self._logprobs) if self._has_logprobs else ()

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Where each completion stands in the response, as half-open ranges."""
        return tuple(self._ranges)

    @property
    def context(self) -> tuple[int, ...]:
        """What the engine is to continue: the prompt and the whole response so far."""
        return (*self.prompt_ids, *self._response)

    @property
    def room(self) -> int | None:
        """The most new tokens that the next completion may have; ``None`` for no bound, 0 if the episode is over."""
        return 0 if self.over else self.limits.room(len(self.prompt_ids), len(self._response))[0]

    @property
    def over(self) -> bool:
        """Whether no completion follows."""
        return self._conversation.over

    @property
    def stop(self) -> StopReason | None:
        """Why the episode is over; ``None`` while it goes on."""
        return self._conversation.stop

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far, results of calls included, as the model read it."""
        return self._conversation.messages

    @property
    def episode(self) -> ConversedEpisode:
        """The episode, which every reward recipe scores."""
        return self._conversation.episode

    @property
    def retried(self) -> int:
        """How often the episode was begun again after a failure of the machinery."""
        return self._conversation.retried

    @property
    def masked(self) -> str | None:
        """Why this sample must not become a number; ``None`` if nothing failed but the model."""
        return self._conversation.masked

    # What happens ----------------------------------------------------------------------------------------------------

    def advance(self, generated: Generated) -> None:
        """Take the next completion: parse, execute, and add what the model reads next, or end the episode.

        Raises :class:`callwright.UsageError` if the episode is over, and :class:`callwright.errors.ComponentError` for
        an engine that gave more tokens than there was room for, or log-probabilities of another number.
        """
        ids = tuple(generated.token_ids)
        if self.over:
            raise UsageError(f"the episode of task {self.task.id!r} is over ({self.stop}); no completion follows")
        room, bound = self.limits.room(len(self.prompt_ids), len(self._response))
        if room is not None and len(ids) > room:
            raise ComponentError(f"the engine gave {len(ids)} tokens where {room} had room; this is its bug")
        if generated.logprobs and len(generated.logprobs) != len(ids):
            raise ComponentError(
                f"the engine gave {len(generated.logprobs)} log-probabilities for {len(ids)} tokens; this is its bug"
            )
        self._generated.append(generated)
        text = self._opened() + self.codec.text(ids)
        start = len(self._response)
        self._append(ids, 1, generated.logprobs)
        self._ranges.append((start, len(self._response)))
        following = self._conversation.take(Completion(text, ids, generated.logprobs, not generated.finished), bound)
        if following:
            self._listen(ids, following)

    def fail(self, reason: str) -> None:
        """The engine failed: the episode is over and masked."""
        self._conversation.lose(reason)

    def retry(self) -> None:
        """Begin again after a failure of the machinery: a fresh session in which the same completions are replayed.

        Completions are kept as long as the contexts that they were sampled from come out the same; then sampling goes
        on. So a retry neither wastes tokens nor favours completions that do not trouble the machinery.
        """
        past, response, ranges = self._generated, self._response, self._ranges
        self._conversation.begin_again()
        self._begin()
        for generated, (start, _) in zip(past, ranges, strict=True):
            if self.over or self._response != response[:start]:
                break
            self.advance(generated)

    def close(self) -> None:
        """Give the session back early; it is given back by itself when the episode is over."""
        self.episode.close()

    def _opened(self) -> str:
        """The codec's ``prefix_text`` if the context ends with it: templates may leave it out after results."""
        prefix = str(getattr(self.codec, "prefix_text", ""))
        if not prefix:
            return ""
        end = self._response or self.prompt_ids
        return prefix if self.codec.text(end[-4 * len(prefix) :]).endswith(prefix) else ""

    def _append(self, ids: Sequence[int], sampled: int, logprobs: Sequence[float]) -> None:
        self._response += ids
        self._mask += [sampled] * len(ids)
        if sampled and ids and not logprobs:
            self._has_logprobs = False
        self._logprobs += logprobs or [0.0] * len(ids)

    def _listen(self, completion_ids: tuple[int, ...], following: Sequence[Message]) -> None:
        """Add what the model reads next, unless nothing could follow it."""
        messages, limit = self._conversation.messages, self.limits.observation_tokens
        codec = self.codec
        ids = tuple(codec.observation_ids(messages, completion_ids, following))
        if limit is not None and len(ids) > limit and self._conversation.awaits_results:
            shorter = fit_observation(
                following, limit, lambda said: len(codec.observation_ids(messages, completion_ids, said))
            )
            if shorter is None:
                raise UsageError(
                    f"'observation_tokens' is {limit}, but even a notice that the results were left out takes more; "
                    "the template itself needs some of them"
                )
            following = shorter
            ids = tuple(codec.observation_ids(messages, completion_ids, following))
            self.observations_cut += 1
        room, bound = self.limits.room(len(self.prompt_ids), len(self._response) + len(ids))
        if room is not None and room < 1:
            self._conversation.end(bound)
            return
        self._append(ids, 0, ())
        self._conversation.hear(following)


def score_rollout(score: Callable[[Attempt], Reward], rollout: Rollout | Conversation) -> Reward:
    """The reward of a finished episode; its total is ``None`` if the machinery failed, whatever the recipe looks at.

    A reward that never executes anything would not notice that an episode was cut short.
    """
    reward = score(rollout.episode)
    if rollout.masked is not None and reward.total is not None:
        return evolve(reward, total=None, masked=rollout.masked)
    return reward


# Drivers -------------------------------------------------------------------------------------------------------------


def run_batch(rollouts: Sequence[Rollout], generate: BatchEngine, *, retries: int = 0) -> None:
    """Drive rollouts to their end, each turn of all that are live in one batch, in the order of ``rollouts``.

    An episode whose session or engine failed is begun again up to ``retries`` times, then left masked. A failure of the
    whole batch counts for every rollout in it.
    """
    while True:
        live = [rollout for rollout in rollouts if _goes_on(rollout, retries)]
        if not live:
            return
        generated = _ask(generate, live)
        for rollout, one in zip(live, generated, strict=True):
            if isinstance(one, InfrastructureFailure):
                rollout.fail(str(one))
            else:
                rollout.advance(one)


def _ask(generate: BatchEngine, live: Sequence[Rollout]) -> Sequence[Generated | InfrastructureFailure]:
    try:
        generated = generate([rollout.context for rollout in live], [rollout.room for rollout in live])
    except InfrastructureFailure as error:
        return [error] * len(live)
    if len(generated) != len(live):
        raise ComponentError(f"the engine gave {len(generated)} completions for {len(live)} contexts; this is its bug")
    return generated


def _goes_on(rollout: Rollout, retries: int) -> bool:
    """Whether a rollout is to be continued; begins it again where the machinery failed and tries are left."""
    while rollout.stop == "machinery" and rollout.retried < retries:
        rollout.retry()
    return not rollout.over


async def run_one(rollout: Rollout, generate: Engine, *, retries: int = 0, threads: bool = False) -> None:
    """Drive one rollout to its end. ``threads`` executes calls in a thread, so that slow tools hold nobody else up."""
    while await _in_thread(threads, _goes_on, rollout, retries):
        try:
            generated = await generate(rollout.context, rollout.room)
        except InfrastructureFailure as error:
            rollout.fail(str(error))
            continue
        await _in_thread(threads, rollout.advance, generated)


async def run_many(
    rollouts: Iterable[Rollout],
    generate: Engine,
    *,
    retries: int = 0,
    concurrency: int | None = None,
    threads: bool = False,
) -> None:
    """Drive rollouts at the same time, at most ``concurrency`` of them. The first error stops all and is raised."""
    import asyncio  # here, as a scorer has no use for what it costs to import

    gate = asyncio.Semaphore(concurrency) if concurrency is not None else None

    async def run(rollout: Rollout) -> None:
        if gate is None:
            return await run_one(rollout, generate, retries=retries, threads=threads)
        async with gate:
            return await run_one(rollout, generate, retries=retries, threads=threads)

    tasks = [asyncio.ensure_future(run(rollout)) for rollout in rollouts]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _in_thread(threads: bool, call: Callable[..., Any], *arguments: Any) -> Any:
    if not threads:
        return call(*arguments)
    import asyncio

    return await asyncio.to_thread(call, *arguments)


def start_rollouts(
    tasks: Iterable[Task], start: Callable[[Task], Rollout], *, skip_too_long: bool = False
) -> tuple[list[Rollout], list[tuple[Task, PromptTooLong]]]:
    """A rollout for each task, and the tasks that were left out because their prompts are too long, each with why.

    Raises :class:`PromptTooLong` for the first such task unless ``skip_too_long``.
    """
    rollouts: list[Rollout] = []
    skipped: list[tuple[Task, PromptTooLong]] = []
    for task in tasks:
        try:
            rollouts.append(start(task))
        except PromptTooLong as error:
            if not skip_too_long:
                raise
            skipped.append((task, error))
    return rollouts, skipped


def describe_rollouts(rollouts: Sequence[Rollout]) -> dict[str, Any]:
    """Counts for a metrics row: why episodes stopped, turns, tokens by origin, observations cut, retries, masks."""
    stops = Counter(rollout.stop or "running" for rollout in rollouts)
    sampled = sum(sum(rollout.mask) for rollout in rollouts)
    tokens = sum(len(rollout.mask) for rollout in rollouts)
    turns = sum(len(rollout.ranges) for rollout in rollouts)
    return {
        "rollouts": len(rollouts),
        "turns": turns / len(rollouts) if rollouts else None,
        "stops": dict(sorted(stops.items())),
        "tokens": sampled,
        "environment_tokens": tokens - sampled,
        "observations_cut": sum(rollout.observations_cut for rollout in rollouts),
        "retried": sum(rollout.retried for rollout in rollouts),
        "masked": sum(rollout.masked is not None for rollout in rollouts),
    }
