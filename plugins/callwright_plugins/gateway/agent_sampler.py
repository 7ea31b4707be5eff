"""The sampler ``agent``: an agent that nobody changed does each task, and the gateway records what its model wrote."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field

from callwright.episodes.driving import Episode
from callwright.episodes.gateway.gateway import Gateway
from callwright.episodes.gateway.session import GatewayTrajectory
from callwright.episodes.sampling import Start, draw_seed
from callwright.errors import UsageError
from callwright.language.messages import Message
from callwright.machines.model_server import run_to_end
from callwright.plugins import Registry, default_registry
from callwright.registration import Reach
from callwright.walk.attempt import Attempt
from callwright.walk.completion import Completion
from callwright.walk.limits import ONE_TURN, StopReason
from callwright.walk.sampling import SamplingRequest
from callwright_plugins.gateway.agent_process import run_agent, words_of


def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    """What the sampler would reach for with these options: the process that it starts."""
    yield Reach("process", f"starts: {options.get('command', 'an agent')}", ("command",))


@define(eq=False)
class AgentEpisode:
    """An episode that an agent has finished (:class:`callwright.episodes.driving.Episode`); it takes nothing more."""

    trajectory: GatewayTrajectory
    messages: tuple[Message, ...] = field(repr=False)
    answer: str = ""
    retried: int = 0

    @property
    def attempt(self) -> Attempt:
        """What every reward scores."""
        return self.trajectory.attempt

    context: tuple[()] = ()
    history: tuple[()] = ()
    over: bool = True

    @property
    def stop(self) -> StopReason | None:
        """``machinery`` where the agent failed, else that it answered."""
        return "answered" if self.masked is None else "machinery"

    @property
    def masked(self) -> str | None:
        """Why this sample must not become a number."""
        return self.attempt.masked

    def accept(self, answer: Any, /) -> None:
        """Nothing is taken: the agent has its own loop."""
        raise UsageError("an agent's episode is over; no completion follows")

    def fail(self, reason: str) -> None:
        """Nothing fails any more."""

    def begin_again(self) -> None:
        """An agent begins again where its sampler runs it."""
        raise UsageError("an agent's episode cannot be begun again here")


class AgentSampler:
    """Attempts of an agent: ``command`` is run for each, its model behind the gateway, its tools those of the task.

    ``engine`` is the sampler behind the gateway (``local-model``, ``vllm``; ``openai`` answers in words, which is
    enough to evaluate), ``engine_options`` its options. At most ``concurrency`` agents run at a time, each for
    ``time_limit`` seconds at most; ``environment`` are further variables. An agent that dies, or does not end, masks
    its sample: that is not the model's doing, unless the gateway had told it that the limit of turns was reached.
    """

    name = "agent"

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        engine: Any = "openai",
        engine_options: Mapping[str, Any] | None = None,
        concurrency: int = 4,
        time_limit: float = 600.0,
        environment: Mapping[str, str] | None = None,
        registry: Registry | None = None,
    ) -> None:
        if type(concurrency) is not int or concurrency < 1:
            raise UsageError(f"'concurrency' must be a whole number, 1 or more, not {concurrency!r}")
        if not time_limit > 0:
            raise UsageError(f"'time_limit' must be more than 0 seconds, not {time_limit!r}")
        self._words = words_of(command)
        self._registry = registry or default_registry()
        if engine == self.name:
            raise UsageError("the engine behind an agent is a model: 'local-model', 'vllm' or 'openai'")
        options = dict(engine_options or {})
        self._engine = self._registry.create("sampler", engine, **options) if isinstance(engine, str) else engine
        self._concurrency, self._time_limit = concurrency, time_limit
        self._environment = dict(environment or {})

    @property
    def usage(self) -> Any:
        """What the engine was asked so far, where it counts that."""
        return getattr(self._engine, "usage", None)

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[Completion]]:
        """Refused: an agent makes attempts of many turns. Raises :class:`callwright.UsageError`."""
        raise UsageError("an agent makes attempts, not single completions; evaluate it (callwright evaluate --agent)")

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
        """``[B][n]`` finished episodes, each of a process of its own."""
        return run_to_end(self._all(requests, start, n, seed, temperature, retries))

    async def _all(
        self, requests: Sequence[SamplingRequest], start: Start, n: int, seed: int, temperature: float, retries: int
    ) -> list[list[AgentEpisode]]:
        if not requests:
            return []
        # The limits of an episode of a task of one turn are those of that task alone.
        usual = next((one for one in requests if one.task.facts.get(ONE_TURN) is not True), requests[0])
        begun = start(usual, _NoCodec(), 0)
        conditions, parser = begun.conditions, usual.parser or begun.parser
        gateway = Gateway(self._engine, parser, temperature=temperature, conditions=conditions, registry=self._registry)
        gate = asyncio.Semaphore(self._concurrency)
        async with gateway.serve():

            async def one(request: SamplingRequest, copy: int) -> AgentEpisode:
                async with gate:
                    for retried in range(retries + 1):
                        made = await self._one(gateway, request, draw_seed(seed, request.task.id, copy))
                        if made.masked is None or retried == retries:
                            break
                    return evolve(made, retried=retried)

            return [
                list(group)
                for group in await asyncio.gather(
                    *(asyncio.gather(*(one(request, copy) for copy in range(n))) for request in requests)
                )
            ]

    async def _one(self, gateway: Gateway, request: SamplingRequest, seed: int) -> AgentEpisode:
        session = gateway.open(request.task, seed=seed, conditions=evolve(gateway.conditions, seed=seed))
        ended = await run_agent(self._words, session, time_limit=self._time_limit, given=self._environment)
        failed = None if session.at_limit else ended.failure
        said = session.messages
        trajectory = await session.finish(ended.answer or None, masked=failed)
        return AgentEpisode(trajectory, said, ended.answer)


class _NoCodec:
    """Stands where an episode is made only to read its conditions: no prompt is written."""

    ends: frozenset[int] = frozenset()

    def prompt_ids(self, messages: Any, task: Any) -> tuple[int, ...]:
        """Nothing."""
        return ()

    def observation_ids(self, messages: Any, completion_ids: Any, observations: Any) -> tuple[int, ...]:
        """Nothing."""
        return ()

    def text(self, ids: Sequence[int]) -> str:
        """Nothing."""
        return ""
