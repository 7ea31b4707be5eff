"""A task as a row of JSON, and back.

    {"id": "desk-3", "split": "train", "depth": 1, "query": "Who wrote last?", "environment": "email", "seed": 4,
     "tools": ["list_messages", "send_message"], "program": {"calls": [{"id": 0, "tool": "list_messages",
     "arguments": {}}]}, "answer": [{"messages": []}]}

What is as it is by default is left out. ``id``, ``split`` and ``depth`` come first, so that a file can be looked
through without reading its rows whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from callwright.environments.hazards.policy import read_hazards
from callwright.environments.living.policy import read_policy
from callwright.environments.protocol import Environment
from callwright.errors import DataError, UnknownName, UsageError
from callwright.language.program import Call, Program, plain, revive
from callwright.plugins import Registry
from callwright.walk.openings.opening import Opening
from callwright.walk.task_rows.plain_json import survives_json
from callwright.walk.task_rows.schema import KEYS
from callwright.walk.task_rows.stated import Stated, stated
from callwright.walk.task_rows.tools import ToolReader, tool_rows
from callwright.walk.tasks import Answer, Instance, Task
from callwright.walk.users.said import UserSpec

_TEXTS: Final = {"scenario": "", "structure": "none", "returns": "one"}
_NUMBERS: Final = {"seed": 0, "chain": 0}
_ANSWER: Final = ("values", "others", "open")
_CALL: Final = ("id", "tool", "arguments")


def task_row(task: Task, registry: Registry, environment: Stated | None = None) -> dict[str, Any]:
    """The row of a task. ``environment`` is how its environment is stated, if that is known already.

    Raises :class:`callwright.UsageError` for a task that no row can hold: of an environment that no registry knows, or
    with anything but JSON in its answer, its program or its facts.
    """
    try:
        return _row(task, environment or stated(task.environment, registry))
    except UsageError as error:
        raise UsageError(f"task {task.id!r} cannot be written: {error}") from error


def _row(task: Task, environment: Stated) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": task.id,
        "split": task.split,
        "depth": task.depth,
        "query": task.query,
        "environment": environment.to_json(),
    }
    for name, default in {**_TEXTS, **_NUMBERS}.items():
        if (value := getattr(task, name)) != default:
            row[name] = value
    stated_by_parts = {"clock": task.clock, "hazards": task.hazards, "user": task.user, "opening": task.opening}
    for name, held in stated_by_parts.items():
        if held is not None:
            row[name] = held.to_json()
    row["tools"] = tool_rows(task.tools, task.environment.tools)
    if task.shown is not None:
        row["shown"] = list(task.shown)
    if task.appear:
        row["appear"] = dict(task.appear)
    if task.tells_costs:
        row["tells_costs"] = True
    if task.program is not None:
        row["program"] = program_row(task.program)
    row["answer"] = answer_row("the answer", task.answer)
    if task.instances:
        row["instances"] = [
            {"scenario": one.scenario, "seed": one.seed, "answer": answer_row("an instance", one.answer)}
            for one in task.instances
        ]
    if task.facts:
        row["facts"] = _json("the facts", dict(task.facts))
    return {key: row[key] for key in KEYS if key in row}


def answer_row(what: str, answer: Answer) -> Any:
    """The values; with ``others`` and ``open`` beside them where there are any. Raises for what is no JSON."""
    values = _json(what, list(answer.values))
    if not answer.others and not answer.open:
        return values
    others = {"others": [_json(what, list(one)) for one in answer.others]} if answer.others else {}
    return {"values": values, **others, **({"open": list(answer.open)} if answer.open else {})}


def _json(what: str, value: Any) -> Any:
    """A value that is read back as it is: JSON without tuples, sets, NaN and keys that are no texts."""
    try:
        same = survives_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"{what} holds what is no JSON: {error}") from error
    if not same:
        raise UsageError(f"{what} holds what JSON would change (a tuple, or a key that is no text)")
    return value


def program_row(program: Program) -> dict[str, Any]:
    """A program as JSON: calls with their ids, references as texts. Raises :class:`callwright.UsageError`."""
    calls = []
    for call in program.calls:
        arguments = _json(f"call {call.id}", plain(call.arguments))
        if revive(arguments) != call.arguments:
            raise UsageError(f"an argument of call {call.id} is a text that reads as a reference, or no JSON")
        calls.append({"id": call.id, "tool": call.tool, "arguments": arguments})
    row: dict[str, Any] = {"calls": calls}
    if program.returns != "one":
        row["returns"] = program.returns
    if program.thought:
        row["thought"] = program.thought
    if program.text is not None:
        row["text"] = program.text
    return row


# Back -----------------------------------------------------------------------------------------------------------------


class TaskReader:
    """Makes tasks of rows. ``environment_of`` gives the environment that a row states; tools are shared by all rows."""

    def __init__(self, environment_of: Callable[[Stated], Environment]) -> None:
        self._environment_of = environment_of
        self._tools = ToolReader()
        self._stated: dict[str, Stated] = {}

    def task(self, row: Any) -> Task:
        """The task of a row. Raises :class:`callwright.errors.DataError`, which says what is wrong with it."""
        if not isinstance(row, Mapping):
            raise DataError(f"a task is an object, not {row!r:.80}")
        for key in row:
            if key not in KEYS:
                raise DataError(str(UnknownName("key of a task", str(key), KEYS)))
        environment = self._environment_of(self._environment(row.get("environment")))
        tools = self._tools.tools(row.get("tools"), environment.tools)
        shown = row.get("shown")
        if shown is not None:
            unknown = [name for name in _list(row, "shown") if name not in tools]
            if unknown:
                raise DataError(str(UnknownName("tool of the task", str(unknown[0]), tools, hint="(in 'shown')")))
        facts = row.get("facts", {})
        if not isinstance(facts, Mapping):
            raise DataError(f"'facts' is an object, not {facts!r:.80}")
        returns = _one_of(row, "returns", "one", ("one", "all"))
        return Task(
            id=_text(row, "id"),
            query=_text(row, "query", empty=True),
            tools=tools,
            answer=read_answer(row.get("answer"), "answer"),
            environment=environment,
            scenario=_text(row, "scenario", "", empty=True),
            seed=_number(row, "seed"),
            split=_text(row, "split"),
            depth=_number(row, "depth"),
            chain=_number(row, "chain"),
            structure=_text(row, "structure", "none"),
            returns=returns,  # type: ignore[arg-type]
            program=None if row.get("program") is None else read_program(row["program"]),
            facts=dict(facts),
            clock=read_policy(row.get("clock")),
            hazards=None if row.get("hazards") is None else read_hazards(row["hazards"]),
            user=UserSpec.from_json(row.get("user")),
            shown=None if shown is None else tuple(shown),
            tells_costs=_flag(row, "tells_costs"),
            instances=tuple(map(_instance, _list(row, "instances"))),
            opening=Opening.from_json(row.get("opening")),
            appear=_appear(row, tools),
        )

    def _environment(self, value: Any) -> Stated:
        key = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        found = self._stated.get(key)
        if found is None:
            found = self._stated[key] = Stated.from_json(value)
        return found


def read_program(value: Any) -> Program:
    """What :func:`program_row` wrote. Raises :class:`callwright.errors.DataError`."""
    if not isinstance(value, Mapping) or not isinstance(value.get("calls"), list):
        raise DataError(f"a program is an object with 'calls', not {value!r:.80}")
    calls = []
    for one in value["calls"]:
        if not (
            isinstance(one, Mapping)
            and set(one) == set(_CALL)
            and type(one["id"]) is int
            and isinstance(one["tool"], str)
            and isinstance(one["arguments"], Mapping)
        ):
            raise DataError(f"a call of a program is an object with 'id', 'tool' and 'arguments', not {one!r:.80}")
        calls.append(Call(one["id"], one["tool"], revive(dict(one["arguments"]))))
    returns: Any = _one_of(value, "returns", "one", ("one", "all"))
    text = value.get("text")
    if text is not None and not isinstance(text, str):
        raise DataError(f"the 'text' of a program is a text, not {text!r:.80}")
    return Program(tuple(calls), returns, _text(value, "thought", "", empty=True), text)


def _instance(value: Any) -> Instance:
    if not isinstance(value, Mapping):
        raise DataError(f"an instance is an object, not {value!r:.80}")
    return Instance(
        _text(value, "scenario", "", empty=True), read_answer(value.get("answer"), "answer"), _number(value, "seed")
    )


def read_answer(value: Any, name: str) -> Answer:
    """What :func:`answer_row` wrote. Raises :class:`callwright.errors.DataError`, which calls it ``name``."""
    if isinstance(value, list):
        return Answer(tuple(value))
    if not isinstance(value, Mapping) or not isinstance(value.get("values"), list):
        raise DataError(f"{name!r} is a list of values, or an object that has them as 'values', not {value!r:.80}")
    unknown = next((key for key in value if key not in _ANSWER), None)
    if unknown is not None:
        raise DataError(str(UnknownName("key of an answer", str(unknown), _ANSWER)))
    others, members = _list(value, "others"), _list(value, "open")
    if not all(isinstance(one, list) for one in others) or not all(isinstance(one, str) for one in members):
        raise DataError(f"'others' of an answer are lists of values, and 'open' names members, not {value!r:.80}")
    return Answer(tuple(value["values"]), tuple(map(tuple, others)), tuple(members))


def _appear(row: Mapping[str, Any], tools: Mapping[str, Any]) -> dict[str, int]:
    """From which turn of the user on tools are there."""
    value = row.get("appear", {})
    if not isinstance(value, Mapping) or not all(type(turn) is int and turn >= 0 for turn in value.values()):
        raise DataError(f"'appear' is an object of turns by the names of tools, not {value!r:.80}")
    unknown = next((name for name in value if name not in tools), None)
    if unknown is not None:
        raise DataError(str(UnknownName("tool of the task", str(unknown), tools, hint="(in 'appear')")))
    return dict(value)


def _text(row: Mapping[str, Any], name: str, default: str | None = None, *, empty: bool = False) -> str:
    value = row.get(name, default)
    if not isinstance(value, str) or not (value or empty):
        raise DataError(f"{name!r} is a text, not {value!r:.80}")
    return value


def _number(row: Mapping[str, Any], name: str) -> int:
    value = row.get(name, 0)
    if type(value) is not int:
        raise DataError(f"{name!r} is a whole number, not {value!r:.80}")
    return value


def _flag(row: Mapping[str, Any], name: str) -> bool:
    value = row.get(name, False)
    if not isinstance(value, bool):
        raise DataError(f"{name!r} is true or false, not {value!r:.80}")
    return value


def _list(row: Mapping[str, Any], name: str) -> list[Any]:
    value = row.get(name, [])
    if not isinstance(value, list):
        raise DataError(f"{name!r} is a list, not {value!r:.80}")
    return value


def _one_of(row: Mapping[str, Any], name: str, default: str, known: tuple[str, ...]) -> str:
    value = row.get(name, default)
    if value not in known:
        raise DataError(f"{name!r} is one of {', '.join(known)}, not {value!r:.80}")
    return str(value)
