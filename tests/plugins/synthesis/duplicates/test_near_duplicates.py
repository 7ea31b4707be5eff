"""Near-duplicates are those that comparing all pairs finds, and each decision is exact."""

from __future__ import annotations

import sys
from fractions import Fraction
from random import Random
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.errors import MissingExtra, UsageError
from callwright.language.program import Call, Reference
from callwright_plugins.synthesis import duplicates
from callwright_plugins.synthesis.duplicates import join
from callwright_plugins.synthesis.duplicates import keys as module
from callwright_plugins.synthesis.duplicates.elements import elements, shingles
from callwright_plugins.synthesis.duplicates.jaccard import jaccard, near_duplicates

T = TypeVar("T")


def compared(sets: list[frozenset[T]], threshold: str) -> dict[int, int]:
    """The decisions by comparing each set with every earlier one that stays."""
    kept: list[int] = []
    dropped: dict[int, int] = {}
    limit = Fraction(threshold)
    for index, one in enumerate(sets):
        found = next((other for other in kept if jaccard(one, sets[other]) >= limit), None)
        if found is None:
            kept.append(index)
        else:
            dropped[index] = found
    return dropped


def drawn(count: int, random: Random, elements_in_all: int, largest: int) -> list[frozenset[int]]:
    """Sets of which a half is an earlier one with a few elements more, less or others; a few elements are common."""
    sets: list[frozenset[int]] = []
    for _ in range(count):
        if sets and random.random() < 0.5:
            one = set(random.choice(sets))
            for _ in range(random.randrange(4)):
                one.discard(random.choice(sorted(one)) if one else 0)
                one.add(int(random.paretovariate(0.6)) % elements_in_all)
        else:
            one = {int(random.paretovariate(0.6)) % elements_in_all for _ in range(random.randrange(largest))}
        sets.append(frozenset(one))
    return sets


