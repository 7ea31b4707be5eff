"""The keys of a file of tasks and their JSON Schemas, also for those who write such files with other programs."""

from __future__ import annotations

from typing import Any, Final

#: The key by which a head is known; its value is the version of the format.
MARK: Final = "callwright_tasks"
VERSION: Final = 1
#: The keys of a row. Those after ``environment`` are left out where a task has the default.
KEYS: Final = (
    "id", "split", "depth", "query", "environment", "scenario", "seed", "chain", "structure", "returns", "clock",
    "hazards", "user", "opening", "tools", "shown", "appear", "tells_costs", "program", "answer", "instances", "facts",
)  # fmt: skip
_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
_OBJECT = {"type": "object"}
_NAMES = {"type": "array", "items": _TEXT}
_VALUES = {"type": "array"}
_ENVIRONMENT = {
    "anyOf": [_TEXT, {"type": "object", "properties": {"name": _TEXT, "options": _OBJECT}, "required": ["name"]}],
    "description": "the registered name, with options where it is made with any; email+calendar is both as one",
}


def row_schema() -> dict[str, Any]:
    """Of a row. Keys that are left out are as a task has them by default."""
    call = {
        "type": "object",
        "properties": {"id": _NUMBER, "tool": _TEXT, "arguments": _OBJECT},
        "required": ["id", "tool", "arguments"],
        "additionalProperties": False,
    }
    properties: dict[str, Any] = {
        **dict.fromkeys(("id", "split", "query", "scenario", "structure"), _TEXT),
        **dict.fromkeys(("depth", "seed", "chain"), _NUMBER),
        "environment": _ENVIRONMENT,
        "returns": {"enum": ["one", "all"]},
        "clock": {**_OBJECT, "description": "how time moves in its session"},
        "hazards": {**_OBJECT, "description": "faults and limits that its calls meet"},
        "user": {**_OBJECT, "description": "who talks with the agent: 'name' and 'options'"},
        "tools": {
            "type": "array",
            "items": {"anyOf": [_TEXT, {"type": "object", "required": ["name"]}]},
            "description": "what is offered, in order: names of the environment's tools, or tools written out",
        },
        "shown": {**_NAMES, "description": "the tools that prompts list, where they are fewer"},
        "opening": {**_OBJECT, "description": "what happened before: 'actions' and 'history'"},
        "appear": {
            "type": "object",
            "additionalProperties": _NUMBER,
            "description": "tools that are there only from a turn of the user on; the query is turn 0",
        },
        "tells_costs": {"type": "boolean"},
        "program": {
            "type": "object",
            "properties": {"calls": {"type": "array", "items": call}, "returns": {"enum": ["one", "all"]}},
            "required": ["calls"],
            "description": "the reference program; references are texts such as API_RESPONSE_0.items[0]",
        },
        "answer": {
            "anyOf": [
                {"type": "array"},
                {
                    "type": "object",
                    "properties": {"values": _VALUES, "others": {"type": "array", "items": _VALUES}, "open": _NAMES},
                    "required": ["values"],
                    "additionalProperties": False,
                },
            ],
            "description": "the expected values; empty where nothing is to be called. As an object with 'others' that "
            "are equally right, and 'open', the members whose objects may hold more",
        },
        "instances": {"type": "array", "items": _OBJECT},
        "facts": {**_OBJECT, "description": "whatever else is known of it, such as its 'goal'"},
    }
    return {
        "type": "object",
        "properties": {key: properties[key] for key in KEYS},
        "required": ["id", "split", "depth", "query", "environment", "tools", "answer"],
        "additionalProperties": False,
    }


def head_schema() -> dict[str, Any]:
    """Of the first line."""
    environment = {
        "type": "object",
        "properties": {
            "name": _TEXT,
            "options": _OBJECT,
            "version": _TEXT,
            "schema": {**_TEXT, "description": "a digest of all tools"},
            "tools": {"type": "object", "additionalProperties": _TEXT, "description": "a digest of each tool"},
        },
        "required": ["name", "version", "schema", "tools"],
    }
    return {
        "type": "object",
        "properties": {
            MARK: {"const": VERSION},
            "environments": {"type": "array", "items": environment},
            "limits": {**_OBJECT, "description": "how long episodes may become"},
            "about": _OBJECT,
        },
        "required": [MARK, "environments"],
    }
