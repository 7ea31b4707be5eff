"""TIER's JSON form, by example; «…» marks the text that a failure points at."""

from __future__ import annotations

import re
import sys

import pytest

from callwright.errors import CannotExpress
from callwright.language.parser import ParseFailure, ParseLimits
from callwright.language.program import NO_CALL, Call, Program, Reference
from callwright_plugins.json_ir.parser import JsonParser

PARSER = JsonParser()


def complete(body: str) -> str:
    return f'<think>\nwhy\n</think>\n<tool_call return="one">{body}</tool_call>'


def calls(body: str) -> tuple[Call, ...]:
    program = PARSER.parse(complete(body))
    assert isinstance(program, Program), program
    return program.calls


def one_argument(value: str) -> str:
    return f'{{"0": {{"T": {{"a": {value}}}}}}}'


def argument(value: str) -> object:
    return calls(one_argument(value))[0].arguments["a"]


def test_example_of_the_appendix() -> None:
    body = '{ "0": { "API_NAME_0": { "P_0": 1, "P_1": "x" } }, "1": { "API_NAME_1": { "P_0": "API_RESPONSE_0" } } }'
    assert PARSER.parse(complete(body)) == Program(
        (Call(0, "API_NAME_0", {"P_0": 1, "P_1": "x"}), Call(1, "API_NAME_1", {"P_0": Reference(0)}))
    )
    assert PARSER.parse(complete(" {\n} ")) == Program()


def test_thought_and_returns() -> None:
    program = PARSER.parse('<think> why not </think><tool_call return="all">{"0": {"T": {}}}</tool_call>')
    assert isinstance(program, Program)
    assert (program.thought, program.returns) == ("why not", "all")


