"""Samplers: whatever produces completions, from a script to a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from attrs import field, frozen

if TYPE_CHECKING:
    from callwright.walk.messages import Message
    from callwright.walk.tasks import Task
    from callwright.walk.turn import Turn


@frozen
class Completion:
    """What a sampler returned for one prompt.

    ``token_ids`` are the sampled ids (training uses them, never re-tokenised text); ``logprobs`` their
    log-probabilities under the sampling policy, in nats. ``truncated``: the length limit cut it before an end token.
    ``masked``: the machinery failed, and how; nothing is known of what the model would have written, so the sample is
    masked.
    """

    text: str
    token_ids: tuple[int, ...] = field(default=(), repr=False)
    logprobs: tuple[float, ...] = field(default=(), repr=False)
    truncated: bool = False
    masked: str | None = None


@frozen
class SamplingRequest:
    """A prompt, and the task it was made of (scripted samplers answer from the task, models from the messages).

    In an episode of several turns, ``messages`` go on to what the model is to answer next, and ``turns`` are those that
    it has had, with what their calls came to.
    """

    messages: tuple[Message, ...]
    task: Task
    turns: tuple[Turn, ...] = field(default=(), repr=False)


@runtime_checkable
class Sampler(Protocol):
    """Produces ``n`` completions for each request, reproducibly for a seed.

    A sampler that keeps token ids over several turns also has the method of
    :class:`callwright.episodes.driving.Conversing`; every other one is asked again with the longer messages.
    ``observation_role`` (``tool`` or ``user``, the default) is in which role such a sampler wants to see the results of
    calls.
    """

    @property
    def name(self) -> str:
        """The registered name."""

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[Completion]]:
        """``[B][n]`` completions, in the order of the requests. ``temperature`` 0 is greedy decoding."""
