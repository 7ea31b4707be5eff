"""The specifications of the tools: derived from their types once, shipped as JSON, read without pydantic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

from attrs import evolve

from callwright.tools.spec import ToolSpec
from callwright.tools.validation import TABLE
from callwright_plugins.depthbench.toolkit import MARGINS

FILE: Final = "tools.json"


@cache
def specifications(*, margins: bool = True) -> Mapping[str, ToolSpec]:
    """The 163 specifications by name, as shipped; without ``margins`` no result has the columns that filters add."""
    if not margins:
        tools = {name: evolve(spec, result=_without_margins(spec.result)) for name, spec in specifications().items()}
        return MappingProxyType(tools)
    text = resources.files("callwright_plugins.depthbench").joinpath("data", FILE).read_text(encoding="utf-8")
    return MappingProxyType({name: ToolSpec(name=name, **entry) for name, entry in json.loads(text).items()})


def _without_margins(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_margins(inner) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {key: _without_margins(value) for key, value in schema.items() if key != "properties"}
    if "properties" not in schema:
        return kept
    columns = {key: _without_margins(value) for key, value in schema["properties"].items() if key not in MARGINS}
    return {key: columns if key == "properties" else kept[key] for key in schema}


def derive() -> dict[str, dict[str, Any]]:
    """The specifications as the types of the functions state them. Imports pydantic; for building and tests only."""
    from callwright.tools.spec import tool
    from callwright_plugins.depthbench.tools import TOOLS

    derived = {}
    for name, described in TOOLS.items():
        spec = tool(described.function).spec
        derived[name] = {
            "description": spec.description,
            "parameters": _tidy(spec.parameters),
            "result": _tidy(spec.result),
            "result_field": described.result_field,
            "read_only": described.read_only,
        }
    return derived


def _tidy(schema: Any) -> Any:
    """Without what tells a model nothing: columns of tables that it cannot write, descriptions of record types."""
    if isinstance(schema, list):
        return [_tidy(inner) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema
    if schema.get(TABLE):
        items = {"items": {"type": "object"}} if schema["type"] == "array" else {}
        return {
            "type": schema["type"],
            **items,
            TABLE: True,
            "description": "An earlier result, passed on by reference",
        }
    record = schema.get("type") == "object" and "properties" in schema
    kept = {key: value for key, value in schema.items() if not (record and key == "description")}
    properties = kept.pop("properties", None)
    tidy = {key: _tidy(value) for key, value in kept.items()}
    return (
        tidy
        if properties is None
        else {**tidy, "properties": {name: _tidy(value) for name, value in properties.items()}}
    )


def text_of(derived: Mapping[str, Any]) -> str:
    """The bytes that are shipped: one tool a line."""
    lines = (f"{json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}" for name, entry in derived.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"
