"""From calls to elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from callwright.errors import CannotExpress
from callwright.language.program import Program, Reference
from callwright.language.shortening import excerpt
from callwright_plugins.xml_ir.document import NOT_XML, WHITE_SPACE

_TEXT: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_ATTRIBUTE: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)


def write_body(program: Program) -> str:
    """The body for a program; raises :class:`callwright.errors.CannotExpress`."""
    tools = {call.id: call.tool for call in program.calls}
    lines = []
    for call in program.calls:
        if not call.tool or call.tool != call.tool.strip(WHITE_SPACE):
            raise CannotExpress(f"the tool name {excerpt(call.tool)} is empty or has white space around it")
        arguments = "".join(_member("param", name, value, tools) for name, value in call.arguments.items())
        lines.append(f'<api id="{call.id}"><name>{_text(call.tool)}</name>{arguments}</api>')
    return "\n".join(lines) or "<none/>"


def _member(tag: str, name: str, value: Any, tools: Mapping[int, str]) -> str:
    return _element(tag, f' name="{_attribute(name)}"', value, tools)


def _element(tag: str, attributes: str, value: Any, tools: Mapping[int, str]) -> str:
    if isinstance(value, Reference):
        return f"<{tag}{attributes}>{_response(value, tools)}</{tag}>"
    if value is None:
        kind, content = "null", ""
    elif isinstance(value, bool):
        kind, content = "boolean", "true" if value else "false"
    elif isinstance(value, int):
        kind, content = "integer", int.__repr__(value)
    elif isinstance(value, float):
        kind, content = "float", float.__repr__(value)
    elif isinstance(value, str):
        kind, content = "string", _text(value)
        if value != value.strip(WHITE_SPACE):
            attributes += ' xml:space="preserve"'
    elif isinstance(value, Mapping):
        kind, content = "object", "".join(_member("field", key, inner, tools) for key, inner in value.items())
    else:
        kind, content = "array", "".join(_element("item", "", inner, tools) for inner in value)
    return f'<{tag}{attributes} type="{kind}">{content}</{tag}>'


def _response(reference: Reference, tools: Mapping[int, str]) -> str:
    tool = tools.get(reference.call)
    if tool is None:
        raise CannotExpress(f"{reference} is of no call of the program, and this form names the tool of a reference")
    path = str(Reference(0, reference.path)).removeprefix("API_RESPONSE_0").removeprefix(".")
    field = f' field="{_attribute(path)}"' if path else ""
    return f'<response api_id="{reference.call}" api_name="{_attribute(tool)}"{field} type="placeholder"/>'


def _text(text: str) -> str:
    _check(text)
    return text.translate(_TEXT)


def _attribute(text: str) -> str:
    _check(text)
    return text.translate(_ATTRIBUTE)


def _check(text: str) -> None:
    wrong = NOT_XML.search(text)
    if wrong is not None:
        raise CannotExpress(f"XML has no way to write the character {wrong[0]!r} in {excerpt(text)}")
