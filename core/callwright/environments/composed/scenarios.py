"""Scenarios of several environments: one name and seed for all of them, or one for each.

    "typical"                         that one in every part
    "email=typical,calendar=sparse"   as it says
    "email=typical@3"                 with a seed of its own
    {"email": ["typical", 3]}         the same as JSON, for names with other characters

Parts that are not named have their first scenario.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from callwright.capability import has
from callwright.environments.capabilities import NamesScenarios, scenarios_of
from callwright.environments.protocol import Environment
from callwright.errors import UnknownName, UsageError


def scenario_of_each(parts: Sequence[Environment], scenario: str, seed: int) -> tuple[tuple[str, int], ...]:
    """Scenario and seed of each part.

    Raises :class:`callwright.errors.UnknownName` for a part or a scenario that does not exist, and
    :class:`callwright.UsageError` for a text that says neither.
    """
    if not isinstance(scenario, str):
        raise UsageError(f"the name of a scenario is a text, not {scenario!r:.80}")
    if scenario.startswith("{"):
        stated, hint = _read(parts, scenario, seed), ""
    elif "=" in scenario:
        stated, hint = _stated(parts, scenario, seed), ""
    else:  # what has no scenarios has no other than its first one
        nameless = [part for part in parts if has(part, NamesScenarios) and part.scenarios == ()]
        stated = {part.name: ("" if part in nameless else scenario, seed) for part in parts}
        hint = f"({','.join(f'{part.name}=NAME' for part in parts)} names one for each part)"
    for part in parts:
        wanted = stated.get(part.name, ("", seed))[0]
        known = scenarios_of(part)
        if wanted and known and wanted not in known:
            raise UnknownName(f"scenario of {part.name!r}", wanted, known, hint=hint)
    return tuple(stated.get(part.name, ("", seed)) for part in parts)


def _stated(parts: Sequence[Environment], scenario: str, seed: int) -> dict[str, tuple[str, int]]:
    names = [part.name for part in parts]
    stated: dict[str, tuple[str, int]] = {}
    for one in scenario.split(","):
        name, sign, wanted = (text.strip() for text in one.partition("="))
        if not sign:
            raise UsageError(f"{one[:80]!r} names no part; write {names[0]}=NAME,{names[-1]}=NAME")
        if name not in names:
            raise UnknownName("part of the environment (in the scenario)", name, names)
        if name in stated:
            raise UsageError(f"the scenario of {name!r} is stated twice")
        wanted, sign, own = wanted.partition("@")
        if sign and not own.strip().removeprefix("-").isdecimal():
            raise UsageError(f"the seed of {name!r} is a whole number, not {own[:40]!r}")
        stated[name] = wanted.strip(), int(own) if sign else seed
    return stated


def _read(parts: Sequence[Environment], scenario: str, seed: int) -> dict[str, tuple[str, int]]:
    try:
        given = json.loads(scenario)
    except ValueError as error:
        raise UsageError(
            f"a scenario that begins with {{ is an object of JSON, not {scenario[:80]!r}: {error}"
        ) from None
    names = [part.name for part in parts]
    stated: dict[str, tuple[str, int]] = {}
    for name, value in given.items():
        if name not in names:
            raise UnknownName("part of the environment (in the scenario)", name, names)
        match value:
            case str():
                stated[name] = value, seed
            case [str(wanted), int(own)]:
                stated[name] = wanted, own
            case _:
                raise UsageError(f"the scenario of {name!r} is a name, or a name and a seed, not {value!r:.80}")
    return stated


def shared_scenarios(parts: Sequence[Environment]) -> tuple[str, ...]:
    """The names of scenarios that every part has which has names for them, in the order of the first such part."""
    named = [tuple(found) for part in parts if (found := scenarios_of(part))]
    return tuple(name for name in named[0] if all(name in others for others in named)) if named else ()
