"""Spares: what is rejected is made up for, by spares of its kind, and what is not needed is nobody's near-duplicate."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from callwright.errors import UsageError
from callwright.training.synthesis.units import Accepted, Made, Unit
from callwright_plugins.synthesis.grounded import Grounded
from callwright_plugins.synthesis.spares import compare_with_spares, spare_places, spares_for


def made(
    place: int, *, about: int, spare: bool = False, kind: str = "task", environment: int = 0, **asked: int
) -> Made:
    steps = [{"calls": [{"name": "see", "arguments": {"what": f"w{about}", "of": f"o{about}", "in": about}}]}]
    words = " ".join(f"word{environment}x{about}x{number}" for number in range(6))
    row = {"id": f"{environment}-{place}", "environment": f"e{environment}", "query": words, "facts": {"steps": steps}}
    given: dict[str, Any] = {"spare": spare, "kind": kind, "asked": 3, "of_kind": 3, **asked}
    return Made(Unit(f"{environment}-{place}", place, 0), Accepted(row, given), environment)


def reasons(units: list[Made]) -> list[str]:
    return [said.reason if said is not None else "" for said in compare_with_spares(units)]


UNUSED = "as many as were asked for are there"


def test_as_many_stay_as_were_asked_for() -> None:
    whole = [made(place, about=place) for place in range(3)]
    spare = [made(place, about=place, spare=True) for place in (3, 4)]
    assert reasons([*whole, *spare]) == ["", "", "", UNUSED, UNUSED]
    assert reasons([*whole[:2], *spare]) == ["", "", "", UNUSED]  # one did not pass the gates
    twice = [whole[0], made(1, about=0), whole[2]]
    assert reasons([*twice, *spare]) == ["", "nearly the same calls", "", "", UNUSED]
    assert reasons([whole[0], *spare]) == ["", "", ""]  # and no more than there are


def test_a_spare_that_is_a_duplicate_is_replaced_by_the_next_one() -> None:
    units = [made(0, about=0), made(1, about=1), made(3, about=1, spare=True), made(4, about=4, spare=True)]
    assert reasons(units) == ["", "", "nearly the same calls", ""]


def test_a_spare_of_the_same_kind_comes_first() -> None:
    units = [
        made(0, about=0, of_kind=2),
        made(1, about=1, of_kind=2),
        made(3, about=3, spare=True, of_kind=2),
        made(4, about=4, spare=True, kind="abstention", of_kind=1),
    ]
    assert reasons(units) == ["", "", UNUSED, ""]


def test_a_spare_that_is_not_needed_takes_nobodys_place() -> None:
    first = [made(place, about=place) for place in range(3)]
    unused = made(3, about=7, spare=True)
    other = made(0, about=7, environment=0)
    assert reasons([*first[:2], other, unused]) == ["", "", "", UNUSED]
    # The spare is earlier here, and would be what the later one is dropped for.
    assert reasons([unused, *first[:2], other]) == [UNUSED, "", "", ""]


def test_any_losses_are_made_up_for_while_there_are_spares() -> None:
    random = Random(5)
    for _ in range(40):
        asked, beyond = random.randint(1, 12), random.randint(0, 6)
        kinds = [random.choice(("task", "failing", "abstention")) for _ in range(asked + beyond)]
        spare = spare_places(kinds, asked)
        counts = Counter(kind for place, kind in enumerate(kinds) if place not in spare)
        units = [
            made(place, about=place, spare=place in spare, kind=kind, asked=asked, of_kind=counts[kind])
            for place, kind in enumerate(kinds)
            if random.random() < 0.8
        ]
        assert reasons(units).count("") == min(asked, len(units))


def test_spares_are_planned_of_each_kind() -> None:
    kinds = ["task"] * 80 + ["failing"] * 20
    spare = spare_places(kinds, 90)
    assert Counter(kinds[place] for place in spare) == {"task": 8, "failing": 2}
    assert spare == {*range(72, 80), 98, 99}
    assert not spare_places(kinds, 100)
    assert not spare_places(kinds, 120)
    assert (spares_for(100, 0.03), spares_for(10, 0.03), spares_for(10, 0)) == (3, 1, 0)
    for wrong in (-0.1, 2, True, "all"):
        with pytest.raises(UsageError, match="spares"):
            Grounded(spares=wrong)  # type: ignore[arg-type]


def test_what_an_environment_cannot_give_is_made_up_for_by_the_others_as_evenly_as_they_go() -> None:
    small = [made(place, about=place, asked=4, of_kind=4) for place in range(2)]  # two of four, and no spares
    others = [
        made(place, about=100 * number + place, environment=number, spare=place >= 3)
        for number in (1, 2)
        for place in range(5)
    ]
    found = reasons([*small, *others])
    assert found == ["", "", *(["", "", "", "", UNUSED] * 2)]
    # Own spares come first, and no more are taken than are missing.
    own = made(2, about=2, asked=4, of_kind=4, spare=True)
    assert reasons([*small, own, *others]) == ["", "", "", *["", "", "", "", UNUSED], *["", "", "", UNUSED, UNUSED]]
    # One that is a near-duplicate is made up for, too, by the next one that there is.
    others[3] = made(3, about=100, environment=1, spare=True)
    found = reasons([*small, *others])
    assert found[5] == "nearly the same calls"
    assert found.count("") == 10
    random = Random(7)
    for _ in range(40):
        units = [
            made(place, about=100 * number + place, environment=number, spare=place >= 6, asked=6, of_kind=6)
            for number in range(4)
            for place in range(8)
            if random.random() < 0.8
        ]
        assert reasons(units).count("") == min(24, len(units))
