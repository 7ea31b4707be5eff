"""What a worker of a synthesis is told, what it makes of that, and what it does with units."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Final

from attrs import evolve, field, frozen

from callwright.environments.protocol import Environment
from callwright.errors import (
    CallwrightError,
    ComponentError,
    InfrastructureFailure,
    RecipeError,
    UsageError,
)
from callwright.plugins import PluginSource, Registry
from callwright.recipe_file import Choice
from callwright.recipe_parts import Together, create_part
from callwright.training.reporter import SILENT, Reporter
from callwright.training.synthesis.recipe import LoadedSynthesis, load_synthesis
from callwright.training.synthesis.synthesizer import Materials, Synthesizer
from callwright.training.synthesis.units import Accepted, Rejected, Unit
from callwright.training.teaching.cache import cached
from callwright.training.teaching.metered import MeteredTeacher
from callwright.training.teaching.teacher import Teacher
from callwright.walk.task_rows.rows import TaskReader
from callwright.walk.task_rows.stated import Stated, make, stated

#: A unit, with the number of its environment.
Job = tuple[int, Unit]
#: A finished unit as it is written down.
Row = dict[str, Any]
#: The option of a teacher that bounds what it spends.
MOST: Final = "max_cost"
#: The stage of what no synthesizer said: machinery failed, or workers were lost.
MACHINERY: Final = "machinery"
#: After how many new objects garbage is looked for, and how often among older ones, while units are planned and made.
_SELDOM: Final = (10_000, 20, 20)


@frozen
class SynthesisRequest:
    """All that a worker must know."""

    plugins: PluginSource
    data: Mapping[str, Any]
    #: Where a teacher's replies are kept, if they are; with ``replay`` nobody else is asked.
    replies: Path | None = None
    replay: bool = False
    most_cost: float | None = None

    def open(self, registry: Registry | None = None, loaded: LoadedSynthesis | None = None) -> Opened:
        """The components; ``loaded`` is the recipe as it was read, which knows the lines of its file."""
        return open_synthesis(
            load_synthesis(self.data) if loaded is None else loaded,
            registry or self.plugins.load(),
            replies=self.replies,
            replay=self.replay,
            most_cost=self.most_cost,
        )


@frozen(eq=False)
class Opened:
    """What a worker has."""

    loaded: LoadedSynthesis
    registry: Registry
    synthesizer: Synthesizer
    environments: tuple[Environment, ...]
    #: How each is stated in rows.
    stated: tuple[Stated, ...]
    teacher: Teacher | None
    #: Further ones that rows state: a task among tools of other environments has a composed one.
    others: dict[Stated, Environment] = field(factory=dict, repr=False)
    #: By number of the environment: what reads rows again, which keeps the tools that it has met.
    readers: dict[int, TaskReader] = field(factory=dict, repr=False)

    def materials(self, number: int) -> Materials:
        """What tasks of an environment are made of."""
        table = self.loaded.table
        share, more = divmod(table.count, len(self.environments))
        return Materials(
            environment=self.environments[number],
            seed=table.seed,
            count=share + (number < more),
            teacher=self.teacher,
            registry=self.registry,
        )


def open_synthesis(
    loaded: LoadedSynthesis,
    registry: Registry,
    *,
    replies: Path | None = None,
    replay: bool = False,
    most_cost: float | None = None,
) -> Opened:
    """Make the components of a recipe. Raises :class:`callwright.errors.RecipeError`, a line for each mistake."""
    together = Together()
    table = loaded.table
    synthesizer: Synthesizer | None = together.made(
        lambda: create_part(loaded, registry, "synthesizer", "synthesis.synthesizer", table.synthesizer)
    )
    environments: list[Environment] = []
    for place, choice in enumerate(table.environments):
        key = f"synthesis.environments.{place}"
        if choice in table.environments[:place]:
            together.mistakes.append(loaded.error(f"the environment {choice.name!r} stands there twice", key))
        make_one = partial(create_part, loaded, registry, "environment", key, choice)
        found: Environment | None = together.made(make_one)
        if found is not None:
            environments.append(found)
    teacher: Teacher | None = together.made(lambda: _teacher(loaded, registry, most_cost))
    together.check()
    assert synthesizer is not None
    try:
        named = tuple(stated(environment, registry) for environment in environments)
    except UsageError as error:
        raise loaded.error(str(error), "synthesis.environments") from error
    if teacher is not None and replies is not None:
        teacher = cached(teacher, replies, replay=replay)
    return Opened(loaded, registry, synthesizer, tuple(environments), named, teacher)


def _teacher(loaded: LoadedSynthesis, registry: Registry, most: float | None) -> Teacher | None:
    choice = loaded.table.teacher
    if choice is None:
        return None
    if most is not None:
        choice = Choice.model_validate({"name": choice.name, **choice.options, MOST: most})
    try:
        made: Teacher = create_part(loaded, registry, "teacher", "synthesis.teacher", choice)
    except RecipeError as error:
        if most is not None and repr(MOST) in str(error):
            raise RecipeError(f"{error} (--max-cost bounds a teacher that asks a server)") from error
        raise
    return made


# Units ----------------------------------------------------------------------------------------------------------------


def plan_units(opened: Opened, number: int, reporter: Reporter = SILENT) -> list[Unit]:
    """The units of an environment; ``reporter`` hears how far their plan is.

    Raises :class:`callwright.errors.ComponentError` for a synthesizer that raises or plans anything else than it may.
    """
    where = f"the synthesizer {opened.synthesizer.name!r}, planning {opened.environments[number].name!r}"
    try:
        with seldom_collected():
            units = list(opened.synthesizer.plan(evolve(opened.materials(number), reporter=reporter)))
    except CallwrightError:
        raise
    except Exception as error:
        raise ComponentError(f"{where}, raised {type(error).__name__}: {error}") from error
    seen: set[str] = set()
    for place, unit in enumerate(units):
        if not isinstance(unit, Unit) or unit.index != place or unit.id in seen:
            raise ComponentError(f"{where}: units have ids of their own and are counted from 0; not {unit!r:.80}")
        seen.add(unit.id)
    return units


_guard: Final = Lock()
#: What was set before by the first of those who have garbage looked for seldom, one for each of them.
_before: Final[list[tuple[int, int, int]]] = []


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Worlds and plans stay, and hold many objects: to look through them for garbage was a tenth of the time."""
    with _guard:
        _before.append(_before[0] if _before else gc.get_threshold())
        gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        with _guard:
            before = _before.pop()
            if not _before:
                gc.set_threshold(*before)


