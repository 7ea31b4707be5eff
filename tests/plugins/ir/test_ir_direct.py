"""TIER's direct call list, by example and against Python's own reader; «…» marks the text that a failure points at."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import callwright as cw
from callwright.errors import CannotExpress
from callwright.language.parser import ParseFailure
from callwright.language.program import NO_CALL, Call, Program, Reference
from callwright_plugins.direct_ir.parser import DirectParser

PARSER = DirectParser()


def complete(body: str, attribute: str = "") -> str:
    return f"<think>\nwhy\n</think>\n<tool_call{attribute}>{body}</tool_call>"


def calls(body: str) -> tuple[Call, ...]:
    program = PARSER.parse(complete(body))
    assert isinstance(program, Program), program
    return program.calls


def argument(value: str) -> Any:
    return calls(f"[f(a={value})]")[0].arguments["a"]


def test_example_of_the_appendix() -> None:
    body = "[ API_NAME_0(PARAM_NAME_0=1, PARAM_NAME_1='x'), API_NAME_1(PARAM_NAME_0=API_RESPONSE_0) ]"
    expected = (
        Call(0, "API_NAME_0", {"PARAM_NAME_0": 1, "PARAM_NAME_1": "x"}),
        Call(1, "API_NAME_1", {"PARAM_NAME_0": Reference(0)}),
    )
    assert PARSER.parse(complete(body, ' return="all"')) == Program(expected, "all")
    assert PARSER.parse(complete(body)) == Program(expected, "one")
    assert calls("\n[\n]\n") == ()


@pytest.mark.parametrize(
    ("body", "returns"),
    [
        ("[]", "one"),
        ("[f()]", "one"),
        ("[f(), g()]", "all"),
        ("[f(a=1), g(a='x'), h()]", "all"),
        ("[f(), g(a=API_RESPONSE_0)]", "one"),
        ("[f(), g(), h(a=[{'k': 'API_RESPONSE_0.b'}])]", "one"),
        ("[f(a=API_RESPONSE_9), g()]", "one"),
        ("['f()', 'g()']", "all"),
    ],
)
def test_without_return_all_results_unless_a_call_refers_to_another(body: str, returns: str) -> None:
    program = PARSER.parse(complete(body))
    assert isinstance(program, Program)
    assert program.returns == returns
    for stated in ("one", "all"):
        program = PARSER.parse(complete(body, f' return="{stated}"'))
        assert isinstance(program, Program)
        assert program.returns == stated
        assert f'<tool_call return="{stated}">' in PARSER.render(program)


def test_quoted_calls() -> None:
    expected = (Call(0, "f", {"a": "it's", "b": Reference(0, ("x",))}), Call(1, "g.h", {}))
    assert calls("""["f(a=\\"it's\\", b='API_RESPONSE_0.x')", 'g.h()',]""") == expected
    assert calls("""[ 'f(a="it\\\\\\'s", b=API_RESPONSE_0.x)' , " g.h ( ) "]""") == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("API_RESPONSE_0", Reference(0)),
        ("API_RESPONSE_3.items[2].sku", Reference(3, ("items", 2, "sku"))),
        ("API_RESPONSE_3[0][1]", Reference(3, (0, 1))),
        ("'API_RESPONSE_0.unit price'", Reference(0, ("unit price",))),
        ("[API_RESPONSE_0, {'k': 'API_RESPONSE_1'}]", [Reference(0), {"k": Reference(1)}]),
        ("'use API_RESPONSE_0'", "use API_RESPONSE_0"),
        ("API_RESPONSE_1234567890.b", Reference(NO_CALL, ("1234567890.b",))),
        ("API_RESPONSE_x", Reference(NO_CALL, ("x",))), ("API_RESPONSE_", Reference(NO_CALL, ("",))),
        ("API_RESPONSE_0..b", Reference(NO_CALL, ("0..b",))), ("API_RESPONSE_0[x].", Reference(NO_CALL, ("0[x].",))),
        ("[API_RESPONSE_0.]", [Reference(NO_CALL, ("0.",))]), ("'API_RESPONSE_0 '", Reference(NO_CALL, ("0 ",))),
        ("true", True), ("False", False), ("null", None), ("None", None),
        ("12345678901234567890123", 12345678901234567890123), ("-7", -7), ("+7", 7), ("-0.5", -0.5), ("1e3", 1000.0),
        ("5.", 5.0), (".5", 0.5), ("0", 0), ("00.5", 0.5),
        ("[1, [2, [ ], ], ]", [1, [2, []]]), ("{ 'a' : { } , \"b\" : [ ] , }", {"a": {}, "b": []}),
        (r"'\ud83d\ude00'", "😀"), ("'a\\\nb'", "ab"), (r"'\q\/'", r"\q\/"), ("'[](){}=,:'", "[](){}=,:"),
    ],
)  # fmt: skip
def test_values(text: str, value: object) -> None:
    found = argument(text)
    assert found == value
    assert type(found) is type(value)


