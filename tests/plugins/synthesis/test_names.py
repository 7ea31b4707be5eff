"""Names: which field may fill which parameter, by the look of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright_plugins.synthesis.exploration.names import likeness, words_of


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("from_account_id", ("from", "account", "id")),
        ("orderIds", ("order", "id")),
        ("HTTPStatus", ("http", "status")),
        ("categories", ("category",)),
        ("address", ("address",)),
        ("status", ("status",)),
        ("", ()),
    ],
)
def test_words(name: str, words: tuple[str, ...]) -> None:
    assert words_of(name) == words


@pytest.mark.parametrize(
    ("parameter", "better", "worse"),
    [
        ("order_id", "order_id", "customer_id"),
        ("from_account_id", "account_id", "transaction_id"),
        ("issue", "issue_key", "project_key"),
        ("order_id", "order_id", "id"),
    ],
)
def test_the_better_name_is_liker(parameter: str, better: str, worse: str) -> None:
    assert likeness(words_of(parameter), words_of(better)) > likeness(words_of(parameter), words_of(worse))


def test_a_bare_id_is_of_what_it_stands_in() -> None:
    wanted, given = words_of("order_id"), words_of("id")
    assert likeness(wanted, given, words_of("orders")) > likeness(wanted, given, words_of("customers"))


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_likeness_is_a_share_of_any_names(wanted: str, given_: str, around: str) -> None:
    assert 0 <= likeness(words_of(wanted), words_of(given_), words_of(around)) <= 1
    if words_of(wanted):
        assert likeness(words_of(wanted), words_of(wanted)) == 1
