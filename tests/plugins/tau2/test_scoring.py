"""tau2-bench's rewards: which action counts as made, which text as said, and the product over the basis."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from attrs import evolve

from callwright.errors import DataError
from callwright_plugins.tau2.scoring import Call, Criteria, Scored, action_made, communicated, pass_hat, score

ACTION = {"name": "cancel", "arguments": {"order": "#1", "reason": "late"}}


@pytest.mark.parametrize(
    ("arguments", "compared", "made"),
    [
        ({"order": "#1", "reason": "late"}, None, True),
        ({"reason": "late", "order": "#1"}, None, True),
        ({"order": "#1"}, None, True),  # what the call leaves out is not compared
        ({}, None, True),
        ({"order": "#1", "reason": "late", "more": 1}, None, False),
        ({"order": "#2", "reason": "late"}, None, False),
        ({"order": "#1", "reason": "lost"}, ["order"], True),
        ({"reason": "late"}, ["order"], False),
        ({"order": "#2"}, [], True),
        ({"order": 1.0}, ["order"], False),
    ],
)
def test_arguments_of_an_action_are_compared_as_it_says(
    arguments: dict[str, Any], compared: list[str] | None, made: bool
) -> None:
    action = {**ACTION, "compare_args": compared}
    assert action_made(action, [Call("other", ACTION["arguments"]), Call("cancel", arguments)]) is made  # type: ignore[arg-type]
    assert action_made(action, [Call("cancel", arguments, "user")]) is made  # whoever made it
    assert not action_made(action, [])


def test_commas_are_left_out_of_messages_alone() -> None:
    assert communicated("1234", ["It is $1,234.00."])
    assert not communicated("1,234", ["It is $1,234.00."])
    assert communicated("Gate B", ["please go to GATE b"])
    assert not communicated("54", ["5 4", "5-4"])
    assert communicated("", ["x"])
    assert not communicated("", [])


def test_the_reward_is_the_product_over_the_basis() -> None:
    task = {"id": "1", "evaluation_criteria": {"actions": [ACTION], "communicate_info": ["54"]}}
    usual = Criteria.of(task)
    assert usual is not None
    assert usual.basis == ("DB", "COMMUNICATE")
    assert score(usual, [], ["54"], db=True) == Scored(1.0, {"DB": 1.0, "COMMUNICATE": 1.0})  # no action is asked for
    assert score(usual, [], ["5"], db=True).reward == 0.0
    assert score(usual, [], ["54"], db=False).factors == {"DB": 0.0, "COMMUNICATE": 1.0}
    assert score(usual, [], ["54"], db=True, finished=False) == Scored(0.0)
    assert score(usual, [], ["54"]) == Scored(1.0, {"COMMUNICATE": 1.0}, ("DB",))
    every = Criteria(actions=[ACTION], basis=("ENV_ASSERTION", "ACTION", "NL_ASSERTION"), sentences=["It is kind."])
    calls = [Call("cancel", ACTION["arguments"])]  # type: ignore[arg-type]
    assert score(every, calls, [], assertions=True) == Scored(
        1.0, {"ENV_ASSERTION": 1.0, "ACTION": 1.0}, ("NL_ASSERTION",)
    )
    assert score(every, calls, [], assertions=True, judged=False).reward == 0.0
    assert score(every, [], [], assertions=True).factors["ACTION"] == 0.0
    assert score(evolve(every, sentences=()), calls, [], assertions=True).factors["NL_ASSERTION"] == 1.0
    assert score(Criteria.of({"id": "2"}), [], []) == Scored(1.0)
    with pytest.raises(DataError, match="'VIBES'; known: DB, "):
        Criteria.of({"id": "3", "evaluation_criteria": {"reward_basis": ["DB", "VIBES"]}})


def test_pass_hat_is_the_share_of_draws_that_are_all_right() -> None:
    for rewards in ([True], [True, False], [True, True, False, True], [False] * 3, [True] * 5):
        for k in range(1, len(rewards) + 1):
            draws = list(combinations(rewards, k))
            assert pass_hat(rewards, k) == pytest.approx(sum(map(all, draws)) / len(draws))
        assert pass_hat(rewards, len(rewards) + 1) is None
    assert pass_hat([True], 0) is None
