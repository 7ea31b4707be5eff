"""BFCL's decoders of what models write in a step: texts of Python calls, and function calls as servers return them.

They give the calls as texts, as the official ones (``decode_execute``), quirks included: arguments without a name are
lost, a sign of any kind negates, names are texts. The one difference is on purpose: the official decoder hands
arithmetic to ``eval``; here only numbers are reckoned with, and anything else cannot be decoded.
"""

from __future__ import annotations

import ast
import json
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from callwright_plugins.bfcl.multi_turn.calls import parsed_expression

_OPERATORS: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_LARGEST: Final = 10**300
_LARGEST_POWER: Final = 1000
_LONGEST_TEXT: Final = 10_000


class NotDecoded(Exception):
    """A step that the official decoder does not read as calls: it counts for nothing."""


def decoded_text(text: str, version: str) -> list[str]:
    """The calls of a text such as ``[sort(file_name='a.txt'), ls(a=true)]``, by the decoder of a version.

    v3 takes all brackets and quotes off both ends, v4 only quotes. Raises :class:`NotDecoded`.
    """
    text = text.strip("`\n ")
    text = text if text.startswith("[") else "[" + text
    text = text if text.endswith("]") else text + "]"
    text = text.strip("[]'") if version == "v3" else text.strip().strip("'")
    try:
        tree = parsed_expression(text)
        if isinstance(tree, ast.Call):
            found = [_call(tree)]
        elif isinstance(tree, ast.List | ast.Tuple | ast.Set) and all(isinstance(one, ast.Call) for one in tree.elts):
            found = [_call(one) for one in tree.elts if isinstance(one, ast.Call)]
        else:
            raise NotDecoded
        return [
            f"{name}({', '.join(f'{key}={_written(value)}' for key, value in arguments.items())})"
            for one in found
            for name, arguments in one.items()
        ]
    except (ValueError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError, MemoryError) as error:
        raise NotDecoded(str(error)) from error


def decoded_calls(step: Any) -> list[str]:
    """The calls of a step that a server returned: ``[{name: arguments}]``, arguments as an object or a text of JSON.

    Raises :class:`NotDecoded`.
    """
    listed = [step] if isinstance(step, Mapping) else step
    calls = []
    try:
        for one in listed:
            for name, arguments in one.items():
                stated = json.loads(arguments) if isinstance(arguments, str) else arguments
                calls.append(f"{name}({','.join(f'{key}={value!r}' for key, value in stated.items())})")
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise NotDecoded(str(error)) from error
    return calls


def call_parts(tree: ast.expr) -> dict[Any, Any]:
    """The name and arguments of a call. Raises what the official decoder fails with, :class:`NotDecoded` among it."""
    if not isinstance(tree, ast.Call):
        raise NotDecoded("no call")
    return _call(tree)


# Texts ----------------------------------------------------------------------------------------------------------------


def _call(tree: ast.Call) -> dict[Any, Any]:
    parts = []
    function: ast.expr = tree.func
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        parts.append(function.id)
    return {".".join(reversed(parts)): {one.arg: _value(one.value) for one in tree.keywords}}


def _value(tree: Any) -> Any:
    """A literal, or what stands for another expression. Raises what the official decoder fails with."""
    if isinstance(tree, ast.Constant):
        return "..." if tree.value is Ellipsis else tree.value
    if isinstance(tree, ast.UnaryOp):
        return -tree.operand.value  # type: ignore[attr-defined]  # whatever the sign is
    if isinstance(tree, ast.List):
        return [_value(one) for one in tree.elts]
    if isinstance(tree, ast.Tuple):
        return tuple(_value(one) for one in tree.elts)
    if isinstance(tree, ast.Dict):
        return {_value(key): _value(value) for key, value in zip(tree.keys, tree.values, strict=True)}
    if isinstance(tree, ast.BinOp):
        return _reckoned(tree)
    if isinstance(tree, ast.Name):
        return tree.id
    if isinstance(tree, ast.Call):
        return _call(tree) if tree.keywords else ast.unparse(tree)
    if isinstance(tree, ast.Subscript):
        return f"{ast.unparse(tree.value)}[{ast.unparse(tree.slice)}]"
    raise NotDecoded(f"{type(tree).__name__} is no argument")


def _reckoned(tree: ast.expr) -> Any:
    """Arithmetic of numbers, and texts that are put together."""
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int | float | complex | str):
        return tree.value
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub | ast.UAdd):
        value = _reckoned(tree.operand)
        return -value if isinstance(tree.op, ast.USub) else +value
    if not isinstance(tree, ast.BinOp) or type(tree.op) not in _OPERATORS:
        raise NotDecoded(f"{type(tree).__name__} is not reckoned with")
    left, right = _reckoned(tree.left), _reckoned(tree.right)
    if isinstance(left, str) or isinstance(right, str):
        return _put_together(tree.op, left, right)
    if any(isinstance(one, int) and abs(one) > _LARGEST for one in (left, right)):
        raise NotDecoded("the numbers are too large")
    if isinstance(tree.op, ast.Pow) and not (abs(left) <= _LARGEST_POWER and abs(right) <= _LARGEST_POWER):
        raise NotDecoded("the power is too large")
    return _OPERATORS[type(tree.op)](left, right)


def _put_together(sign: ast.operator, left: Any, right: Any) -> str:
    """Texts one after another, or one a few times."""
    if isinstance(sign, ast.Add):
        return str(left + right)
    if isinstance(sign, ast.Mult):
        text, times = (left, right) if isinstance(left, str) else (right, left)
        if isinstance(times, int) and len(text) * times <= _LONGEST_TEXT:
            return str(text * times)
    raise NotDecoded("texts are only put together")


def _written(value: Any) -> str:
    """A value in the text of a call. An object whose values are all objects is taken for a call, an empty one fails."""
    if not isinstance(value, dict):
        return repr(value)
    if all(isinstance(one, dict) for one in value.values()):
        name = next(iter(value), None)
        if name is None:
            raise NotDecoded("an empty object is taken for a call")
        return f"{name}({', '.join(f'{key}={_written(one)}' for key, one in value[name].items())})"
    return "{" + ", ".join(f"'{key}': {_written(one)}" for key, one in value.items()) + "}"
