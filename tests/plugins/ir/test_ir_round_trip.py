"""``parse(render(program)) == program`` in every form, for every program that ``render`` accepts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callwright.errors import CannotExpress
from callwright.language.parser import Parser
from callwright.language.program import Call, Program, Reference, Returns
from callwright_plugins.chat_ir.hermes import HermesParser
from callwright_plugins.chat_ir.toolrl import ToolRLParser
from callwright_plugins.direct_ir.parser import DirectParser
from callwright_plugins.json_ir.parser import JsonParser
from callwright_plugins.xml_ir.parser import XmlParser

TAGS = ("</tool_call>", '<tool_call return="one">', "</think>", "<think>", "]]>", "&amp;", "\\u0041", "\\", "'\"")
CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXT = st.text(CHARACTERS, max_size=8) | st.lists(st.sampled_from((*TAGS, " ", "\n", "\r\n", "\t")), max_size=3).map(
    "".join
)
KEYS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=".[]"), min_size=1, max_size=6)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**30, max_value=10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.\-]{0,8}", fullmatch=True)


@st.composite
def programs(draw: st.DrawFn, *, references: bool) -> Program:
    """Programs numbered 0, 1, 2 …, with references to any of their calls, in the order of any fancy of keys."""
    count = draw(st.integers(0, 4))
    leaves: st.SearchStrategy[Any] = SCALARS
    if references and count:
        paths = st.lists(KEYS | st.just("unit price") | st.integers(0, 999), max_size=3).map(tuple)
        leaves = leaves | st.tuples(st.integers(0, count - 1), paths).map(lambda made: Reference(*made))
    values = st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
        max_leaves=5,
    )
    arguments = st.dictionaries(NAMES, values, max_size=3)
    calls = tuple(Call(number, draw(NAMES), draw(arguments)) for number in range(count))
    returns: Returns = draw(st.sampled_from(("one", "all")))
    return Program(calls, returns, draw(TEXT))


def exactly(value: Any) -> Any:
    """A value that is equal only to values of the same types: True is not 1, and 1 is not 1.0."""
    if isinstance(value, dict):
        return {key: exactly(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [exactly(inner) for inner in value]
    return type(value), repr(value)


def survives(parser: Parser, program: Program) -> bool:
    try:
        text = parser.render(program)
    except CannotExpress:
        return False
    found = parser.parse(text)
    assert found == program
    assert isinstance(found, Program)
    assert [exactly(call.arguments) for call in found.calls] == [exactly(call.arguments) for call in program.calls]
    assert [list(call.arguments) for call in found.calls] == [list(call.arguments) for call in program.calls]
    assert found.thought == program.thought.strip()
    return True


def has_reference_text(value: Any) -> bool:
    if isinstance(value, dict):
        return any(has_reference_text(inner) for inner in value.values())
    if isinstance(value, list):
        return any(has_reference_text(inner) for inner in value)
    return isinstance(value, str) and Reference.parse(value) is not None


def texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(text for inner in value.values() for text in texts(inner))]
    if isinstance(value, list):
        return [text for inner in value for text in texts(inner)]
    return [str(value)] if isinstance(value, str | Reference) else []


def ends_itself(thought: str, tags: str) -> bool:
    return re.search(rf"</think>\s*(?:{tags})", f"{thought}\n") is not None


SLOW = settings(derandomize=True, max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)


@SLOW
@given(programs(references=True))
def test_json_and_direct(program: Program) -> None:
    expressible = not ends_itself(program.thought, "<tool_call return") and not any(
        has_reference_text(call.arguments) for call in program.calls
    )
    assert survives(JsonParser(), program) == expressible
    assert survives(DirectParser(), program) == expressible


@SLOW
@given(programs(references=True))
def test_xml(program: Program) -> None:
    outside = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
    expressible = not ends_itself(program.thought, "<tool_call return") and not any(
        outside.search(text) for call in program.calls for text in texts(call.arguments)
    )
    assert survives(XmlParser(), program) == expressible


@SLOW
@given(programs(references=False))
def test_chat_forms(program: Program) -> None:
    program = evolve(program, returns="all" if len(program.calls) > 1 else "one")
    assert survives(HermesParser(), program) == ("</think>" not in program.thought)
    assert survives(ToolRLParser(), program) == (not ends_itself(program.thought, "<tool_call>|<response>"))


@pytest.mark.parametrize("parser", [JsonParser(), XmlParser()], ids=["json", "xml"])
def test_ids_with_gaps(parser: Parser) -> None:
    assert survives(parser, Program((Call(3, "T"), Call(10, "U", {"a": Reference(3)}), Call(999_999_999, "V"))))


def test_literal_text_of_the_form_of_a_reference() -> None:
    program = Program((Call(0, "T", {"a": "API_RESPONSE_0", "b": ["API_RESPONSE_1.x"]}),))
    assert survives(XmlParser(), program)
    assert survives(HermesParser(), program)
    assert survives(ToolRLParser(), program)
    assert not survives(JsonParser(), program)
    assert not survives(DirectParser(), program)


@pytest.mark.parametrize(
    "parser",
    [JsonParser(), XmlParser(), DirectParser(), ToolRLParser(), HermesParser()],
    ids=lambda parser: parser.name,
)
def test_edges_that_every_form_expresses(parser: Parser) -> None:
    nested: Any = "leaf"
    for level in range(63):
        nested = [nested] if level % 2 else {"k": nested}
    values = {
        "deep": nested,
        "big": 10**4300 - 1,
        "low": -(10**4300 - 1),
        "tiny": 5e-324,
        "huge": 1.7e308,
        "zero": -0.0,
    }
    assert survives(parser, Program((Call(0, "T", values),)))
    assert survives(parser, Program(()))
    many = tuple(Call(number, "T") for number in range(256))
    assert survives(parser, Program(many, "all"))
