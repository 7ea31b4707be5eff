"""What a task or a foreign row has that another could have in common with it.

Rows of many makers are read by the names that the field gives its columns; what has another name is not seen.
"""

from __future__ import annotations

import ast
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import evolve, field, frozen

from callwright.language.program import plain
from callwright.tools.schema_dialects import normalise
from callwright.walk.tasks import Task

_IDS: Final = ("id", "source_id", "sample_id", "task_id", "question_id", "query_id", "uuid", "original_id", "uid")
_PROMPTS: Final = ("messages", "question", "query", "prompt", "conversations", "instruction", "input")
_TOOLS: Final = ("tools", "functions", "function", "orig_tools", "target_tool", "missed_function")
_CALLS: Final = ("ground_truth", "answers", "answer", "calls", "tool_calls", "gold", "output")
#: What hides rows in rows: verl keeps the id and the truth one level down.
_NESTED: Final = ("extra_info", "reward_model")
_USER: Final = frozenset({"user", "human"})
_WRAPPED: Final = ("function", "tool")
#: Combinations of accepted values that are written out for one task; of more, only the first values are.
_MOST: Final = 256


@frozen
class Entry:
    """A task or row. ``name`` says which; ``schemas`` maps the key of a schema to the tool's name.

    ``gold`` has a key for each list of calls that is right: several where the truth names several accepted values.
    """

    name: str
    ids: frozenset[str] = frozenset()
    prompt: str = ""
    schemas: Mapping[str, str] = field(factory=dict)
    gold: frozenset[str] = frozenset()

    def with_truth(self, other: Entry) -> Entry:
        """This one with what a row of truth about it adds."""
        return evolve(self, schemas={**other.schemas, **self.schemas}, gold=self.gold | other.gold)


def entry_of_task(task: Task) -> Entry:
    """What a task is known by."""
    schemas = dict(_schema(spec.name, spec.parameters) for spec in task.tools.values() if not spec.hidden)
    calls = [(call.tool, plain(dict(call.arguments))) for call in task.program.calls] if task.program else []
    gold = frozenset((_gold_key(calls),)) if calls else frozenset()
    return Entry(task.id, frozenset((task.id,)), task.query, schemas, gold)


def entry_of_row(row: Mapping[str, Any], name: str) -> Entry:
    """What a row is known by; total, since rows are others' data: what cannot be read is not there.

    An id that is a bare number is none: it says nothing outside of its own file.
    """
    places = [row, *(inner for key in _NESTED if isinstance(inner := row.get(key), Mapping))]
    ids = frozenset(
        value
        for place in places
        for key in _IDS
        if isinstance(value := place.get(key), str) and value and not value.isdigit()
    )
    prompt = next((text for key in _PROMPTS if (text := _prompt(row.get(key)))), "")
    schemas = dict(found for key in _TOOLS for found in _schemas(_read(row.get(key)), 0))
    if not prompt and isinstance(row.get("name"), str) and isinstance(row.get("parameters"), Mapping):
        schemas |= dict(_schemas(row, 0))  # a file of function definitions
    gold: frozenset[str] = frozenset()
    for place in places:
        for key in _CALLS:
            value = place.get(key)
            if key == "answers" and isinstance(value, Mapping) and isinstance(chosen := row.get("correct_answer"), str):
                value = value.get(chosen)  # When2Call: which of the answers is right
            gold = gold or frozenset(_gold(value))
    return Entry(name, ids, prompt, schemas, gold or _said(row.get("messages")))


def _read(value: Any) -> Any:
    """A value that may be JSON in a string."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


# Prompts --------------------------------------------------------------------------------------------------------------


def _prompt(value: Any) -> str:
    """The text of whoever asks: of a conversation what users say, of each of its turns."""
    if isinstance(value, str):
        return value
    return "\n".join(_user_texts(value, 0))


def _user_texts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, list) and depth < 3:
        for inner in value:
            yield from _user_texts(inner, depth + 1)
    elif isinstance(value, Mapping) and value.get("role", value.get("from")) in _USER:
        said = value.get("content", value.get("value"))
        parts = said if isinstance(said, list) else [said]
        for part in parts:
            text = part.get("text") if isinstance(part, Mapping) else part
            if isinstance(text, str) and text:
                yield text


# Schemas --------------------------------------------------------------------------------------------------------------


def _schemas(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    value = _read(value)
    if isinstance(value, list) and depth < 2:
        for inner in value:
            yield from _schemas(inner, depth + 1)
    elif isinstance(value, Mapping):
        inner = next((value[key] for key in _WRAPPED if isinstance(value.get(key), Mapping)), value)
        name = inner.get("name")
        if isinstance(name, str) and name:
            parameters = inner.get("parameters", inner.get("input_schema", inner.get("inputSchema")))
            try:
                yield _schema(name, parameters)
            except RecursionError:
                return


def _schema(name: str, parameters: Any) -> tuple[str, str]:
    """The key of a schema: name and parameters in one dialect, without descriptions and whatever orders nothing."""
    normal = _bare(normalise(_read(parameters)))
    if not normal.get("properties"):
        normal = {}
    return _canonical([name, normal]), name


def _bare(value: Any, named: bool = False) -> Any:
    """``named`` is inside ``properties``, where a key is a parameter's name, ``description`` among them."""
    if isinstance(value, Mapping):
        kept = {}
        for key, inner in value.items():
            if not named and (key in ("description", "title") or (key == "required" and not inner)):
                continue
            if not named and key == "required" and isinstance(inner, Sequence) and not isinstance(inner, str):
                inner = sorted(map(str, inner))
            kept[key] = _bare(inner, named=not named and key == "properties")
        return kept
    return [_bare(inner) for inner in value] if isinstance(value, list | tuple) else value


