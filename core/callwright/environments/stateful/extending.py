"""Extending a world that is somebody else's: tables, what fills them, tools, scenarios, rules and events of one's own.

Nothing of the other world is copied or changed. Its rows are drawn as they are there, for the same scenario and seed:
what holds of the one holds of the other, and without the extension it is as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from callwright.environments.briefing.policy import Policy, Rule
from callwright.errors import NameClash, UsageError

if TYPE_CHECKING:
    from callwright.environments.living.events import EventKind
    from callwright.environments.stateful.environment import Scenario, StatefulEnvironment
    from callwright.tools.spec import FunctionTool

#: Makes rows of one's own from those that are there: ``fill(rows, random, scale)``.
Fill = Callable[[Sequence[Any], Random, float], Iterable[Any]]


@frozen
class Filled:
    """A scenario's rows, then those that an extension adds to them, from a generator of their own."""

    build: Callable[[Random, float], Iterable[Any]]
    fill: Fill

    def __call__(self, random: Random, scale: float) -> Iterator[Any]:
        rows = list(self.build(random, scale))
        yield from rows
        yield from self.fill(rows, Random(random.getrandbits(64)), scale)


def extended(
    world: StatefulEnvironment,
    name: str,
    *,
    rows: Sequence[type[Any]] = (),
    tools: Sequence[FunctionTool] = (),
    fill: Fill | None = None,
    scenarios: Mapping[str, Scenario] | None = None,
    role: str = "",
    rules: Sequence[Rule] = (),
    events: Sequence[EventKind] = (),
    user_tools: Sequence[FunctionTool] = (),
) -> StatefulEnvironment:
    """Another environment, ``name``, that has all of ``world`` and this beside it.

    ``fill`` adds rows of the new tables to every scenario of the other world; ``scenarios`` are further ones, with
    rows of their own. ``role`` takes the place of the other policy's, ``rules`` stand after its rules.

    Raises :class:`callwright.errors.NameClash` for a tool, table, scenario or kind of event that is there already, and
    :class:`callwright.UsageError` for rules without any role, and for an extension under the world's own name.
    """
    from callwright.environments.stateful.environment import StatefulEnvironment

    if name == world.name:
        raise UsageError(f"an extension of {name!r} needs a name of its own, such as {name + '-extended'!r}")
    taken = [one for one in scenarios or () if one in world.scenarios]
    if taken:
        raise NameClash(f"environment {world.name!r} has a scenario named {taken[0]!r} already")
    theirs = {
        one: scenario if fill is None else evolve(scenario, build=Filled(scenario.build, fill))
        for one, scenario in world.scenarios.items()
    }
    policy = world.policy
    if role or rules:
        said = role or (policy.role if policy is not None else "")
        if not said:
            raise UsageError(f"environment {world.name!r} has no policy: say the role, too, beside the rules")
        policy = Policy(said, (*(policy.rules if policy is not None else ()), *rules))
    made = StatefulEnvironment(
        name,
        rows=(*world.kinds, *rows),
        tools=(*world.functions, *tools),
        scenarios={**theirs, **(scenarios or {})},
        scale=world.scale,
        policy=policy,
        person=world.person,
        knowledge=world.knowledge,
        events=(*world.events, *events),
        user_tools=(*world.functions_of_users, *user_tools),
        people=world.people,
        charges=world.charges,
        bank=world.bank,
    )
    made.drawn_as = world.drawn_as
    return made
