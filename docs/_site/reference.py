"""Pages of the reference: one for each room whose ``__init__.pyi`` lists public names."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple


class Room(NamedTuple):
    """A package with its public names and, for each, the dotted path of where it is defined."""

    package: str
    names: dict[str, str]
    rooms: list[str]


def rooms(core: Path) -> list[Room]:
    """Every package below ``core`` with an ``__init__.pyi``, the top one first."""
    found = [_room(core, stub) for stub in (core / "callwright").rglob("__init__.pyi")]
    return sorted(found, key=lambda room: (room.package.count("."), room.package))


def page_of(package: str) -> str:
    """The path of a room's page inside the site."""
    return f"reference/{package}.md"


def room_page(room: Room, core: Path, homes: dict[str, str]) -> str:
    """The Markdown of a room: its docstring, then every name in alphabetical order.

    ``homes`` says for each dotted path in which room it is described; elsewhere it is a link.
    """
    said = (
        ast.get_docstring(ast.parse((core / room.package.replace(".", "/") / "__init__.py").read_text("utf-8"))) or ""
    )
    parts = [f"# {room.package}", said.replace("::\n", ":\n")]
    inner = [f"- [`{name}`]({name}.md)" if name in homes.values() else f"- `{name}`" for name in room.rooms]
    if inner:
        parts.append("Rooms:\n\n" + "\n".join(inner))
    names = sorted(room.names.items(), key=lambda pair: (pair[0].lower(), pair[0]))
    elsewhere = [f"- [`{name}`][{path}]" for name, path in names if homes[path] != room.package]
    if elsewhere:
        parts.append("Names that a room describes:\n\n" + "\n".join(elsewhere))
    parts += [f"::: {path}\n" for _, path in names if homes[path] == room.package]
    return "\n\n".join(parts) + "\n"


def homes(every: list[Room]) -> dict[str, str]:
    """For each public dotted path the innermost room that has it."""
    return {path: room.package for room in every for path in room.names.values()}


def _room(core: Path, stub: Path) -> Room:
    package = ".".join(stub.parent.relative_to(core).parts)
    names, inner = {}, []
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            path = f"{node.module}.{alias.name}"
            if (core / path.replace(".", "/")).is_dir() or (core / (path.replace(".", "/") + ".py")).exists():
                inner.append(path)
            else:
                names[alias.asname or alias.name] = path
    return Room(package, names, inner)
