"""Reading the tasks: a file of an environment, with queries, users, goals, references and mutants."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final, TypeAlias

from attrs import frozen

from callwright.environments.goals import Goal
from callwright.environments.living.policy import ClockPolicy, read_policy
from callwright.errors import DataError

#: One turn of a reference: what the agent says, or the calls that it makes, each a tool and its arguments.
Turn: TypeAlias = "str | tuple[Call, ...]"
Call: TypeAlias = "tuple[str, Mapping[str, Any]]"
_DATA: Final = "callwright_plugins.worlds_mini"
#: The keys of a task in a file.
_KEYS: Final = frozenset(
    {"id", "environment", "scenario", "seed", "about", "query", "clock", "gold", "mutants", "orders", "user", "goal"}
)
_EDITS: Final = frozenset({"name", "at", "tool", "with", "without", "drop", "add", "after"})


@frozen
class Script:
    """A task as its file states it.

    ``about`` says in a line what it is about. ``gold`` are the turns of the reference; ``mutants`` are edits of it, all
    of which miss the goal, and ``orders`` other orders of the calls of a turn, which reach it (:mod:`.variants`).
    ``user`` are the options of the user ``scripted``, without what follows from the goal.
    """

    id: str
    environment: str
    scenario: str
    seed: int
    about: str
    query: str
    clock: ClockPolicy | None
    gold: tuple[Turn, ...]
    mutants: tuple[Mapping[str, Any], ...]
    orders: tuple[Mapping[str, Any], ...]
    user: Mapping[str, Any]
    goal: Mapping[str, Any]

    @property
    def changes_nothing(self) -> bool:
        """Whether the right end is the world as it was."""
        return not self.goal


def read_scripts() -> list[Script]:
    """All tasks, file by file in the order of their names.

    Raises :class:`callwright.errors.DataError`, naming the file and the task, for what is no task.
    """
    folder = resources.files(_DATA).joinpath("data")
    found = []
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        if file.name.endswith(".toml"):
            found += read_file(file.name, file.read_text(encoding="utf-8"))
    return found


def read_file(name: str, text: str) -> list[Script]:
    """The tasks of one file. Raises as :func:`read_scripts`."""
    try:
        content = tomllib.loads(text)
        return [_script(one, content.get("environment")) for one in content["tasks"]]
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, DataError) as error:
        raise DataError(f"worlds_mini/data/{name}: {type(error).__name__}: {error}") from error


def _script(stated: Mapping[str, Any], environment: str | None) -> Script:
    for key in stated:
        if key not in _KEYS:
            raise DataError(f"task {stated.get('id')!r}: there is no key {key!r}")
    goal = stated.get("goal", {})
    Goal.from_json(goal)
    for mutant in stated["mutants"]:
        if not _EDITS.issuperset(mutant):
            raise DataError(f"task {stated['id']!r}: {mutant!r} is no edit")
    return Script(
        id=stated["id"],
        environment=stated.get("environment") or str(environment),
        scenario=stated.get("scenario", ""),
        seed=stated.get("seed", 0),
        about=stated["about"],
        query=stated["query"],
        clock=read_policy(stated.get("clock")),
        gold=tuple(turn if isinstance(turn, str) else _calls(turn) for turn in stated["gold"]),
        mutants=tuple(stated["mutants"]),
        orders=tuple(stated.get("orders", ())),
        user=stated.get("user", {}),
        goal=goal,
    )


def _calls(stated: Sequence[Any]) -> tuple[Call, ...]:
    return tuple((str(tool), dict(arguments)) for tool, arguments in stated)