def test_names() -> None:
    (call,) = calls("[FreshSqueezeBar.get_menu(müsli=1, $filter=2, @type=3, max-price=4, 3d=5, ns:x=6, a/b=7)]")
    assert call.tool == "FreshSqueezeBar.get_menu"
    assert list(call.arguments) == ["müsli", "$filter", "@type", "max-price", "3d", "ns:x", "a/b"]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(derandomize=True, max_examples=200)
@given(JSON_VALUES)
def test_python_writes_what_is_read(value: object) -> None:
    assume("API_RESPONSE_" not in repr(value))
    found = argument(repr(value))
    assert found == value
    assert repr(found) == repr(value)


@settings(derandomize=True, max_examples=500)
@given(st.text(alphabet="\\'\"nrtbafvxuU0123456789abcdefDN{}\n\r é", max_size=12), st.sampled_from("'\""))
def test_string_literals_as_python_reads_them(inner: str, quote: str) -> None:
    literal = f"{quote}{inner}{quote}"
    program = PARSER.parse(complete(f"[f(a={literal})]"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of unknown escapes, which Python keeps as they stand
            tree = ast.parse(literal, mode="eval").body
    except (SyntaxError, ValueError):
        tree = None
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str) and "\\N" not in inner and "\r" not in inner:
        if literal.count(quote) - literal.count(f"\\{quote}") > 2:
            return  # Python joins adjacent and tripled strings; this form does not read them
        if any("\ud800" <= character <= "\udfff" for character in tree.value):
            return
        assert isinstance(program, Program), program
        assert program.calls[0].arguments["a"] == tree.value
    elif tree is None and "\r" not in inner:
        assert isinstance(program, ParseFailure)


@pytest.mark.parametrize(
    ("marked", "stage", "code"),
    [
        ("«»", "structure", "not_a_list"),
        (" «{}»", "structure", "not_a_list"),
        ("«f(a=1)»", "structure", "not_a_list"),
        ("«'f(a=1)'»", "structure", "not_a_list"),
        ("[«»", "syntax", "invalid_call"),
        ("[«f»]", "syntax", "invalid_call"),
        ("[«(»a=1)]", "syntax", "invalid_call"),
        ("[f(), «,»]", "syntax", "invalid_call"),
        ("['f()', «g»()]", "syntax", "invalid_call"),
        ("[f(), «'»g()']", "syntax", "invalid_call"),
        ("[f(a=«»", "syntax", "invalid_value"),
        ("[f(a=«)»]", "syntax", "invalid_value"),
        ("[f(a=«(»1, 2))]", "syntax", "invalid_value"),
        ("[f(«a»==1)]", "syntax", "bare_word"),
        ("[f(a=1 «+» 1)]", "syntax", "missing_separator"),
        ("[f(a='x' «'»y')]", "syntax", "missing_separator"),
        ("[f(a=1«]»", "syntax", "missing_separator"),
        ("[f()«»", "syntax", "missing_separator"),
        ("[f() «g»()]", "syntax", "missing_separator"),
        ("[f(a=«Paris»)]", "syntax", "bare_word"),
        ("[f(a=«__import__»('os'))]", "syntax", "bare_word"),
        ("[f(a=«nan»)]", "syntax", "bare_word"),
        ("[f(a=«b»'x')]", "syntax", "bare_word"),
        ("[f(a=«'»Paris)]", "syntax", "unclosed_string"),
        ("[f(a=«'»Par\nis')]", "syntax", "unclosed_string"),
        ("[f(a=«007»)]", "syntax", "invalid_number"),
        ("[f(a=«1e999»)]", "syntax", "invalid_number"),
        ("[f(a=«0»x10)]", "syntax", "invalid_value"),
        ("[f(a=«1»_000)]", "syntax", "invalid_value"),
        (r"[f(a=«'\x4'»)]", "syntax", "invalid_escape"),
        (r"[f(a=«'\N{DASH}'»)]", "syntax", "invalid_escape"),
        (r"[f(a=«'\UFFFFFFFF'»)]", "syntax", "invalid_escape"),
        (r"[f(a=«'\ud800'»)]", "syntax", "lone_surrogate"),
        ("[f(a='«\udc00»')]", "syntax", "lone_surrogate"),
        ("[f(a={«1»: 2})]", "syntax", "key_not_text"),
        ("[f(a={«k»: 2})]", "syntax", "key_not_text"),
        ("[f(a={'k'« »= 2})]", "syntax", "missing_colon"),
        ("[f()] «# done»", "syntax", "unexpected_text"),
        ("['f() «extra»']", "syntax", "unexpected_text"),
        ("[f(«'x'», b=1)]", "arguments", "positional_argument"),
        ("[f(a=1, «a»=2)]", "arguments", "duplicate_key"),
        ("[f(a={'k': 1, «'k'»: 2})]", "arguments", "duplicate_key"),
        ("['f(«1»)']", "arguments", "positional_argument"),
        ("[«'f(\\'x\\')'»]", "arguments", "positional_argument"),
        # the syntax comes before what is wrong with arguments
        ("[f('x'), g(a=«»", "syntax", "invalid_value"),
    ],
)  # fmt: skip
def test_failures_and_where_they_point(marked: str, stage: str, code: str) -> None:
    text = complete(marked.replace("«", "").replace("»", ""))
    failure = PARSER.parse(text)
    assert isinstance(failure, ParseFailure)
    assert (failure.stage, failure.code) == (stage, code), failure
    whole = complete(marked)
    assert failure.span == (whole.index("«"), whole.index("»") - 1), text[slice(*failure.span)]


def test_limits() -> None:
    assert isinstance(PARSER.parse(complete(f"[f(a={'[' * 63}{']' * 63})]")), Program)
    for body, code in (
        (f"[f(a={'[' * 64}{']' * 64})]", "too_deep"),
        (f"[f(a={'[' * 100_000}", "too_deep"),
        (f"[f(a={'9' * 4301})]", "number_too_long"),
        (f"[f(a=.{'9' * 4301})]", "number_too_long"),
        (f"[{'f(), ' * 257}]", "too_many_calls"),
    ):
        failure = PARSER.parse(complete(body))
        assert isinstance(failure, ParseFailure)
        assert (failure.stage, failure.code) == ("limit", code)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (Program((Call(1, "f"),)), "numbers calls"),
        (Program((Call(0, "f g"),)), "name"),
        (Program((Call(0, ""),)), "name"),
        (Program((Call(0, "f", {"a=b": 1}),)), "name"),
        (Program((Call(0, "f", {"a": {"k": "API_RESPONSE_0"}}),)), "literal text"),
        (Program((Call(0, "f", {"a": float("inf")}),)), "inf"),
    ],
)
def test_what_cannot_be_expressed(program: Program, reason: str) -> None:
    with pytest.raises(CannotExpress, match=reason):
        PARSER.render(program)