def make_units(opened: Opened, jobs: Sequence[Job]) -> list[Row]:
    """What came of units, as rows."""
    with seldom_collected():
        return [make_unit(opened, number, unit) for number, unit in jobs]


def make_unit(opened: Opened, number: int, unit: Unit) -> Row:
    """What came of a unit.

    Raises :class:`callwright.errors.ComponentError` for a synthesizer that raises or gives anything else than it may.
    """
    materials, name = opened.materials(number), opened.synthesizer.name
    metered = None if materials.teacher is None else MeteredTeacher(materials.teacher)
    try:
        made = opened.synthesizer.make(unit, evolve(materials, teacher=metered))
    except InfrastructureFailure as error:
        made = Rejected(MACHINERY, "machinery failed", {"said": str(error)})
    except ComponentError as error:
        raise ComponentError(f"the synthesizer {name!r}, unit {unit.id!r}: {error}") from error
    except CallwrightError:
        raise
    except Exception as error:
        raise ComponentError(
            f"the synthesizer {name!r} raised {type(error).__name__} at unit {unit.id!r}: {error}"
        ) from error
    if not isinstance(made, Accepted | Rejected):
        raise ComponentError(f"the synthesizer {name!r} made {made!r:.80} of unit {unit.id!r}: neither task nor reason")
    if isinstance(made, Accepted):
        _check(opened, number, unit, made)
    return unit_row(number, unit, made, {} if metered is None else metered.usage)


def unit_row(number: int, unit: Unit, made: Accepted | Rejected, usage: Mapping[str, float] | None = None) -> Row:
    """A finished unit as it is written down."""
    return {
        "environment": number,
        "unit": unit.id,
        "index": unit.index,
        ("accepted" if isinstance(made, Accepted) else "rejected"): made.to_json(),
        **({"usage": dict(usage)} if usage else {}),
    }


def _check(opened: Opened, number: int, unit: Unit, made: Accepted) -> None:
    """A row that is no task is a bug of whoever wrote it, and is better said now than when somebody trains on it."""

    def known(one: Stated) -> Environment:
        if one == opened.stated[number]:
            return opened.environments[number]
        if one not in opened.others:
            opened.others[one] = make(one, opened.registry, trust=True)  # who wrote it is code, which runs already
        return opened.others[one]

    try:
        opened.readers.setdefault(number, TaskReader(known)).task(made.row)
    except UsageError as error:
        raise ComponentError(
            f"the synthesizer {opened.synthesizer.name!r} made a row of unit {unit.id!r} that is no task: {error}"
        ) from error


def halves(jobs: Sequence[Job]) -> Sequence[Sequence[Job]]:
    """Jobs in two parts, or as they are if it is one."""
    middle = len(jobs) // 2
    return (jobs[:middle], jobs[middle:]) if middle else (jobs,)


def joined(parts: Sequence[list[Row]]) -> list[Row]:
    """What came of the parts, as what came of the whole."""
    return [row for part in parts for row in part]


def lost_unit(jobs: Sequence[Job], how: str) -> list[Row]:
    """A unit that cost several workers."""
    ((number, unit),) = jobs
    return [unit_row(number, unit, Rejected(MACHINERY, "several workers were lost to it", {"said": how}))]
