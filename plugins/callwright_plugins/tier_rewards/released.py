"""What TIER's released code computes (facts measured on its scores), kept as a recipe of its own.

It differs from the paper in what counts as a mismatch, as an executed call and as the same answer. The differences
are listed in ``docs/divergences.md``, each with the test that pins it. References without a field are resolved as the
paper says; the released code stops at them, which makes its own gold completions fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final

from callwright.errors import Abstention
from callwright.language.long_numbers import json_text
from callwright.language.program import PREFIX, Call, plain
from callwright.language.shortening import shortened
from callwright.tools.compiled import CompiledTool
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import TABLE
from callwright.walk.attempt import Attempt
from callwright.walk.execution import ExecutionRules
from callwright.walk.reward import Evidence, RewardComponent, Score
from callwright.walk.tasks import Task
from callwright.walk.trace import Trace
from callwright_plugins.tier_rewards.components import FULL, PENALTY, masked, unreadable

#: A dangling reference is passed on as text, a missing field stands for the whole result, a failed call for null.
RULES: Final = ExecutionRules(unresolved="literal", missing_field="whole", after_failure="pass")

_REMEMBERED: Final = 4096

#: The parameter that the released validator never looks at.
_IGNORED: Final = "tag"

_PYTHON_TYPE: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),  # a bool is an int in Python, so it passes
    "number": (float,),  # and an int is not a float, so it does not
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


class Format(RewardComponent):
    """0 or 1: it parses. Dangling references are not looked at."""

    name: ClassVar[str] = "format"
    stage: ClassVar[str] = "format"

    def score(self, attempt: Attempt) -> Score:
        failure = attempt.failure
        if failure is None or failure.stage == "arguments":
            return FULL
        return Score(0.0, evidence=(Evidence(failure.code, failure.message),))


class Names(RewardComponent):
    """0 or 1: every name is a defined tool's."""

    name: ClassVar[str] = "names"
    stage: ClassVar[str] = "parse"

    def score(self, attempt: Attempt) -> Score:
        program = attempt.program
        if program is None:
            return unreadable(attempt)
        unknown = [call for call in program.calls if call.tool not in attempt.tools]
        if not unknown:
            return FULL
        return Score(
            0.0,
            evidence=tuple(
                Evidence("name", f"call {call.id}: no tool is named {call.tool!r}", call.id) for call in unknown
            ),
        )


class Parameters(RewardComponent):
    """clip(1 - 0.25 p, 0, 1) over leaf paths: an unknown tool's parameters all count as unexpected."""

    name: ClassVar[str] = "parameters"
    stage: ClassVar[str] = "parse"

    def score(self, attempt: Attempt) -> Score:
        """1, 0.75, 0.5, 0.25 or 0."""
        if attempt.program is None:
            return unreadable(attempt)
        evidence = []
        for call in attempt.program.calls:
            for code, path in _parameter_errors(call, attempt.tools.get(call.tool)):
                evidence.append(Evidence(code, f"call {call.id} {call.tool}.{path}: {code}", call.id, path))
        return _graded(evidence)


class Types(RewardComponent):
    """clip(1 - 0.25 p, 0, 1): leaves that are no instance of the Python type; any text like a reference passes."""

    name: ClassVar[str] = "types"
    stage: ClassVar[str] = "parse"

    def score(self, attempt: Attempt) -> Score:
        """1, 0.75, 0.5, 0.25 or 0."""
        if attempt.program is None:
            return unreadable(attempt)
        evidence = []
        for call in attempt.program.calls:
            spec = attempt.tools.get(call.tool)
            for path, expected in _type_errors(call, spec) if spec is not None else ():
                reason = f"call {call.id} {call.tool}.{path}: expected {expected}"
                evidence.append(Evidence("type", reason, call.id, path, expected))
        return _graded(evidence)


class Execution(RewardComponent):
    """0 or 1: no call raised, and what is returned can be written as JSON.

    Unknown tools return ``None`` in the released code, so they fail only where that is returned; so do results with
    status 500, which hold an exception (an ``execution_error`` here, with the result as its value).
    """

    name: ClassVar[str] = "execution"
    stage: ClassVar[str] = "execution"

    def score(self, attempt: Attempt) -> Score:
        trace = attempt.execution(RULES)
        if trace is None:
            return unreadable(attempt)
        unknown = None
        for step in trace.records:
            kind = step.outcome.kind
            if kind == "infrastructure_error":
                return masked(trace)
            if kind == "unknown":
                unknown = step
            elif kind not in ("ok", "empty", "partial", "unknown_tool") and not _holds_exception(step.outcome.value):
                reason = f"call {step.call} {step.tool} raised: {step.outcome.message}"
                return Score(0.0, evidence=(Evidence(step.outcome.code, reason, step.call),))
        if unknown is not None:
            raise Abstention(f"whether call {unknown.call} {unknown.tool} raised is not known")
        returned = trace.records if trace.returns == "all" else trace.records[-1:]
        for step in returned:
            if step.outcome.kind == "unknown_tool" or _holds_exception(step.outcome.value):
                reason = f"what call {step.call} {step.tool} returned cannot be written as JSON"
                return Score(0.0, evidence=(Evidence("not_serialisable", reason, step.call),))
        return FULL


