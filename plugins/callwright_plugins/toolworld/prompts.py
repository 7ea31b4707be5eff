r"""The world for models with a tiny vocabulary: a compact prompt, and the pieces that texts are made of.

A prompt lists signatures and asks: ``GetTime() FindRestaurants(location:str) … Q show restaurants near me open now A``.

The pieces of :func:`vocabulary` are meant for a tokenizer that reads from left to right and always takes the longest
piece that fits (a character that begins no piece is a piece of its own). Prompt and completion are tokenised apart.
Names, values and numbers are pieces by themselves, so that a value copied from the query is the same piece in the
program. Words of queries carry the blank before them. Everything between names and values in the JSON form is one
piece: ``"}}, "2": {"`` closes a call and opens the next.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from callwright.tools.spec import ToolSpec
from callwright.walk.tasks import Task
from callwright_plugins.toolworld.annotator import SYNONYMS
from callwright_plugins.toolworld.families import FAMILIES
from callwright_plugins.toolworld.family import SLOTS
from callwright_plugins.toolworld.tools import FUNCTIONS

_SHORT: Final = {"string": "str", "integer": "int", "number": "num", "boolean": "bool"}
_QUERY: Final = "Q"
_END: Final = " A"
_MOST_CALLS: Final = 6


def signature(spec: ToolSpec) -> str:
    """``(restaurants,rating:num)``: parameter names and, for all but tables and objects, their types."""
    parts = []
    for name, schema in spec.parameters.get("properties", {}).items():
        kind = _SHORT.get(schema.get("type", ""), "")
        parts.append(f"{name}:{kind}" if kind else name)
    return f"({','.join(parts)})"


def prompt_text(task: Task) -> str:
    """The compact prompt of a task."""
    offered = "".join(f"{spec.name}{signature(spec)} " for spec in task.tools.values() if not spec.hidden)
    return f"{offered}{_QUERY} {task.query}{_END}"


@cache
def _pieces() -> tuple[str, ...]:
    signatures = [signature(tool.spec) + " " for tool in FUNCTIONS.values()]
    words = [
        f" {word}"
        for family in FAMILIES
        for template in family.templates
        for word in re.sub(r"{\w+}", " ", template).split()
    ]
    parameters = [name for tool in FUNCTIONS.values() for name in tool.spec.parameters["properties"]]
    values = [str(value) for domain in SLOTS.values() for value in domain]
    pieces = [
        *_clusters(),
        *FUNCTIONS,
        *signatures,
        *parameters,
        *SYNONYMS.values(),
        *values,
        *map(str, range(_MOST_CALLS)),
        _QUERY,
        _END,
        " ",
        *words,
    ]
    return tuple(dict.fromkeys(pieces))


def _clusters() -> list[str]:
    """What stands between names and values in a rendered program, its calls numbered from 0."""
    begin = [f'<think>\n\n</think>\n<tool_call return="{returns}">\n{{' for returns in ("one", "all")]
    end = "}\n</tool_call>"
    closed = ('": {}}', '"}}', "}}")  # after a call without arguments, a text, a number
    return [
        begin[0] + end,
        *(f'{head}"0": {{"' for head in begin),
        *(f'{close}, "{number}": {{"' for close in closed for number in range(1, _MOST_CALLS)),
        *(close + end for close in closed),
        '": {"',
        '": "',
        '": ',
        '": "API_RESPONSE_',
        '", "',
        ', "',
    ]


def vocabulary() -> list[str]:
    """Every piece, without repetition, in a fixed order. Texts of this corpus need no other."""
    return list(_pieces())
