"""Answers are compared by value: what equals what, and where two values first differ."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.errors import UsageError
from callwright.walk.answers import Tolerance, answers_match, first_difference, values_equal
from callwright.walk.tasks import Answer

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text("ab")
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab"), inner, max_size=3), max_leaves=8
)


def shuffled(value: Any) -> Any:
    """An equal value made of other objects, the keys in another order, lists as tuples."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return tuple(map(shuffled, value))
    return value


def neighbours(value: Any) -> Iterator[Any]:
    """Values that differ from a value in one place."""
    match value:
        case bool():
            yield from (not value, int(value), str(value), None)
        case int() | float():
            yield from (value + 1 + abs(value), str(value), bool(value), None)  # 2x + 1, which is x for -1, or 1
        case str():
            yield from (value + "c", None, [value])
        case None:
            yield from (False, 0, "", [], {})
        case list():
            yield [*value, 0]
            yield dict(enumerate(map(str, value)))
            for index, inner in enumerate(value):
                for other in neighbours(inner):
                    yield [*value[:index], other, *value[index + 1 :]]
        case dict():
            yield {**value, "c": 0}
            for key, inner in value.items():
                yield {other: value[other] for other in value if other != key}
                for changed in neighbours(inner):
                    yield {**value, key: changed}


@given(values)
def test_a_value_equals_itself_in_another_order(value: Any) -> None:
    assert values_equal(value, shuffled(value))
    assert values_equal(shuffled(value), value)
    assert first_difference(value, value) is None


@given(values)
def test_a_value_differs_from_its_neighbours(value: Any) -> None:
    for other in itertools.islice(neighbours(value), 50):
        assert not values_equal(value, other), other
        assert not values_equal(other, value), other
        assert first_difference(value, other) is not None


@pytest.mark.parametrize(
    ("expected", "found", "equal"),
    [
        (1, 1.0, True),
        (1.0, 1, True),
        (1, True, False),
        (0, False, False),
        (False, 0, False),
        (0.1 + 0.2, 0.3, True),
        (1e-12, 0, True),
        (1.0, 1.0 + 1e-7, False),
        (10**20, 10**20 + 1, False),
        (1e20, 10**20, True),
        (10**400, 1e300, False),
        (1e300, 10**400, False),
        (math.inf, math.inf, True),
        (math.inf, 5.0, False),
        (5.0, math.inf, False),
        (math.inf, -math.inf, False),
        (math.nan, math.nan, False),
        ("a", "a", True),
        ([], {}, False),
        ([], None, False),
        ("1", 1, False),
        ([1, 2], [2, 1], False),
    ],
)
def test_numbers_and_other_borderlines(expected: Any, found: Any, equal: bool) -> None:
    assert values_equal(expected, 0 + found if type(found) is float else found) is equal


def test_the_tolerance_may_be_chosen() -> None:
    wide = Tolerance(relative=0.01, absolute=0.0)
    assert values_equal({"price": [100.0]}, {"price": [100.9]}, wide)
    assert not values_equal({"price": [100.0]}, {"price": [101.1]}, wide)
    assert answers_match(Answer((100.0,)), (100.9,), wide)


@given(st.lists(values, max_size=4), st.randoms(use_true_random=False))
def test_answers_are_multisets(expected: list[Any], rng: Any) -> None:
    returned = list(expected)
    rng.shuffle(returned)
    assert answers_match(Answer(tuple(expected)), tuple(returned))
    assert not answers_match(Answer(tuple(expected)), (*returned, None))
    if expected:
        assert not answers_match(Answer(tuple(expected)), tuple(returned[1:]))


@given(
    st.lists(st.sampled_from([1, 2, True, "1", None, (3,)]), max_size=4),
    st.lists(st.sampled_from([1, 2, True, "1", None, (3,)]), max_size=4),
)
def test_matching_is_that_of_some_permutation(expected: list[Any], returned: list[Any]) -> None:
    found = any(
        len(expected) == len(returned) and all(map(values_equal, expected, order))
        for order in itertools.permutations(returned)
    )
    assert answers_match(Answer(tuple(expected)), tuple(returned)) is found


def test_no_call_is_the_answer_without_values() -> None:
    assert Answer().is_no_call
    assert not Answer((None,)).is_no_call
    assert answers_match(Answer(), ())
    assert not answers_match(Answer(), (None,))


def test_values_nested_beyond_the_stack_are_no_answer() -> None:
    def nested() -> list[Any]:
        value: list[Any] = []
        for _ in range(5000):
            value = [value]
        return value

    assert not answers_match(Answer((nested(),)), (nested(),))
    assert not answers_match(Answer((nested(), 1)), (1, nested()))


@pytest.mark.parametrize(
    ("expected", "found", "difference"),
    [
        (1, 2, ("", 1, 2)),
        ({"a": 1, "b": [1, {"c": 2}]}, {"b": [1, {"c": 3}], "a": 1}, ("b[1].c", 2, 3)),
        ({"a": 1}, {}, ("a", 1, "nothing")),
        ({}, {"a": 1}, ("a", "nothing", 1)),
        ([1, 2], [1], ("", "2 items", "1 items")),
        ({"a": [1]}, {"a": [1, 2, 3]}, ("a", "1 items", "3 items")),
        ({"a": {}}, {"a": []}, ("a", {}, [])),
    ],
)
def test_the_first_difference_is_named(expected: Any, found: Any, difference: tuple[str, Any, Any]) -> None:
    assert first_difference(expected, found) == difference


@pytest.mark.parametrize("value", [16, "sixteen", {"a": 1}, None])
def test_values_that_are_in_no_tuple_are_refused(value: Any) -> None:
    with pytest.raises(UsageError, match=r"the values of an answer are a tuple, of one value as well: .*,\)\), not"):
        Answer(value)
    with pytest.raises(UsageError, match="a tuple, of one value as well"):
        Answer((1,), others=(value,))


def test_lists_become_tuples_and_one_name_is_a_name() -> None:
    assert Answer([1, [2]], [[3]], ["arguments"]) == Answer((1, [2]), ((3,),), ("arguments",))  # type: ignore[arg-type]
    assert Answer((1,), open="arguments").open == ("arguments",)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="names members of its values"):
        Answer((1,), open=(1,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"answer": 3}, r"callwright.Answer\(\(3,\)\)"),
        ({"answer": [1, 2]}, r"callwright.Answer\(\(\[1, 2\],\)\)"),
        ({"answer": (3,)}, r"callwright.Answer\(\(3,\)\)"),
        ({"program": [cw.Call(0, "add", {})]}, "the program of task 'mine' is a callwright.Program"),
        ({"tools": []}, "the tools of task 'mine' are a mapping"),
    ],
)
def test_a_task_of_other_things_is_refused_where_it_is_made(changed: dict[str, Any], said: str) -> None:
    """Rewards were told to have a bug, for an answer that was no Answer."""
    world = cw.environment("toolworld-mini-v1")
    whole: dict[str, Any] = {"tools": world.tools, "answer": Answer((3,)), "environment": world} | changed
    with pytest.raises(UsageError, match=said):
        cw.Task("mine", "a query", **whole)