# Gold calls -----------------------------------------------------------------------------------------------------------

_Made = tuple[str, Mapping[str, Any]]


def _gold(value: Any) -> Iterator[str]:
    """A key for each accepted list of calls; nothing for what holds none."""
    value = _read(value)
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, list) or not value:
        return
    flat = [_read(one) for inner in value for one in (inner if isinstance(inner, list) else [inner])]
    try:
        accepted = [list(_accepted(one)) for one in flat]
        if not flat or not all(accepted):
            return
        most = 1
        for each in accepted:
            most *= len(each)
        if most > _MOST:
            accepted = [each[:1] for each in accepted]
        for calls in itertools.product(*accepted):
            yield _gold_key(calls)
    except RecursionError:
        return


def _accepted(one: Any) -> Iterator[_Made]:
    """The ways to write one call. BFCL lists the values of each argument; ``""`` among them lets it be left out."""
    if isinstance(one, str):
        if (made := _python_call(one)) is not None:
            yield made
        return
    if not isinstance(one, Mapping):
        return
    inner = next((one[key] for key in _WRAPPED if isinstance(one.get(key), Mapping)), one)
    if isinstance(name := inner.get("name"), str):
        arguments = _read(inner.get("arguments", inner.get("parameters", {})))
        if isinstance(arguments, Mapping):
            yield name, arguments
        return
    if len(one) != 1:
        return
    ((name, listed),) = one.items()
    if not isinstance(listed, Mapping) or not all(isinstance(values, list) and values for values in listed.values()):
        return
    ways = 1
    for values in listed.values():
        ways *= len(values)
    choices = listed.values() if ways <= _MOST else [values[:1] for values in listed.values()]
    for chosen in itertools.product(*choices):
        yield str(name), {key: value for key, value in zip(listed, chosen, strict=True) if value != ""}


def _python_call(text: str) -> _Made | None:
    """``tool(argument='value')``. Nothing of it is evaluated."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name | ast.Attribute):
            return None
        given = {str(place): ast.literal_eval(one) for place, one in enumerate(call.args)}
        given |= {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
        return ast.unparse(call.func), given
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None


def _said(messages: Any) -> frozenset[str]:
    """The calls that an assistant makes in a conversation, as one list."""
    if not isinstance(messages, list):
        return frozenset()
    calls = [
        call
        for one in messages
        if isinstance(one, Mapping) and one.get("role") == "assistant" and isinstance(one.get("tool_calls"), list)
        for call in one["tool_calls"]
    ]
    return frozenset(_gold(calls))


def _gold_key(calls: Iterable[_Made]) -> str:
    """One text for a list of calls, whatever their order."""
    return _canonical(sorted(_canonical([tool, arguments]) for tool, arguments in calls))


def readable_calls(key: str) -> str:
    """A key of gold calls for people."""
    calls = [json.loads(one) for one in json.loads(key)]
    return ", ".join(f"{tool}({json.dumps(arguments, ensure_ascii=False)})" for tool, arguments in calls)


def _canonical(value: Any) -> str:
    return json.dumps(_numbers(value), sort_keys=True, ensure_ascii=True, default=_foreign)


def _numbers(value: Any) -> Any:
    """2.0 is 2, as JSON Schema has it; keys are texts, so that they can be sorted."""
    if type(value) is float and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _numbers(inner) for key, inner in value.items()}
    return [_numbers(inner) for inner in value] if isinstance(value, list | tuple) else value


def _foreign(value: Any) -> str:
    """What a Python literal may be and JSON is not, such as a set or bytes."""
    return type(value).__name__ + (repr(sorted(map(repr, value))) if isinstance(value, set) else repr(value))
