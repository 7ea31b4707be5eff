"""From elements to calls: the grammar of the form, and a named fault for every way to miss it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from xml.etree.ElementTree import Element

from callwright.language.parser import FailureStage, ParseLimits
from callwright.language.program import NO_CALL, PREFIX, Call, Reference
from callwright.language.shortening import excerpt
from callwright.language.writable import LONGEST_NUMBER
from callwright_plugins.xml_ir.document import WHITE_SPACE
from callwright_plugins.xml_ir.values import ARRAYS, OBJECTS, PLACEHOLDER, SCALARS, STRINGS

_ID_DIGITS: Final = 9
_SPACE: Final = "{http://www.w3.org/XML/1998/namespace}space"
_ATTRIBUTES: Final = {
    "none": frozenset[str](),
    "api": frozenset({"id"}),
    "name": frozenset[str](),
    "param": frozenset({"name", "type", _SPACE}),
    "field": frozenset({"name", "type", _SPACE}),
    "item": frozenset({"type", _SPACE}),
    "response": frozenset({"api_id", "api_name", "field", "type"}),
}


class Fault(Exception):
    """A departure from the grammar, at an element. Never leaves the parser."""

    def __init__(self, element: Element, code: str, message: str, stage: FailureStage = "structure") -> None:
        super().__init__(message)
        self.element, self.code, self.message, self.stage = element, code, message, stage


class Reader:
    """Reads the calls of one document.

    Faults of the grammar are raised; faults that concern only the arguments of a call are kept, the first of them in
    ``unusable``, and reading goes on, because they count only if the grammar is kept everywhere.

    ``tools`` are the names of calls by id, if they are known from an earlier reading: a reference that says another one
    names no call. Without them such references are taken by their id, and ``contradicted`` says that there are some.
    """

    def __init__(self, root: Element, limits: ParseLimits, tools: Mapping[int, str] | None = None) -> None:
        self.root, self.limits = root, limits
        self.unusable: Fault | None = None
        self.contradicted = False
        self._tools = tools or {}
        self._references: list[tuple[int, str]] = []

    def calls(self) -> tuple[Call, ...]:
        """The calls by id. Raises :class:`Fault`."""
        root = self.root
        if len(root) == 1 and root[0].tag == "none":
            self._leaf(root[0], "none")
            _only_elements(root[0])
            _only_elements(root)
            return ()
        if len(root) > self.limits.calls:
            message = f"{len(root)} calls are more than the limit of {self.limits.calls}"
            raise Fault(root[self.limits.calls], "too_many_calls", message, "limit")
        calls: dict[int, Call] = {}
        for element in root:
            if element.tag != "api":
                code = "none_and_calls" if element.tag == "none" else "unexpected_element"
                raise Fault(element, code, f"<{element.tag}> stands where only <api> elements can")
            call = self._call(element)
            if call.id in calls:
                raise Fault(element, "duplicate_id", f"the id {call.id} is used twice")
            calls[call.id] = call
        _only_elements(root)
        if not calls:
            raise Fault(root, "empty_body", "the body is empty; no call is written <none/>")
        self.contradicted = any(number in calls and calls[number].tool != tool for number, tool in self._references)
        return tuple(calls[number] for number in sorted(calls))

    def _call(self, element: Element) -> Call:
        number = _id(element, _attributes(element, "api"), "id")
        _only_elements(element)
        tool = ""
        arguments: dict[str, Any] = {}
        for child in element:
            if child.tag == "param":
                self._member(child, arguments, 2)
            elif child.tag != "name":
                raise Fault(child, "unexpected_element", f"<{child.tag}> cannot stand inside <api>")
            elif tool:
                raise Fault(child, "several_tools", f"call {number} names more than one tool")
            else:
                self._leaf(child, "name")
                tool = (child.text or "").strip(WHITE_SPACE)
        if not tool:
            raise Fault(element, "empty_call", f"call {number} names no tool")
        return Call.read(number, tool, arguments)

    def _member(self, element: Element, table: dict[str, Any], level: int) -> None:
        """Read a ``<param>`` or ``<field>`` into the table of its parent."""
        key = element.get("name")
        if key is None:
            raise Fault(element, "missing_attribute", f"<{element.tag}> needs the attribute name")
        value = self._value(element, level)
        if key in table:
            message = f"duplicate argument key {excerpt(key)}"
            self._keep(Fault(element, "duplicate_key", message, "arguments"))
        table[key] = value

    def _value(self, element: Element, level: int) -> Any:
        """The value of a ``<param>``, ``<field>`` or ``<item>``; a list or object in it would be on this level."""
        attributes = _attributes(element, element.tag)
        declared = attributes.get("type")
        if len(element) and element[0].tag == "response":
            return self._reference(element)
        if declared is None:
            raise Fault(element, "missing_type", f"<{element.tag}> needs the attribute type")
        if declared in STRINGS:
            self._leaf(element, element.tag)
            text = element.text or ""
            return text if attributes.get(_SPACE) == "preserve" else text.strip(WHITE_SPACE)
        if declared in ARRAYS or declared in OBJECTS:
            if level > self.limits.nesting:
                message = f"values are nested deeper than {self.limits.nesting}"
                raise Fault(element, "too_deep", message, "limit")
            _only_elements(element)
            return self._list(element, level) if declared in ARRAYS else self._object(element, level)
        if declared == PLACEHOLDER:
            raise Fault(element, "missing_response", 'type="placeholder" needs a <response> element inside')
        self._leaf(element, element.tag)
        convert = SCALARS.get(declared)
        if convert is None:
            message = f"{excerpt(declared)} is not a type of this form"
            self._keep(Fault(element, "unknown_type", message, "arguments"))
            return None
        text = (element.text or "").strip(WHITE_SPACE)
        try:
            return convert(text)
        except OverflowError:
            message = f"a number has more than {LONGEST_NUMBER} digits"
            raise Fault(element, "number_too_long", message, "limit") from None
        except (ValueError, KeyError):
            message = f"{excerpt(text)} cannot be read as {declared}"
            self._keep(Fault(element, "invalid_value", message, "arguments"))
            return None

    def _list(self, element: Element, level: int) -> list[Any]:
        for child in element:
            if child.tag != "item":
                raise Fault(child, "unexpected_element", f"<{child.tag}> stands in a list, which holds <item> elements")
        return [self._value(child, level + 1) for child in element]

    def _object(self, element: Element, level: int) -> dict[str, Any]:
        table: dict[str, Any] = {}
        for child in element:
            if child.tag != "field":
                message = f"<{child.tag}> stands in an object, which holds <field> elements"
                raise Fault(child, "unexpected_element", message)
            self._member(child, table, level + 1)
        return table

    def _reference(self, element: Element) -> Reference:
        """The ``<response/>`` that is the only content of ``element``; the type around it says nothing more.

        One whose id, name or field leads nowhere is a misspelt reference, not a misspelt element.
        """
        if len(element) > 1:
            raise Fault(element[1], "unexpected_element", f"<{element[1].tag}> stands beside a <response>")
        _only_elements(element)
        response = element[0]
        attributes = _attributes(response, "response")
        self._leaf(response, "response")
        if (response.text or "").strip(WHITE_SPACE):
            raise Fault(response, "unexpected_text", "<response> holds text; it is an empty element")
        number = attributes.get("api_id")
        if number is None:
            raise Fault(response, "missing_attribute", "<response> needs the attribute api_id")
        tool = attributes.get("api_name")
        if tool is None:
            raise Fault(response, "missing_attribute", "<response> needs the attribute api_name")
        if attributes.get("type", PLACEHOLDER) != PLACEHOLDER:
            message = f'<response> has type="placeholder", not {excerpt(attributes["type"])}'
            self._keep(Fault(response, "invalid_reference", message, "arguments"))
        field = attributes.get("field", "")
        joint = "" if not field or field.startswith("[") else "."
        written = f"{number}{joint}{field}"
        reference = Reference.parse(PREFIX + written)
        assert reference is not None
        if reference.call == NO_CALL:
            return reference
        if not number.isdigit() or self._tools.get(reference.call, tool) != tool:
            return Reference(NO_CALL, (f"{written} of {tool}",))
        self._references.append((reference.call, tool))
        return reference

    def _leaf(self, element: Element, tag: str) -> None:
        if len(element):
            raise Fault(element[0], "unexpected_element", f"<{element[0].tag}> cannot stand inside <{tag}>")
        _attributes(element, tag)

    def _keep(self, fault: Fault) -> None:
        if self.unusable is None:
            self.unusable = fault


def _attributes(element: Element, tag: str) -> dict[str, str]:
    attributes = element.attrib
    if not attributes.keys() <= _ATTRIBUTES[tag]:
        name = next(name for name in attributes if name not in _ATTRIBUTES[tag])
        raise Fault(element, "unexpected_attribute", f"<{tag}> has no attribute {excerpt(name)}")
    return attributes


def _id(element: Element, attributes: dict[str, str], name: str) -> int:
    text = attributes.get(name)
    if text is None:
        raise Fault(element, "missing_attribute", f"<{element.tag}> needs the attribute {name}")
    if not (text.isascii() and text.isdigit() and len(text) <= _ID_DIGITS):
        raise Fault(element, "invalid_id", f"{name} is {excerpt(text)}, not a number of at most {_ID_DIGITS} digits")
    return int(text)


def _only_elements(element: Element) -> None:
    """White space may stand around child elements, and nothing else."""
    if element.text and element.text.strip(WHITE_SPACE):
        message = f"there is text inside <{element.tag}>: {excerpt(element.text.strip())}"
        raise Fault(element, "unexpected_text", message)
    for child in element:
        if child.tail and child.tail.strip(WHITE_SPACE):
            message = f"there is text after <{child.tag}>: {excerpt(child.tail.strip())}"
            raise Fault(child, "unexpected_text", message)
