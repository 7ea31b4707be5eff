"""Programs: references, the dependency graph and its shapes, against computations that know nothing of ours."""

from __future__ import annotations

import json
from graphlib import TopologicalSorter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.errors import UsageError
from callwright.language.program import NO_CALL, Call, Program, Reference, join_path, plain, revive

keys = st.text(st.characters(exclude_characters=".[]", exclude_categories=["Cs"]), min_size=1, max_size=6)
references = st.builds(
    Reference,
    st.integers(0, 999_999_999),
    st.lists(keys | st.integers(0, 999_999_999), max_size=4).map(tuple),
)


def chain(*wires: tuple[int, ...]) -> Program:
    """A program whose call ``i`` uses the results of the calls ``wires[i]``."""
    return Program(tuple(Call(i, f"t{i}", {f"p{j}": Reference(j) for j in use}) for i, use in enumerate(wires)))


@given(references)
def test_a_reference_is_read_back_from_its_text(reference: Reference) -> None:
    assert Reference.parse(str(reference)) == reference


@given(
    st.text(st.characters(exclude_categories=["Cs"])) | st.text("API_RESPONSE_0123.[]a ").map("API_RESPONSE_".__add__)
)
def test_any_text_is_a_reference_or_not(text: str) -> None:
    reference = Reference.parse(text)
    assert (reference is not None) == text.startswith("API_RESPONSE_")
    if reference is not None:
        assert Reference.parse(str(reference)) == reference
        if reference.call == NO_CALL:
            assert str(reference) == text
            return
        head = text.partition(".")[0].partition("[")[0]
        assert head.removeprefix("API_RESPONSE_").isdecimal()
        assert reference.call == int(head.removeprefix("API_RESPONSE_"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("API_RESPONSE_0", Reference(0)),
        ("API_RESPONSE_12.Location", Reference(12, ("Location",))),
        ("API_RESPONSE_1.items[0].sku", Reference(1, ("items", 0, "sku"))),
        ("API_RESPONSE_1[2][3]", Reference(1, (2, 3))),
        ("API_RESPONSE_007", Reference(7)),
        ("API_RESPONSE_0.two words\nand a line", Reference(0, ("two words\nand a line",))),
        ("API_RESPONSE_", Reference(NO_CALL, ("",))),
        ("api_response_0", None),
        (" API_RESPONSE_0", None),
        ("API_RESPONSE_0 ", Reference(NO_CALL, ("0 ",))),
        ("API_RESPONSE_0.", Reference(NO_CALL, ("0.",))),
        ("API_RESPONSE_0.a..b", Reference(NO_CALL, ("0.a..b",))),
        ("API_RESPONSE_0[-1]", Reference(NO_CALL, ("0[-1]",))),
        ("API_RESPONSE_0[x]", Reference(NO_CALL, ("0[x]",))),
        ("API_RESPONSE_²", Reference(NO_CALL, ("²",))),
        ("API_RESPONSE_1234567890", Reference(NO_CALL, ("1234567890",))),
        ("see API_RESPONSE_0", None),
    ],
)
def test_the_text_of_references(text: str, expected: Reference | None) -> None:
    assert Reference.parse(text) == expected


def test_reading_a_reference_is_linear() -> None:
    """The pattern cannot backtrack: a million characters that almost match are read as misspelt at once."""
    for tail in ("0" + ".a" * 500_000 + ".", "0" + "[1]" * 300_000 + "["):
        assert Reference.parse("API_RESPONSE_" + tail) == Reference(NO_CALL, (tail,))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | keys | references,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)


def independent_leaves(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Reference]]:
    match value:
        case Reference():
            return [(path, value)]
        case dict():
            parts = [independent_leaves(inner, (*path, key)) for key, inner in value.items()]
        case list():
            parts = [independent_leaves(inner, (*path, index)) for index, inner in enumerate(value)]
        case _:
            parts = []
    return [leaf for part in parts for leaf in part]


@given(st.dictionaries(keys, values, max_size=4))
def test_references_are_found_where_they_stand(arguments: dict[str, Any]) -> None:
    assert list(Call(0, "t", arguments).located) == independent_leaves(arguments)


@given(values)
def test_revive_undoes_plain(value: Any) -> None:
    text = plain(value)
    json.dumps(text)  # JSON again
    assert revive(text) == value
    assert plain(revive(text)) == text


@st.composite
def wirings(draw: st.DrawFn) -> list[tuple[int, ...]]:
    count = draw(st.integers(0, 7))
    return [tuple(sorted(draw(st.sets(st.integers(0, i - 1), max_size=3)))) if i else () for i in range(count)]


def longest_path(edges: set[tuple[int, int]], count: int) -> int:
    graph = {later: {a for a, b in edges if b == later} for later in range(count)}
    length: dict[int, int] = {}
    for node in TopologicalSorter(graph).static_order():
        length[node] = 1 + max((length[before] for before in graph[node]), default=0)
    return max(length.values(), default=0)


def shape(edges: set[tuple[int, int]], count: int) -> str:
    """The definitions of the paper, word for word, over an undirected reachability search."""
    if count < 2:
        return "single" if count else "none"
    if not edges:
        return "parallel"
    seen, frontier = {0}, [0]
    while frontier:
        node = frontier.pop()
        for a, b in edges:
            for other in {b} if a == node else {a} if b == node else set():
                if other not in seen:
                    seen.add(other)
                    frontier.append(other)
    uses = [sum(b == node for _, b in edges) for node in range(count)]
    used = [sum(a == node for a, _ in edges) for node in range(count)]
    if len(seen) == count:
        if max(uses) == max(used) == 1:
            return "linear"
        if edges == {(node, count - 1) for node in range(count - 1)}:
            return "funnel"
        if max(uses) == 1:
            return "tree"
    return "mixed"


