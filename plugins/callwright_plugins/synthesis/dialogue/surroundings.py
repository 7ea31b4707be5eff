"""Surroundings: what a world shows of what a user asks about, for a teacher who words it (Prove, section 3.2).

The things are those of the plan, so that what a teacher sees is about the chain; and of each only what stands with it
in one object, so that nothing is shown that belongs to something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from callwright.environments.protocol import Environment, OutOfProcess, declares
from callwright_plugins.synthesis.blueprints.binding import leaves_of_values
from callwright_plugins.synthesis.dialogue.shown import looked_at
from callwright_plugins.synthesis.language.plan import Plan
from callwright_plugins.synthesis.language.values.hints import SENSITIVE

#: Things of which something is shown, and members of each.
_THINGS: Final = 6
_MEMBERS: Final = 8
_LONGEST: Final = 80


def surroundings(environment: Environment, scenario: str, seed: int, asked: Plan) -> dict[str, dict[str, Any]]:
    """By each id that a plan names, what the world shows of the thing: scalars that stand in one object with the id.

    Nothing secret (tokens, codes) and no long text. A thing that tools show only when they are asked for it by name is
    not there, and of a server nothing is shown: it may have no session beside the one of the conversation. Raises what
    opening a session of the environment raises.
    """
    if declares(environment, OutOfProcess):
        return {}
    world = looked_at(environment, scenario, seed)
    named = dict.fromkeys(
        value
        for call in asked.calls
        for _, value in leaves_of_values(dict(call.arguments))
        if isinstance(value, str) and value in world.records
    )
    found: dict[str, dict[str, Any]] = {}
    for name in list(named)[:_THINGS]:
        shown = _told(name, max(world.records[name], key=len))
        if shown:
            found[name] = shown
    return found


def _told(itself: str, record: Mapping[str, Any]) -> dict[str, Any]:
    told = {
        str(name): value
        for name, value in record.items()
        if isinstance(value, str | int | float)
        and value not in (itself, "")
        and len(str(value)) <= _LONGEST
        and not SENSITIVE.search(str(name))
    }
    return dict(list(told.items())[:_MEMBERS])
