"""Offering tools of several environments together: names qualified only where they collide, and legal everywhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve, frozen

from callwright.environments.protocol import Environment
from callwright.tools.costing import telling_costs
from callwright.tools.descriptions import said_once, without_codes
from callwright.tools.spec import ToolSpec

#: What OpenAI-compatible servers accept as the name of a function.
_LONGEST: Final = 64
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]")


@frozen
class OfferedTool:
    """A tool under the name by which a model is offered it, and where its calls go."""

    spec: ToolSpec
    environment: Environment
    #: The tool's name in its environment.
    original: str


def offer(*environments: Environment, costs: bool = False) -> Mapping[str, OfferedTool]:
    """The visible tools of all environments by name, in their order.

    With ``costs`` descriptions also say what a call costs, how long it takes and that nothing undoes it, where a tool
    declares so.

    A name that two environments share becomes ``email__search_messages`` and ``team_chat__search_messages``; others
    stay as they are. Characters that a function's name may not have become ``_``, and names are cut to 64 characters;
    a number at the end keeps them apart where that makes two alike.
    """
    visible = [
        (environment, spec) for environment in environments for spec in environment.tools.values() if not spec.hidden
    ]
    shared = Counter(spec.name for _, spec in visible)
    offered: dict[str, OfferedTool] = {}
    for environment, spec in visible:
        full = spec.name if shared[spec.name] == 1 else f"{environment.name}__{spec.name}"
        name = legal = _ILLEGAL.sub("_", full)[:_LONGEST]
        number = 1
        while name in offered:
            number += 1
            name = f"{legal[: _LONGEST - len(str(number)) - 1]}_{number}"
        shown = spec if name == spec.name else evolve(spec, name=name)
        offered[name] = OfferedTool(telling_costs(shown) if costs else shown, environment, spec.name)
    return offered


def openai_tools(*environments: Environment, compact: bool = False, costs: bool = False) -> list[dict[str, Any]]:
    """The visible tools as OpenAI function definitions, under the names that :func:`offer` gives them.

    ``compact`` leaves out of the parameters what only checks need to know, of descriptions the codes of failures, which
    outcomes tell, and what the listing has said of a parameter of the same name before: it is then a third smaller. A
    part of a compact listing may lack what another part says. With ``costs`` descriptions say what calls cost.
    """
    listed = [tool.spec.to_openai(compact=compact) for tool in offer(*environments, costs=costs).values()]
    if not compact:
        return listed
    functions = [{**one["function"], "description": without_codes(one["function"]["description"])} for one in listed]
    return [{"type": "function", "function": one} for one in said_once(functions)]
