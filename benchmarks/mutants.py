"""Small changes of a module, each of which a test should notice. Used by mutation.py."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """One change. It is told from others by what it changes into what and where, not by its line, which moves."""

    path: str
    #: The function, as ``Class.method``; empty for the body of the module.
    function: str
    before: str
    after: str
    #: The same change may be possible several times in a function.
    occurrence: int
    first: int
    last: int

    @property
    def key(self) -> str:
        place = f"{self.path}::{self.function or '<module>'}"
        return f"{place}: {self.before} -> {self.after}" + (f" #{self.occurrence + 1}" if self.occurrence else "")


def mutants(root: Path, path: str) -> list[Mutant]:
    """Every mutant of a file, in the order of its text."""
    return [mutant for mutant, _ in _made(_parsed(root, path), path)]


def mutated(root: Path, wanted: Mutant) -> str:
    """The changed source of the module. It loses its comments, which are of no concern to the interpreter.

    Raises :class:`StopIteration` if the file has changed, so that there is no such mutant.
    """
    tree = _parsed(root, wanted.path)
    node, field, index, replacement = next(change for mutant, change in _made(tree, wanted.path) if mutant == wanted)
    _put(node, field, index, replacement)
    return ast.unparse(tree)


def _parsed(root: Path, path: str) -> ast.Module:
    return ast.parse((root / path).read_text(encoding="utf-8"))


def _made(tree: ast.Module, path: str) -> Iterator[tuple[Mutant, tuple[ast.AST, str, int | None, ast.AST]]]:
    counts: Counter[tuple[str, str, str]] = Counter()
    for node, field, index, replacement, function, statement in _changes(tree, "", tree):
        held = getattr(node, field)
        before, after = (_text(node, field, value) for value in (held if index is None else held[index], replacement))
        if before != after:
            key = function, before, after
            last = _header_end(statement)
            mutant = Mutant(path, function, before, after, counts[key], statement.lineno, last)
            counts[key] += 1
            yield mutant, (node, field, index, replacement)


def _put(node: ast.AST, field: str, index: int | None, value: object) -> None:
    if index is None:
        setattr(node, field, value)
    else:
        getattr(node, field)[index] = value


def _text(node: ast.AST, field: str, value: object) -> str:
    """The statement or expression in which a change is seen, in one line."""
    if isinstance(value, ast.operator | ast.cmpop | ast.boolop):
        shown = copy.copy(node)
        setattr(shown, field, [value] if field == "ops" else value)
        return " ".join(ast.unparse(shown).split())
    if isinstance(value, ast.If | ast.While):
        return f"{type(value).__name__.lower()} {ast.unparse(value.test)}"
    assert isinstance(value, ast.AST)
    return " ".join(ast.unparse(value).split())[:160]


def _header_end(statement: ast.stmt) -> int:
    """The last line of a statement without the statements that it holds."""
    body = getattr(statement, "body", None)
    return max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno or statement.lineno


Change = tuple[ast.AST, str, int | None, ast.AST, str, ast.stmt]


def _changes(node: ast.AST, function: str, statement: ast.AST) -> Iterator[Change]:
    for field, held in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params", "bases", "keywords") and not isinstance(
            node, ast.Call
        ):
            continue
        for index, child in enumerate(held) if isinstance(held, list) else ((None, held),):
            if not isinstance(child, ast.AST) or _is_left_alone(child):
                continue
            inside = function
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inside = f"{function}.{child.name}".lstrip(".")
            here = child if isinstance(child, ast.stmt) else statement
            if isinstance(here, ast.stmt):
                for replacement in _instead(child, node):
                    yield node, field, index, replacement, inside, here
                for part, value in _operators(child):
                    at = 0 if part == "ops" else None
                    yield child, part, at, value, inside, here
            yield from _changes(child, inside, here)


def _is_left_alone(node: ast.AST) -> bool:
    """Text for people, imports, what only a type checker reads, and declarations."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.Assert():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__" | "T")]):
            return True
        case ast.Call(func=ast.Name(id="TypeVar" | "cast")):
            return True
    return False


def _operators(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(ops=[operator]):
            yield "ops", COMPARISONS[type(operator)]()
        case ast.BoolOp(op=ast.And()):
            yield "op", ast.Or()
        case ast.BoolOp(op=ast.Or()):
            yield "op", ast.And()
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in ARITHMETIC:
            yield "op", ARITHMETIC[type(operator)]()


def _instead(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.Constant(value=str() as value) if value and " " not in value and not isinstance(parent, ast.Raise):
            yield ast.Constant(f"{value}~")
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield ast.Return(ast.Constant(None))
        case ast.If() | ast.While():
            for answer in (True, False):
                if not (answer and isinstance(node, ast.While)):
                    changed = copy.copy(node)
                    changed.test = ast.Constant(answer)
                    yield changed
        case ast.IfExp(body=body, orelse=orelse):
            yield body
            yield orelse
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.Raise() | ast.AugAssign() | ast.Expr(value=ast.Call() | ast.Yield()) | ast.Delete():
            yield ast.Pass()
