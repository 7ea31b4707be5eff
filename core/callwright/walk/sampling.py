"""Samplers: whatever produces completions, from a script to a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from attrs import field, frozen

from callwright.walk.completion import Completion

if TYPE_CHECKING:
    from callwright.language.messages import Message
    from callwright.language.parser import Parser
    from callwright.machines.model_server.reply_cache import ReplyCache
    from callwright.tools.spec import ToolSpec
    from callwright.walk.limits import TurnLimits
    from callwright.walk.tasks import Task
    from callwright.walk.turn import Turn


@frozen
class SamplingRequest:
    """A prompt, and the task it was made of (scripted samplers answer from the task, models from the messages).

    In an episode of several turns, ``messages`` go on to what the model is to answer next, and ``turns`` are those that
    it has had, with what their calls came to. ``parser`` is the form in which completions are read, and
    ``limits`` say how many turns there may be, where they are known.
    """

    messages: tuple[Message, ...]
    task: Task
    turns: tuple[Turn, ...] = field(default=(), repr=False)
    parser: Parser | None = field(default=None, repr=False, eq=False)
    limits: TurnLimits | None = field(default=None, repr=False)

    @property
    def offered(self) -> dict[str, ToolSpec]:
        """The tools that the model is shown by now (:meth:`callwright.walk.Task.offered_at`)."""
        return self.task.offered_at(sum(not turn.calls for turn in self.turns))


@runtime_checkable
class Sampler(Protocol):
    """Produces ``n`` completions for each request, reproducibly for a seed.

    What is drawn for a request hangs on the seed, its task and its turns, never on what it is asked together with.

    A sampler that keeps token ids over several turns also has the method of
    :class:`callwright.episodes.EpisodeSampler`; every other one is asked again with the longer messages, in which
    results of calls have the role ``user`` unless it is one that :class:`ChoosesRole`.
    """

    @property
    def name(self) -> str:
        """The registered name."""

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[Completion]]:
        """``[B][n]`` completions, in the order of the requests. ``temperature`` 0 is greedy decoding."""


@runtime_checkable
class ChoosesRole(Protocol):
    """What a sampler says in addition whose model knows the role ``tool``."""

    @property
    def observation_role(self) -> Literal["tool", "user"]:
        """In which role it wants to see the results of calls."""


@runtime_checkable
class CountsRequests(Protocol):
    """What a sampler adds that asks a server: evaluations say what they took, and budgets end them."""

    @property
    def usage(self) -> Any:
        """What was asked so far in this process; it has ``to_json()``, figures by name."""


@runtime_checkable
class OffersTools(Protocol):
    """What a sampler says in addition that hands tools to its model by itself, as functions of a server's protocol."""

    @property
    def offers_tools(self) -> bool:
        """Whether prompts are to be written without a list of tools and without a form."""


def offers_tools(sampler: object) -> bool:
    """Whether a sampler hands the tools to its model by itself."""
    return isinstance(sampler, OffersTools) and sampler.offers_tools is True


@runtime_checkable
class RefusesTasks(Protocol):
    """What a sampler offers in addition that cannot answer every task: evaluations ask it before they begin."""

    def refuse_tasks(self, tasks: Sequence[Task], limits: TurnLimits) -> None:
        """Raise :class:`callwright.errors.DataError` naming the first task that it cannot answer, if there is one.

        ``limits`` are those of the attempts; those of a task are :func:`callwright.walk.limits.limits_for`.
        """


class AskedOneByOne(Protocol):
    """What a sampler that waits for a server is while it is connected: it belongs to one event loop."""

    async def sample_one(
        self, request: SamplingRequest, *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[Completion]:
        """``n`` completions: those that ``sample`` would give for this request.

        Raises :class:`callwright.InfrastructureFailure` where the machinery failed: these samples alone are masked. A
        completion may be ``masked`` in place of that. Any other error ends the work.
        """


@runtime_checkable
class SamplesConcurrently(Sampler, Protocol):
    """What a sampler offers in addition if it waits for a server: requests one by one, many at a time.

    Evaluations then begin a task when another one ends, instead of a batch when the slowest of the last one has.
    """

    @property
    def concurrency(self) -> int:
        """How many requests may be under way, 1 or more."""

    def connected(self) -> AbstractAsyncContextManager[AskedOneByOne]:
        """A connection, to be entered in the event loop that asks."""


@runtime_checkable
class KeepsReplies(Protocol):
    """What a sampler offers in addition if answers that were paid for can be kept for a second start."""

    def keep_replies(self, replies: ReplyCache) -> None:
        """From now on look there before asking, and put every answer there."""

    def paid_for(self, answer: Mapping[str, Any]) -> float:
        """What an answer that is kept has cost, in the currency of the prices."""
