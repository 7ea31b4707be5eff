"""Workers of a synthesis: where environments are planned and units made, in this process or elsewhere.

Elsewhere the same workers do both: each opens everything that takes part, which takes seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from callwright.environments.protocol import OutOfProcess, declares
from callwright.errors import RunError
from callwright.machines.chunk_work import ChunkWork, Salvage
from callwright.machines.command_folder import hear_workers
from callwright.machines.in_order import in_order
from callwright.training.synthesis.units import Unit
from callwright.training.synthesis.work import (
    Job,
    Opened,
    Row,
    SynthesisRequest,
    halves,
    joined,
    lost_unit,
    make_units,
    plan_units,
    seldom_collected,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from callwright.machines.chunk_work import Executor

#: Units that a worker is given at a time: at least, and at most where no teacher and no server has to be waited for.
#: Neighbours of a plan have much in common, such as their world, which each worker would make for itself.
BATCH: Final = 8
LARGE_BATCH: Final = 96
#: Batches for each worker at least, so that none is idle in the end.
_BATCHES: Final = 12
#: In one process: units that are written together, and seconds after which those that are there are written.
_TOGETHER: Final = 64
_PAUSE: Final = 0.2
#: The executors whose workers are not in this process.
ELSEWHERE: Final = frozenset({"process", "ray"})

#: The number of an environment that is to be planned, or units that are to be made.
Asked = int | Sequence[Job]


class Workers:
    """The workers of an executor. Those that are elsewhere start when something is first asked of them."""

    def __init__(self, executor: Executor, here: Opened, request: SynthesisRequest, stuck_after: float) -> None:
        self._executor, self._here, self._request, self._stuck_after = executor, here, request, stuck_after
        self._held = ExitStack()
        self._places: Sequence[Callable[[Asked], Any]] | None = None

    def plans(self, numbers: Iterable[int]) -> Iterator[list[Unit]]:
        """The units of environments. Raises as :meth:`callwright.machines.chunk_work.Executor.map` does."""
        if self._executor.name in ELSEWHERE:
            yield from self._elsewhere(numbers)
        else:
            yield from (plan_units(self._here, number) for number in numbers)

    def rows(self, jobs: Sequence[Job]) -> Iterator[list[Row]]:
        """What came of units, some at a time, in their order. Raises as :meth:`plans` does."""
        if self._executor.name == "serial":
            yield from self._one_by_one(jobs)
            return
        size, here = BATCH, self._here
        if here.teacher is None and not any(declares(one, OutOfProcess) for one in here.environments):
            size = max(BATCH, min(LARGE_BATCH, len(jobs) // (_BATCHES * self._executor.workers)))
        batches = [jobs[start : start + size] for start in range(0, len(jobs), size)]
        if self._executor.name in ELSEWHERE:
            yield from self._elsewhere(batches)
        else:
            yield from self._executor.map(self._work(partial(_given, here)), batches)

    def _one_by_one(self, jobs: Iterable[Job]) -> Iterator[list[Row]]:
        rows: list[Row] = []
        last = time.monotonic()
        with seldom_collected():  # for all of them: after each, a sixth of the time would go into looking for garbage
            for number, unit in jobs:
                rows += make_units(self._here, [(number, unit)])
                if len(rows) >= _TOGETHER or time.monotonic() - last >= _PAUSE:
                    yield rows
                    rows, last = [], time.monotonic()
        if rows:
            yield rows

    def _elsewhere(self, asked: Iterable[Asked]) -> Iterator[Any]:
        if self._places is None:
            self._places = self._held.enter_context(self._executor.places(self._work(self._request.open)))
        for result in in_order(list(self._places), asked):
            hear_workers()
            yield result

    def _work(self, prepare: Callable[[], Opened]) -> ChunkWork[Opened, Asked, Any]:
        return ChunkWork(prepare, plan_or_make, Salvage(_parts, joined, _lost), self._stuck_after)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()


def _given(opened: Opened) -> Opened:
    return opened


def plan_or_make(opened: Opened, asked: Asked) -> Any:
    """The units of an environment, or the rows of units."""
    return plan_units(opened, asked) if isinstance(asked, int) else make_units(opened, asked)


def _parts(asked: Asked) -> Sequence[Asked]:
    return (asked,) if isinstance(asked, int) else halves(asked)


def _lost(asked: Asked, how: str) -> Any:
    if isinstance(asked, int):
        raise RunError(
            f"several workers were lost one after the other to the plan of environment number {asked + 1} ({how}). Run "
            "with one worker to see why"
        )
    return lost_unit(asked, how)
