"""Goals over several environments: their states part by part, and goals whose tables are named ``email.messages``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import evolve

from callwright.capability import has
from callwright.environments.capabilities import HasTables
from callwright.environments.composed.parts import Part
from callwright.environments.goals.comparing import AS_IT_WAS, Comparison, Difference, compare, joined, placed
from callwright.environments.goals.goal import Changed, Goal, Holds, check_paths
from callwright.environments.goals.states import PARTS, UNTOUCHED
from callwright.environments.protocol import ChecksGoals, TellsGoalState
from callwright.environments.sessions import open_session
from callwright.errors import DataError, UnknownName

Assertion = TypeVar("Assertion", Holds, Changed)


def states_of(parts: Sequence[Part], opened: Callable[[Part], Any]) -> dict[str, Any]:
    """The end state of each part that is not as it was at first.

    A part that tells no goal state is known by its digest. One whose state is not of rows is always there.
    """
    found: dict[str, Any] = {}
    for part in parts:
        if part.session is None and _is_of_tables(part):
            continue
        session = opened(part)
        if has(session, TellsGoalState):
            state = session.goal_state()
            if state != UNTOUCHED:
                found[part.name] = state
        elif part.measured():
            found[part.name] = {"digest": part.measured()}
    return {"form": PARTS, "parts": found}


def check_parts(stated: Mapping[str, Any], parts: Sequence[Part], opened: Callable[[Part], Any]) -> Comparison:
    """Hold each part against what a goal says of it.

    Raises :class:`callwright.errors.DataError` for a goal that cannot be read, or names what no part has.
    """
    goal = Goal.from_json(stated)
    if goal.state is not None:
        return compare(None, goal.state, states_of(parts, opened))
    names = [part.name for part in parts]
    of_each: dict[str, Goal] = {name: Goal(nothing_else=goal.nothing_else) for name in names}
    for held in goal.holds:
        name, own = _own(held, names)
        of_each[name] = evolve(of_each[name], holds=(*of_each[name].holds, own))
    for change in goal.changed:
        name, own_change = _own(change, names)
        of_each[name] = evolve(of_each[name], changed=(*of_each[name].changed, own_change))
    return joined([placed(part.name, _check(part, of_each[part.name], opened)) for part in parts])


def _own(assertion: Assertion, names: Sequence[str]) -> tuple[str, Assertion]:
    """The part of which something is asserted, and what, in its own names."""
    called = assertion.table or assertion.path
    name, dot, inner = called.partition(".")
    if not dot or not inner:
        raise DataError(
            f"the goal names {called!r}; in several environments each table and path begins with its part, such as "
            f"{f'{names[0]}.{called}'!r}"
        )
    if name not in names:
        raise DataError(str(UnknownName("part in the goal", name, names)))
    return name, evolve(assertion, table=inner) if assertion.table else evolve(assertion, path=inner)


def _check(part: Part, goal: Goal, opened: Callable[[Part], Any]) -> Comparison:
    named = bool(goal.holds or goal.changed)
    if part.session is None and not named and _is_of_tables(part):
        return Comparison()
    session = opened(part)
    if has(session, ChecksGoals):
        found: Comparison = session.check_goal(goal.to_json())
        return found
    if has(session, TellsGoalState):
        fresh = open_session(part.environment, *part.opens)
        try:
            return check_paths(goal, fresh.goal_state(), session.goal_state())  # type: ignore[attr-defined]
        finally:
            fresh.close()
    if named:
        raise DataError(
            f"the goal speaks of {part.name!r}, whose sessions have neither check_goal() nor goal_state(): only the "
            "digest of their state is known"
        )
    if goal.nothing_else and part.measured():
        return Comparison(0, 1, (Difference("", AS_IT_WAS, "another digest"),))
    return Comparison()


def _is_of_tables(part: Part) -> bool:
    """Whether its state is of rows: then nothing of it has changed while it is not open."""
    return has(part.environment, HasTables)
