"""What attempts took: sums that are the same in any order, and nothing made of what is no figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.errors import PluginError
from callwright.machines.model_server import Usage
from callwright.training.spending import FIGURES, Meter, in_words, total, total_of_rows, used_by

USAGES = st.dictionaries(st.sampled_from(FIGURES[:-1]), st.integers(0, 10**9)).flatmap(
    lambda counts: st.floats(0, 100).map(lambda cost: {**counts, "cost": cost})
)


@given(st.lists(USAGES, max_size=8), st.randoms())
def test_a_sum_is_the_same_in_any_order(usages: list[dict[str, Any]], draw: Any) -> None:
    expected = total(usages)
    assert expected.get("cost", 0) == pytest.approx(sum(one["cost"] for one in usages), abs=1e-8)
    for name in FIGURES[:-1]:
        assert expected.get(name, 0) == sum(one.get(name, 0) for one in usages)
    draw.shuffle(usages)
    assert total(usages) == expected
    assert list(expected) == [name for name in FIGURES if name in expected]


def test_an_attempt_took_what_its_turns_took(make_task: Any, list_parser: Any) -> None:
    def attempt(*usages: dict[str, float] | None) -> cw.Attempt:
        return cw.Attempt(make_task(4), [cw.Completion("[]", usage=usage) for usage in usages], list_parser)

    one, two = {"requests": 1, "prompt_tokens": 7, "cost": 0.1}, {"requests": 1, "completion_tokens": 3, "cost": 0.2}
    assert used_by(attempt(one, None, two)) == {
        "requests": 2, "prompt_tokens": 7, "completion_tokens": 3, "cost": 0.3,
    }  # fmt: skip
    assert used_by(attempt(None, None)) is None


@pytest.mark.parametrize("bad", [None, "3", True, float("nan"), float("inf"), [1], {"a": 1}])
def test_what_is_no_figure_counts_nothing(bad: Any) -> None:
    """A row may have been edited; an evaluation that goes on from it must not end in a traceback."""
    rows = [{"usage": {"requests": 1, "cost": 0.5}}, {"usage": {"requests": bad, "cost": bad}}, {"usage": bad}, {}]
    assert total_of_rows(rows) == {"requests": 1, "cost": 0.5}


def test_rows_without_usage_have_no_sum() -> None:
    assert total_of_rows([{}, {"usage": None}]) is None
    assert total_of_rows([{"usage": {}}]) == {"requests": 0}


def test_the_figures_in_words(make_task: Callable[..., Any]) -> None:
    assert in_words({"requests": 1200.0, "prompt_tokens": 3400, "cached_tokens": 0, "cost": 0.0125}) == (
        "1,200 requests, 3,400 prompt tokens, cost 0.0125"
    )
    assert in_words({"requests": 3}) == "3 requests"


class Asks(cw.RewardComponent):
    """A component that tells its usage as an object."""

    name = "asks"
    usage = Usage()

    def score(self, attempt: cw.Attempt) -> cw.Score:
        return cw.Score(1.0)


def test_a_component_whose_usage_is_no_mapping_is_named() -> None:
    recipe = cw.RewardRecipe("asks", (cw.Term(Asks()),))
    with pytest.raises(PluginError, match=r"'asks' tells its usage as Usage; it is a mapping .* usage\.to_json\(\)"):
        Meter(recipe)
