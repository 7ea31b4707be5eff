"""The environment of one task: its tools over its world, and its own check of what was left."""

from __future__ import annotations

import copy
import inspect
import json
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import define

from callwright.environments.functions import FunctionEnvironment, FunctionSession
from callwright.environments.goals.comparing import Comparison
from callwright.errors import CallwrightError, DataError
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.general_agent.world import marked, task_module


@define
class World:
    """The state of a session."""

    db: Any


class TaskEnvironment(FunctionEnvironment):
    """A task's folder as an environment: ``tools.py`` and ``db.json``.

    Whatever a tool raises is its documented failure, as general-agent has it, and undone. Results are JSON; what is
    none is written as a text. A scenario and a seed change nothing: a task has one world.

    Raises :class:`callwright.errors.DataError` for files that cannot be read.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        self.module = task_module(self.folder)
        try:
            self._first = self.module.TaskDB.load(self.folder / "db.json")
        except (OSError, ValueError) as error:  # pydantic's error is a ValueError
            raise DataError(f"{self.folder / 'db.json'} is not the world of its tools.py: {error}") from error
        kind = self.module.TaskTools
        tools = [_tool(kind, name, method) for name, method in marked(kind).items()]
        super().__init__(f"general-agent/{self.folder.name}", tools, state=self._world)

    def __reduce__(self) -> Any:
        return TaskEnvironment, (str(self.folder),)

    def _world(self, scenario: str, seed: int) -> World:
        return World(copy.deepcopy(self._first))

    def gold(self) -> list[tuple[str, dict[str, Any]]]:
        """The gold calls. Raises :class:`callwright.errors.DataError` for a file that holds none."""
        path = self.folder / "gold.json"
        try:
            calls = json.loads(path.read_text("utf-8"))
            return [(str(name), dict(arguments)) for name, arguments in calls]
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{path} is no list of [tool, arguments]: {error}") from error

    def open(self, scenario: str = "", seed: int = 0) -> TaskSession:
        """A fresh session."""
        return TaskSession(self, self._world(scenario, seed))


class TaskSession(FunctionSession):
    """A session of a task, which says whether the task is solved."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return TaskSession, (self.environment, self.state)

    def check_goal(self, goal: Mapping[str, Any]) -> Comparison:
        """Whether the world is what the gold calls leave, or ``verify`` accepts it: all right, or one thing wrong.

        A ``verify`` that raises accepts nothing, as general-agent has it. ``goal`` names the task.
        """
        environment = self.environment
        assert isinstance(environment, TaskEnvironment)
        if goal.get("general-agent") != environment.folder.name:
            raise DataError(f"the goal {dict(goal)!r:.80} is not that of the task {environment.folder.name!r}")
        found = self.state.db
        return Comparison(1, 0) if _is_gold(environment, found) or _verified(environment, found) else Comparison(0, 1)


def _is_gold(environment: TaskEnvironment, found: Any) -> bool:
    session = environment.open()
    for name, arguments in environment.gold():
        session.call(name, arguments)
    return bool(session.state.db.model_dump_json() == found.model_dump_json())


def _verified(environment: TaskEnvironment, found: Any) -> bool:
    verify = getattr(environment.module, "verify", None)
    if verify is None:
        return False
    try:
        return float(verify(copy.deepcopy(found))) >= 1.0
    except Exception:  # it judges a world that it did not expect
        return False


def _tool(kind: type[Any], name: str, method: Callable[..., Any]) -> FunctionTool:
    """A method as a typed function of the session's world."""

    def call(world: World, /, **arguments: Any) -> Any:
        tools = kind(world.db)
        try:
            found = method(tools, **arguments)
        except CallwrightError:
            raise
        except Exception as error:
            raise ToolError(type(error).__name__, str(error) or type(error).__name__) from error
        world.db = tools.db  # a tool may have put another one there
        return json.loads(json.dumps(found, default=str))

    hints = typing.get_type_hints(method)
    first = inspect.Parameter("world", inspect.Parameter.POSITIONAL_ONLY, annotation=World)
    given = [
        one.replace(annotation=hints.get(one.name, Any), kind=inspect.Parameter.KEYWORD_ONLY)
        for one in list(inspect.signature(method).parameters.values())[1:]
    ]
    call.__signature__ = inspect.Signature([first, *given])  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in (first, *given)}
    call.__name__, call.__doc__, call.__module__ = name, method.__doc__, method.__module__
    return tool(call)
