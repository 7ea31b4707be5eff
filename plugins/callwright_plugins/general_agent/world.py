"""What a task's ``tools.py`` builds on, under the names that it imports: ``DB``, ``Tools`` and ``tool``.

The files say ``from general_agent.tools import DB, Tools, tool``. :func:`task_module` imports one with these in that
place, and leaves no trace of it among the modules.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from pydantic import BaseModel

from callwright.errors import DataError

_MARK: Final = "__callwright_general_agent_tool__"
_PLACES: Final = ("general_agent", "general_agent.tools")
_importing: Final = threading.RLock()
_modules: Final[dict[Path, ModuleType]] = {}


class DB(BaseModel):
    """A task's world, as ``db.json`` holds it."""

    @classmethod
    def load(cls, path: str | Path) -> DB:
        """Read it from a file. Raises what reading and pydantic raise."""
        return cls.model_validate(json.loads(Path(path).read_text("utf-8")))


class Tools:
    """A task's tools: methods that are marked by :func:`tool`, which read and change ``db``."""

    def __init__(self, db: DB) -> None:
        self.db = db


def tool(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a method as one that agents may call."""
    setattr(function, _MARK, True)
    return function


def marked(kind: type[Any]) -> Mapping[str, Callable[..., Any]]:
    """The marked methods of a class by name, in the order of their names."""
    found = {name: getattr(kind, name) for name in dir(kind)}
    return {name: one for name, one in found.items() if callable(one) and getattr(one, _MARK, False)}


def task_module(folder: Path) -> ModuleType:
    """The module ``tools.py`` of a task, imported once in a process.

    Raises :class:`callwright.errors.DataError` for one that cannot be imported or lacks ``TaskDB`` or ``TaskTools``.
    """
    path = (folder / "tools.py").resolve()
    with _importing:
        if path not in _modules:
            _modules[path] = _imported(path, folder.name)
        return _modules[path]


def _imported(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"general_agent_task_{name}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise DataError(f"{path}: there is no such file; a task of general-agent has a tools.py")
    module = importlib.util.module_from_spec(spec)
    stand_in = ModuleType(_PLACES[1])
    stand_in.DB, stand_in.Tools, stand_in.tool = DB, Tools, tool  # type: ignore[attr-defined]
    package = ModuleType(_PLACES[0])
    package.tools = stand_in  # type: ignore[attr-defined]
    before = {place: sys.modules.get(place) for place in _PLACES}
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # somebody else's folder stays as it is
    sys.modules.update({_PLACES[0]: package, _PLACES[1]: stand_in})
    sys.modules[spec.name] = module  # where pydantic looks up names of annotations
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise DataError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.dont_write_bytecode = writes
        for place, known in before.items():
            if known is None:
                sys.modules.pop(place, None)
            else:
                sys.modules[place] = known
    for wanted, base in (("TaskDB", DB), ("TaskTools", Tools)):
        kind = getattr(module, wanted, None)
        if not (isinstance(kind, type) and issubclass(kind, base)):
            raise DataError(f"{path} has no class {wanted} of general_agent.tools.{base.__name__}")
    return module
