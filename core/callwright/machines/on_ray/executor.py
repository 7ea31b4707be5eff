"""The executor ``ray``: actors of a Ray cluster as workers. Loaded when it is asked for; needs the extra ``ray``."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from callwright.errors import MissingExtra, RunError
from callwright.machines.chunk_work import (
    Chunk,
    ChunkWork,
    ClosingExecutor,
    Result,
    State,
    WorkerLost,
    WorkerNotReady,
    opened,
    prepare_worker,
    run_chunk,
    run_to_the_end,
    started,
)
from callwright.machines.command_folder import for_workers, hear_workers
from callwright.machines.in_order import in_order
from callwright.machines.interrupts import Interrupted, as_before, hang_up_waits
from callwright.machines.on_ray.cluster_watch import ClusterWatch


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
        self._watch: ClusterWatch | None = None

    def map(self, work: ChunkWork[State, Chunk, Result], chunks: Iterable[Chunk]) -> Iterator[Result]:
        """The results in order. An actor that dies or hangs begins again, and its chunk is done again."""
        with self.places(work) as places:
            for result in in_order(places, chunks):
                hear_workers()
                yield result

    @contextmanager
    def places(self, work: ChunkWork[State, Chunk, Result]) -> Iterator[list[Callable[[Chunk], Result]]]:
        """One for each actor."""
        ray = self._ray
        if not ray.is_initialized():
            self._start()
        # On a cluster that was not made here, actors may be anywhere: what a command limits is divided among them.
        common = for_workers(self.workers, same_machine=self._started and not os.environ.get("RAY_ADDRESS"))
        places = [_Place(ray, work, common) for _ in range(self.workers)]

        def asking(place: _Place) -> Callable[[Chunk], Result]:
            return lambda chunk: run_to_the_end(work, chunk, place.ask)

        try:
            yield [asking(place) for place in places]
        finally:
            for place in places:
                place.close()

    def _start(self) -> None:
        """Join the cluster of ``RAY_ADDRESS``, or make one. Raises :class:`callwright.errors.RunError`."""
        cluster = os.environ.get("RAY_ADDRESS")
        local: dict[str, Any] = {} if cluster else {"num_cpus": self.workers, "include_dashboard": False}
        watch = None if cluster else ClusterWatch.start()
        try:
            with hang_up_waits():
                with as_before():  # Ray answers SIGTERM by a trace of its own and an abort
                    self._ray.init(log_to_driver=False, configure_logging=False, **local)
                self._started, self._watch = True, watch
        except SystemExit as left:  # which is its answer while it starts
            raise Interrupted(signal.SIGTERM) from left
        except Exception as error:  # whatever keeps a cluster from starting: a loaded machine, a wrong address
            where = f"the cluster of RAY_ADDRESS ({cluster})" if cluster else "a cluster on this machine"
            raise RunError(
                f"Ray could not reach or start {where}: {' '.join(str(error).split())}. Try again, or use "
                "--executor process"
            ) from error
        finally:
            if watch is not None:
                watch.started()
                if not self._started:
                    watch.close(end=True)

    def close(self) -> None:
        """Leave the cluster, if it was joined here; one that was made here ends."""
        if self._started:
            self._ray.shutdown()
            self._started = False
        if self._watch is not None:
            self._watch.close()
            self._watch = None


class _Place:
    """A place for an actor. One that died or hangs is replaced: while Ray restarts one itself, its calls fail."""

    def __init__(self, ray: Any, work: ChunkWork[Any, Any, Any], common: Mapping[str, str]) -> None:
        self._ray, self._work, self._common = ray, work, common
        self._class = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Actor)
        self._actor = self._class.remote(work.prepare, work.run, common)
        self._ready = self._closed = False

    def ask(self, chunk: Any) -> Any:
        """The result of a chunk. Raises what was raised there, and :class:`.chunk_work.WorkerLost`."""
        ray, limit = self._ray, self._work.time_limit
        started(self._readied)
        try:
            return opened(ray.get(self._actor.run.remote(chunk), timeout=limit))
        except ray.exceptions.GetTimeoutError as late:
            self._replace()
            raise WorkerLost(f"no result after {limit:g} s") from late
        except (ray.exceptions.RayActorError, ray.exceptions.WorkerCrashedError) as gone:
            self._replace()
            raise WorkerLost("its Ray actor died") from gone

    def _readied(self) -> None:
        """Wait for the actor, wherever Ray starts it. Raises :class:`.chunk_work.WorkerNotReady`."""
        if self._ready:
            return
        ray, limit = self._ray, self._work.start_limit
        try:
            ray.get(self._actor.ready.remote(), timeout=limit)
        except ray.exceptions.GetTimeoutError as late:
            self._replace()
            raise WorkerNotReady(f"not ready after {limit:g} s") from late
        except (ray.exceptions.RayActorError, ray.exceptions.WorkerCrashedError) as gone:
            self._replace()
            raise WorkerNotReady("its Ray actor died") from gone
        self._ready = True

    def _replace(self) -> None:
        if self._closed:
            raise RunError("the workers were closed")
        self._ray.kill(self._actor)
        self._ready = False
        self._actor = self._class.remote(self._work.prepare, self._work.run, self._common)

    def close(self) -> None:
        """Kill the actor, whatever it does. The thread that waits for it gets a :class:`RunError`."""
        self._closed = True
        self._ray.kill(self._actor)


class _Actor:
    """One worker of a Ray cluster; ``common`` are environment variables that it has in common with the command."""

    def __init__(self, prepare: Callable[[], Any], run: Callable[[Any, Any], Any], common: Mapping[str, str]) -> None:
        os.environ.update(common)
        prepare_worker(prepare)
        self._work = run

    def ready(self) -> None:
        """It can be called, so it was made."""

    def run(self, chunk: Any) -> tuple[bool, Any]:
        """Whether it failed, and the result or what it raised."""
        return run_chunk(self._work, chunk)
