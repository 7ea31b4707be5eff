"""Codes of promotions differ by seed, and nothing else of a world hangs on them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import callwright as cw
from callwright.environments.rows import table_of
from callwright_plugins.mcp_environments.codes import drawn

TABLES = {"food_delivery": "promos", "shopping": "coupons"}


def codes(name: str, scenario: str, seed: int) -> list[Any]:
    environment: Any = cw.environment(name)
    kind = next(kind for kind in environment.kinds if table_of(kind).name == TABLES[name])
    return [row.code for row in environment.open(scenario, seed).world.rows(kind)]


@pytest.mark.parametrize("name", TABLES)
def test_no_two_of_ten_seeds_share_many_codes(name: str) -> None:
    drawn_by_seed = [set(codes(name, "typical", seed)) for seed in range(10)]
    assert all(len(one) == len(drawn_by_seed[0]) >= 6 for one in drawn_by_seed)
    for one in drawn_by_seed:
        others = [other for other in drawn_by_seed if other is not one]
        assert sum(len(one & other) for other in others) <= len(one)
    assert set.intersection(*drawn_by_seed) == set()


@pytest.mark.parametrize("name", TABLES)
def test_a_code_that_looks_like_another_still_does(name: str) -> None:
    found = codes(name, "adversarial", 4)
    alike = [(one, other) for one in found for other in found if one != other and one == other.replace("0", "O")]
    assert len(alike) == 1


def test_carts_and_orders_name_the_codes_that_there_are() -> None:
    environment: Any = cw.environment("shopping")
    session = environment.open("adversarial", 4)
    known = set(codes("shopping", "adversarial", 4))
    named = {
        code for kind in environment.kinds for row in session.world.rows(kind) for code in getattr(row, "coupons", ())
    }
    assert named
    assert named <= known


def test_numbers_stay_and_words_change() -> None:
    renamed = drawn(["SPRING10", "FREESHIP", "SPRING1O"], Random(3))
    assert renamed["SPRING10"].endswith("10")
    assert not renamed["SPRING10"].startswith("SPRING")
    assert renamed["SPRING1O"] == renamed["SPRING10"].replace("0", "O")
    assert renamed["FREESHIP"][-2:].isdigit()
