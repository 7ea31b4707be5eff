"""The entries as tasks. They are asked in the release's own words, and answered in text: there is nothing to call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from callwright.digests import digest_of
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import UnknownName
from callwright.pickling import made_by
from callwright.tools.spec import ToolSpec
from callwright.walk.prompt import PROMPT
from callwright.walk.tasks import Answer, Task
from callwright_plugins.teval import NAME
from callwright_plugins.teval.files import Entry, read_entries

_SPLIT: Final = "test"


class NothingToCall(Environment):
    """An environment without tools."""

    def __reduce__(self) -> Any:
        return made_by(self, NothingToCall)

    @property
    def name(self) -> str:
        return NAME

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        return {}

    @property
    def pure(self) -> bool:
        return True

    @property
    def takes_anything(self) -> Literal[True]:
        """True: there is nothing that could refuse."""
        return True

    def open(self, scenario: str = "", seed: int = 0) -> _Session:
        return _Session()


class _Session(Session):
    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        return Outcome("unknown_tool", None, "unknown_tool", f"no tool is called {tool!r}")

    def digest(self) -> str:
        return digest_of(None)

    def close(self) -> None:
        pass


class TEvalCorpus:
    """The entries of a version in the folder ``data``. Raises :class:`callwright.errors.DataError`."""

    def __init__(self, data: str | Path, version: str) -> None:
        self._data, self._version = Path(data).absolute(), version
        self.entries: Mapping[str, Entry] = read_entries(self._data, version)
        self.environment = NothingToCall()

    def __reduce__(self) -> Any:
        return made_by(self, TEvalCorpus, str(self._data), self._version)

    @property
    def name(self) -> str:
        return NAME

    @property
    def splits(self) -> Mapping[str, int]:
        """``test``: all of them."""
        return {_SPLIT: len(self.entries)}

    def __getitem__(self, split: str) -> Sequence[Task]:
        """All tasks, in the order of the files."""
        if split != _SPLIT:
            raise UnknownName(f"split of {NAME}", split, [_SPLIT])
        return [self.task(one) for one in self.entries]

    def task(self, task_id: str) -> Task:
        """The task of an entry, ``plan_json/query_0_1``. Raises :class:`callwright.errors.UnknownName`."""
        if task_id not in self.entries:
            raise UnknownName(f"entry of {NAME}", task_id, self.entries)
        if task_id not in self._made:
            entry = self.entries[task_id]
            self._made[task_id] = Task(
                id=task_id,
                query=entry.query,
                tools={},
                answer=Answer(),
                environment=self.environment,
                scenario=task_id,
                split=_SPLIT,
                structure=entry.category,
                facts={PROMPT: entry.prompt, "dimension": " ".join(entry.file.dimensions), "format": entry.format},
            )
        return self._made[task_id]

    @cached_property
    def _made(self) -> dict[str, Task]:
        return {}
