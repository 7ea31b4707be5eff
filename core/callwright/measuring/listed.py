"""Tasks that a benchmark reads from a file, and whose calls are looked at and never executed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from callwright.digests import digest_of
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import UnknownName
from callwright.pickling import made_by
from callwright.tools.spec import ToolSpec
from callwright.walk.tasks import Task

_SPLIT: Final = "test"


class _Unexecuted(Session):
    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def __reduce__(self) -> Any:
        return _opened, (self._environment,)

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """An empty result; of an unknown tool, that it is unknown."""
        if tool not in self._environment.tools:
            return Outcome("unknown_tool", None, "unknown_tool", f"no tool is called {tool!r}")
        return Outcome("ok", {})

    def digest(self) -> str:
        return digest_of(None)

    def close(self) -> None:
        """Nothing."""


def _opened(environment: Environment) -> Session:
    return environment.open()


class Unexecuted(Environment):
    """Tools without anything behind them: every call has an empty object as its result.

    ``made`` is the call of a function or class that makes the benchmark again, whose corpus has this environment.
    """

    def __init__(self, name: str, made: tuple[Callable[..., Any], tuple[Any, ...]]) -> None:
        self._name, self._made = name, made
        self._tools: dict[str, ToolSpec] = {}

    def __reduce__(self) -> Any:
        return made_by(self, _environment_of, *self._made)

    def add(self, tools: Iterable[ToolSpec]) -> None:
        """Take further tools; of two of one name, the first stays."""
        for tool in tools:
            self._tools.setdefault(tool.name, tool)

    @property
    def name(self) -> str:
        """That of the benchmark."""
        return self._name

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The tools of all tasks."""
        return self._tools

    @property
    def pure(self) -> bool:
        """True: nothing is changed."""
        return True

    @property
    def takes_anything(self) -> Literal[True]:
        """True: calls are not held against schemas."""
        return True

    @property
    def out_of_process(self) -> Literal[True]:
        """True: there is nothing to isolate."""
        return True

    def open(self, scenario: str = "", seed: int = 0) -> Session:
        """A session; all are alike. Raises :class:`callwright.errors.UnknownName` for a scenario."""
        if scenario:
            raise UnknownName(f"scenario of {self._name}", scenario, [])
        return _Unexecuted(self)


class Listed:
    """A corpus of one split, ``test``, that a benchmark has read. Its tasks are in the environment ``environment``.

    ``limits`` are those of its episodes (:func:`callwright.walk.limits.limits_of`), where they are not one completion.
    """

    def __init__(
        self,
        environment: Environment,
        tasks: Iterable[Task],
        made: tuple[Callable[..., Any], tuple[Any, ...]],
        limits: Any = None,
    ) -> None:
        self.environment, self._made = environment, made
        self._tasks = {task.id: task for task in tasks}
        if limits is not None:
            self.limits = limits

    def __reduce__(self) -> Any:
        return made_by(self, _corpus_of, *self._made)

    @property
    def name(self) -> str:
        """That of the environment."""
        return self.environment.name

    @property
    def splits(self) -> Mapping[str, int]:
        """``test``: all of them."""
        return {_SPLIT: len(self._tasks)}

    def __getitem__(self, split: str) -> Sequence[Task]:
        """All tasks, in the order of the file."""
        if split != _SPLIT:
            raise UnknownName(f"split of {self.name}", split, [_SPLIT])
        return list(self._tasks.values())

    def task(self, task_id: str) -> Task:
        """The task with this id. Raises :class:`callwright.errors.UnknownName`."""
        if task_id not in self._tasks:
            raise UnknownName(f"task of {self.name}", task_id, self._tasks)
        return self._tasks[task_id]


def _corpus_of(make: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The corpus of a benchmark, made again elsewhere."""
    return make(*arguments).corpus


def _environment_of(make: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return make(*arguments).corpus.environment