def test_rendered_text() -> None:
    arguments = {"a": "it's", "b": Reference(0, ("x", 1)), "c": Reference(0, ("x y",)), "d": [True, None, {"k": 1.5}]}
    program = Program((Call(0, "f", arguments), Call(1, "g", {"a": "</tool_call>"})), "one", "because")
    assert PARSER.render(program) == (
        '<think>\nbecause\n</think>\n<tool_call return="one">\n'
        "[f(a=\"it's\", b=API_RESPONSE_0.x[1], c='API_RESPONSE_0.x y', d=[True, None, {'k': 1.5}]), "
        "g(a='\\x3c/tool_call>')]\n</tool_call>"
    )


def test_tasks_whose_direct_form_needs_the_return_attribute() -> None:
    """All results of calls that depend on one another: the figures of docs/intermediate-representations.md."""
    corpus = cw.corpus("depthbench-v1")
    bare = re.compile(r'<tool_call return="\w+">')
    needed = {}
    for split in corpus.splits:
        differing = 0
        for task in corpus[split]:
            assert task.program is not None
            read = PARSER.parse(bare.sub("<tool_call>", PARSER.render(task.program)))
            assert isinstance(read, Program)
            assert read.calls == task.program.calls
            if read.returns != task.program.returns:
                assert task.program.returns == "all"
                assert task.program.edges
                differing += 1
        needed[split] = (differing, corpus.splits[split])
    assert needed == {"validation": (28, 766), "train": (81, 944)}


def test_messages_say_which_text_it_is_about() -> None:
    """Both kinds of quotes open a string; at the end of a text there is nothing to show."""
    parser = DirectParser()

    def failure(body: str) -> ParseFailure:
        found = parser.parse(f"<think></think><tool_call>{body}</tool_call>")
        assert isinstance(found, ParseFailure)
        return found

    assert failure('[f(a="Paris)]').code == failure("[f(a='Paris)]").code == "unclosed_string"
    assert "the end does not begin a value" in failure("[f(a=").message
