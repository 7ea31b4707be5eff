"""The tasks of each training step, drawn without state."""

from __future__ import annotations

from collections.abc import Sequence

from callwright.errors import UsageError
from callwright.training.rollouts.draws import python_generator
from callwright.walk.tasks import Task, depths_of


class TaskStream:
    """The tasks of each step, drawn without state: any step can be asked for at any time."""

    def __init__(
        self,
        tasks: Sequence[Task],
        depths: Sequence[int] | None,
        seed: int,
        stages: Sequence[tuple[int, Sequence[int]]] = (),
    ) -> None:
        """``stages`` are a curriculum: up to which step which depths hold, before ``depths`` do."""
        if not tasks:
            raise UsageError("the split to train on holds no tasks")
        self._seed = seed
        self._depths = list(depths) if depths else None
        self._stages = [(end, list(listed)) for end, listed in stages]
        self._tasks = tasks  # those that are drawn are made, where a split makes them on demand
        self._everything = range(len(tasks))
        self._of_depth: dict[int, list[int]] = {}
        if self._depths or self._stages:
            for place, depth in enumerate(depths_of(tasks)):
                self._of_depth.setdefault(depth, []).append(place)
        for option, listed in (("depths", self._depths or ()), *(("curriculum", listed) for _, listed in self._stages)):
            for depth in listed:
                if depth not in self._of_depth:
                    known = ", ".join(map(str, sorted(self._of_depth)))
                    raise UsageError(f"{option!r} asks for depth {depth}, but the split to train on only has {known}")

    def draw(self, count: int, step: int, round_: int = 0) -> list[Task]:
        """``count`` tasks for a round of a step. Listed depths come in turn, each step its share."""
        rng = python_generator(self._seed, "tasks", step, round_)
        begin, depths, stage = self._now(step)
        drawn = []
        for position in range((step - begin) * count, (step - begin + 1) * count):
            pool = self._everything if depths is None else self._of_depth[self._depth(position, depths, stage)]
            drawn.append(self._tasks[pool[rng.randrange(len(pool))]])
        return drawn

    def _now(self, step: int) -> tuple[int, list[int] | None, tuple[int, ...]]:
        """Where the stage of a step began, its depths, and its number; none after the curriculum."""
        begin = 0
        for number, (end, depths) in enumerate(self._stages):
            if step < end:
                return begin, depths, (number,)
            begin = end
        return begin, self._depths, ()

    def _depth(self, position: int, depths: list[int], stage: tuple[int, ...]) -> int:
        cycle, place = divmod(position, len(depths))
        order = list(depths)
        python_generator(self._seed, "depths", *stage, cycle).shuffle(order)
        return order[place]


def outlasts_the_run(ends: Sequence[int], steps: int) -> str | None:
    """In words, that a curriculum whose stages end at these steps goes on when the run is over; ``None`` if it ends.

    No mistake for certain: short trials of a recipe have fewer steps than it. ``steps`` 0 is a run without any.
    """
    late = next((number for number, end in enumerate(ends, 1) if end > steps), None)
    if late is None or not steps:
        return None
    never = "the stages after it and 'depths'" if late < len(ends) else "'depths'"
    return (
        f"stage {late} of 'curriculum' ends at step {ends[late - 1]:,} and the run at step {steps:,}, so that {never} "
        "never hold; for stages that follow the steps of a run give 'until' as a share of them, such as 0.5"
    )


def per_depth(tasks: Sequence[Task], count: int | None) -> list[Task]:
    """The first ``count`` tasks of each depth, in their order; all of them without a count."""
    if count is None:
        return list(tasks)
    seen: dict[int, int] = {}
    chosen = []
    for place, depth in enumerate(depths_of(tasks)):
        seen[depth] = seen.get(depth, 0) + 1
        if seen[depth] <= count:
            chosen.append(tasks[place])
    return chosen
