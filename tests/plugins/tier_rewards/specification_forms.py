"""Slow readers of the forms json, xml and direct for the oracle: from a text to the facts of the specification.

They share nothing with Callwright's parsers: the envelope is found by plain searches, JSON by ``json.loads`` with a
hook that keeps every member, XML by a tree of minidom, and the direct form by Python's own ``ast``. What the paper
leaves open about reading is in ``docs/intermediate-representations.md``; here a comment names each of those choices.
"""

from __future__ import annotations

import ast
import io
import json
import keyword
import math
import re
import tokenize
import warnings
from typing import Any
from xml.dom import Node, minidom
from xml.parsers.expat import ExpatError

from specification_oracle import AbstractCall, Facts, Ref

#: Ours: a text, a program and a number have bounds, so that no text costs without end.
CHARACTERS, CALLS, NESTING, DIGITS = 400_000, 256, 64, 4_300
#: A reference that is spelt so that it names no call.
NO_CALL = Ref(-1)


class Malformed(Exception):
    """The body is no tree of calls."""


class _Unusable(Exception):
    """The tree of calls is well formed, but the arguments of a call cannot be used (C, rule 8)."""


def read(text: str, form: str) -> Facts:
    """The facts of a completion in a form."""
    if form == "toolrl":
        return read_toolrl(text)
    found = envelope(text, needs_return=form != "direct")
    if found is None:
        return Facts(envelope=False)
    body, returns, blocks, stray = found
    try:
        calls = {"json": read_json, "xml": read_xml, "direct": read_direct}[form](body)
    except (Malformed, RecursionError):
        return Facts(tree=False, blocks=blocks, stray=stray)
    if len(calls) > CALLS:
        return Facts(tree=False, blocks=blocks, stray=stray)
    return Facts(tuple(calls), returns, True, blocks, stray, True)


# The envelope --------------------------------------------------------------------------------------------------------

_ATTRIBUTES = r"""(?:\s+[A-Za-z_][\w.:\-]*\s*=\s*(?:"[^"<]*"|'[^'<]*'))*\s*"""
_OPENING = re.compile(rf"<tool_call({_ATTRIBUTES})>")
_THINK = re.compile(rf"<think{_ATTRIBUTES}>")


def envelope(text: str, needs_return: bool) -> tuple[str, str | None, int, bool] | None:
    """(body, return, complete blocks, stray text) or ``None`` (C, "Response Format": <think>, then <tool_call>)."""
    if len(text) > CHARACTERS:
        return None
    think = _THINK.search(text)
    if think is None:
        return None
    # Ours: the thought ends at the first </think> that a tool-call tag follows, so that it may hold anything else.
    at = think.end()
    while True:
        at = text.find("</think>", at)
        if at < 0:
            return None
        after = at + len("</think>")
        opening = _OPENING.match(text, len(text) - len(text[after:].lstrip()))
        if opening is not None:
            break
        at = after
    end = text.find("</tool_call>", opening.end())
    if end < 0:
        return None
    body, trailing = text[opening.end() : end], text[end + len("</tool_call>") :]
    pairs = re.findall(r"""([A-Za-z_][\w.:\-]*)\s*=\s*("[^"<]*"|'[^'<]*')""", opening[1])
    if len({name for name, _ in pairs}) != len(pairs):  # XML: no attribute twice
        return None
    returns = dict(pairs).get("return", '""')[1:-1] if "return" in dict(pairs) else None
    if returns not in ("one", "all") and not (returns is None and not needs_return):  # C, rule 2
        return None
    # Ours: the first block is read, and whoever writes another one, wherever it stands, answers twice.
    return body, returns, complete_blocks(text), bool(text[: think.start()].strip() or trailing.strip())


def complete_blocks(text: str) -> int:
    """How many tags of a block are followed by the one that closes it, from left to right, without overlapping.

    Ours: a tag that is only mentioned begins no block of its own, a completion that is quoted in the thought is one.
    """
    count, at = 0, 0
    while (opening := _OPENING.search(text, at)) is not None:
        end = text.find("</tool_call>", opening.end())
        if end < 0:
            break
        count, at = count + 1, end + len("</tool_call>")
    return count


