"""Public names of a package, loaded when they are first used. The stub ``__init__.pyi`` is the only list of them.

The package ``lazy-loader`` does the same; the base install is kept to fifteen distributions, and this is one function.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_LINE: Final = re.compile(r"^from (\S+) import (\w+) as \2$", re.MULTILINE)


def attach(package: str, *also: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its stub.

    ``also`` are names that the package binds itself. A line ``from package import room as room`` makes a subpackage an
    attribute, which is not in ``__all__``.
    """
    module = sys.modules[package]
    assert module.__file__ is not None
    stub = Path(module.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    found = _LINE.findall(stub)
    rooms = {name for home, name in found if home == package}
    homes = {name: home for home, name in found if home != package}
    public = sorted({*homes, *also})

    def load(name: str) -> Any:
        if name in rooms:
            return importlib.import_module(f"{package}.{name}")  # which binds it
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(module, name, value)
        return value

    return load, lambda: public, public
