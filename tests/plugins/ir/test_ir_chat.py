"""The chat forms, by example; «…» marks the text that a failure points at."""

from __future__ import annotations

import pytest

from callwright.errors import CannotExpress
from callwright.language.parser import ParseFailure, ParseLimits, Parser
from callwright.language.program import Call, Program, Reference
from callwright_plugins.chat_ir.hermes import HermesParser
from callwright_plugins.chat_ir.toolrl import ToolRLParser

TOOLRL, HERMES = ToolRLParser(), HermesParser()

ONE = '{"name": "f", "parameters": {"a": "API_RESPONSE_0"}}'
TWO = '{"parameters": {}, "name": "g"}'
CALLS = (Call(0, "f", {"a": "API_RESPONSE_0"}), Call(1, "g", {}))
HERMES_ONE, HERMES_TWO = ONE.replace("parameters", "arguments"), TWO.replace("parameters", "arguments")


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (f"<think>why</think>\n<tool_call>\n{ONE}\n</tool_call>", Program(CALLS[:1], "one", "why")),
        (f"<think>why</think>\n<tool_call>\n{ONE}\n{TWO}\n</tool_call>", Program(CALLS, "all", "why")),
        (f" <think>why</think><tool_call>{ONE}\r\n\n {TWO}</tool_call>\n", Program(CALLS, "all", "why")),
        (f"<think>why</think>\n<tool_call>\n{ONE}\n</tool_call>\n<response>hello</response>",
         Program(CALLS[:1], "one", "why")),
        ("<think>why</think>\n<response>The </tool_call> <tool_call> is 3.</response>", Program((), "one", "why")),
        (f"<think>a <tool_call> or </think> or <response></think><tool_call>{TWO}</tool_call>",
         Program((Call(0, "g", {}),), "one", "a <tool_call> or </think> or <response>")),
    ],
)  # fmt: skip
def test_toolrl(text: str, program: Program) -> None:
    found = TOOLRL.parse(text)
    assert found == program
    assert isinstance(found, Program)
    assert found.thought == program.thought


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (f"<tool_call>\n{HERMES_ONE}\n</tool_call>", Program(CALLS[:1])),
        (f"<think>\nwhy\n</think>\n\n<tool_call>{HERMES_ONE}</tool_call>\n<tool_call>\n{HERMES_TWO}\n</tool_call>\n",
         Program(CALLS, "all", "why")),
        (f"<think>a <tool_call></think>\nI look.\n<tool_call>{HERMES_ONE}</tool_call>",
         Program(CALLS[:1], "one", "a <tool_call>")),
        (f"Let me see.\n<tool_call>{HERMES_ONE}</tool_call>", Program(CALLS[:1], "one", "Let me see.")),
        ('<tool_call>{"name": "f",\n "arguments": {\n}}</tool_call>', Program((Call(0, "f"),))),
        ("It is 3.", Program()),
        ("<think>easy</think>It is 3.", Program((), "one", "easy")),
    ],
)  # fmt: skip
def test_hermes(text: str, program: Program) -> None:
    found = HERMES.parse(text)
    assert found == program
    assert isinstance(found, Program)
    assert found.thought == program.thought


THINK = "<think>why</think>\n"


def block(marked: str) -> str:
    return f"{THINK}<tool_call>\n{marked}\n</tool_call>"


