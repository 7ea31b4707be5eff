"""The executor ``ray``: actors of a Ray cluster as workers. Loaded when it is asked for; needs the extra ``ray``."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from callwright.errors import MissingExtra, RunError
from callwright.machines.chunk_work import (
    AHEAD,
    END,
    MOST_DEATHS,
    Chunk,
    ChunkWork,
    ClosingExecutor,
    Result,
    State,
    opened,
    prepare_worker,
    run_chunk,
)


class RayExecutor(ClosingExecutor):
    """Actors of a Ray cluster: the one of ``RAY_ADDRESS``, the one this process is connected to, or one made here."""

    name: Final = "ray"

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        try:
            import ray
        except ModuleNotFoundError as error:
            raise MissingExtra("the executor 'ray'", "ray", error.name or "ray") from error
        self._ray: Any = ray
        self._started = False

    def map(self, work: ChunkWork[State, Chunk, Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The results in order. When an actor dies another takes its place and its chunk."""
        ray = self._ray
        if not ray.is_initialized():
            cluster = os.environ.get("RAY_ADDRESS")
            local: dict[str, Any] = {} if cluster else {"num_cpus": self.workers, "include_dashboard": False}
            ray.init(log_to_driver=False, configure_logging=False, **local)
            self._started = True
        actor_class = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=0)(_Actor)
        actors = [actor_class.remote(work.prepare, work.run) for _ in range(self.workers)]
        source, waiting = iter(chunks), deque[tuple[Any, int, Any]]()
        number = 0
        try:
            while True:
                while len(waiting) < self.workers * AHEAD:
                    chunk = next(source, END)
                    if chunk is END:
                        break
                    waiting.append((chunk, number, actors[number % self.workers].run.remote(chunk)))
                    number += 1
                if not waiting:
                    return
                chunk, place, reference = waiting.popleft()
                yield self._result(actors, chunk, place, reference)
        finally:
            for actor in actors:
                ray.kill(actor)

    def _result(self, actors: list[Any], chunk: Any, place: int, reference: Any) -> Any:
        for death in range(MOST_DEATHS):
            try:
                return opened(self._ray.get(reference))
            except (self._ray.exceptions.RayActorError, self._ray.exceptions.WorkerCrashedError):
                reference = actors[(place + death + 1) % self.workers].run.remote(chunk)
        raise RunError(f"{MOST_DEATHS} Ray actors died one after the other of the same chunk of work")

    def close(self) -> None:
        """Leave the cluster, if it was joined here."""
        if self._started:
            self._ray.shutdown()
            self._started = False


class _Actor:
    """One worker of a Ray cluster."""

    def __init__(self, prepare: Callable[[], Any], run: Callable[[Any, Any], Any]) -> None:
        prepare_worker(prepare)
        self._work = run

    def run(self, chunk: Any) -> tuple[bool, Any]:
        """Whether it failed, and the result or what it raised."""
        return run_chunk(self._work, chunk)
