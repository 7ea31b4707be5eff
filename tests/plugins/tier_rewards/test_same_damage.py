"""The same damage earns the same in json, xml and direct, component by component.

Programs are drawn in the abstract, damaged, and written in each form by writers of this file, because a form's own
renderer refuses some of the damage.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest
from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

import callwright as cw
from callwright.environments.protocol import Outcome
from callwright.tools.spec import ToolSpec

FORMS = ("json", "xml", "direct")


#: The type of what each tool returns.
RESULTS = {"Say": "string", "Count": "integer", "Scale": "number", "Sum": "number"}


def spec(name: str, properties: dict[str, Any], required: list[str]) -> ToolSpec:
    parameters = {"type": "object", "properties": properties, "required": required}
    returns = {"type": "object", "properties": {"value": {"type": RESULTS[name]}}}
    return ToolSpec(name, "?", parameters, result=returns, result_field="value")


TEXT, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
TOOLS = {
    "Say": spec("Say", {"text": TEXT, "loud": {"type": "boolean"}}, ["text"]),
    "Count": spec("Count", {"text": TEXT, "least": INTEGER}, ["text", "least"]),
    "Scale": spec(
        "Scale",
        {"number": NUMBER, "by": {"type": "object", "properties": {"factor": NUMBER}, "required": ["factor"]}},
        ["number", "by"],
    ),
    "Sum": spec("Sum", {"numbers": {"type": "array", "items": NUMBER}}, ["numbers"]),
}


class World:
    """Four functions of their arguments that take whatever they get; only a missing argument fails."""

    name = "world"
    tools = TOOLS
    pure = True

    def open(self, scenario: str = "", seed: int = 0) -> World:
        return self

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        for name in TOOLS[tool].parameters["required"]:
            if name not in arguments:
                return Outcome("schema_error", None, "missing", f"{name} is missing")
        return Outcome("ok", {"value": json.dumps([tool, arguments], sort_keys=True)})

    def digest(self) -> str:
        return ""

    def close(self) -> None:
        pass


@frozen
class Ref:
    """A reference by the text of its id, the name of its tool as XML says it, and a field."""

    call: str
    tool: str
    field: str = ""


@frozen
class Written:
    """A call as it is written: its id, its tool and its arguments, which may repeat a key."""

    call: str
    tool: str
    arguments: tuple[tuple[str, Any], ...]


# Writers


def as_json(calls: tuple[Written, ...]) -> str:
    def value(of: Any) -> str:
        if isinstance(of, Ref):
            return json.dumps(f"API_RESPONSE_{of.call}" + (f".{of.field}" if of.field else ""))
        if isinstance(of, dict):
            return members(tuple(of.items()))
        if isinstance(of, list):
            return f"[{', '.join(map(value, of))}]"
        return json.dumps(of)

    def members(of: tuple[tuple[str, Any], ...]) -> str:
        return "{" + ", ".join(f"{json.dumps(key)}: {value(inner)}" for key, inner in of) + "}"

    return "{" + ", ".join(f'"{one.call}": {{"{one.tool}": {members(one.arguments)}}}' for one in calls) + "}"


def as_xml(calls: tuple[Written, ...]) -> str:
    def element(tag: str, name: str | None, of: Any) -> str:
        named = "" if name is None else f" name={quoteattr(name)}"
        if isinstance(of, Ref):
            field = f" field={quoteattr(of.field)}" if of.field else ""
            response = f"<response api_id={quoteattr(of.call)} api_name={quoteattr(of.tool)}{field}/>"
            return f"<{tag}{named}>{response}</{tag}>"
        if of is None:
            kind, content = "null", ""
        elif isinstance(of, bool):
            kind, content = "boolean", str(of).lower()
        elif isinstance(of, float) and of.is_integer():  # the type that the schema of an integer asks for
            kind, content = "integer", repr(of)
        elif isinstance(of, int | float):
            kind, content = ("integer" if isinstance(of, int) else "float"), repr(of)
        elif isinstance(of, str):
            kind, content = "string", escape(of)
        elif isinstance(of, dict):
            kind, content = "object", "".join(element("field", key, inner) for key, inner in of.items())
        else:
            kind, content = "array", "".join(element("item", None, inner) for inner in of)
        return f'<{tag}{named} type="{kind}">{content}</{tag}>'

    return "".join(
        f'<api id="{one.call}"><name>{one.tool}</name>'
        + "".join(element("param", key, inner) for key, inner in one.arguments)
        + "</api>"
        for one in calls
    )


def as_direct(calls: tuple[Written, ...]) -> str:
    def value(of: Any) -> str:
        if isinstance(of, Ref):
            return f"API_RESPONSE_{of.call}" + (f".{of.field}" if of.field else "")
        if isinstance(of, dict):
            return "{" + ", ".join(f"{key!r}: {value(inner)}" for key, inner in of.items()) + "}"
        return f"[{', '.join(map(value, of))}]" if isinstance(of, list) else repr(of)

    return (
        "["
        + ", ".join(f"{one.tool}({', '.join(f'{key}={value(of)}' for key, of in one.arguments)})" for one in calls)
        + "]"
    )


WRITERS: dict[str, Callable[[tuple[Written, ...]], str]] = {"json": as_json, "xml": as_xml, "direct": as_direct}


# Programs

texts = st.sampled_from(["red", "a & b", "<x>", "api_response_0", "it's", "7"])
#: A literal of each type, and of the wrong ones.
literals = {
    "string": texts,
    "integer": st.integers(-9, 9) | st.sampled_from([255.0, -2.0]),
    "number": st.integers(-9, 9) | st.floats(-9, 9, allow_nan=False),
    "boolean": st.booleans(),
}
wrong = {
    "string": st.integers(1, 9) | st.none() | st.booleans(),
    "integer": texts | st.booleans() | st.just(2.5) | st.none(),
    "number": texts | st.booleans() | st.none(),
    "boolean": texts | st.integers(2, 9),
}


@st.composite
def programs(draw: st.DrawFn) -> tuple[Written, ...]:
    """Two to five right calls, some of which take an earlier result of the right type."""
    calls: list[Written] = []
    for number in range(draw(st.integers(2, 5))):
        tool = draw(st.sampled_from(sorted(TOOLS)))

        def leaf(schema: dict[str, Any], number: int = number) -> Any:
            fitting = [call for call in calls if RESULTS[call.tool] == schema["type"]]
            if fitting and draw(st.booleans()):
                source = draw(st.sampled_from(fitting))
                return Ref(source.call, source.tool, draw(st.sampled_from(["", "value"])))
            return draw(literals[schema["type"]])

        arguments = {}
        for name, schema in TOOLS[tool].parameters["properties"].items():
            if name not in TOOLS[tool].parameters["required"] and draw(st.booleans()):
                continue
            if schema["type"] == "array":
                arguments[name] = [leaf(schema["items"]) for _ in range(draw(st.integers(0, 2)))]
            elif schema["type"] == "object":
                arguments[name] = {"factor": leaf(schema["properties"]["factor"])}
            else:
                arguments[name] = leaf(schema)
        calls.append(Written(str(number), tool, tuple(arguments.items())))
    return tuple(calls)


def place(draw: st.DrawFn, calls: tuple[Written, ...], kinds: tuple[str, ...]) -> tuple[int, int, str]:
    """A call, one of its arguments of these types, and the type."""
    found = [
        (at, position, TOOLS[call.tool].parameters["properties"][key]["type"])
        for at, call in enumerate(calls)
        for position, (key, _) in enumerate(call.arguments)
        if TOOLS[call.tool].parameters["properties"][key]["type"] in kinds
    ]
    return draw(st.sampled_from(found)) if found else (-1, -1, "")


def replaced(calls: tuple[Written, ...], at: int, **changes: Any) -> tuple[Written, ...]:
    return (*calls[:at], evolve(calls[at], **changes), *calls[at + 1 :])


def with_argument(calls: tuple[Written, ...], at: int, position: int, value: Any) -> tuple[Written, ...]:
    arguments = list(calls[at].arguments)
    arguments[position] = (arguments[position][0], value)
    return replaced(calls, at, arguments=tuple(arguments))


def said(value: Any, number: str) -> Any:
    """The value with the misspelt name in references to this call too, as XML says it."""
    if isinstance(value, Ref):
        return evolve(value, tool="Sey") if value.call == number else value
    if isinstance(value, dict):
        return {key: said(inner, number) for key, inner in value.items()}
    return [said(inner, number) for inner in value] if isinstance(value, list) else value


SCALARS = ("string", "integer", "number", "boolean")
DAMAGE = (
    "none",
    "missing",
    "unexpected",
    "wrong type",
    "wrong name",
    "self",
    "future",
    "nonexistent",
    "too long an id",
    "no id",
    "wrong field",
    "no field",
    "whole number",
    "duplicate key",
)
#: What is certain of a damaged program that was right before: the total if its answer is not the expected one.
CERTAIN = {
    "none": 0.5,
    "wrong name": 0.1,
    "self": 0.4,
    "future": 0.4,
    "nonexistent": 0.4,
    "too long an id": 0.4,
    "no id": 0.4,
    "wrong field": 0.4,
    "no field": 0.4,
    "whole number": 0.5,
    "duplicate key": 0.1,
    "duplicate id": 0.0,
    "unexpected": 0.475,
    "wrong type": 0.475,
}


def damaged(draw: st.DrawFn, calls: tuple[Written, ...], damage: str) -> tuple[Written, ...] | None:
    """The program with one defect; ``None`` if it has no place for it."""
    any_call = draw(st.integers(0, len(calls) - 1))
    arguments = calls[any_call].arguments
    if damage == "none":
        return calls
    if damage == "missing":
        required = TOOLS[calls[any_call].tool].parameters["required"]
        needed = [position for position, (key, _) in enumerate(arguments) if key in required]
        if not needed:
            return None
        lost = draw(st.sampled_from(needed))
        return replaced(calls, any_call, arguments=arguments[:lost] + arguments[lost + 1 :])
    if damage == "unexpected":
        return replaced(calls, any_call, arguments=(*arguments, ("extra", draw(texts))))
    if damage == "wrong name":
        return tuple(
            evolve(call, arguments=tuple((key, said(value, calls[any_call].call)) for key, value in call.arguments))
            for call in replaced(calls, any_call, tool="Sey")
        )
    if damage == "duplicate key":
        return replaced(calls, any_call, arguments=(*arguments, arguments[0])) if arguments else None
    if damage == "whole number":
        at, position, _ = place(draw, calls, ("integer",))
        return with_argument(calls, at, position, 255.0) if at >= 0 else None
    at, position, kind = place(draw, calls, SCALARS)
    if at < 0:
        return None
    if damage == "wrong type":
        return with_argument(calls, at, position, draw(wrong[kind]))
    if damage in ("wrong field", "no field"):
        fitting = [
            (at, position, source)
            for at, call in enumerate(calls)
            for position, (key, _) in enumerate(call.arguments)
            for source in calls[:at]
            if TOOLS[call.tool].parameters["properties"][key]["type"] in SCALARS
        ]
        if not fitting:
            return None
        at, position, source = draw(st.sampled_from(fitting))
        field = "nowhere" if damage == "wrong field" else draw(st.sampled_from(["a..b", "a[x]", "a."]))
        return with_argument(calls, at, position, Ref(source.call, source.tool, field))
    if damage == "future" and at == len(calls) - 1:
        return None
    number = {
        "self": str(at),
        "future": str(at + 1),
        "nonexistent": "42",
        "too long an id": draw(st.sampled_from(["1000000000", "9" * 30])),
        "no id": draw(st.sampled_from(["x", "", "one"])),
    }[damage]
    tool = calls[int(number)].tool if damage in ("self", "future") else draw(st.sampled_from(sorted(TOOLS)))
    return with_argument(calls, at, position, Ref(number, tool, draw(st.sampled_from(["", "value"]))))


def score(body: str, form: str, recipe: str, values: tuple[Any, ...] = ("never",)) -> cw.Reward:
    task = cw.Task(id="t", query="?", tools=TOOLS, answer=cw.Answer(values), environment=World())
    text = f'<think>so</think>\n<tool_call return="one">{body}</tool_call>'
    return cw.reward(recipe).score(task, text, ir=form)


def seen(reward: cw.Reward) -> tuple[Any, ...]:
    parts = tuple((name, weighted.score.value, weighted.closed) for name, weighted in reward.scores.items())
    return reward.total, reward.stage, parts


@pytest.mark.parametrize("damage", DAMAGE)
@settings(derandomize=True, max_examples=80, deadline=None)
@given(data=st.data())
def test_equal_damage_equal_score(damage: str, data: st.DataObject) -> None:
    calls = damaged(data.draw, data.draw(programs()), damage)
    if calls is None:
        return
    recipe = data.draw(st.sampled_from(["tier", "tier-guarded", "tier-strict", "tier-no-parse", "simple"]))
    found = {form: seen(score(WRITERS[form](calls), form, recipe)) for form in FORMS}
    assert found["json"] == found["xml"] == found["direct"], {form: WRITERS[form](calls) for form in FORMS}
    if recipe in ("tier", "tier-guarded") and damage in CERTAIN:
        assert found["json"][0] == pytest.approx(CERTAIN[damage])


@settings(derandomize=True, max_examples=80, deadline=None)
@given(st.data())
def test_two_kinds_of_damage_score_equally(data: st.DataObject) -> None:
    """And neither hides the other: the total is that of both."""
    calls: tuple[Written, ...] | None = data.draw(programs())
    kinds = st.sampled_from(["missing", "unexpected", "nonexistent"])
    for damage in data.draw(st.lists(kinds, min_size=2, max_size=3)):
        assert calls is not None
        if any(key == "extra" for call in calls for key, _ in call.arguments) or not all(c.arguments for c in calls):
            break
        calls = damaged(data.draw, calls, damage) or calls
    assert calls is not None
    found = {form: seen(score(WRITERS[form](calls), form, "tier")) for form in FORMS}
    assert found["json"] == found["xml"] == found["direct"]


@settings(derandomize=True, max_examples=60, deadline=None)
@given(programs(), st.data())
def test_two_calls_with_one_id_are_malformed(calls: tuple[Written, ...], data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(calls) - 1))
    twice = replaced(calls, at, call=calls[0].call)
    for form in ("json", "xml"):  # in direct the position is the id
        assert score(WRITERS[form](twice), form, "tier").total == 0


@settings(derandomize=True, max_examples=60, deadline=None)
@given(programs(), st.data())
def test_a_name_that_contradicts_its_id_is_no_reference(calls: tuple[Written, ...], data: st.DataObject) -> None:
    at, position, _ = place(data.draw, calls[1:], SCALARS)
    if at < 0:
        return
    named = next(tool for tool in sorted(TOOLS) if tool != calls[0].tool)
    wrong = with_argument(calls, at + 1, position, Ref(calls[0].call, named))
    gone = with_argument(calls, at + 1, position, Ref("42", named))
    assert seen(score(as_xml(wrong), "xml", "tier")) == seen(score(as_json(gone), "json", "tier"))
    reward = score(as_xml(wrong), "xml", "tier")
    assert reward.total == pytest.approx(0.4)
    assert f"API_RESPONSE_0 of {named}" in reward.explain()


@settings(derandomize=True, max_examples=60, deadline=None)
@given(programs())
def test_comments_and_cdata_change_nothing(calls: tuple[Written, ...]) -> None:
    body = as_xml(calls)
    commented = body.replace("<name>", "<!-- <api id='9'> & --><name>").replace("</api>", "<!----></api>")
    cdata = commented.replace(">a &amp; b<", "><![CDATA[a & b]]><").replace(">&lt;x&gt;<", "><![CDATA[<x>]]><")
    parser = cw.parser("xml")
    envelope = '<think>so</think><tool_call return="one">{}</tool_call>'.format
    assert parser.parse(envelope(cdata)) == parser.parse(envelope(commented)) == parser.parse(envelope(body))
    assert isinstance(parser.parse(envelope(body)), cw.Program)
