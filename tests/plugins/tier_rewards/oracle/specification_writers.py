"""Abstract programs written out in json, xml and direct, damage included, by plain string formatting."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from specification_oracle import AbstractCall, Facts, Ref, in_order

KINDS = {
    bool: "boolean",
    int: "integer",
    float: "float",
    str: "string",
    type(None): "null",
    list: "array",
    dict: "object",
}


def write(facts: Facts, form: str) -> str:
    """The completion; more than one block repeats the first, and stray text is a word after the last."""
    body = {"json": json_body, "xml": xml_body, "direct": direct_body}[form](facts)
    if not facts.tree:
        body = body[:-1] + "<"
    block = f'<tool_call return="{facts.returns}">\n{body}\n</tool_call>'
    head = "<think>\nso\n</think>\n" if facts.envelope else ""
    return head + "\n".join([block] * facts.blocks) + (" Done." if facts.stray else "")


def reference(value: Ref) -> str:
    return f"API_RESPONSE_{value.call}" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in value.path)


def json_body(facts: Facts) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, Ref):
            return reference(value)
        if isinstance(value, Mapping):
            return {name: plain(inner) for name, inner in value.items()}
        return [plain(item) for item in value] if isinstance(value, list) else value

    members = []
    for at, call in enumerate(facts.calls):
        key = str(call.id).zfill(1 + at) if [other.id for other in facts.calls].count(call.id) > 1 else str(call.id)
        arguments = [] if call.arguments is None else plain(call.arguments)
        members.append(f"{json.dumps(key)}: {json.dumps({call.tool: arguments})}")
    return "{" + ", ".join(members) + "}"


def direct_body(facts: Facts) -> str:
    """Ids are positions here: only for programs that are numbered so."""

    def literal(value: Any) -> str:
        if isinstance(value, Ref):
            return reference(value)
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{name!r}: {literal(inner)}" for name, inner in value.items()) + "}"
        return "[" + ", ".join(map(literal, value)) + "]" if isinstance(value, list) else repr(value)

    def written(call: AbstractCall) -> str:
        if call.arguments is None:
            return f"{call.tool}(255)"
        return f"{call.tool}({', '.join(f'{name}={literal(value)}' for name, value in call.arguments.items())})"

    assert [call.id for call in facts.calls] == list(range(len(facts.calls)))
    return "[" + ", ".join(map(written, facts.calls)) + "]"


def xml_body(facts: Facts) -> str:
    tools = {call.id: call.tool for call in facts.calls}

    def element(tag: str, name: str | None, value: Any) -> str:
        named = "" if name is None else f" name={quoteattr(name)}"
        if isinstance(value, Ref):
            says = value.says or tools.get(value.call, "Nobody")
            field = reference(Ref(0, value.path)).removeprefix("API_RESPONSE_0").removeprefix(".")
            attributes = f'api_id="{value.call}" api_name="{says}"' + (f" field={quoteattr(field)}" if field else "")
            return f'<{tag}{named}><response {attributes} type="placeholder"/></{tag}>'
        if isinstance(value, Mapping):
            inner = "".join(element("field", key, item) for key, item in value.items())
        elif isinstance(value, list):
            inner = "".join(element("item", None, item) for item in value)
        else:
            inner = "" if value is None else escape(str(value).lower() if isinstance(value, bool) else str(value))
        return f'<{tag}{named} type="{KINDS[type(value)]}">{inner}</{tag}>'

    def written(call: AbstractCall) -> str:
        if call.arguments is None:
            inner = '<param name="code" type="integer">x</param>'
        else:
            inner = "".join(element("param", name, value) for name, value in call.arguments.items())
        return f'<api id="{call.id}"><name>{escape(call.tool)}</name>{inner}</api>'

    return "\n".join(map(written, in_order(facts) if facts.tree else facts.calls)) or "<none/>"
