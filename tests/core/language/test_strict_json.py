"""Strict reading of JSON: what repeats a key is found, whatever colons and quotes stand in strings and around keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.language.strict_json import Duplicated, decode, kind

NESTING = 50

texts = st.text(alphabet='a":\\{}[],\u00e9 ', max_size=6)
white = st.sampled_from(["", "", " ", "\n\t"])


def written(value: Any, space: st.DataObject) -> str:
    """A value as JSON with white space anywhere; objects are lists of pairs, so that keys may stand twice."""

    def gap() -> str:
        return space.draw(white)

    if isinstance(value, tuple):  # an object
        pairs = [f"{gap()}{json.dumps(key)}{gap()}:{gap()}{written(inner, space)}{gap()}" for key, inner in value]
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(f"{gap()}{written(inner, space)}{gap()}" for inner in value) + "]"
    return json.dumps(value, ensure_ascii=space.draw(st.booleans()))


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.tuples(texts, inner), max_size=4).map(tuple)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | texts,
    lambda inner: st.lists(inner, max_size=3) | objects(inner),
    max_leaves=12,
)


class _Twice(Exception):
    pass


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise _Twice
    return dict(pairs)


@given(values, st.data())
def test_a_key_that_stands_twice_is_found_as_a_look_at_every_object_finds_it(value: Any, space: st.DataObject) -> None:
    text = written(value, space)
    found = decode(text, 0, NESTING)
    try:
        expected = json.loads(text, object_pairs_hook=each_once)
    except _Twice:
        assert isinstance(found, Duplicated)
        assert found.value == json.loads(text)
        assert json.loads(text[slice(*found.span)]) == found.key
    else:
        assert not isinstance(found, Duplicated)
        assert found == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a" : 2}',
        '{"a":1,"a"\n:2}',
        '{"a": {"b": 1, "b": 2}, "c": 3}',
        '[{"a": 1}, {"a": 1, "a": ":"}]',
        r'{"a": "\":", "a": 1}',
        r'{"a": 1, "\u0061": 2}',
    ],
)
def test_a_repeated_key_is_found_however_it_is_written(text: str) -> None:
    assert isinstance(decode(text, 0, NESTING), Duplicated)


@pytest.mark.parametrize("text", ['{"a": "12:30"}', r'{"a": "say \":\" twice", "b": "\": "}', '[{"a": 1}, {"a": 1}]'])
def test_colons_and_quotes_in_strings_repeat_nothing(text: str) -> None:
    assert decode(text, 0, NESTING) == json.loads(text)


@pytest.mark.parametrize(
    ("value", "called"),
    [
        (None, "null"), (True, "true"), (False, "false"), (3, "a number"), (0.5, "a number"), ("a", "text"),
        ({}, "an object"), ([], "a list"), ((), "a list"), ({1}, "set"), (object(), "object"), (b"a", "bytes"),
    ],
)  # fmt: skip
def test_values_are_called_what_json_calls_them(value: object, called: str) -> None:
    assert kind(value) == called
