"""ToolRL's reading of completions and its soft match, as released (``benchmarks/API-Bank``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def released_calls(text: str) -> list[Any]:
    """What the released code reads as calls: each line after the last ``<tool_call>`` that is JSON, whatever it is.

    Without the tag it is the lines of the whole text. Lines that are no JSON are passed over. Total on ``str``, linear.
    """
    block = text.strip().rpartition("<tool_call>")[2].partition("</tool_call>")[0].strip()
    found = []
    for line in block.split("\n"):
        if line.strip():
            try:
                found.append(json.loads(line))
            except (ValueError, RecursionError):
                continue
    return found


def soft_match(calls: Iterable[Any], answer: Mapping[str, Any]) -> str:
    """Empty if any call is the answer, else the class of the error. ``answer`` has ``name`` and ``parameters``.

    A call without ``name`` or ``parameters`` is taken for the parameters of the right tool. What is no call (a number,
    ``null``) ends the search, and later calls are not looked at: so it is in the released code. Values are compared as
    Python does it, so that 1 equals 1.0.
    """
    error = "no_call"
    for call in calls:
        try:
            made = json.loads(call) if type(call) is str else call
            if "name" not in made or "parameters" not in made:
                name, parameters = answer["name"], made
            else:
                name, parameters = made["name"], made["parameters"]
            if name == answer["name"] and parameters == answer["parameters"]:
                return ""
        except (ValueError, TypeError, RecursionError):
            return "no_object"
        if error != "wrong_parameters":
            error = "wrong_parameters" if name == answer["name"] else "wrong_tool"
    return error