# References ----------------------------------------------------------------------------------------------------------


def reference(text: str) -> Ref | None:
    """``API_RESPONSE_<id>`` (A.2; C, rule 10), with ``.field`` and ``[index]`` (ours); ``None`` for plain text.

    Ours: what begins with ``API_RESPONSE_`` is meant as a reference; a misspelt one names no call.
    """
    if not text.startswith("API_RESPONSE_"):
        return None
    head = re.match(r"API_RESPONSE_([0-9]{1,9})(?![0-9])", text)
    if head is None:
        return NO_CALL
    path: list[str | int] = []
    rest = text[head.end() :]
    while rest:
        step = re.match(r"\.([^.\[\]]+)|\[([0-9]{1,9})\]", rest, re.DOTALL)
        if step is None:
            return NO_CALL
        path.append(step[1] if step[1] is not None else int(step[2]))
        rest = rest[step.end() :]
    return Ref(int(head[1]), tuple(path))


def text_value(text: str) -> Any:
    """A string as a value: a reference if it is written like one (A.2)."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise Malformed  # ours: half of a character is no text
    return reference(text) or text


def number_of(text: str) -> int:
    """C, rule 4: "a unique numeric string key"; ours: up to nine ASCII digits."""
    if re.fullmatch(r"[0-9]{1,9}", text) is None:
        raise Malformed
    return int(text)


# json (A.2) ----------------------------------------------------------------------------------------------------------


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object, all of them and in order."""


def _refuse(word: str) -> Any:
    raise Malformed  # RFC 8259: NaN and Infinity are no JSON


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or len(text) > DIGITS:  # ours: 1e400 is no number that a tool can take
        raise Malformed
    return value


def _exact(text: str) -> int:
    if len(text.lstrip("-")) > DIGITS:
        raise Malformed
    return int(text)


def _load(text: str) -> Any:
    try:
        return json.loads(
            text.strip(" \t\r\n"),
            object_pairs_hook=_Members,
            parse_constant=_refuse,
            parse_float=_finite,
            parse_int=_exact,
        )
    except ValueError:
        raise Malformed from None


def read_json(body: str) -> list[AbstractCall]:
    """A.2: "an ordered mapping from call identifiers to function invocations"."""
    tree = _load(body)
    if not isinstance(tree, _Members):  # C, rule 6: "the tool call JSON must be a dictionary"
        raise Malformed
    calls = []
    for key, call in tree:
        number = number_of(key)
        if not isinstance(call, _Members) or len(call) != 1:  # C, rule 7: "exactly one API name"
            raise Malformed
        ((tool, arguments),) = call
        text_value(tool)
        calls.append(AbstractCall(number, tool, _table(arguments) if isinstance(arguments, _Members) else _other(arguments)))
    return calls


def _other(value: Any) -> None:
    """Arguments that are no object (C, rule 8); what they hold must still be text, numbers and so on."""
    _json_value(value, 2)


def _table(members: _Members) -> dict[str, Any] | None:
    table = {name: _json_value(value, 2) for name, value in members}
    for name, _ in members:
        text_value(name)
    unique = len(table) == len(members)  # ours: with a name twice nobody knows which value counts
    return table if unique and not any(map(_repeats, members)) else None


def _repeats(member: tuple[str, Any]) -> bool:
    value = member[1]
    if isinstance(value, _Members):
        return len({name for name, _ in value}) != len(value) or any(map(_repeats, value))
    return isinstance(value, list) and any(_repeats(("", item)) for item in value)


def _json_value(value: Any, level: int) -> Any:
    if isinstance(value, str):
        return text_value(value)
    if isinstance(value, list):
        if level > NESTING:
            raise Malformed
        if isinstance(value, _Members):
            for name, _ in value:
                if any("\ud800" <= character <= "\udfff" for character in name):
                    raise Malformed
            return {name: _json_value(inner, level + 1) for name, inner in value}
        return [_json_value(item, level + 1) for item in value]
    return value


# toolrl (ToolRL, figure 4) -------------------------------------------------------------------------------------------


