"""Worlds in which wrong programs are wrong: searched for with rows on and beside the bounds of the query.

The wrong programs of a task are the single mutations of its reference and the programs that have results by heart.
Those that are right in the world of the task are tried in other worlds: the same world with edits
(:mod:`.mended.boundaries`), other users, other worlds, and these with edits. A world is kept if a program is wrong in
it that was right so far.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from attrs import frozen

from callwright.language.program import Program
from callwright.walk.execution import execute
from callwright.walk.tasks import Answer, Task
from callwright_plugins.depthbench.instances import answer_in, by_heart, candidates, is_right
from callwright_plugins.depthbench.mended.boundaries import bounds, with_edits
from callwright_plugins.depthbench.proofs import mutations_of

#: Scenarios that are tried for a task, and the most that it keeps.
TRIES = 90
MOST = 6


@frozen
class Wrong:
    """A wrong program and what is wrong with it."""

    what: str
    program: Program


def wrong_programs(task: Task) -> list[Wrong]:
    """The programs that have results by heart (the last call alone comes first), then all single mutations."""
    heart = [Wrong(f"by heart {one.left_out}", one.program) for one in by_heart(task)]
    return heart + [Wrong(f"{one.kind} {one.what}", one.program) for one in mutations_of(task)]


def right_so_far(task: Task, wrong: Sequence[Wrong]) -> list[Wrong]:
    """Those that are right in the world of the task."""
    return [one for one in wrong if is_right(task, one.program, task.scenario, task.answer)]


def scenarios(task: Task) -> Iterator[str]:
    """Scenarios to try, the same ones for a task always: its own with edits first, then others with and without."""
    rng = random.Random(f"edits/{task.environment.name}/{task.query}")
    others = candidates(task, task.query)
    for number in range(TRIES):
        scenario = task.scenario if number < 6 or number % 3 == 0 else next(others)
        if number >= 6 and number % 3 == 1:
            yield scenario
            continue
        edited = with_edits(task, scenario, rng)
        if edited != task.scenario:
            yield edited


def refutations(task: Task, wrong: Sequence[Wrong], most: int = MOST) -> tuple[list[str], list[Wrong]]:
    """Scenarios in which wrong programs are wrong, and the programs that are right in all of them.

    A scenario that later ones make superfluous is left out again.
    """
    left = list(wrong)
    kept: list[tuple[str, Answer]] = []
    for scenario in scenarios(task):
        if not left:
            break
        answer = answer_in(task, scenario)
        if answer is None:
            continue
        still = [one for one in left if is_right(task, one.program, scenario, answer)]
        if len(still) < len(left):
            kept.append((scenario, answer))
            left = still
        if len(kept) > 2 * most:
            break
    for place in reversed(range(len(kept))):
        others = [*kept[:place], *kept[place + 1 :]]
        if len(_right_in(task, wrong, others)) == len(left):
            kept = others
    if len(kept) > most:
        kept = kept[:most]
        left = _right_in(task, wrong, kept)
    return [scenario for scenario, _ in kept], left


def _right_in(task: Task, wrong: Sequence[Wrong], worlds: Sequence[tuple[str, Answer]]) -> list[Wrong]:
    return [one for one in wrong if all(is_right(task, one.program, *where) for where in worlds)]


def idle_bounds(task: Task, found: Sequence[str]) -> list[int]:
    """The calls whose bound no world of the task puts a row on, or none a step beside."""
    assert task.program is not None
    traces = [
        execute(task.program, task.environment, task.tools, scenario=scenario) for scenario in (task.scenario, *found)
    ]
    return [bound.call for bound in bounds(task, traces) if not (bound.on and bound.beside)]
