"""Calls as BFCL writes them, Python expressions, read without executing anything.

The official checker puts the name of an instance before every method in the text of a call and hands the text to
``eval``. Here the text is read as a syntax tree, and what it says is sent as JSON
(:mod:`.backend.official_classes`, where the wire form is described), so that no text of a model is ever executed.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any, Final

#: What a call is sent as.
Wire = list[Any] | dict[str, Any]

#: A word before a bracket, as the official checker finds functions: in literals, too.
_WORD_BEFORE_BRACKET: Final = re.compile(r"\b([a-zA-Z_]\w*)\s*(?=\()")
#: Stands for what the official checker puts before a method: the name of the model's instance, which is never that of
#: the gold side, so that a literal in which a method stands before a bracket cannot equal the gold one.
_INSTANCE: Final = "model_eval_instance"
_SIGNS: Final[Mapping[type[ast.unaryop], str]] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"}
_OPERATORS: Final[Mapping[type[ast.operator], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
#: Where Python may warn: odd escapes in literals, and numbers that run into words.
_WARNED_OF: Final = re.compile(r"\\|[0-9_.][A-Za-z]")
#: Characters of a text that is kept with what was read of it.
_SHORT: Final = 1000
#: Levels of nesting that are read.
_DEEPEST: Final = 100
#: Whole numbers beyond this are sent in hexadecimal digits.
_LARGEST: Final = 10**4000
_PLAIN: Final = (type(None), bool, str, float)


def parsed_expression(text: str) -> ast.expr:
    """The syntax tree of an expression. Raises :class:`ValueError` with Python's words for a text that is none."""
    try:
        if not _WARNED_OF.search(text):
            return _tree(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _tree(text)
    except (SyntaxError, ValueError) as error:
        raise ValueError(str(error)) from error
    except (MemoryError, RecursionError) as error:
        raise ValueError("too many nested parentheses") from error


def _tree(text: str) -> ast.expr:
    tree = compile(text, "<string>", "eval", ast.PyCF_ONLY_AST)  # a tree, and no code
    assert isinstance(tree, ast.Expression)
    return tree.body


def call_of(text: str, methods: Collection[str]) -> Wire:
    """A call that the official decoder wrote, such as ``sort(file_name='a.txt')``. Total: it never raises.

    ``methods`` are the public methods of the entry's classes.
    """

    def prefixed(match: re.Match[str]) -> str:
        return f"{_INSTANCE}.{match[1]}" if match[1] in methods else match[1]

    try:
        tree = parsed_expression(_WORD_BEFORE_BRACKET.sub(prefixed, text).lstrip(" \t"))
        return _plain_call(tree) or {"tree": _expression(tree, 0)}
    except ValueError as error:
        return {"error": str(error)}


@lru_cache(maxsize=2**14)
def _sent_short(text: str, methods: frozenset[str]) -> str:
    return json.dumps(call_of(text, methods))


def sent(text: str, methods: frozenset[str]) -> str:
    """:func:`call_of` as JSON. Samples of a model and the gold calls have many in common, which are read once."""
    return _sent_short(text, methods) if len(text) < _SHORT else json.dumps(call_of(text, methods))


def sent_with(name: str, arguments: Mapping[str, Any], methods: frozenset[str]) -> str:
    """:func:`call_with` as JSON."""
    return json.dumps(call_with(name, arguments, methods))


def call_with(name: str, arguments: Mapping[str, Any], methods: Collection[str]) -> Wire:
    """A call of a program, whose arguments are values of JSON, as the official decoder and checker take it."""
    try:
        if not _changes_as_text(arguments):
            return [name, [], dict(arguments)]
        written = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    except (ValueError, RecursionError):  # a number of thousands of digits
        return {"error": "the arguments cannot be written"}
    return call_of(f"{name}({written})", methods)


def _changes_as_text(value: Any) -> bool:
    """Whether a value is another one once it was written, changed by the official checker and read again."""
    if isinstance(value, str):
        return "(" in value
    if isinstance(value, float):
        return not math.isfinite(value)
    if type(value) is int:
        return not -_LARGEST < value < _LARGEST
    if isinstance(value, Mapping):
        return any(_changes_as_text(one) for pair in value.items() for one in pair)
    return isinstance(value, list | tuple) and any(map(_changes_as_text, value))


# Expressions ----------------------------------------------------------------------------------------------------------


def _plain_call(tree: ast.expr) -> Wire | None:
    """``[name, arguments, named]``, if all of them are JSON as they stand: nearly every call is."""
    if type(tree) is not ast.Call:
        return None
    function = tree.func
    if type(function) is not ast.Attribute or type(function.value) is not ast.Name or function.value.id != _INSTANCE:
        return None
    try:
        given = [_plain(one, 0) for one in tree.args]
        named = {one.arg: _plain(one.value, 0) for one in tree.keywords}
    except _NotPlainError:
        return None
    return None if None in named or len(named) < len(tree.keywords) else [function.attr, given, named]


class _NotPlainError(Exception):
    """A value that JSON does not know."""


def _plain(tree: ast.expr, depth: int) -> Any:
    kind = type(tree)
    if kind is ast.Constant:
        value = tree.value  # type: ignore[attr-defined]
        if type(value) in _PLAIN or (type(value) is int and -_LARGEST < value < _LARGEST):
            return value
    elif kind is ast.List and depth < _DEEPEST:
        return [_plain(one, depth + 1) for one in tree.elts]  # type: ignore[attr-defined]
    elif kind is ast.Dict and depth < _DEEPEST:
        keys = tree.keys  # type: ignore[attr-defined]
        if all(type(key) is ast.Constant and type(key.value) is str for key in keys):
            values = [_plain(one, depth + 1) for one in tree.values]  # type: ignore[attr-defined]
            return dict(zip([key.value for key in keys], values, strict=True))
    elif kind is ast.UnaryOp and depth < _DEEPEST and type(tree.op) is ast.USub:  # type: ignore[attr-defined]
        value = _plain(tree.operand, depth + 1)  # type: ignore[attr-defined]
        if type(value) in (int, float):
            return -value
    raise _NotPlainError


def _expression(tree: ast.expr, depth: int) -> Any:
    """An expression in its wire form. Raises :class:`ValueError` for one that is nested too deeply."""
    if depth > _DEEPEST:
        raise ValueError("the expression is nested too deeply")
    read = _READERS.get(type(tree))
    if read is None:
        return ["error", f"{type(tree).__name__} is not evaluated here"]
    return read(tree, depth + 1)


def _constant(tree: Any, depth: int) -> Any:
    value = tree.value
    if type(value) is int and not -_LARGEST < value < _LARGEST:
        return ["int", hex(value)]
    if type(value) is bytes:
        return ["bytes", value.hex()]
    if type(value) is complex:
        return ["complex", value.real, value.imag]
    return ["ellipsis"] if value is Ellipsis else value


def _items(kind: str) -> Callable[[Any, int], Any]:
    return lambda tree, depth: [kind, [_expression(one, depth) for one in tree.elts]]


def _dict(tree: Any, depth: int) -> Any:
    if any(key is None for key in tree.keys):
        return ["error", "** is not evaluated here"]
    pairs = zip(tree.keys, tree.values, strict=True)
    return ["dict", [[_expression(key, depth), _expression(value, depth)] for key, value in pairs]]


def _call(tree: Any, depth: int) -> Any:
    function = tree.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == _INSTANCE:
        kind, name = "call", function.attr
    elif isinstance(function, ast.Name):
        kind, name = "builtin", function.id  # Python reads other letters as those of a method; eval knows none then
    else:
        return ["error", f"a call of {type(function).__name__} is not evaluated here"]
    names = [one.arg for one in tree.keywords]
    if None in names:
        return ["error", "** is not evaluated here"]
    for at, key in enumerate(names):
        if key in names[:at]:  # which Python finds before it evaluates anything
            raise ValueError(f"keyword argument repeated: {key} (<string>, line {tree.keywords[at].lineno})")
    given = [_expression(one, depth) for one in tree.args]
    return [kind, name, given, [[one.arg, _expression(one.value, depth)] for one in tree.keywords]]


def _sign(tree: Any, depth: int) -> Any:
    return ["sign", _SIGNS[type(tree.op)], _expression(tree.operand, depth)]


def _binary(tree: Any, depth: int) -> Any:
    sign = _OPERATORS.get(type(tree.op))
    if sign is None:
        return ["error", f"{type(tree.op).__name__} is not evaluated here"]
    return ["binary", sign, _expression(tree.left, depth), _expression(tree.right, depth)]


_READERS: Final[Mapping[type[ast.expr], Callable[[Any, int], Any]]] = {
    ast.Constant: _constant,
    ast.Name: lambda tree, depth: ["name", tree.id],
    ast.List: _items("list"),
    ast.Tuple: _items("tuple"),
    ast.Set: _items("set"),
    ast.Dict: _dict,
    ast.Call: _call,
    ast.UnaryOp: _sign,
    ast.BinOp: _binary,
}
