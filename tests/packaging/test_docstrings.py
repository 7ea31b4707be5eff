"""Public methods say what they do, once: an override of a documented member of a protocol has its docstring there.

Ruff's D102 asks each override for one, too, and gets fillers such as "Nothing." in return.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDERS = ("core", "plugins")


def _classes(root: Path) -> Iterator[tuple[Path, ast.ClassDef]]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:  # classes inside functions are nobody's
                if isinstance(node, ast.ClassDef):
                    yield path, node


def _methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for member in node.body:
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
            yield member


def _interface(node: ast.ClassDef) -> bool:
    bases = [ast.unparse(base) for base in node.bases]
    return any(base == "ABC" or base.startswith("Protocol") for base in bases)


def _setter(member: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(one).endswith((".setter", "overload")) for one in member.decorator_list)


@pytest.fixture(scope="module")
def interfaces(root: Path) -> set[str]:
    """The documented members of protocols and abstract classes of the core."""
    return {
        member.name
        for path, node in _classes(root)
        if path.is_relative_to(root / "core") and _interface(node)
        for member in _methods(node)
        if ast.get_docstring(member)
    }


def test_a_public_method_has_a_docstring_or_overrides_one_that_has(root: Path, interfaces: set[str]) -> None:
    bare = [
        f"{path.relative_to(root)}:{member.lineno}: {node.name}.{member.name}"
        for path, node in _classes(root)
        if not node.name.startswith("_")
        for member in _methods(node)
        if not member.name.startswith("_") and not _setter(member)
        if not ast.get_docstring(member) and member.name not in interfaces
    ]
    assert bare == []


def test_members_of_protocols_are_documented(root: Path) -> None:
    bare = [
        f"{path.relative_to(root)}:{member.lineno}: {node.name}.{member.name}"
        for path, node in _classes(root)
        if _interface(node) and not node.name.startswith("_")
        for member in _methods(node)
        if not member.name.startswith("_") and not _setter(member) and not ast.get_docstring(member)
    ]
    assert bare == []
