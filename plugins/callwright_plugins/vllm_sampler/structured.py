"""Structured outputs: the form of a completion's calls as vLLM's structural tags, made of the offered tools.

What is outside of a call stays free text. Inside, only offered tools can be named and only arguments written that fit
their schemas, or references to earlier results where the form has them. A completion that is cut can still end in the
middle, so parsers stay as careful as ever.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from callwright.errors import UsageError
from callwright.tools.reading import SENSITIVE, TABLE
from callwright.tools.spec import ToolSpec

_REFERENCE: Final = {"type": "string", "pattern": r"^API_RESPONSE_[0-9]{1,3}.*$"}
#: In forms without references a later turn names a result by its handle.
_HANDLE: Final = {"type": "string", "pattern": r"^result_[0-9]{1,3}.*$"}
#: Keywords that are about models and people, not about values.
_SAID: Final = frozenset({"description", "title", "default", "examples", SENSITIVE, TABLE, "$schema"})


def structural_tags(form: str, tools: Mapping[str, ToolSpec]) -> dict[str, Any]:
    """The structural tags of vLLM (``{"type": "structural_tag", "structures": …, "triggers": …}``) for a form.

    Raises :class:`callwright.UsageError` for forms other than ``json`` and ``hermes``.
    """
    offered = [spec for spec in tools.values() if not spec.hidden]
    if form == "hermes":
        structures = [
            {
                "begin": f'<tool_call>\n{{"name": {json.dumps(spec.name)}, "arguments": ',
                "schema": values_only(spec.parameters, _HANDLE),
                "end": "}\n</tool_call>",
            }
            for spec in offered
        ]
        return {"type": "structural_tag", "structures": structures, "triggers": ["<tool_call>"]}
    if form == "json":
        schema = calls_schema(offered)
        structures = [
            {"begin": f'<tool_call return="{returns}">', "schema": schema, "end": "</tool_call>"}
            for returns in ("one", "all")
        ]
        return {"type": "structural_tag", "structures": structures, "triggers": ["<tool_call"]}
    raise UsageError(f"structured outputs are there for the forms 'json' and 'hermes', not for {form!r}")


def calls_schema(tools: list[ToolSpec]) -> dict[str, Any]:
    """The body of the form ``json``: ``{"0": {tool: arguments}, …}``."""
    calls = [
        {
            "type": "object",
            "properties": {spec.name: or_reference(values_only(spec.parameters))},
            "required": [spec.name],
            "additionalProperties": False,
        }
        for spec in tools
    ]
    return {"type": "object", "additionalProperties": {"anyOf": calls} if calls else False}


def values_only(schema: Any, table: Mapping[str, str] = _REFERENCE) -> Any:
    """A schema without what is not about values. Objects that list properties take no others."""
    if isinstance(schema, list):
        return [values_only(inner, table) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema
    if schema.get(TABLE):
        return dict(table)
    kept = {key: inner for key, inner in schema.items() if key not in _SAID}
    made = {key: inner if key == "required" else values_only(inner, table) for key, inner in kept.items()}
    if "properties" in schema:
        made["properties"] = {name: values_only(inner, table) for name, inner in schema["properties"].items()}
        made.setdefault("additionalProperties", False)
    if made.get("type") == "object" and "properties" not in made and "additionalProperties" not in made:
        made["additionalProperties"] = False
    return made


def or_reference(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters each of which may be a reference to an earlier result instead."""
    properties = {
        name: inner if inner == _REFERENCE else {"anyOf": [inner, _REFERENCE]}
        for name, inner in parameters.get("properties", {}).items()
    }
    return {**parameters, "type": "object", "properties": properties}
