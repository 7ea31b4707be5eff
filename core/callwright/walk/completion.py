"""Completions: what a model wrote, as text and as token ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from attrs import field, frozen

from callwright.errors import UsageError

if TYPE_CHECKING:
    from callwright.language.messages import Message


@frozen(slots=False)  # which attrs makes faster, and one is made for every rollout
class Completion:
    """What a sampler returned for one prompt.

    ``token_ids`` are the sampled ids (training uses them, never re-tokenised text); ``logprobs`` their
    log-probabilities under the sampling policy, in nats. ``truncated``: the length limit cut it before an end token.
    ``masked``: the machinery failed, and how; nothing is known of what the model would have written, so the sample is
    masked. ``usage``: what the request behind it took, by the names of :class:`callwright.machines.model_server.Usage`;
    of several completions that one request gave the first one has all of it, so that sums are right. ``message`` is
    what a server answered with, from which ``text`` was made, for those who send it back.
    """

    text: str
    token_ids: tuple[int, ...] = field(default=(), repr=False)
    logprobs: tuple[float, ...] = field(default=(), repr=False)
    truncated: bool = False
    masked: str | None = None
    usage: Mapping[str, float] | None = field(default=None, eq=False, repr=False)
    message: Message | None = field(default=None, repr=False, eq=False)


def completions_of(completions: object) -> tuple[Completion, ...]:
    """The completions of several turns. Raises :class:`callwright.UsageError` for anything else."""
    if not isinstance(completions, Iterable) or isinstance(completions, Mapping | bytes | bytearray):
        raise UsageError(f"a completion is a text, a Completion or a list of them, one a turn, not {completions!r:.80}")
    found = []
    for one in completions:
        if not isinstance(one, str | Completion):
            raise UsageError(
                f"a turn is a text or a Completion, not {one!r:.80}; what agents say in messages is scored by "
                "callwright.scorer(…) or told to Attempt.told(…)"
            )
        found.append(Completion(one) if isinstance(one, str) else one)
    return tuple(found)