def read_toolrl(text: str) -> Facts:
    """<think>, then <tool_call> with a call on each line, <response>, or both; nothing else (ours, for ``tier``)."""
    match = re.fullmatch(
        r"\s*<think>(.*?)</think>(?=\s*<(?:tool_call|response)>)"
        r"(?:\s*<tool_call>(?P<calls>.*?)</tool_call>)?(?:\s*<response>.*?</response>)?\s*",
        text,
        re.DOTALL,
    )
    if match is None or len(text) > CHARACTERS:
        return Facts(envelope=False)
    written = [line for line in (match["calls"] or "").split("\n") if line.strip()]
    if match["calls"] is not None and not written:
        return Facts(tree=False)
    calls = []
    try:
        for number, line in enumerate(written):
            calls.append(_line(line, number))
    except (Malformed, RecursionError):
        return Facts(tree=False)
    return Facts(tuple(calls), "all" if len(calls) > 1 else "one")  # ours: every call's result goes back


def _line(line: str, number: int) -> AbstractCall:
    tree = _load(line)
    names = [name for name, _ in tree] if isinstance(tree, _Members) else []
    if sorted(names) != ["name", "parameters"]:
        raise Malformed
    members = dict(tree)
    if not isinstance(members["name"], str):
        raise Malformed
    arguments = members["parameters"]
    if not isinstance(arguments, _Members) or _repeats(("", arguments)):
        return AbstractCall(number, members["name"], None)
    return AbstractCall(number, members["name"], {name: _plain(value) for name, value in arguments})


def _plain(value: Any) -> Any:
    """A value of a form without references."""
    if isinstance(value, _Members):
        return {name: _plain(inner) for name, inner in value}
    return [_plain(item) for item in value] if isinstance(value, list) else value


# xml (A.1) -----------------------------------------------------------------------------------------------------------

_KNOWN = {
    "none": set(),
    "api": {"id"},
    "name": set(),
    "param": {"name", "type", "xml:space"},
    "field": {"name", "type", "xml:space"},
    "item": {"type", "xml:space"},
    "response": {"api_id", "api_name", "field", "type"},
}
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


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
        except _Unusable:
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
            raise _Unusable
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
        except _Unusable:
            usable = False
    if not usable:
        raise _Unusable
    return values


def _scalar(kind: str, text: str) -> Any:
    """A closed list of types (ours): nothing is looked up or evaluated."""
    if kind in ("integer", "int", "float", "number"):
        if _NUMBER.fullmatch(text) is None:
            raise _Unusable
        if len(text.lstrip("+-")) > DIGITS:
            raise Malformed
        whole = re.fullmatch(r"[+-]?[0-9]+", text) is not None
        value = int(text) if whole and kind != "float" else float(text)
        if not math.isfinite(value):
            raise _Unusable
        # Ours: a number is a number. "255.0" for an integer is 255.0, as in the other forms; the schema judges it.
        return value
    if kind in ("boolean", "bool") and text.lower() in ("true", "false", "1", "0"):
        return text.lower() in ("true", "1")
    if kind == "null" and text in ("", "null"):
        return None
    raise _Unusable


def _response(node: Any) -> Ref:
    attributes = _attributes(node)
    if _text(node).strip(" \t\r\n") or "api_id" not in attributes or "api_name" not in attributes:
        raise Malformed
    # Ours: it is misspelt where the same text is misspelt in the other forms, and then names no call.
    field = attributes.get("field", "")
    found = reference(f"API_RESPONSE_{attributes['api_id']}{'' if not field or field.startswith('[') else '.'}{field}")
    if attributes.get("type", "placeholder") != "placeholder":
        raise _Unusable
    assert found is not None
    return Ref(found.call, found.path, says=attributes["api_name"])


# direct (A.3) --------------------------------------------------------------------------------------------------------

_WORDS = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}


def read_direct(body: str) -> list[AbstractCall]:
    """A.3: "a comma-separated list within brackets"; "the parser infers execution order from list position"."""
    if any("\ud800" <= character <= "\udfff" for character in body):
        raise Malformed
    source, tree = _python(body)
    if not isinstance(tree, ast.List):
        raise Malformed
    calls = []
    quoted = bool(tree.elts) and isinstance(tree.elts[0], ast.Constant)
    for number, element in enumerate(tree.elts):
        if quoted:  # the released code's list of quoted calls (ours: read too)
            inner, call = _python(_string(source, element))
            calls.append(_direct_call(inner, call, number))
        else:
            calls.append(_direct_call(source, element, number))
    return calls


