"""What is to be seen in a world without changing it: values by the member that shows them, records, and names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from callwright.environments.protocol import Environment
from callwright.errors import CallwrightError
from callwright.language.program import Call, Program
from callwright.tools.spec import ToolSpec
from callwright.walk.execution import Execution
from callwright.walk.tasks import Task
from callwright_plugins.synthesis.language.values.names import Names, names_in

#: Values of a member that are kept.
_KEPT: Final = 24
_LOOKS: Final = 16
_WORLDS: Final = 64
_DEEPEST: Final = 40


class World:
    """What a world shows: ``members`` maps the name of a member to its first scalar values, ``records`` an id to the
    objects that begin with it, ``names`` ids to what people call them.
    """

    def __init__(self, results: Iterable[Any]) -> None:
        results = list(results)
        self.members: dict[str, list[Any]] = {}
        self.records: dict[str, list[Mapping[str, Any]]] = {}
        self.scalars: set[str] = set()
        for result in results:
            for name, value, owner in members_of(result):
                self.scalars.add(str(value))
                held = self.members.setdefault(name, [])
                if value not in held and len(held) < _KEPT:
                    held.append(value)
                if owner is not None and (name == "id" or name.endswith("_id")) and isinstance(value, str):
                    of_it = self.records.setdefault(value, [])
                    if owner not in of_it:
                        of_it.append(owner)
        self.names: Names = names_in(results)

    def like(self, name: str, value: Any) -> Iterator[Any]:
        """Other values of a parameter of this name, those of its own member first."""
        own = name.rpartition("_")[2]
        for member in dict.fromkeys((name, name.removeprefix("new_"), own)):
            for other in self.members.get(member, ()):
                if other != value and type(other) is type(value):
                    yield other
        if isinstance(value, str):
            mine = shape(value)
            if any(one == "9" for one in mine):
                for held in list(self.members.values()):
                    yield from (one for one in held if isinstance(one, str) and one != value and shape(one) == mine)


_seen: WeakKeyDictionary[Any, dict[tuple[str, int], World]] = WeakKeyDictionary()


def world_of(task: Task) -> World:
    """The world of a task. It is looked at once for all tasks that share it, and its environment."""
    return looked_at(task.environment, task.scenario, task.seed)


def looked_at(environment: Environment, scenario: str, seed: int) -> World:
    """What a world shows: looked at once."""
    key = scenario, seed
    try:
        worlds = _seen.setdefault(environment, {})
    except TypeError:  # environments that cannot be referred to weakly, or have no hash
        return World(_shown(environment, scenario, seed))
    found = worlds.get(key)
    if found is None:
        if len(worlds) >= _WORLDS:
            worlds.clear()
        found = worlds[key] = World(_shown(environment, scenario, seed))
    return found


def _shown(environment: Environment, scenario: str, seed: int) -> Iterator[Any]:
    """The results of tools that only look and need no arguments, and what the user whose session it is knows."""
    tools = environment.tools
    looks = [spec for spec in tools.values() if _just_looks(spec)][:_LOOKS]
    execution = Execution(environment, tools, scenario=scenario, seed=seed)
    try:
        for spec in looks:
            for record in execution.run(Program((Call(0, spec.name, {}),))).records:
                if record.outcome.kind in ("ok", "partial"):
                    yield record.outcome.value
        try:
            yield execution.look("knowledge", "me")
        except CallwrightError:
            return
    finally:
        execution.close()


def _just_looks(spec: ToolSpec) -> bool:
    required = spec.parameters.get("required") if isinstance(spec.parameters, Mapping) else None
    return spec.read_only and not spec.hidden and not required


def members_of(
    value: Any, name: str = "", owner: Mapping[str, Any] | None = None, depth: int = 0
) -> Iterator[tuple[str, Any, Mapping[str, Any] | None]]:
    """Every scalar in a result: the name of the member that holds it (also through lists), and the object it is in."""
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if type(inner) is str:  # most are, and each generator costs
                yield str(key), inner, value
            else:
                yield from members_of(inner, str(key), value, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from members_of(inner, name, owner if not isinstance(inner, Mapping) else None, depth + 1)
    elif value is not None:
        yield name, value, owner


def shape(text: str) -> str:
    """What ids of one kind share: letters before the first digit stay, other letters are ``a``, digits are ``9``."""
    made, digits = [], False
    for one in text:
        if one.isdigit():
            digits = True
            made.append("9")
        else:
            made.append("a" if digits and one.isalpha() else one)
    return "".join(made)