class Answer(RewardComponent):
    """0 or 1: the text of ``{id: result}`` is the expected one, ids and key order included."""

    name: ClassVar[str] = "answer"
    stage: ClassVar[str] = "answer"

    def __init__(self) -> None:
        self._texts: dict[int, tuple[Task, str]] = {}

    def __reduce__(self) -> Any:
        return type(self), ()  # without the tasks that it has seen

    def _expected(self, task: Task) -> str:
        """The expected text, written once per task: a table of it can be a hundred kilobytes."""
        known = self._texts.get(id(task))
        if known is None or known[0] is not task:
            if len(self._texts) >= _REMEMBERED:
                self._texts.clear()
            known = self._texts[id(task)] = (task, _expected(task))
        return known[1]

    def score(self, attempt: Attempt) -> Score:
        trace = attempt.execution(RULES)
        if trace is None:
            return unreadable(attempt)
        expected, found = self._expected(attempt.task), _text(trace)
        if expected == found:
            return FULL
        reason = f"expected {_shown(expected)}, found {_shown(found)}"
        return Score(0.0, evidence=(Evidence("wrong_answer", reason, expected=_shown(expected), found=_shown(found)),))


# Counting


def _leaves(schema: Mapping[str, Any], prefix: str, required: bool) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Leaf paths of a parameter; where an object lists its properties, they replace it and none is required."""
    if schema.get("type") == "object" and schema.get("properties"):
        for name, inner in schema["properties"].items():
            yield from _leaves(inner, f"{prefix}.{name}", False)
    elif schema.get("type") == "array" and not schema.get(TABLE):
        items = schema.get("items") or {}
        if items.get("type") == "object" and items.get("properties"):
            yield from _leaves(items, f"{prefix}[*]", False)
        else:
            yield prefix, schema, required
    else:
        yield prefix, schema, required


def _values(value: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Leaf values; an empty list or object has none."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _values(inner, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _values(inner, f"{prefix}[{index}]")
    else:
        yield prefix, value


_Leaf = tuple[str, re.Pattern[str], Mapping[str, Any], bool]


@lru_cache(maxsize=4096)
def _leaves_of(tool: CompiledTool) -> tuple[_Leaf, ...]:
    """The leaf paths of a tool's parameters; found once per tool, as its compiled schema is."""
    required = set(tool.parameters.get("required", ()))
    return tuple(
        (path, re.compile(re.escape(path).replace(r"\[\*\]", r"\[\d+\]")), leaf, needed)
        for name, schema in tool.parameters.get("properties", {}).items()
        for path, leaf, needed in _leaves(schema, name, name in required)
    )


def _fits(leaf: _Leaf, path: str) -> bool:
    """Paths into arrays match as prefixes (so ``items[0].sku2`` passes for ``sku``), others exactly."""
    return leaf[1].match(path) is not None if "[" in path else leaf[0] == path


def _arguments(call: Call) -> list[tuple[str, Any]]:
    return [(path, value) for path, value in _values(plain(call.arguments), "") if path.split(".")[0] != _IGNORED]


def _parameter_errors(call: Call, spec: ToolSpec | None) -> Iterator[tuple[str, str]]:
    given = [path for path, _ in _arguments(call)]
    leaves = _leaves_of(spec.compiled) if spec is not None else ()
    for leaf in leaves:
        if leaf[3] and not any(_fits(leaf, path) for path in given):
            yield "missing", leaf[0]
    for path in given:
        if not any(_fits(leaf, path) for leaf in leaves):
            yield "unexpected", path


def _type_errors(call: Call, spec: ToolSpec) -> Iterator[tuple[str, str]]:
    leaves = _leaves_of(spec.compiled)
    for path, value in _arguments(call):
        schema = next((leaf[2] for leaf in leaves if _fits(leaf, path)), None)
        if schema is None or (isinstance(value, str) and value.startswith(PREFIX)):
            continue
        if schema.get(TABLE):
            yield path, "table"
            continue
        inside = "[" in path and schema.get("type") == "array"
        expected = str((schema.get("items") or {}).get("type") if inside else schema.get("type"))
        types = _PYTHON_TYPE.get(expected)
        if types is not None and not isinstance(value, types):
            yield path, expected


def _graded(evidence: list[Evidence]) -> Score:
    if not evidence:
        return FULL
    return Score(max(0.0, 1.0 - PENALTY * len(evidence)), evidence=tuple(evidence))


# Answers


def _holds_exception(value: Any) -> bool:
    if isinstance(value, dict):
        return "__repr__" in value or any(_holds_exception(inner) for inner in value.values())
    return False


def _text(trace: Trace) -> str:
    steps = trace.records if trace.returns == "all" else trace.records[-1:]
    return json_text({str(step.call): step.outcome.value for step in steps}) if steps else ""


def _expected(task: Task) -> str:
    if task.answer.is_no_call:
        return ""
    ids = task.facts.get("answer_ids")
    if ids is None:
        calls = task.program.calls if task.program is not None else ()
        ids = [str(call.id) for call in (calls if task.returns == "all" else calls[-1:])]
    return json_text(dict(zip(ids, task.answer.values, strict=False)))


def _shown(text: str) -> str:
    return shortened(text, 80, keep=77)
