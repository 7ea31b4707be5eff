"""Digests of the files that an output hangs on besides its rows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any


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


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()
