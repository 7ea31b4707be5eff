"""A slow reader of xml (A.1), over a tree of minidom."""

from __future__ import annotations

import math
import re
from typing import Any
from xml.dom import Node, minidom
from xml.parsers.expat import ExpatError

from specification_oracle import AbstractCall, Ref
from specification_text import DIGITS, NESTING, NUMBER, Malformed, Unusable, number_of, reference

_KNOWN = {
    "none": set(),
    "api": {"id"},
    "name": set(),
    "param": {"name", "type", "xml:space"},
    "field": {"name", "type", "xml:space"},
    "item": {"type", "xml:space"},
    "response": {"api_id", "api_name", "field", "type"},
}


def read_xml(body: str) -> list[AbstractCall]:
    """A.1. Comments and CDATA are XML and read (ours); declarations and processing instructions are refused (ours)."""
    if any("\ud800" <= character <= "\udfff" for character in body):
        raise Malformed
    try:
        root = minidom.parseString(f"<body>{body}</body>".encode()).documentElement
    except (ExpatError, ValueError):
        raise Malformed from None
    for node in _every(root):
        if node.nodeType == Node.PROCESSING_INSTRUCTION_NODE:
            raise Malformed
    children = _elements(root)
    if [child.tagName for child in children] == ["none"]:
        if _elements(children[0]):
            raise Malformed
        _attributes(children[0])
        return []
    if not children:
        raise Malformed
    return [_api(child) for child in children]


def _every(node: Any) -> list[Any]:
    return [node, *(inner for child in node.childNodes for inner in _every(child))]


def _elements(node: Any) -> list[Any]:
    """The child elements; between them stands white space or nothing."""
    found = []
    for child in node.childNodes:
        if child.nodeType == Node.ELEMENT_NODE:
            found.append(child)
        elif child.nodeType != Node.COMMENT_NODE and child.data.strip(" \t\r\n"):
            raise Malformed
    return found


def _text(node: Any) -> str:
    """The text of an element without child elements."""
    if any(child.nodeType == Node.ELEMENT_NODE for child in node.childNodes):
        raise Malformed
    return "".join(child.data for child in node.childNodes if child.nodeType != Node.COMMENT_NODE)


def _attributes(node: Any) -> dict[str, str]:
    found = dict(node.attributes.items())
    if not found.keys() <= _KNOWN.get(node.tagName, set()):
        raise Malformed
    return found


def _api(node: Any) -> AbstractCall:
    if node.tagName != "api" or "id" not in _attributes(node):
        raise Malformed
    names, members = [], []
    for child in _elements(node):
        if child.tagName == "name":
            _attributes(child)
            names.append(_text(child).strip(" \t\r\n"))
        elif child.tagName == "param":
            members.append(child)
        else:
            raise Malformed
    if len(names) != 1 or not names[0]:  # C, rule 7
        raise Malformed
    return AbstractCall(number_of(node.getAttribute("id")), names[0], _members(members, 2))


def _members(nodes: list[Any], level: int) -> dict[str, Any] | None:
    """The arguments; ``None`` if one of their values cannot be what it says, or a name stands twice."""
    table: dict[str, Any] = {}
    usable = True
    for node in nodes:
        if "name" not in _attributes(node):
            raise Malformed
        try:
            value = _xml_value(node, level)
        except Unusable:
            value, usable = None, False
        usable = usable and node.getAttribute("name") not in table
        table[node.getAttribute("name")] = value
    return table if usable else None


def _xml_value(node: Any, level: int) -> Any:
    attributes = _attributes(node)
    inner = [child for child in node.childNodes if child.nodeType == Node.ELEMENT_NODE]
    if inner and inner[0].tagName == "response":  # A.1 prints it inside a <param> without a type
        if len(_elements(node)) != 1:
            raise Malformed
        return _response(inner[0])
    kind = attributes.get("type")
    if kind is None:  # A.1 prints a type around every value that is written out
        raise Malformed
    if kind in ("string", "str"):
        text = _text(node)
        return text if attributes.get("xml:space") == "preserve" else text.strip(" \t\r\n")
    if kind in ("array", "list"):
        return _array(node, level)
    if kind in ("object", "dict"):
        fields = _elements(node)
        if level > NESTING or any(child.tagName != "field" for child in fields):
            raise Malformed
        table = _members(fields, level + 1)
        if table is None:
            raise Unusable
        return table
    if kind == "placeholder":
        raise Malformed
    return _scalar(kind, _text(node).strip(" \t\r\n"))


def _array(node: Any, level: int) -> list[Any]:
    items = _elements(node)
    if level > NESTING or any(child.tagName != "item" for child in items):
        raise Malformed
    values, usable = [], True
    for item in items:
        try:
            values.append(_xml_value(item, level + 1))
        except Unusable:
            usable = False
    if not usable:
        raise Unusable
    return values


def _scalar(kind: str, text: str) -> Any:
    """A closed list of types (ours): nothing is looked up or evaluated."""
    if kind in ("integer", "int", "float", "number"):
        if NUMBER.fullmatch(text) is None:
            raise Unusable
        if len(text.lstrip("+-")) > DIGITS:
            raise Malformed
        whole = re.fullmatch(r"[+-]?[0-9]+", text) is not None
        value = int(text) if whole and kind != "float" else float(text)
        if not math.isfinite(value):
            raise Unusable
        # Ours: a number is a number. "255.0" for an integer is 255.0, as in the other forms; the schema judges it.
        return value
    if kind in ("boolean", "bool") and text.lower() in ("true", "false", "1", "0"):
        return text.lower() in ("true", "1")
    if kind == "null" and text in ("", "null"):
        return None
    raise Unusable


def _response(node: Any) -> Ref:
    attributes = _attributes(node)
    if _text(node).strip(" \t\r\n") or "api_id" not in attributes or "api_name" not in attributes:
        raise Malformed
    # Ours: it is misspelt where the same text is misspelt in the other forms, and then names no call.
    field = attributes.get("field", "")
    found = reference(f"API_RESPONSE_{attributes['api_id']}{'' if not field or field.startswith('[') else '.'}{field}")
    if attributes.get("type", "placeholder") != "placeholder":
        raise Unusable
    assert found is not None
    return Ref(found.call, found.path, says=attributes["api_name"])
