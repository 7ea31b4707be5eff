"""The single-turn categories of a version: tasks for models, and verdicts as the official checker gives them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Literal

from attrs import field, frozen

from callwright.digests import digest_of
from callwright.environments.calling import unknown_tool
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import UnknownName
from callwright.language.messages import Message
from callwright.language.parser import Parser
from callwright.language.program import Call, Program
from callwright.measuring.benchmark import Judgement
from callwright.pickling import made_by
from callwright.tools.spec import ToolSpec
from callwright.walk.attempt import Attempt
from callwright.walk.limits import ONE_TURN
from callwright.walk.openings.opening import Opening
from callwright.walk.tasks import Answer, Task
from callwright_plugins.bfcl.reading import Entry, read_entries
from callwright_plugins.bfcl.single_turn.answers import OfficialAnswer, calls_of, official
from callwright_plugins.bfcl.single_turn.checking import Language, Rules, compiled, well_formed
from callwright_plugins.bfcl.single_turn.java_values import java_text
from callwright_plugins.bfcl.single_turn.javascript_values import javascript_text
from callwright_plugins.bfcl.versions import VERSIONS, kind_of

UNDECODED: Final = "ast_decoder:decoder_failed"


class SingleTurn:
    """The single-turn categories of ``v3`` or ``v4`` in a folder that holds its files.

    ``marked``: tasks say that they are of one turn, for runs that have others, too.
    """

    def __init__(self, version: str, folder: Path, *, marked: bool = False) -> None:
        self.version, self.folder = version, folder
        self._facts = {ONE_TURN: True} if marked else {}
        self._tasks: dict[str, list[Task]] = {}
        self._rules: dict[str, Rules] = {}

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """Every entry by id, category by category."""
        version = VERSIONS[self.version]
        categories = [one for one in version.sizes if kind_of(one) != "multi_turn"]
        return {entry.id: entry for one in categories for entry in read_entries(self.folder, version, one)}

    @cached_property
    def environment(self) -> CalledAsWritten:
        """Where the tasks' calls are executed: each gives itself."""
        tools: dict[str, ToolSpec] = {}
        for entry in self.entries.values():
            for spec in _tools(entry).values():
                tools.setdefault(spec.name, spec)
        return CalledAsWritten(tools, (_environment_of, self.version, str(self.folder)))

    def tasks(self, category: str) -> list[Task]:
        """The tasks of a category, in the order of its file."""
        if category not in self._tasks:
            entries = [entry for entry in self.entries.values() if entry.category == category]
            self._tasks[category] = [_task(entry, self.environment, self._facts) for entry in entries]
        return self._tasks[category]

    def answer(self, row: Mapping[str, Any], task: Task, parser: Parser) -> Attempt | None:
        """The answer of an official row: ``result`` as result files have it, or ``calls`` (decoded already)."""
        names = task.facts["names"]
        return official(row, task, parser, self.version, language_of(task.facts["category"]), names)

    def rules(self, task_id: str) -> Rules:
        """What an entry with gold calls allows; compiled once."""
        rules = self._rules.get(task_id)
        if rules is None:
            entry = self.entries[task_id]
            kind, language = _kind_and_language(entry.category)
            rules = self._rules[task_id] = compiled(kind, entry.functions, entry.gold, language)
        return rules

    def judge(self, task: Task, attempt: Attempt) -> Judgement:
        """What the official checker says of the calls of the first answer."""
        if isinstance(attempt, OfficialAnswer):
            calls = attempt.calls
        else:
            first = attempt.parts[0] if attempt.completions else None
            calls = calls_of(first, task.facts["names"]) if isinstance(first, Program) else None
        kind = kind_of(task.facts["category"])
        if kind in ("relevance", "irrelevance"):
            called = well_formed(calls) and bool(calls)
            if called == (kind == "relevance"):
                return Judgement(correct=True, score=1.0)
            error = "relevance_error:decoder_failed" if kind == "relevance" else "irrelevance_error:decoder_success"
        else:
            error = UNDECODED if calls is None else self.rules(task.id).error(calls)
        return Judgement(correct=not error, score=float(not error), error=error)


@cache
def _kind_and_language(category: str) -> tuple[Any, Language]:
    return kind_of(category), language_of(category)


def language_of(category: str) -> Language:
    """The language of an entry's values."""
    if category.endswith("javascript"):
        return "JavaScript"
    return "Java" if category.endswith("java") else "Python"


# Tasks ----------------------------------------------------------------------------------------------------------------


def names_of(entry: Entry) -> dict[str, str]:
    """The name that models are told -> the documented one: dots become ``_``, unless another function has that name."""
    documented = [function["name"] for function in entry.functions]
    found: dict[str, str] = {}
    for name in documented:
        told = name.replace(".", "_")
        found.setdefault(name if told != name and told in documented else told, name)
    return found