@pytest.mark.parametrize(
    ("parser", "marked", "stage", "code"),
    [
        (TOOLRL, "«»", "envelope", "missing_think"),
        (TOOLRL, f" «»<tool_call>{ONE}</tool_call>", "envelope", "missing_think"),
        (TOOLRL, f"«Sure. »{block(ONE)}", "envelope", "leading_text"),
        (TOOLRL, f"«<think>»why<tool_call>{ONE}</tool_call>", "envelope", "unclosed_think"),
        (TOOLRL, "<think>why</think>« bye»", "envelope", "missing_tool_call"),
        (TOOLRL, f"<think>why</think>« so »<tool_call>{ONE}</tool_call>", "envelope", "text_between"),
        (TOOLRL, f"{THINK}«<tool_call>»{ONE}", "envelope", "unclosed_tool_call"),
        (TOOLRL, f"{THINK}«<response>»hi", "envelope", "unclosed_response"),
        (TOOLRL, f"{THINK}<tool_call>{ONE}</tool_call>«<response>»hi", "envelope", "unclosed_response"),
        (TOOLRL, f"{block(ONE)}\n«done»\n", "envelope", "trailing_text"),
        (TOOLRL, f"{block(ONE)} «then <response>hi</response>»", "envelope", "trailing_text"),
        (TOOLRL, f"{THINK}<response>hi</response> «x»", "envelope", "trailing_text"),
        (TOOLRL, f"{THINK}<tool_call>« \n »</tool_call>", "structure", "empty_body"),
        (TOOLRL, block('{"name": "f",« »'), "syntax", "invalid_json"),
        (TOOLRL, block(f"{ONE}«,»\n{TWO}"), "syntax", "invalid_json"),
        (TOOLRL, block(f"{ONE}\n«[{TWO}]»"), "structure", "call_not_object"),
        (TOOLRL, block('{"name": "f", «"arguments"»: {}}'), "structure", "unexpected_key"),
        (TOOLRL, block('«{"parameters": {}}»'), "structure", "missing_name"),
        (TOOLRL, block('  «{"name": "f"}»'), "structure", "missing_parameters"),
        (TOOLRL, block('{"name": «null», "parameters": {}}'), "structure", "invalid_name"),
        (TOOLRL, block('{"name": "f", «"name"»: "g", "parameters": {}}'), "structure", "duplicate_key"),
        (TOOLRL, block('{"name": "f", "parameters": {"a": 1, «"a"»: 1}}'), "arguments", "duplicate_key"),
        # The stages are in order: arguments that cannot be used are told only where the structure holds to the end.
        (TOOLRL, block('{"name": "f", "parameters": {"a": 1, "a": 1}}\n{"name": "g", «"name"»: "h", "parameters": {}}'),
         "structure", "duplicate_key"),
        (TOOLRL, block(f'{{"name": "f", "parameters": «["x"]»}}\n{TWO}'), "arguments", "arguments_not_object"),
        (TOOLRL, block('{"name": "f", "parameters": null}\n«3»'), "structure", "call_not_object"),
        (TOOLRL, block('{"name": "f", "parameters": {"a": «NaN»}}'), "syntax", "invalid_json"),
        (TOOLRL, block('{"name": "f", "parameters": {"a": «"\\udead"»}}'), "syntax", "lone_surrogate"),
        (HERMES, "«»", "envelope", "empty_answer"),
        (HERMES, "<think>why</think>« \n»", "envelope", "empty_answer"),
        (HERMES, "\n«<think>»why", "envelope", "unclosed_think"),
        (HERMES, f"«<tool_call>»{HERMES_ONE}", "envelope", "unclosed_tool_call"),
        (HERMES, f"x «</tool_call>»<tool_call>{HERMES_ONE}</tool_call>", "envelope", "unopened_tool_call"),
        (HERMES, "x «</tool_call>»", "envelope", "unopened_tool_call"),
        (HERMES, f"<tool_call>{HERMES_ONE}</tool_call> «and» <tool_call>{HERMES_TWO}</tool_call>", "envelope",
         "text_between"),
        (HERMES, f"<tool_call>{HERMES_ONE}</tool_call>\n«</tool_call>»", "envelope", "trailing_text"),
        (HERMES, "<tool_call> «»</tool_call>", "syntax", "invalid_json"),
        (HERMES, f"<tool_call>\n{HERMES_ONE}\n«{{»}}</tool_call>", "syntax", "invalid_json"),
        (HERMES, '<tool_call>{"name": "f", «"parameters"»: {}}</tool_call>', "structure", "unexpected_key"),
        (HERMES, '<tool_call>«{"name": "f"}»</tool_call>', "structure", "missing_arguments"),
        (HERMES, '<tool_call>{"arguments": «"{}"», "name": "f"}</tool_call>', "arguments", "arguments_not_object"),
    ],
)  # fmt: skip
def test_failures_and_where_they_point(parser: Parser, marked: str, stage: str, code: str) -> None:
    text = marked.replace("«", "").replace("»", "")
    failure = parser.parse(text)
    assert isinstance(failure, ParseFailure)
    assert (failure.stage, failure.code) == (stage, code), failure
    assert failure.span == (marked.index("«"), marked.index("»") - 1), text[slice(*failure.span)]


