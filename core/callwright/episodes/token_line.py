"""The line of token ids of one episode: the prompt, what was sampled, what was heard.

Nothing is parsed or executed here, so an engine that somebody else drives can keep one, too: a server that answers an
agent's requests, say.

    line = TokenLine(prompt_ids)
    line.sampled(ids, logprobs)         # mask 1
    line.heard(ids)                     # results of calls, the user, the template between two turns: mask 0
    other = line.fork(at)               # what follows went another way from there
"""

from __future__ import annotations

from collections.abc import Sequence

from callwright.errors import UsageError


class TokenLine:
    """Ids, masks and log-probabilities of one branch of an episode. Sampled ids are never tokenised again.

    ``parent`` is the line that this one was forked from, and ``forked_at`` how many of its response ids they share.
    """

    def __init__(self, prompt_ids: Sequence[int]) -> None:
        self.prompt_ids: tuple[int, ...] = tuple(prompt_ids)
        self.parent: TokenLine | None = None
        self.forked_at: int | None = None
        self._response: list[int] = []
        self._mask: list[int] = []
        self._logprobs: list[float] = []
        self._unlogged: int | None = None  # where the first completion without log-probabilities begins
        self._ranges: list[tuple[int, int]] = []

    def __len__(self) -> int:
        """How many response ids there are."""
        return len(self._response)

    @property
    def response_ids(self) -> tuple[int, ...]:
        """Everything after the prompt."""
        return tuple(self._response)

    @property
    def mask(self) -> tuple[int, ...]:
        """For each response id: 1 if it was sampled, 0 if it was heard."""
        return tuple(self._mask)

    @property
    def logprobs(self) -> tuple[float, ...]:
        """For each response id its log-probability in nats, 0.0 for what was heard; empty if an engine gave none."""
        return tuple(self._logprobs) if self._unlogged is None else ()

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Where each completion stands in the response, as half-open ranges."""
        return tuple(self._ranges)

    @property
    def context(self) -> tuple[int, ...]:
        """What an engine is to continue: the prompt and the whole response so far."""
        return (*self.prompt_ids, *self._response)

    @property
    def end(self) -> Sequence[int]:
        """The part that the next completion follows directly: the response, else the prompt."""
        return self._response or self.prompt_ids

    def sampled(self, ids: Sequence[int], logprobs: Sequence[float] = ()) -> None:
        """Append a completion. ``logprobs`` (nats, of the policy that sampled) are as many as ids, or none.

        Raises :class:`callwright.UsageError` for another number of them.
        """
        if logprobs and len(logprobs) != len(ids):
            raise UsageError(f"{len(logprobs)} log-probabilities were given for {len(ids)} tokens")
        start = len(self._response)
        self._response += ids
        self._mask += [1] * len(ids)
        if ids and not logprobs and self._unlogged is None:
            self._unlogged = start
        self._logprobs += logprobs or [0.0] * len(ids)
        self._ranges.append((start, len(self._response)))

    def heard(self, ids: Sequence[int]) -> None:
        """Append what the model reads next and did not write; it carries no loss."""
        self._response += ids
        self._mask += [0] * len(ids)
        self._logprobs += [0.0] * len(ids)

    def fork(self, at: int | None = None) -> TokenLine:
        """A line that shares the prompt and the first ``at`` response ids (all of them without it), then goes its way.

        A completion that is cut by ``at`` keeps its first ids. Log-probabilities are there if all completions before
        ``at`` have them. Raises :class:`callwright.UsageError` for a position that the response does not have.
        """
        at = len(self._response) if at is None else at
        if not 0 <= at <= len(self._response):
            raise UsageError(f"a line of {len(self._response)} response ids cannot be forked at {at}")
        other = TokenLine(self.prompt_ids)
        other.parent, other.forked_at = self, at
        other._response, other._mask, other._logprobs = self._response[:at], self._mask[:at], self._logprobs[:at]
        other._unlogged = self._unlogged if self._unlogged is not None and self._unlogged < at else None
        other._ranges = [(start, min(end, at)) for start, end in self._ranges if start < at or end <= at]
        return other
