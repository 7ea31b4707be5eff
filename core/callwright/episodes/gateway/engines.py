"""What answers behind a gateway: an engine that keeps token ids, or a model server that keeps none.

BatchedEngine(codec, engine)     # anything that continues many contexts at once, such as the local model
sampler.connected()              # a sampler that continues episodes one by one, such as vllm
Upstream(server)                 # any OpenAI-compatible server: recorded, and without loss
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from attrs import field, frozen

from callwright.episodes.token_episode import Codec, EngineOutput
from callwright.errors import InfrastructureFailure, UsageError
from callwright.machines.event_loop import called
from callwright.tools.spec import ToolSpec
from callwright.walk.conditions import Conditions

if TYPE_CHECKING:
    from callwright.machines.model_server.server import Server


@frozen
class Asked:
    """One question to an engine: what engines read of a :class:`callwright.episodes.TokenEpisode`.

    ``history`` has as many members as there were completions before, which is what their seeds hang on.
    """

    context: tuple[int, ...] = field(repr=False)
    room: int | None
    conditions: Conditions
    history: Sequence[Any] = field(repr=False, default=())
    offered: Mapping[str, ToolSpec] = field(repr=False, factory=dict)


class ContextEngine(Protocol):
    """Continues contexts of ids; what :meth:`.sampling.ConversesConcurrently.connected` gives is one."""

    @property
    def codec(self) -> Codec:
        """Between messages and token ids: a :class:`callwright.episodes.ChatCodec`."""

    async def continue_one(self, episode: Any, *, temperature: float = 1.0) -> EngineOutput:
        """What follows the ids of ``episode.context``. Raises :class:`callwright.InfrastructureFailure`."""


@runtime_checkable
class ContinuesBatches(Protocol):
    """What a sampler offers whose model is in this process: a function that continues many contexts at once."""

    def batch_engine(self, temperature: float) -> tuple[Codec, Callable[[Sequence[Any]], Sequence[EngineOutput]]]:
        """The codec and the function, which takes what has ``context``, ``room``, ``conditions`` and ``history``."""


@runtime_checkable
class AsksServer(Protocol):
    """What a sampler offers whose model is behind an OpenAI-compatible server that tells no ids."""

    @property
    def server(self) -> Server:
        """That server."""


class BatchedEngine:
    """Questions that come within ``window`` seconds are one batch, which a thread continues."""

    def __init__(
        self, codec: Codec, engine: Callable[[Sequence[Any]], Sequence[EngineOutput]], *, window: float = 0.005
    ) -> None:
        self.codec = codec
        self._engine, self._window = engine, window
        self._waiting: list[tuple[Any, asyncio.Future[EngineOutput]]] = []
        self._task: asyncio.Task[None] | None = None

    async def continue_one(self, episode: Any, *, temperature: float = 1.0) -> EngineOutput:
        """What follows a context. The temperature is the engine's own, whatever is asked."""
        answer: asyncio.Future[EngineOutput] = asyncio.get_running_loop().create_future()
        self._waiting.append((episode, answer))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await answer

    async def _work(self) -> None:
        while self._waiting:
            await asyncio.sleep(self._window)
            batch, self._waiting = self._waiting, []
            try:
                made = await asyncio.to_thread(called, self._engine, [episode for episode, _ in batch])
                if len(made) != len(batch):
                    raise ValueError(f"it gave {len(made)} completions for {len(batch)} contexts; this is its bug")
            except Exception as error:
                lost = InfrastructureFailure(f"the engine failed: {type(error).__name__}: {error}")
                for _, answer in batch:
                    if not answer.done():
                        answer.set_exception(lost)
                continue
            for (_, answer), output in zip(batch, made, strict=True):
                if not answer.done():  # its client may have gone
                    answer.set_result(output)


@frozen
class Upstream:
    """A model server behind the gateway, which answers in words and gives no ids: its turns carry no loss.

    The server's key is read where :class:`callwright.machines.model_server.Server` says; the agent's own never leaves.
    """

    server: Server

    def connected(self) -> Any:
        """A connection that belongs to the event loop that enters it."""
        from callwright.machines.model_server.connection import Connection

        return Connection(self.server)


def engine_of(sampler: Any, temperature: float) -> Any:
    """What a gateway asks for completions of a sampler, an engine or an :class:`Upstream`.

    Raises :class:`callwright.UsageError` for a sampler that keeps no token ids.
    """
    if isinstance(sampler, Upstream) or callable(getattr(sampler, "continue_one", None)):
        return sampler
    if isinstance(sampler, AsksServer):
        return Upstream(sampler.server)
    if isinstance(sampler, ContinuesBatches):
        codec, engine = sampler.batch_engine(temperature)
        return BatchedEngine(codec, engine)
    if callable(getattr(sampler, "connected", None)) and callable(getattr(sampler, "converse", None)):
        return sampler
    if isinstance(sampler, str):
        raise UsageError(f"a gateway takes a sampler itself, not its name: callwright.sampler({sampler!r}, …)")
    raise UsageError(
        f"the sampler {getattr(sampler, 'name', sampler)!r} keeps no token ids, so nothing that it writes could be "
        "trained on; take 'local-model' or 'vllm', or to record without loss 'openai' (Upstream(server) in Python)"
    )