@pytest.mark.parametrize("factory", [ToolRLParser, HermesParser])
def test_limits(factory: type[ToolRLParser] | type[HermesParser]) -> None:
    parser = factory(limits=ParseLimits(calls=2, nesting=3))

    def program(calls: int, value: object) -> Program:
        return Program(tuple(Call(n, "f", {"a": value}) for n in range(calls)), "all" if calls > 1 else "one")

    deep: object = [[[1]]]
    assert parser.parse(factory().render(program(2, [[1]]))) == program(2, [[1]])
    for text, code in (
        (factory().render(program(3, 1)), "too_many_calls"),
        (factory().render(program(1, deep)), "too_deep"),
        ("x" * 400_001, "too_long"),
    ):
        failure = parser.parse(text)
        assert isinstance(failure, ParseFailure)
        assert (failure.stage, failure.code) == ("limit", code)
    with pytest.raises(CannotExpress):
        parser.render(program(3, 1))
    with pytest.raises(CannotExpress):
        parser.render(program(1, deep))


@pytest.mark.parametrize("factory", [ToolRLParser, HermesParser])
def test_what_would_be_too_long_to_read_is_not_written(factory: type[ToolRLParser] | type[HermesParser]) -> None:
    program = Program((Call(0, "f", {"a": "x" * 100}),))
    text = factory().render(program)
    fitting = factory(limits=ParseLimits(characters=len(text)))
    assert fitting.parse(fitting.render(program)) == program
    with pytest.raises(CannotExpress, match=f"takes {len(text)} characters, more than the limit of {len(text) - 1}"):
        factory(limits=ParseLimits(characters=len(text) - 1)).render(program)


@pytest.mark.parametrize("parser", [TOOLRL, HERMES])
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (Program((Call(0, "f", {"a": [Reference(0)]}),)), "no notation"),
        (Program((Call(1, "f"),)), "numbers calls"),
        (Program((Call(0, "f"),), "all"), "returns all"),
        (Program((Call(0, "f"), Call(1, "g")), "one"), "returns one"),
        (Program((), "all"), "returns all"),
        (Program((), "one", "a </think> <tool_call>"), "thought"),
        (Program((Call(0, "f", {"a": float("nan")}),)), "nan"),
    ],
)
def test_what_cannot_be_expressed(parser: Parser, program: Program, reason: str) -> None:
    with pytest.raises(CannotExpress, match=reason):
        parser.render(program)


def test_rendered_text() -> None:
    program = Program((Call(0, "f", {"a": "</tool_call>é"}), Call(1, "g")), "all", "because")
    assert TOOLRL.render(program) == (
        "<think>\nbecause\n</think>\n<tool_call>\n"
        '{"name": "f", "parameters": {"a": "\\u003c/tool_call>é"}}\n{"name": "g", "parameters": {}}\n</tool_call>'
    )
    assert HERMES.render(program) == (
        "<think>\nbecause\n</think>\n\n"
        '<tool_call>\n{"name": "f", "arguments": {"a": "\\u003c/tool_call>é"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>'
    )
    assert HERMES.render(Program((Call(0, "g"),))) == '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>'


def test_a_closing_tag_at_the_very_beginning_is_named() -> None:
    failure = HermesParser().parse("</tool_call>")
    assert isinstance(failure, ParseFailure)
    assert (failure.code, failure.span) == ("unopened_tool_call", (0, 12))
