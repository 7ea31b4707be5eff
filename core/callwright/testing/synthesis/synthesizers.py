"""Conformance checks for synthesizers: units that hang on nothing but themselves, tasks that are tasks, and reasons."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from callwright.conformance import TriedIn
from callwright.environments.protocol import Environment
from callwright.errors import CallwrightError, DataError
from callwright.machines.chunk_work import ChunkWork
from callwright.machines.executors import make_executor
from callwright.plugins import Registry, load_plugins
from callwright.testing.expectations import expect, expect_members, expect_name, never_raises, shown
from callwright.testing.pickling import refuses
from callwright.testing.sample import SHOP
from callwright.testing.services.registries import registry_in_use
from callwright.testing.synthesis import shop
from callwright.training.synthesis.synthesizer import Materials, Synthesizer
from callwright.training.synthesis.units import Accepted, Made, Rejected, Unit
from callwright.training.teaching.teacher import Teacher
from callwright.walk.task_rows.rows import TaskReader
from callwright.walk.task_rows.stated import make

#: Units that are made.
_LIMIT: Final = 12
_SEED: Final = 5
#: Seconds for a process that makes them once more.
_PATIENCE: Final = 300.0


def check_synthesizer(synthesizer: Synthesizer) -> None:
    """It has the members of :class:`callwright.training.Synthesizer` and a name."""
    expect_members(synthesizer, Synthesizer)
    expect_name(synthesizer)


def check_plan(
    synthesizer: Synthesizer, environment: Environment | None = None, teacher: Teacher | None = None
) -> None:
    """It plans units of their own ids, counted from 0, and the same ones when it is asked again."""
    materials = _materials(synthesizer, environment, teacher)
    units = _plan(synthesizer, materials)
    expect(len(units) > 0, f"nothing is planned in the environment {materials.environment.name!r}; name another one")
    seen: set[str] = set()
    for place, unit in enumerate(units):
        expect(isinstance(unit, Unit), f"the plan holds {shown(unit)}, not a Unit")
        expect(unit.index == place, f"unit {unit.id!r} has the index {unit.index}, and its place is {place}")
        expect(unit.id not in seen, f"two units have the id {unit.id!r}")
        seen.add(unit.id)
        again = Unit.from_json(json.loads(json.dumps(unit.to_json())))
        expect(again == unit, f"unit {unit.id!r} is another one after it was written down")
    other = _plan(synthesizer, materials)
    expect(units == other, "planned again, the units are others: what is drawn is drawn from the seed alone")


def check_made_again(
    synthesizer: Synthesizer, environment: Environment | None = None, teacher: Teacher | None = None
) -> None:
    """A unit gives the same bytes each time, whatever was made before it."""
    materials = _materials(synthesizer, environment, teacher)
    units = _plan(synthesizer, materials)[:_LIMIT]
    first = _all(synthesizer, units, materials)
    _expect_same(units, first, _all(synthesizer, units, materials), "a second time")
    backwards = _all(synthesizer, units[::-1], materials)[::-1]
    _expect_same(units, first, backwards, "in another order")


def check_made_elsewhere(
    synthesizer: Synthesizer, environment: Environment | None = None, teacher: Teacher | None = None
) -> None:
    """A unit gives the same bytes in another process."""
    if refuses(synthesizer):
        return
    materials = _materials(synthesizer, environment, teacher)
    units = _plan(synthesizer, materials)[:_LIMIT]
    here = _all(synthesizer, units, materials)
    work = ChunkWork(partial(_given, (synthesizer, materials)), _made_there, time_limit=_PATIENCE)
    try:
        with make_executor("process") as executor:
            (there,) = executor.map(work, [units])
    except CallwrightError as error:
        raise AssertionError(f"another process cannot make units: {error}") from error
    _expect_same(units, here, there, "in another process")


def check_results(
    synthesizer: Synthesizer, environment: Environment | None = None, teacher: Teacher | None = None
) -> None:
    """A unit becomes a task, or is rejected by a stage and for a reason."""
    materials = _materials(synthesizer, environment, teacher)
    reader = TaskReader(lambda one: make(one, materials.registry))
    ids: set[str] = set()
    for unit in _plan(synthesizer, materials)[:_LIMIT]:
        made = _make(synthesizer, unit, materials)
        expect(
            isinstance(made, Accepted | Rejected),
            f"unit {unit.id!r} became {shown(made)}; it must be an Accepted or a Rejected",
        )
        if isinstance(made, Accepted):
            try:
                task = reader.task(json.loads(json.dumps(made.row)))
            except DataError as error:
                raise AssertionError(f"the row of unit {unit.id!r} is no task: {error}") from error
            expect(task.id not in ids, f"two units made a task of the id {task.id!r}")
            ids.add(task.id)


def check_compare(
    synthesizer: Synthesizer, environment: Environment | None = None, teacher: Teacher | None = None
) -> None:
    """It compares all tasks at once, says of each whether it stays, and the same each time."""
    materials = _materials(synthesizer, environment, teacher)
    made = []
    for unit in _plan(synthesizer, materials)[:_LIMIT]:
        found = _make(synthesizer, unit, materials)
        if isinstance(found, Accepted):
            made.append(Made(unit, found))
    for several in (made, []):
        with never_raises(f"compare() of {len(several)} tasks"):
            verdicts = list(synthesizer.compare(several))
        expect(
            len(verdicts) == len(several) and all(one is None or isinstance(one, Rejected) for one in verdicts),
            f"{len(several)} tasks compared gave {shown(verdicts)}; it must be None or a Rejected for each",
        )
        expect(list(synthesizer.compare(several)) == verdicts, "compared again, the same tasks have other verdicts")


def _materials(synthesizer: Synthesizer, environment: Environment | None, teacher: Teacher | None) -> Materials:
    if environment is None and isinstance(synthesizer, TriedIn):
        environment = registry_in_use().create("environment", synthesizer.tried_in)
    if environment is not None:
        return Materials(environment, _SEED, _LIMIT, teacher, registry_in_use())
    registry = _with_shop()
    return Materials(registry.create("environment", SHOP.name), _SEED, _LIMIT, teacher, registry)


@functools.cache
def _with_shop() -> Registry:
    """Everything that is installed, since tasks may have users and tools of other plugins, and the sample shop."""
    return load_plugins(extra={"sample-shop": shop})


def _plan(synthesizer: Synthesizer, materials: Materials) -> list[Unit]:
    with never_raises("plan()"):
        return list(synthesizer.plan(materials))


def _make(synthesizer: Synthesizer, unit: Unit, materials: Materials) -> Any:
    try:
        return synthesizer.make(unit, materials)
    except CallwrightError as error:
        raise AssertionError(f"make() of unit {unit.id!r} raised {type(error).__name__}: {error}") from error
    except Exception as error:
        raise AssertionError(
            f"make() of unit {unit.id!r} raised {type(error).__name__}: {error}; say it with a Rejected"
        ) from error


def _all(synthesizer: Synthesizer, units: Sequence[Unit], materials: Materials) -> list[str]:
    made = [_make(synthesizer, unit, materials) for unit in units]
    return [
        json.dumps([type(one).__name__, one.to_json()], ensure_ascii=False)
        if isinstance(one, Accepted | Rejected)
        else shown(one)
        for one in made
    ]


def _given(both: tuple[Synthesizer, Materials]) -> tuple[Synthesizer, Materials]:
    return both


def _made_there(both: tuple[Synthesizer, Materials], units: Sequence[Unit]) -> list[str]:
    return _all(both[0], units, both[1])


def _expect_same(units: Sequence[Unit], first: Sequence[str], other: Sequence[str], when: str) -> None:
    for unit, one, two in zip(units, first, other, strict=True):
        expect(
            one == two,
            f"unit {unit.id!r} made {when} is {two:.200}, and was {one:.200}: a unit hangs on nothing but itself and "
            "the materials",
        )


SYNTHESIZER_CHECKS: Final = (
    check_synthesizer,
    check_plan,
    check_made_again,
    check_made_elsewhere,
    check_results,
    check_compare,
)
