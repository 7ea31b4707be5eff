"""What an output hangs on besides its rows: versions, sources of plugins, files of a corpus."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import callwright

if TYPE_CHECKING:
    from callwright.plugins import Registry


def versions_of(registry: Registry) -> dict[str, str]:
    """The version of Callwright and of every other plugin; a digest of its source where it has no version."""
    found = {"callwright": callwright.__version__}
    for plugin in registry.plugins:
        if plugin.blocked or plugin.error or plugin.distribution == "callwright":
            continue
        found[plugin.name] = plugin.version or _source(plugin.module or plugin.name)
    return found


def digests_of(options: Mapping[str, Any]) -> dict[str, str]:
    """A digest of each file that an option names, and of the names, sizes and times of what a folder holds."""
    found = {}
    for key, value in options.items():
        path = Path(value) if isinstance(value, str) and value and "\0" not in value else None
        try:
            if path is not None and path.is_file():
                found[key] = _digest(path.read_bytes())
            elif path is not None and path.is_dir():
                listed = ((inner.relative_to(path), inner.stat()) for inner in sorted(path.rglob("*")))
                lines = [f"{name} {facts.st_size} {facts.st_mtime_ns}" for name, facts in listed]
                found[key] = _digest("\n".join(lines).encode("utf-8", "surrogateescape"))
        except OSError:
            continue  # whoever needs it says what is wrong with it
    return found


def _source(module: str) -> str:
    """A digest of the source of a module, or of all modules of a package; empty if there is none."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if not isinstance(file, str):
        return ""
    path = Path(file)
    files = sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]
    try:
        return _digest(b"\0".join(part.read_bytes() for part in files))
    except OSError:
        return ""


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()