def _tools(entry: Entry) -> dict[str, ToolSpec]:
    language = language_of(entry.category)
    told = {documented: name for name, documented in names_of(entry).items()}
    made = {}
    for function in entry.functions:
        stated = {**function, "name": told[function["name"]]}
        if language != "Python":
            parameters = function["parameters"]
            texts = {
                name: {"type": "string", "description": _in_source(one, language)}
                for name, one in parameters["properties"].items()
            }
            stated["parameters"] = {**parameters, "properties": texts}
        made[stated["name"]] = ToolSpec.from_tier(stated)
    return made


def _in_source(parameter: Mapping[str, Any], language: str) -> str:
    inner = parameter["items"].get("type") if isinstance(parameter.get("items"), Mapping) else None
    kind = parameter["type"] + (f" of {inner}" if inner else "")
    return f"{parameter.get('description', '')} (source text of a {language} value: {kind})".strip()


def _task(entry: Entry, environment: Environment, facts: Mapping[str, Any]) -> Task:
    program = _program(entry)
    spoken = [one for one in entry.messages if one["role"] != "system"]
    system = [one["content"] for one in entry.messages if one["role"] == "system"]
    query = "\n\n".join([*system, spoken[-1]["content"]]) if spoken else "\n\n".join(system)
    history = tuple(Message.from_openai(one) for one in spoken[:-1])
    return Task(
        id=entry.id,
        query=query,
        tools=_tools(entry),
        answer=Answer(tuple({"name": call.tool, "arguments": dict(call.arguments)} for call in program.calls)),
        environment=environment,
        split=entry.category,
        depth=len(program.calls),
        chain=min(len(program.calls), 1),
        structure=program.structure,
        returns=program.returns,
        program=None if kind_of(entry.category) == "relevance" else program,
        facts={"category": entry.category, "names": names_of(entry), **facts},
        opening=Opening(history=history) if history else None,
    )


def _program(entry: Entry) -> Program:
    """The gold calls, with the first allowed value of everything that may not be left out."""
    told = {documented: name for name, documented in names_of(entry).items()}
    language = language_of(entry.category)
    kinds = {function["name"]: function["parameters"]["properties"] for function in entry.functions}
    required = {function["name"]: function["parameters"]["required"] for function in entry.functions}
    calls = []
    for number, gold in enumerate(entry.gold):
        name, allowed = next(iter(gold.items()))
        arguments = {}
        for key, values in allowed.items():
            if isinstance(values, list) and (not values or ("" in values and key not in required.get(name, ()))):
                continue
            chosen = next((one for one in values if one != ""), "") if isinstance(values, list) else values
            kind = str(kinds.get(name, {}).get(key, {}).get("type", ""))
            arguments[key] = _written(_chosen(chosen), kind, language)
        calls.append(Call(number, told.get(name, name.replace(".", "_")), arguments))
    several: Literal["one", "all"] = "all" if len(calls) > 1 else "one"
    return Program(tuple(calls), several)


def _chosen(value: Any) -> Any:
    """Of allowed objects, which hold lists of allowed values, one of each; members that may be left out are."""
    if isinstance(value, Mapping):
        return {
            key: next(one for one in values if one != "") if isinstance(values, list) and values else values
            for key, values in value.items()
            if not (isinstance(values, list) and "" in values)
        }
    return [_chosen(one) if isinstance(one, Mapping) else one for one in value] if isinstance(value, list) else value


def _written(value: Any, kind: str, language: Language) -> Any:
    if language == "Python":
        return value
    return java_text(value, kind) if language == "Java" else javascript_text(value, kind)


# Where calls are executed ---------------------------------------------------------------------------------------------


@frozen(eq=False)
class CalledAsWritten(Environment):
    """BFCL's single-turn functions do not exist: a call of one gives the call. ``made`` makes it again elsewhere."""

    tools: Mapping[str, ToolSpec] = field(repr=False)
    made: tuple[Any, ...] = field(repr=False)
    name: str = "bfcl"
    pure: bool = True
    takes_anything: Literal[True] = True

    def __reduce__(self) -> Any:
        return made_by(self, *self.made)

    def open(self, scenario: str = "", seed: int = 0) -> CalledSession:
        """A session; all are alike. Raises :class:`callwright.errors.UnknownName` for a scenario."""
        if scenario:
            raise UnknownName("scenario of bfcl", scenario, [])
        return CalledSession(self)


@frozen(eq=False)
class CalledSession(Session):
    """Has no state."""

    environment: CalledAsWritten

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """The call itself."""
        if tool not in self.environment.tools:
            return unknown_tool(tool)
        return Outcome("ok", {"name": tool, "arguments": arguments})

    def digest(self) -> str:
        """Always the same."""
        return digest_of(None)

    def close(self) -> None:
        """Nothing."""


def _environment_of(version: str, folder: str) -> CalledAsWritten:
    return SingleTurn(version, Path(folder)).environment