def _python(text: str) -> tuple[str, ast.expr]:
    """The text as Python's parser reads it, keywords of the language allowed as names of parameters."""
    source = text.strip(" \t\r\n\f")
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(f"({source}\n)").readline))
        if any(token.type == tokenize.COMMENT for token in tokens):
            raise Malformed
        for token, after in zip(reversed(tokens[:-1]), reversed(tokens[1:]), strict=True):
            if token.type == tokenize.NAME and keyword.iskeyword(token.string) and after.string == "=":
                raise Malformed  # no tool of the tests has such a parameter
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return f"({source}\n)", ast.parse(f"({source}\n)", mode="eval").body
    except (SyntaxError, ValueError, MemoryError, tokenize.TokenError):
        raise Malformed from None


def _direct_call(source: str, node: ast.expr, number: int) -> AbstractCall:
    if not isinstance(node, ast.Call):
        raise Malformed
    tool = _dotted(source, node.func)
    arguments: dict[str, Any] = {}
    usable = not node.args  # ours: which parameter a value without a name is for, the schema alone would know
    for value in node.args:
        try:
            _direct_value(source, value, 2)
        except _Unusable:
            usable = False
    for member in node.keywords:
        if member.arg is None:
            raise Malformed
        name = _segment(source, member).partition("=")[0].strip()
        try:
            value = _direct_value(source, member.value, 2)
        except _Unusable:
            value, usable = None, False
        usable = usable and name not in arguments
        arguments[name] = value
    return AbstractCall(number, tool, arguments if usable else None)


def _segment(source: str, node: Any) -> str:
    text = ast.get_source_segment(source, node)
    if text is None:
        raise Malformed
    return text


def _dotted(source: str, node: ast.expr) -> str:
    inner = node
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    text = _segment(source, node)
    if not isinstance(inner, ast.Name) or any(character.isspace() for character in text):
        raise Malformed
    return text


def _string(source: str, node: ast.expr) -> str:
    """A plain string literal in single or double quotes: no prefix, no triple quotes, none beside another."""
    text = _segment(source, node)
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        raise Malformed
    tokens = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.string.strip()]
    if len(tokens) != 1 or text[0] not in "'\"" or text[:3] in ("'''", '"""') or "\\N" in text:
        raise Malformed
    pairs = node.value.encode("utf-16", "surrogatepass")  # two escaped halves are one character, as in JSON
    try:
        return pairs.decode("utf-16")
    except UnicodeDecodeError:
        raise Malformed from None


def _direct_value(source: str, node: ast.expr, level: int) -> Any:
    text = _segment(source, node)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return text_value(_string(source, node))
    if re.fullmatch(_NUMBER, text):
        return _scalar_of_python(text)
    if text in _WORDS and isinstance(node, ast.Constant | ast.Name):
        return _WORDS[text]
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        found = reference(text)  # A.3 prints it bare
        if found is None or not re.fullmatch(r"API_RESPONSE_\w*(?:\.\w+|\[[0-9]+\])*", text):
            raise Malformed
        return found
    if isinstance(node, ast.List | ast.Dict) and level > NESTING:
        raise Malformed
    if isinstance(node, ast.List):
        return [_direct_value(source, item, level + 1) for item in node.elts]
    if isinstance(node, ast.Dict):
        table: dict[str, Any] = {}
        unique = True
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise Malformed
            name = _string(source, key)
            unique = unique and name not in table
            table[name] = _direct_value(source, value, level + 1)
        if not unique:
            raise _Unusable
        return table
    raise Malformed


def _scalar_of_python(text: str) -> int | float:
    digits = text.lstrip("+-")
    if len(digits) > DIGITS:
        raise Malformed
    if digits.isdigit():
        if digits != "0" and digits.startswith("0"):  # Python has no such numbers
            raise Malformed
        return int(text)
    value = float(text)
    if not math.isfinite(value):
        raise Malformed
    return value
