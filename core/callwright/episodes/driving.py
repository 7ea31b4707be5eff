"""Conversing: any sampler taken through episodes of several turns.

A sampler that only writes texts is asked again with the messages that came of its last answer; one that keeps token ids
drives :class:`callwright.episodes.token_episode.Rollout` itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from callwright.episodes.conversation import Conversation, ConversedEpisode
from callwright.episodes.token_episode import Codec, Rollout
from callwright.errors import ComponentError
from callwright.walk.limits import StopReason, TurnLimits
from callwright.walk.sampling import Message, Sampler, SamplingRequest

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline


class Conversed(Protocol):
    """What a finished conversation is known by, with token ids (:class:`callwright.episodes.token_episode.Rollout`) or
    without.
    """

    @property
    def episode(self) -> ConversedEpisode:
        """The episode, which every reward recipe scores."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """Everything that was said."""

    @property
    def stop(self) -> StopReason | None:
        """Why the episode is over."""

    @property
    def masked(self) -> str | None:
        """Why this sample must not become a number; ``None`` if nothing failed but the model."""

    @property
    def retried(self) -> int:
        """How often the episode was begun again."""


#: Makes the rollout of a request for a codec; everything else about it is settled.
Start = Callable[[SamplingRequest, Codec], Rollout]


@runtime_checkable
class Conversing(Protocol):
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
    ) -> Sequence[Sequence[Conversed]]:
        """``[B][n]`` finished conversations: rollouts that ``start`` made, driven to their end."""


def converse(
    pipeline: Pipeline,
    sampler: Sampler,
    requests: Sequence[SamplingRequest],
    limits: TurnLimits,
    *,
    n: int = 1,
    seed: int = 0,
    temperature: float = 1.0,
    retries: int = 0,
) -> Sequence[Sequence[Conversed]]:
    """``[B][n]`` episodes of a sampler, each driven to its end in a session of its own.

    A sampler without a method ``converse`` is only held to the limits of turns, and its completions to what it says of
    them (``truncated``): nobody here could count its tokens. An episode whose session failed is begun again up to
    ``retries`` times, then left masked.
    """
    if isinstance(sampler, Conversing):

        def start(request: SamplingRequest, codec: Codec) -> Rollout:
            return pipeline.rollout(request.task, codec, messages=request.messages, limits=limits)

        return sampler.converse(requests, start, n=n, seed=seed, temperature=temperature, retries=retries)
    role: Literal["tool", "user"] = "tool" if getattr(sampler, "observation_role", "user") == "tool" else "user"
    groups = [
        [pipeline.conversation(request.task, request.messages, limits, role) for _ in range(n)] for request in requests
    ]
    turn = 0
    while any(_goes_on(conversation, retries) for group in groups for conversation in group):
        _take_turn(sampler, groups, turn, seed, temperature)
        turn += 1
    return groups


def _goes_on(conversation: Conversation, retries: int) -> bool:
    while conversation.stop == "machinery" and conversation.retried < retries:
        conversation.retry()
    return not conversation.over


def _take_turn(
    sampler: Sampler, groups: Sequence[Sequence[Conversation]], turn: int, seed: int, temperature: float
) -> None:
    """One more completion for every conversation that goes on.

    In the first turn the copies of a task share a prompt and are asked for together; later each has its own.
    """
    copies = len(groups[0])
    if turn == 0:
        live = [list(group) for group in groups]
        _ask(sampler, live, copies, seed, temperature)
        return
    for copy in range(copies):
        live = [[group[copy]] for group in groups if not group[copy].over]
        if live:
            _ask(sampler, live, 1, turn_seed(seed, turn, copy), temperature)


def _ask(sampler: Sampler, groups: Sequence[list[Conversation]], n: int, seed: int, temperature: float) -> None:
    requests = [SamplingRequest(group[0].messages, group[0].task, group[0].episode.turns) for group in groups]
    sampled = sampler.sample(requests, n=n, seed=seed, temperature=temperature)
    if [len(completions) for completions in sampled] != [n] * len(groups):
        raise ComponentError(
            f"sampler {sampler.name!r} did not give {n} completions for each of {len(groups)} requests"
        )
    for group, completions in zip(groups, sampled, strict=True):
        for conversation, completion in zip(group, completions, strict=True):
            conversation.hear(conversation.take(completion))


def turn_seed(seed: int, turn: int, copy: int = 0) -> int:
    """The seed of a later turn: 31 bits drawn from the seed, the turn and the number of the copy."""
    return int.from_bytes(blake2b(f"{seed}/{turn}/{copy}".encode(), digest_size=4).digest()) >> 1
