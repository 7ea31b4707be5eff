"""Public methods say what they do, once: an override of a documented member of a protocol has its docstring there.

Ruff's D102 asks each override for one, too, and gets fillers such as "Nothing." in return.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen

FOLDERS = ("core", "plugins")


@frozen
class Member:
    """A method: where it stands, and whether it has a docstring or stands for one that has."""

    name: str
    line: int
    documented: bool
    setter: bool


@frozen
class Found:
    """A class at the top of a module."""

    path: Path
    name: str
    interface: bool
    methods: tuple[Member, ...]

    def bare(self) -> Iterator[Member]:
        """Public methods without a docstring."""
        for one in self.methods:
            if not one.name.startswith("_") and not one.setter and not one.documented:
                yield one


def _interface(node: ast.ClassDef) -> bool:
    bases = [ast.unparse(base) for base in node.bases]
    return any(base == "ABC" or base.startswith("Protocol") for base in bases)


def _method(member: ast.FunctionDef | ast.AsyncFunctionDef) -> Member:
    setter = any(ast.unparse(one).endswith((".setter", "overload")) for one in member.decorator_list)
    return Member(member.name, member.lineno, bool(ast.get_docstring(member)), setter)


@pytest.fixture(scope="module")
def classes(root: Path) -> list[Found]:
    """Every class of the sources; those inside of functions are nobody's."""
    return [
        Found(
            path,
            node.name,
            _interface(node),
            tuple(_method(one) for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)),
        )
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]


def _told(root: Path, one: Found, member: Member) -> str:
    return f"{one.path.relative_to(root)}:{member.line}: {one.name}.{member.name}"


def test_a_public_method_has_a_docstring_or_overrides_one_that_has(root: Path, classes: list[Found]) -> None:
    documented = {
        member.name
        for one in classes
        if one.interface and one.path.is_relative_to(root / "core")
        for member in one.methods
        if member.documented
    }
    assert len(documented) > 100
    bare = [
        _told(root, one, member)
        for one in classes
        if not one.name.startswith("_")
        for member in one.bare()
        if member.name not in documented
    ]
    assert bare == []


def test_members_of_protocols_are_documented(root: Path, classes: list[Found]) -> None:
    public = [one for one in classes if one.interface and not one.name.startswith("_")]
    assert len(public) > 20
    assert [_told(root, one, member) for one in public for member in one.bare()] == []
