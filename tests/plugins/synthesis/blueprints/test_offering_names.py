"""Other environments are drawn so that one which somebody installs does not move the rest."""

from __future__ import annotations

from random import Random

import pytest

import callwright as cw
from callwright_plugins.synthesis.blueprints.knobs import Knobs
from callwright_plugins.synthesis.blueprints.offering import Offering


@pytest.mark.parametrize("seed", range(5))
def test_one_more_name_moves_no_other(seed: int) -> None:
    names = [f"world-{number}" for number in range(12)]

    def drawn(known: list[str]) -> tuple[list[str], float]:
        made = Offering(cw.environment("village-bakery"), cw.default_registry(), Knobs(), rng := Random(seed))
        order = list(made._drawn(known, apart=True))
        return order, rng.random()

    order, after = drawn(names)
    more, later = drawn([*names[:5], "installed", *names[5:]])
    assert sorted(order) == sorted(names)
    assert [one for one in more if one != "installed"] == order
    assert after == later  # and what is drawn next is the same
    assert drawn(names[::-1])[0] == order


def test_seeds_draw_other_orders() -> None:
    names = [f"world-{number}" for number in range(12)]
    registry, village = cw.default_registry(), cw.environment("village-bakery")
    orders = {tuple(Offering(village, registry, Knobs(), Random(seed))._drawn(names, apart=True)) for seed in range(9)}
    assert len(orders) == 9