@settings(max_examples=300)
@given(wirings())
def test_the_graph_agrees_with_an_independent_one(wires: list[tuple[int, ...]]) -> None:
    program = chain(*wires)
    edges = {(earlier, later) for later, use in enumerate(wires) for earlier in use}
    assert program.edges == tuple(sorted(edges))
    assert program.depth == len(wires)
    assert program.chain == longest_path(edges, len(wires))
    assert program.structure == shape(edges, len(wires))
    assert program.dangling == ()


@given(wirings(), st.randoms(use_true_random=False))
def test_ids_may_be_any_numbers(wires: list[tuple[int, ...]], rng: Any) -> None:
    """The graph is one of positions: other ids, the same graph."""
    ids = sorted(rng.sample(range(1000), len(wires)))
    renamed = Program(
        tuple(Call(ids[i], "t", {f"p{j}": Reference(ids[j]) for j in use}) for i, use in enumerate(wires))
    )
    assert (renamed.edges, renamed.chain, renamed.structure) == (
        chain(*wires).edges,
        chain(*wires).chain,
        chain(*wires).structure,
    )


APPENDIX_B = {
    "linear": {
        "0": {"Get_current_location": {}},
        "1": {"Find": {"location": "API_RESPONSE_0"}},
        "2": {"Listing": {"dealerships": "API_RESPONSE_1"}},
    },
    "funnel": {
        "0": {"Get_current_time": {}},
        "1": {"Get_current_location": {}},
        "2": {"Get_weather": {"time": "API_RESPONSE_0", "location": "API_RESPONSE_1"}},
    },
    "tree": {
        "0": {"Get_Crypto_Price": {"ticker": "BTC", "price_time": "2026-01-11"}},
        "1": {"Convert": {"amount": "API_RESPONSE_0", "to_currency": "GBP"}},
        "2": {"Convert": {"amount": "API_RESPONSE_0", "to_currency": "EUR"}},
    },
    "mixed": {
        "0": {"Get_current_location": {}},
        "1": {"Find_Restaurants": {"location": "API_RESPONSE_0"}},
        "2": {"Cuisine": {"restaurants": "API_RESPONSE_1", "cuisine": "Mexican"}},
        "3": {"Get_current_time": {}},
        "4": {"Opening_Hours": {"restaurants": "API_RESPONSE_2", "time": "API_RESPONSE_3"}},
    },
}
CHAINS = {"linear": 3, "funnel": 2, "tree": 2, "mixed": 4}


@pytest.mark.parametrize("structure", APPENDIX_B)
def test_the_examples_of_appendix_b(structure: str) -> None:
    calls = [
        Call(int(key), tool, revive(arguments))
        for key, call in APPENDIX_B[structure].items()
        for tool, arguments in call.items()
    ]
    program = Program(tuple(calls))
    assert program.structure == structure
    assert program.chain == CHAINS[structure]
    assert program.depth == len(calls)


def test_two_trees_side_by_side_are_not_a_tree() -> None:
    assert chain((), (0,), (0,), (), (3,)).structure == "mixed"
    assert chain((), (0,), (0,), (1,)).structure == "tree"


def test_dangling_references_name_their_place() -> None:
    program = Program(
        (
            Call(3, "a", {"x": [Reference(3)], "y": Reference(9, ("k",))}),
            Call(4, "b", {"x": {"z": Reference(5)}, "ok": Reference(3)}),
            Call(5, "c", {}),
        )
    )
    assert program.dangling == (
        (0, "x[0]", Reference(3)),
        (0, "y", Reference(9, ("k",))),
        (1, "x.z", Reference(5)),
    )
    assert program.edges == ((0, 1),)


def test_paths_are_written_for_people() -> None:
    assert join_path(("items", 0, "sku")) == "items[0].sku"
    assert join_path((1, 2)) == "[1][2]"
    assert join_path(()) == ""


def test_equality_ignores_the_thought_and_nothing_else() -> None:
    program = Program((Call(0, "a", {"x": 1}),), "one", "because")
    assert program == Program((Call(0, "a", {"x": 1}),), "one", "for no reason")
    assert program != Program((Call(0, "a", {"x": 1}),), "all", "because")
    assert program != Program((Call(1, "a", {"x": 1}),), "one", "because")
    assert program != Program((Call(0, "a", {"x": 2}),), "one", "because")


def test_what_was_computed_is_kept_and_does_not_change_equality() -> None:
    first, second = chain((), (0,)), chain((), (0,))
    assert first.edges is first.edges
    assert first == second
    assert Program.structure.__doc__ is not None


@pytest.mark.parametrize(
    "given", [("add", {"a": 1}), (0, Program), (0, "add", [1]), (0, "add", '{"a": 1}'), (None, "add"), (0, "add", None)]
)
def test_a_call_that_is_none_is_refused_where_it_is_made(given: Any) -> None:
    with pytest.raises(UsageError, match=r"a call has an id .*: callwright\.Call\(0, 'add', \{'a': 1\}\), not \("):
        Call(*given)


def test_a_call_that_a_parser_has_read_is_as_any_other() -> None:
    read, made = Call.read(1, "b", {"x": Reference(0)}), Call(1, "b", {"x": Reference(0)})
    assert read == made
    assert read.located == made.located == ((("x",), Reference(0)),)