@pytest.mark.parametrize("threshold", ["0.1", "0.34", "0.5", "0.7", "0.75", "0.9", "1"])
@pytest.mark.parametrize("rarity", [(0, 0), (1, 2), (3, 12), (48, 500)])
def test_the_decisions_are_those_of_all_pairs(
    threshold: str, rarity: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Which elements are looked up by themselves, in pairs and in threes changes nothing but the time.
    monkeypatch.setattr(module, "RARE", rarity[0])
    monkeypatch.setattr(module, "FREQUENT", rarity[1])
    random = Random(f"{threshold}/{rarity}")
    for elements_in_all, largest in ((8, 6), (60, 14), (2000, 40)):
        sets = drawn(300, random, elements_in_all, largest)
        found = near_duplicates(sets, float(threshold))
        assert found == compared(sets, threshold)
        assert found


@pytest.mark.parametrize("threshold", ["0.34", "0.6", "0.7", "0.9"])
@pytest.mark.parametrize("rarity", [(0, 0), (1, 2), (2, 6), (48, 500)])
def test_elements_that_are_always_together_change_no_decision(
    threshold: str, rarity: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool and the keys of its arguments are: bundles of one to nine elements, alone and beside single ones."""
    monkeypatch.setattr(module, "RARE", rarity[0])
    monkeypatch.setattr(module, "FREQUENT", rarity[1])
    random = Random(f"{threshold}/{rarity}")
    for elements_in_all, largest in ((6, 5), (25, 8), (400, 12)):
        sets = [
            frozenset((one, part) for one in each for part in range(1 + one % 3 * 4))
            for each in drawn(250, random, elements_in_all, largest)
        ]
        found = near_duplicates(sets, float(threshold))
        assert found == compared(sets, threshold)
        assert found


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.frozensets(st.integers(0, 9), max_size=8), max_size=25), st.sampled_from(["0.2", "0.5", "0.7", "0.8"])
)
def test_small_sets_are_decided_as_in_all_pairs(sets: list[frozenset[int]], threshold: str) -> None:
    assert near_duplicates(sets, float(threshold)) == compared(sets, threshold)


def test_ten_thousand_sequences_are_decided_as_in_all_pairs() -> None:
    random = Random("ten thousand")
    keys = {tool: [f"k{key}" for key in range(1 + tool % 4)] for tool in range(60)}
    sequences: list[tuple[Call, ...]] = []
    for _ in range(10_000):
        if sequences and random.random() < 0.4:
            calls = list(random.choice(sequences[-500:]))
            place = random.randrange(len(calls))
            call = calls[place]
            calls[place] = Call(place, call.tool, {**call.arguments, "k0": f"v{random.randrange(500)}"})
        else:
            tools = random.choices(sorted(keys), k=random.randint(1, 5))
            calls = [
                Call(place, f"t{tool}", {key: f"v{random.randrange(500)}" for key in keys[tool]})
                for place, tool in enumerate(tools)
            ]
        sequences.append(tuple(calls))
    sets = [elements(calls) for calls in sequences]
    found = near_duplicates(sets)
    assert found == _by_tool(sets)
    assert 1000 < len(found) < 9000


def _by_tool(sets: list[frozenset[str]]) -> dict[int, int]:
    """All pairs that have an element in common, which those at 0.70 have."""
    kept: dict[str, list[int]] = {}
    dropped: dict[int, int] = {}
    for index, one in enumerate(sets):
        shared: dict[int, int] = {}
        for element in one:
            for other in kept.get(element, ()):
                shared[other] = shared.get(other, 0) + 1
        alike = [other for other, common in shared.items() if 10 * common >= 7 * (len(one) + len(sets[other]) - common)]
        if alike:
            dropped[index] = min(alike)
        else:
            for element in one:
                kept.setdefault(element, []).append(index)
    return dropped


def test_what_is_exactly_at_the_threshold_is_dropped() -> None:
    ten = frozenset(range(10))
    assert jaccard(ten, frozenset(range(7))) == Fraction(7, 10)
    assert near_duplicates([ten, frozenset(range(7))], 0.70) == {1: 0}
    assert near_duplicates([ten, frozenset(range(7))], 0.71) == {}


def test_what_was_dropped_drops_nothing() -> None:
    chain = [frozenset(range(start, start + 20)) for start in (0, 3, 6)]
    assert [jaccard(chain[0], one) >= Fraction(7, 10) for one in chain] == [True, True, False]
    assert near_duplicates(chain) == {1: 0}
    assert near_duplicates([*chain, chain[1], chain[2]]) == {1: 0, 3: 0, 4: 2}


def test_the_first_one_that_stays_is_the_reason() -> None:
    one, other = frozenset(range(10)), frozenset([*range(6), *range(20, 24)])
    between = frozenset([*range(8), 20, 21])
    assert near_duplicates([other, one, between], 0.6) == {2: 0}
    assert near_duplicates([one, other, between], 0.6) == {2: 0}


def test_where_the_blocks_end_changes_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = drawn(400, Random("blocks"), 60, 14)
    for first, largest, candidates, rows in ((1, 1, 1, 1), (7, 32, 50, 3), (1000, 1000, 10, 100)):
        monkeypatch.setattr(join, "FIRST_BLOCK", first)
        monkeypatch.setattr(join, "LARGEST_BLOCK", largest)
        monkeypatch.setattr(join, "CANDIDATES", candidates)
        monkeypatch.setattr(module, "ROWS", rows)
        assert near_duplicates(sets) == compared(sets, "0.7")


def test_elements_whose_sums_are_the_same_are_held_against_each_other_row_for_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sets = drawn(300, Random("sums"), 60, 14)
    monkeypatch.setattr(module, "_MIX", (np.uint64(0),) * 3)  # every sum and every key of several parts is the same
    assert near_duplicates(sets) == compared(sets, "0.7")


def test_without_numpy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, join.__name__)
    monkeypatch.delattr(duplicates, "join")
    monkeypatch.setitem(sys.modules, "numpy", None)
    monkeypatch.delitem(sys.modules, module.__name__)
    with pytest.raises(MissingExtra, match=r"pip install 'callwright\[synthesis\]'"):
        near_duplicates([])


def test_empty_sets_are_like_each_other_alone() -> None:
    assert near_duplicates([frozenset(), frozenset({1}), frozenset()], 0.1) == {2: 0}
    assert near_duplicates([]) == {}


@pytest.mark.parametrize("threshold", [0, 1.1, -1, True, "0.7", float("nan")])
def test_a_threshold_that_is_none_is_refused(threshold: float) -> None:
    with pytest.raises(UsageError, match="above 0 and at most 1"):
        near_duplicates([], threshold)


def test_elements_are_tools_keys_and_values_with_their_types() -> None:
    one = elements([Call(0, "pay", {"amount": 3, "to": "A"})])
    assert len(one) == 5
    for other in ({"amount": 3.0, "to": "A"}, {"amount": "3", "to": "A"}, {"amount": True, "to": "A"}):
        assert len(one & elements([Call(0, "pay", other)])) == 4
    assert elements([Call(0, "pay", {"to": Reference(0, ("id",))})]) != elements([Call(0, "pay", {"to": "id"})])
    assert elements([Call(0, "pay", {"to": {"a": 1, "b": 2}})]) == elements([Call(0, "pay", {"to": {"b": 2, "a": 1}})])


def test_a_call_that_is_made_twice_counts_twice() -> None:
    call = Call(0, "pay", {"to": "A"})
    assert len(elements([call, call])) == 2 * len(elements([call]))
    assert jaccard(elements([call]), elements([call, call])) == Fraction(1, 2)


def test_shingles_are_runs_of_words() -> None:
    assert shingles("Please, list the Accounts!") == {"please list the", "list the accounts"}
    assert shingles("Hello.") == {"hello"}
    assert shingles("?!") == frozenset()
    texts = ["Could you list the accounts of customer C1, please?", "could you list the accounts of customer C1 please"]
    assert near_duplicates([shingles(text) for text in texts]) == {1: 0}
