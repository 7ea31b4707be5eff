"""Each adversarial completion earns what is written beside it, and the oracle says the same of the tier family."""

from __future__ import annotations

from collections import Counter

import pytest
from adversarial_completions import OF_THE_ORACLE, RECIPES, Row, all_rows
from adversarial_world import CASES
from specification_forms import read
from specification_oracle import score

import callwright as cw

ROWS = all_rows()


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
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