def test_calls_are_ordered_by_number_whatever_the_order_of_the_members() -> None:
    assert [call.id for call in calls('{"10": {"T": {}}, "9": {"T": {}}, "007": {"T": {}}, "0": {"T": {}}}')] == [
        0,
        7,
        9,
        10,
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"API_RESPONSE_0"', Reference(0)),
        ('"API_RESPONSE_12.items[3].unit price"', Reference(12, ("items", 3, "unit price"))),
        ('[{"b": ["API_RESPONSE_1[0]"]}]', [{"b": [Reference(1, (0,))]}]),
        ('"\\u0041PI_RESPONSE_0"', Reference(0)),
        ('"use API_RESPONSE_0"', "use API_RESPONSE_0"),
        ('"API_RESPONSE_"', Reference(NO_CALL, ("",))),
        ('"API_RESPONSE_1234567890.a"', Reference(NO_CALL, ("1234567890.a",))),
        ('"api_response_0"', "api_response_0"),
        ('{"API_RESPONSE_0": 1}', {"API_RESPONSE_0": 1}),
        (f'"API_RESPONSE_0.{"x" * 60}"', Reference(0, ("x" * 60,))),
        ("12345678901234567890123", 12345678901234567890123),
        ('"\\ud83d\\ude00 & < \\u003c/tool_call>"', "😀 & < </tool_call>"),
        ('"\\\\ud800"', "\\ud800"),
        ("[null, true, false, -0.5, 1e3, {}]", [None, True, False, -0.5, 1000.0, {}]),
    ],
)  # fmt: skip
def test_values(text: str, value: object) -> None:
    found = argument(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("marked", "stage", "code"),
    [
        ("«»", "syntax", "invalid_json"),
        ("  «»", "syntax", "invalid_json"),
        ('{"0": {"T": {}}« »', "syntax", "invalid_json"),
        ('\n«`»``json\n{}\n```', "syntax", "invalid_json"),
        ('{"0": {"T": {}}} «x»', "syntax", "invalid_json"),
        ('{"0": {"T": {}},«}»', "syntax", "invalid_json"),
        ("{«'»0': {'T': {}}}", "syntax", "invalid_json"),
        ('{"0": {"T": {"a": «N»one}}}', "syntax", "invalid_json"),
        ('{"0": {"T": {"a": «NaN», "b": "NaN"}}}', "syntax", "invalid_json"),
        ('{"0": {"T": {"-Infinity": «-Infinity»}}}', "syntax", "invalid_json"),
        ('{"0": {"T": {"a": «1e999»}}}', "syntax", "invalid_json"),
        ('{"0": {"T": {"a": 1, "a": 2}}, «}»', "syntax", "invalid_json"),
        ('{"0": {"T": {"a": «"x\\ud800"»}}}', "syntax", "lone_surrogate"),
        ('{"0": {"T": {«"\\uDFFF"»: 1}}}', "syntax", "lone_surrogate"),
        ('{"0": {"T": {"a": "x«\ud83d»"}}}', "syntax", "lone_surrogate"),
        ('«[{"T": {}}]»', "structure", "not_an_object"),
        (" «null» ", "structure", "not_an_object"),
        ('«"API_RESPONSE_0"»', "structure", "not_an_object"),
        ('{«"call_0"»: {"T": {}}}', "structure", "invalid_id"),
        ('{"0": {"T": {}}, «"²"»: {"T": {}}}', "structure", "invalid_id"),
        ('{«"-1"»: {"T": {}}}', "structure", "invalid_id"),
        ('{«""»: {"T": {}}}', "structure", "invalid_id"),
        ('{«"1234567890"»: {"T": {}}}', "structure", "invalid_id"),
        ('{"0": {"T": {}}, «"0"»: {"U": {}}}', "structure", "duplicate_id"),
        ('{"0": {"T": {"a": [1, {"x": "}"}]}}, «"00"»: {"U": {}}}', "structure", "duplicate_id"),
        ('{"0": {"T": {}}, "1": «"T"»}', "structure", "call_not_object"),
        ('{"0": «{}», "1": {"T": {}}}', "structure", "empty_call"),
        ('{"0": «{"T": {}, "U": {}}»}', "structure", "several_tools"),
        ('{"0": {"T": {}, «"T"»: {}}}', "structure", "several_tools"),
        ('{"0": {"T": «"x"»}}', "arguments", "arguments_not_object"),
        ('{"0": {"T": «null»}, "1": {"U": []}}', "arguments", "arguments_not_object"),
        ('{"0": {"T": {"a": [{"k": 1, «"\\u006b"»: 2}]}}}', "arguments", "duplicate_key"),
        # what is wrong with the tree of calls is said before what is wrong with arguments
        ('{"0": {"T": null}, "1": «{}»}', "structure", "empty_call"),
        ('{"0": {"T": {"a": 1, "a": 2}}, «"x"»: {"T": {}}}', "structure", "invalid_id"),
        ('{"1": {"T": null}, «"01"»: {"T": {}}}', "structure", "duplicate_id"),
        ('{"0": {"T": {"a": 1, "a": 2}}, «"0"»: {"T": {}}}', "structure", "duplicate_id"),
        ('{"0": {"T": {"a": 1, "a": 2}}, "1": {"T": {}, «"T"»: {}}}', "structure", "several_tools"),
        ('«[{"T": {}, "T": {}}]»', "structure", "not_an_object"),
    ],
)  # fmt: skip
def test_failures_and_where_they_point(marked: str, stage: str, code: str) -> None:
    text = complete(marked.replace("«", "").replace("»", ""))
    failure = PARSER.parse(text)
    assert isinstance(failure, ParseFailure)
    assert (failure.stage, failure.code) == (stage, code), failure
    whole = complete(marked)
    start, end = whole.index("«"), whole.index("»") - 1
    comma = text.rindex(",", 0, start) if re.search(r",\s*«}»", marked) else start
    # A comma too many is reported where it stands from Python 3.13 on, and where the next name should stand before.
    assert failure.span in ((start, end), (comma, comma + 1)), text[slice(*failure.span)]


