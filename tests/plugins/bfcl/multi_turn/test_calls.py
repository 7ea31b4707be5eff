"""Calls as texts: read as Python evaluates them, executed by nobody, and total on whatever a model writes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright_plugins.bfcl.multi_turn.backend import official_classes
from callwright_plugins.bfcl.multi_turn.calls import call_of, call_with
from callwright_plugins.bfcl.multi_turn.decoding import NotDecoded, decoded_calls, decoded_text

METHODS = frozenset({"show", "sort"})


class Shows:
    """What the methods were given, as text."""

    def show(self, *given: Any, **named: Any) -> str:
        return repr((given, named))

    def sort(self, file_name: str) -> dict[str, Any]:
        return {"sorted": file_name}


class Methods:
    """An entry of one class, in this process."""

    owners = dict.fromkeys(METHODS, "Shows")

    def __call__(self, name: str) -> Any:
        return getattr(Shows(), name) if name in METHODS else official_classes.harmless(name)


def ours(text: str) -> str:
    wire = json.loads(json.dumps(call_of(text, METHODS)))
    return official_classes.result_of(wire, Methods())  # type: ignore[arg-type]


def evaluated(text: str) -> str:
    """As the official checker: the instance before every method, then ``eval``. Only for texts of this file."""

    def prefixed(match: re.Match[str]) -> str:
        return f"model_eval_instance.{match[1]}" if match[1] in METHODS else match[1]

    changed = re.sub(r"\b([a-zA-Z_]\w*)\s*(?=\()", prefixed, text)
    try:
        found = eval(changed, {"model_eval_instance": Shows()})
        return json.dumps(found) if type(found) is dict else str(found)
    except Exception as error:
        return f"Error during execution: {error}"


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["sort (x)", "a (b", "show(1)", "\\d", "(("]
)
literals = st.recursive(
    scalars
    | texts
    | st.binary(max_size=4)
    | st.complex_numbers(allow_nan=False, allow_infinity=False, max_magnitude=99),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.integers() | texts, inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(literals, max_size=3), st.dictionaries(st.sampled_from("abc"), literals, max_size=3))
def test_literals_reach_a_method_as_python_evaluates_them(given: list[Any], named: dict[str, Any]) -> None:
    words = [repr(one) for one in given] + [f"{key}={value!r}" for key, value in named.items()]
    text = f"show({', '.join(words)})"
    assert ours(text) == evaluated(text)


@pytest.mark.parametrize(
    "text",
    [
        "sort('a.txt')",
        "sort(file_name = 'Report (final).txt')",
        "sort(file_name='use sort (x) or show(y)')",
        "show(sort('a'), x=[show(), {1: sort('b')}])",
        "show(-1, +2, ~3, not 4, -True)",
        "show(1 + 2, 'a' + 'b', 2 ** 10, 7 // 2, 7 % 4, 1 / 4, [1] * 3)",
        "show(dict(a=1), len('abc'), sum([1, 2]), {1, 2}, ...)",
        "sort('a', 'b')",
        "sort()",
        "sort(name='a')",
        "sort(nobody)",
        "nobody(sort('a'))",
        "nobody(1)",
        "show(1 / 0)",
        "   show(1)",
        "5",
        "'text'",
        "show",
        "show(1, # a remark\n2)",
        r"show('\d')",
        "show(list)",
        "show(a=1, b=2, a=3)",
        "show(sort(file_name='a', file_name='b'))",
    ],
)
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_other_expressions_are_what_python_makes_of_them(text: str) -> None:
    assert ours(text) == evaluated(text)


def test_a_method_in_a_text_is_never_that_of_the_gold_side() -> None:
    """Both sides have instances of their own, whose names the official checker writes into literals, too."""
    assert "model_eval_instance.sort(x)" in ours("show('sort (x)')")
    assert ours("show('nobody (x)')") == "(('nobody(x)',), {})"


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').getcwd()",
        "open('/etc/passwd')",
        "show(open('/etc/passwd'))",
        "[].append(1)",
        "(lambda: show())()",
        "show([x for x in (1, 2)])",
        "show(f'{1}')",
        "show(*[1])",
        "show(**{'a': 1})",
        "show(9 ** 9 ** 9)",
        "show('a' * 10**12)",
        "show('%9999999999d' % 1)",
        "eval('1')",
        "exit()",
        "ｓhow(1)",
        "show(",
        "show(1",
        "",
        "\x00",
        "(" * 10_000,
        "show(" + "[" * 150 + "]" * 150 + ")",
        "show(" + "-" * 5_000 + "1)",
        "show(" + "9" * 5_000 + ")",
        "a" + ".a" * 50_000,
    ],
)
def test_what_is_not_evaluated_is_an_error_of_the_call(text: str) -> None:
    assert ours(text).startswith("Error during execution: ")


@given(st.text(st.characters(), max_size=60) | st.text("show(sort'\"=[{1,}]) \n\\-.#", max_size=60))
def test_any_text_is_read(text: str) -> None:
    ours(text)
    for version in ("v3", "v4"):
        try:
            found = decoded_text(text, version)
        except NotDecoded:
            continue
        assert all(isinstance(one, str) for one in found)
        for one in found:
            ours(one)


def test_reading_is_linear(minute_of_work: Callable[[], AbstractContextManager[None]]) -> None:
    with minute_of_work():
        for text in ("a " * 10**6, "a" * 10**6, " " * 10**6, "show(" + "1," * 10**5 + ")", "a( " * 10**5, "`" * 10**6):
            ours(text)
            for version in ("v3", "v4"):
                try:
                    decoded_text(text, version)
                except NotDecoded:
                    continue


@given(st.dictionaries(st.sampled_from("abc"), st.recursive(scalars | texts, st.lists, max_leaves=5), max_size=3))
def test_a_call_of_a_program_is_that_of_its_text(arguments: dict[str, Any]) -> None:
    wire = json.loads(json.dumps(call_with("show", arguments, METHODS)))
    text = f"show({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
    assert official_classes.result_of(wire, Methods()) == evaluated(text)  # type: ignore[arg-type]


def test_numbers_that_cannot_be_written_are_an_error_of_the_call() -> None:
    for value in (float("nan"), float("inf"), 10**5000):
        wire = json.loads(json.dumps(call_with("show", {"a": value}, METHODS)))
        assert official_classes.result_of(wire, Methods()).startswith("Error")  # type: ignore[arg-type]


# Decoding -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("[sort(file_name='a.txt')]", ["sort(file_name='a.txt')"]),
        ("```\n[sort(file_name='a.txt'), show(x=1)]\n```", ["sort(file_name='a.txt')", "show(x=1)"]),
        ("sort(file_name='a.txt')", ["sort(file_name='a.txt')"]),
        ("[a.b.sort(x=[1, -2.5, (3,)])]", ["a.b.sort(x=[1, -2.5, (3,)])"]),
        ("[sort('a.txt')]", ["sort()"]),  # what has no name is lost
        ("[show(x=+5)]", ["show(x=-5)"]),  # whatever the sign
        ("[show(x=true, y=None)]", ["show(x='true', y=None)"]),
        ("[show(x=1 + 2 * 3)]", ["show(x=7)"]),
        ("[show(x='a' + 'b')]", ["show(x='ab')"]),
        ("[show(x=2 * 'ab')]", ["show(x='abab')"]),
        ("[show(x='a' * 10**9)]", None),
        ("[show(x=sort('a'))]", ["show(x=\"sort('a')\")"]),  # a call without names is a text
        ("[show(x=sort(file_name='a'))]", ["show(x=sort(file_name='a'))"]),
        ("[show(x={'a': 1, 'b': {'c': 2}})]", ["show(x={'a': 1, 'b': {'c': 2}})"]),
        ("[show(x=a[0])]", ["show(x='a[0]')"]),
        ("[show(x=...)]", ["show(x='...')"]),
        ("[]", []),
        ("There is nothing to call.", None),
        ("[1, 2]", None),
        ("[show(x={})]", None),
        ("[show(x=lambda: 1)]", None),
        ("[show(x=-'a')]", None),
        ("[show(x=open('a') + 'b')]", None),
        ("[show(x=9 ** 9999)]", None),
        ("[show(x=", None),
    ],
)
def test_texts_are_decoded_as_the_official_decoder_of_v4(text: str, calls: list[str] | None) -> None:
    if calls is None:
        with pytest.raises(NotDecoded):
            decoded_text(text, "v4")
    else:
        assert decoded_text(text, "v4") == calls


def test_the_versions_take_off_other_signs() -> None:
    """v3 takes brackets off, so that nothing at all is no expression; a list at the end loses its own."""
    with pytest.raises(NotDecoded):
        decoded_text("[]", "v3")
    assert decoded_text("[show(x=1), show(x=2)]", "v3") == ["show(x=1)", "show(x=2)"]
    assert decoded_text("[[show(x=1)]", "v3") == ["show(x=1)"]
    with pytest.raises(NotDecoded):
        decoded_text("[[show(x=1)]", "v4")


def test_function_calls_of_servers_are_decoded() -> None:
    assert decoded_calls([{"sort": '{"file_name": "a.txt"}'}, {"show": {"x": [1], "y": None}}]) == [
        "sort(file_name='a.txt')",
        "show(x=[1],y=None)",
    ]
    assert decoded_calls({"show": "{}"}) == ["show()"]
    for bad in ("text", [{"show": "{"}], [{"show": "[1]"}], [["show"]], None, 5, [None]):
        with pytest.raises(NotDecoded):
            decoded_calls(bad)
