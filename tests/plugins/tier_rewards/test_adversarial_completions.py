"""Each adversarial completion earns what is written beside it, and the oracle says the same of the tier family."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from adversarial_completions import OF_THE_ORACLE, RECIPES, Row, all_rows
from adversarial_world import CASES
from specification_forms import read
from specification_oracle import score

import callwright as cw

ROWS = all_rows()

#: Rows whose total is not the one that the implementation pays, each with the reason. A repair makes the test of its
#: row fail (``strict``), and then the entry goes.
DISAGREEMENTS: dict[tuple[str, tuple[str, ...]], str] = {
    ("json: an empty tool name", RECIPES): "json takes an empty text for a tool's name; xml and direct do not",
    (
        "json: a call that failed where null is the answer",
        ("simple",),
    ): "the null of a failed call counts as its output",
    ("json: a table wrapped in a list", ("tier", "tier-guarded", "tier-strict")): (
        "the list and the reference inside of it are two type mismatches; with a literal inside it is one"
    ),
    ("json: other ids, and references to the usual ones", ("toolrl", "toolrl-guarded")): (
        "a reference to no call is taken for the position that its id would be"
    ),
    ("toolrl: NaN", ("toolrl", "toolrl-guarded")): "json.loads takes NaN, which is no JSON",
    ("toolrl: 1e400", ("toolrl", "toolrl-guarded")): "json.loads makes an infinity of it",
}


def pairs() -> list[Any]:
    """Every row under every recipe; those of :data:`DISAGREEMENTS` must fail."""
    reasons = {(name, recipe): why for (name, recipes), why in DISAGREEMENTS.items() for recipe in recipes}
    assert {name for name, _ in reasons} <= {row.name for row in ROWS}
    return [
        pytest.param(
            row,
            recipe,
            id=f"{row.name}-{recipe}",
            marks=[pytest.mark.xfail(reason=reasons[row.name, recipe])] if (row.name, recipe) in reasons else [],
        )
        for row in ROWS
        for recipe in RECIPES
    ]


@pytest.mark.parametrize(("row", "recipe"), pairs())
def test_the_total_is_the_one_written_beside_it(row: Row, recipe: str) -> None:
    reward = cw.reward(recipe).score(CASES[row.task].task, row.completion, ir=row.form)
    assert reward.total == pytest.approx(float(row.totals[recipe]), abs=1e-9), f"{row.why}\n{reward.explain()}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_oracle_says_the_same(row: Row) -> None:
    verdict = score(read(row.completion, row.form), CASES[row.task].question)
    for recipe in OF_THE_ORACLE:  # exact fractions, the written ones too
        assert verdict.totals[recipe] == row.totals[recipe], row.why


def test_there_are_enough_of_them() -> None:
    forms = Counter(row.form for row in ROWS)
    assert all(forms[form] >= least for form, least in {"json": 89, "xml": 29, "direct": 23, "toolrl": 25}.items())
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all(len(row.why) > 5 for row in ROWS)
