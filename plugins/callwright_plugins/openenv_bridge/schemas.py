"""What a served environment says of its actions, observations and state, and of its pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_METADATA: Final[dict[str, Any]] = {"type": "object", "additionalProperties": True}
_STEP: Final[dict[str, Any]] = {
    "done": {"type": "boolean", "default": False},
    "reward": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
    "metadata": _METADATA,
}
#: ``GET /schema``. The action is titled as OpenEnv's own, by which its tools recognise an environment of MCP tools.
#: What a reset observes is no member of it: clients before 0.10 refuse one that they do not know.
SCHEMAS: Final[Mapping[str, Any]] = {
    "action": {
        "title": "CallToolAction",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "metadata": _METADATA,
            "type": {"const": "call_tool", "default": "call_tool", "type": "string"},
            "tool_name": {"type": "string", "description": "The name of a tool that list_tools lists"},
            "arguments": {"type": "object", "additionalProperties": True, "description": "Its arguments, by name"},
        },
        "required": ["tool_name"],
    },
    "observation": {
        "title": "CallToolObservation",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            **_STEP,
            "tool_name": {"type": "string"},
            "result": {"default": None, "description": "What the call returned"},
            "error": {
                "default": None,
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"error_type": {"type": "string"}, "message": {"type": "string"}},
                        "required": ["error_type", "message"],
                    },
                    {"type": "null"},
                ],
            },
        },
        "required": ["tool_name"],
    },
    "state": {
        "title": "State",
        "type": "object",
        "additionalProperties": True,
        "properties": {
            "episode_id": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "step_count": {"type": "integer", "minimum": 0, "default": 0},
            "environment": {"type": "string"},
            "scenario": {"type": "string"},
            "seed": {"type": "integer"},
            "digest": {"type": "string", "description": "A hash of the whole state of the world"},
        },
    },
}
#: The pages, and how each is asked.
PAGES: Final[Mapping[str, str]] = {
    "/health": "get",
    "/metadata": "get",
    "/schema": "get",
    "/state": "get",
    "/reset": "post",
    "/step": "post",
    "/mcp": "post",
}


def openapi(name: str) -> dict[str, Any]:
    """``GET /openapi.json``: the pages of a server, for OpenEnv's validator and for people."""
    answers = {"200": {"description": "JSON"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"{name}, served by Callwright for OpenEnv", "version": "1.0.0"},
        "paths": {path: {method: {"responses": answers}} for path, method in PAGES.items()},
    }
