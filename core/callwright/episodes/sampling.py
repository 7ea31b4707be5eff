"""Sampling episodes: any sampler takes tasks through as many turns as the conditions allow; one turn is the least.

A sampler that only writes texts is asked again with the messages that came of its last answer; one that keeps token ids
drives :class:`callwright.episodes.TokenEpisode` itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from attrs import evolve

from callwright.episodes.conversation import Conversation
from callwright.episodes.driving import Episode, drive
from callwright.episodes.token_episode import Codec, TokenEpisode
from callwright.errors import ComponentError
from callwright.walk.completion import Completion
from callwright.walk.conditions import Conditions
from callwright.walk.sampling import Sampler, SamplingRequest

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
    (``truncated``): its tokens cannot be counted here. An episode whose session failed is begun again up to ``retries``
    times, then left masked.
    """
    conditions = pipeline.conditions if conditions is None else conditions
    if isinstance(sampler, EpisodeSampler):

        def start(request: SamplingRequest, codec: Codec, copy: int) -> TokenEpisode:
            drawn = evolve(conditions, seed=draw_seed(conditions.seed, request.task.id, copy))
            return pipeline.token_episode(request.task, codec, messages=request.messages, conditions=drawn)

        return sampler.converse(requests, start, n=n, seed=conditions.seed, temperature=temperature, retries=retries)
    role: Literal["tool", "user"] = "tool" if getattr(sampler, "observation_role", "user") == "tool" else "user"
    groups = [
        [pipeline.conversation(request.task, request.messages, conditions, role) for _ in range(n)]
        for request in requests
    ]
    copy_of = {id(one): copy for group in groups for copy, one in enumerate(group)}

    def ask(live: list[Conversation]) -> list[Completion]:
        """Groups that begin share a prompt and are asked for together; later each conversation has its own."""
        answers: dict[int, Completion] = {}
        beginning = [group for group in groups if not any(one.history or one.retried or one.over for one in group)]
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
    requests = [SamplingRequest(one.messages, one.task, one.turns, one.parser) for one, *_ in groups]
    sampled = sampler.sample(requests, n=n, seed=seed, temperature=temperature)
    if [len(completions) for completions in sampled] != [n] * len(groups):
        raise ComponentError(
            f"sampler {sampler.name!r} did not give {n} completions for each of {len(groups)} requests"
        )
    for group, completions in zip(groups, sampled, strict=True):
        for conversation, completion in zip(group, completions, strict=True):
            answers[id(conversation)] = completion


def draw_seed(seed: int, task: str, copy: int = 0) -> int:
    """The seed of one sample of a task: 31 bits that hang on nothing else."""
    return _bits(f"{seed}/{task}/{copy}")


def turn_seed(seed: int, turn: int, copy: int = 0) -> int:
    """The seed of a later turn: 31 bits drawn from the seed, the turn and the number of the copy."""
    return _bits(f"{seed}/{turn}/{copy}")


def _bits(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest()) >> 1
