"""A slow reader of the direct form (A.3), over the tree of Python's own ``ast``. Nothing is evaluated."""

from __future__ import annotations

import ast
import io
import keyword
import math
import re
import tokenize
import warnings
from typing import Any

from specification_oracle import AbstractCall
from specification_text import DIGITS, NESTING, NUMBER, Malformed, Unusable, reference, text_value

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
            tree = ast.parse(f"({source}\n)", mode="eval").body
    except (SyntaxError, ValueError, MemoryError, tokenize.TokenError):
        raise Malformed from None
    calls = sum(isinstance(node, ast.Call) for node in ast.walk(tree))
    if sum(token.string == "(" for token in tokens) != 1 + calls:  # ours: a bracket that is no call's is no value
        raise Malformed
    return f"({source}\n)", tree


def _direct_call(source: str, node: ast.expr, number: int) -> AbstractCall:
    if not isinstance(node, ast.Call):
        raise Malformed
    tool = _dotted(source, node.func)
    arguments: dict[str, Any] = {}
    usable = not node.args  # ours: which parameter a value without a name is for, the schema alone would know
    for value in node.args:
        try:
            _direct_value(source, value, 2)
        except Unusable:
            usable = False
    for member in node.keywords:
        if member.arg is None:
            raise Malformed
        name = _segment(source, member).partition("=")[0].strip()
        try:
            value = _direct_value(source, member.value, 2)
        except Unusable:
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
    if re.fullmatch(NUMBER, text):
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
            raise Unusable
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
