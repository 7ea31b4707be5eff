"""A Griffe extension: Sphinx's roles in docstrings become links of the site, or code where there is no such page."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from griffe import Extension, Object

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _site import reference

_ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc|obj):`(?P<short>~?)(?P<path>[\w.]+)`")


class Roles(Extension):
    """Rewrites the docstring of every object as it is read."""

    def __init__(self) -> None:
        super().__init__()
        rooms = reference.rooms(Path(__file__).resolve().parents[2] / "core")
        self._targets = {path: path for room in rooms for path in room.names.values()}
        self._targets |= {f"{room.package}.{name}": path for room in rooms for name, path in room.names.items()}

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = _ROLE.sub(self._linked, obj.docstring.value)

    def _linked(self, match: re.Match[str]) -> str:
        path = match["path"]
        shown = path.rpartition(".")[2] if match["short"] else path
        target = self._targets.get(path)
        return f"[`{shown}`][{target}]" if target else f"`{shown}`"