def test_limits() -> None:
    assert isinstance(PARSER.parse(complete(one_argument("[" * 63 + "]" * 63))), Program)
    assert isinstance(PARSER.parse(complete(one_argument(f'"{"[" * 500}"'))), Program)
    many = ", ".join(f'"{number}": {{"T": {{}}}}' for number in range(257))
    for text, code in (
        (complete(one_argument("[" * 64 + "]" * 64)), "too_deep"),
        (complete("[" * 100_000), "too_deep"),
        (complete('{"0":' * 50_000), "too_deep"),
        (complete(one_argument("9" * 4301)), "number_too_long"),
        (complete(one_argument("0." + "9" * 4301)), "number_too_long"),
        (complete(f"{{{many}}}"), "too_many_calls"),
        ("x" * 400_001, "too_long"),
    ):
        failure = PARSER.parse(text)
        assert isinstance(failure, ParseFailure)
        assert (failure.stage, failure.code) == ("limit", code)
    assert argument("-" + "9" * 4300) == -(10**4300 - 1)


def test_no_recursion_error_with_limits_beyond_the_interpreter() -> None:
    parser = JsonParser(limits=ParseLimits(nesting=10**6))
    for depth in (*range(800, 1000, 5), 100_000):
        result = parser.parse(complete(one_argument("[" * depth + '"API_RESPONSE_0"' + "]" * depth)))
        assert isinstance(result, Program) or result.code == "too_deep"


def test_a_lower_limit_of_the_process_on_digits_is_a_failure_too() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        failure = PARSER.parse(complete(one_argument("9" * 700)))
    finally:
        sys.set_int_max_str_digits(before)
    assert isinstance(failure, ParseFailure)
    assert failure.code == "number_too_long"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (Program((Call(1, "T"), Call(0, "T"))), "ascend"),
        (Program((Call(0, "T"), Call(0, "T"))), "ascend"),
        (Program((Call(10**9, "T"),)), "larger"),
        (Program((Call(-1, "T"),)), "ascend"),
        (Program((Call(0, "T", {"a": ["API_RESPONSE_0"]}),)), "literal text"),
        (Program((Call(0, "T", {"a": Reference(0, ("a.b",))}),)), "path"),
        (Program((Call(0, "T", {"a": Reference(0, ("",))}),)), "path"),
        (Program((Call(0, "T", {"a": Reference(0, (-1,))}),)), "path"),
        (Program((Call(0, "T", {"a": float("nan")}),)), "nan"),
        (Program((Call(0, "T", {"a": {"b": float("-inf")}}),)), "inf"),
        (Program((Call(0, "T", {"a": "\ud800"}),)), "surrogate"),
        (Program((Call(0, "T\udfff"),)), "surrogate"),
        (Program((Call(0, "T", {"a": (1, 2)}),)), "tuple"),
        (Program((Call(0, "T", {"a": {1: 2}}),)), "key"),
        (Program((Call(0, "T", {"a": 10**4300}),)), "digits"),
        (Program(tuple(Call(n, "T") for n in range(257))), "257 calls"),
    ],
)
def test_what_cannot_be_expressed(program: Program, reason: str) -> None:
    with pytest.raises(CannotExpress, match=reason):
        PARSER.render(program)


def test_nesting_beyond_the_limit_is_not_rendered() -> None:
    value: list[object] = []
    for _ in range(100):
        value = [value]
    with pytest.raises(CannotExpress, match="nested"):
        PARSER.render(Program((Call(0, "T", {"a": value}),)))


def test_rendered_text() -> None:
    program = Program((Call(0, "T", {"a": "é", "b": Reference(3, ("x",)), "c": "</tool_call>"}),), "all", "because")
    assert PARSER.render(program) == (
        '<think>\nbecause\n</think>\n<tool_call return="all">\n'
        '{"0": {"T": {"a": "é", "b": "API_RESPONSE_3.x", "c": "\\u003c/tool_call>"}}}\n</tool_call>'
    )


def test_numbers_are_bounded_also_where_the_process_allows_longer_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        for digits, code in ((4300, None), (4301, "number_too_long")):
            text = '<think></think><tool_call return="one">{"0": {"f": {"a": -' + "7" * digits + "}}}</tool_call>"
            found = JsonParser().parse(text)
            assert (found.code if isinstance(found, ParseFailure) else None) == code
    finally:
        sys.set_int_max_str_digits(before)
