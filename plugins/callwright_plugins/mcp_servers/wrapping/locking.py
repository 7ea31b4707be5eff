"""Lock files: which server, in which version, with which tools a result was made.

A server that changes its tools changes what a policy is trained on. With a lock file that is refused, and said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from callwright.digests import digest_of
from callwright.errors import DataError
from callwright_plugins.mcp_servers.connecting.connection import Description

#: The name that is used where only a folder or nothing is said.
LOCK_FILE: Final = "callwright-mcp.lock"
_VERSION: Final = 1
_MOST_LINES: Final = 40
_KEPT: Final = ("name", "description", "inputSchema", "outputSchema", "annotations")


def locked_tools(description: Description) -> dict[str, dict[str, Any]]:
    """What a lock file keeps of a listing, by the tools' names."""
    return {
        str(tool.get("name", "")): {key: tool[key] for key in _KEPT if key in tool and key != "name"}
        for tool in description.tools
    }


def listing_hash(description: Description) -> str:
    """SHA-256 of every tool's name, description, schemas and annotations. The order of tools plays no part."""
    return digest_of(locked_tools(description))


def write_lock(path: Path, name: str, command: str, description: Description) -> None:
    """Record a server under ``name``; others in the file stay."""
    path = path / LOCK_FILE if path.is_dir() else path
    content: dict[str, Any] = _read(path) if path.exists() else {"version": _VERSION, "servers": {}}
    content["servers"][name] = {
        "command": command,
        "server": description.name,
        "server_version": description.version,
        "protocol": description.protocol,
        "schema": listing_hash(description),
        "tools": locked_tools(description),
    }
    temporary = path.with_name(path.name + ".new")
    try:
        temporary.write_text(json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise DataError(f"{path}: the lock file cannot be written: {error.strerror}") from error


def check_lock(path: Path, name: str, command: str, description: Description) -> None:
    """Compare a server with the lock file; one that is not recorded yet is recorded.

    Raises :class:`callwright.errors.DataError` with every difference if its version or tools are others.
    """
    path = path / LOCK_FILE if path.is_dir() else path
    locked = _read(path)["servers"].get(name) if path.exists() else None
    if locked is None:
        write_lock(path, name, command, description)
        return
    differences = list(drift(locked, description))
    if not differences:
        return
    shown = differences[:_MOST_LINES]
    if len(differences) > len(shown):
        shown.append(f"… and {len(differences) - len(shown)} more")
    raise DataError(
        f"{path}: the server {name!r} is not the one that was locked:\n  "
        + "\n  ".join(shown)
        + f"\nInstall the locked version, or accept the new one: take {name!r} out of the lock file"
    )


def drift(locked: Mapping[str, Any], description: Description) -> Iterator[str]:
    """Every difference between what was locked and what is there, a line each."""
    for key, found in (("server", description.name), ("server_version", description.version)):
        if locked.get(key) != found:
            yield f"{key}: {locked.get(key)!r} -> {found!r}"
    before, after = locked.get("tools") or {}, locked_tools(description)
    for name in sorted(before.keys() - after.keys()):
        yield f"tool {name}: gone"
    for name in sorted(after.keys() - before.keys()):
        yield f"tool {name}: new"
    for name in sorted(before.keys() & after.keys()):
        for path, old, new in _differences(before[name], after[name], ()):
            yield f"tool {name}, {'.'.join(path)}: {_shown(old)} -> {_shown(new)}"


def changes(known: Description, found: Description) -> list[str]:
    """Every difference between two descriptions of a server, a line each."""
    before = {"server": known.name, "server_version": known.version, "tools": locked_tools(known)}
    return list(drift(before, found))


_ABSENT: Final = object()


def _differences(old: Any, new: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from _differences(old.get(key, _ABSENT), new.get(key, _ABSENT), (*path, str(key)))
    elif type(old) is not type(new) or old != new:
        yield path, old, new


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + "…"


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: the lock file cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"{path}: not a lock file: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("servers"), dict):
        raise DataError(f"{path}: not a lock file: it has no servers")
    if content.get("version") != _VERSION:
        raise DataError(f"{path}: a lock file of version {content.get('version')!r}; this Callwright writes {_VERSION}")
    for name, entry in content["servers"].items():
        if not isinstance(entry, dict):
            raise DataError(f"{path}: not a lock file: the server {name!r} is not an object")
    return content
