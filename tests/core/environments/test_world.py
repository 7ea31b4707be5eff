"""Worlds against a naive model: a dictionary that is copied."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import callwright as cw
from callwright.environments import Base
from callwright.environments.base import load_base
from callwright.environments.rows import row_from_json, row_json, table_of
from callwright.environments.sizes import MOST_STATE, size_of
from callwright.environments.world import difference
from callwright.errors import DataError, UsageError


@cw.row("items", prefix="I", index=("shelf",))
class Item:
    id: str
    shelf: str
    count: int
    tags: tuple[str, ...] = ()


@cw.row("cells", key=("x", "y"))
class Cell:
    x: int
    y: int
    value: float | None = None


def rows(count: int = 12) -> list[Any]:
    items = [Item(f"I{n + 1:05d}", f"S{n % 3}", n) for n in range(count)]
    return [*items, *(Cell(x, y) for x in range(3) for y in range(2))]


def base(seed: int = 0) -> Base:
    return Base(rows(), now=1000, seed=seed)


IDS = st.sampled_from([f"I{n:05d}" for n in range(1, 17)])
SHELVES = st.sampled_from(["S0", "S1", "S2", "S9"])
ACTIONS = st.one_of(
    st.tuples(st.just("put"), IDS, SHELVES, st.integers(0, 3)),
    st.tuples(st.just("update"), IDS, SHELVES, st.integers(0, 3)),
    st.tuples(st.just("drop"), IDS),
    st.tuples(st.just("advance"), st.integers(0, 5)),
    st.tuples(st.just("new"), SHELVES),
    st.tuples(st.just("random")),
)


def act(world: cw.World, action: tuple[Any, ...]) -> None:
    match action:
        case ("put", key, shelf, count):
            world.put(Item(key, shelf, count))
        case ("update", key, shelf, count):
            found = world.get(Item, key)
            if found is not None:
                world.update(found, shelf=shelf, count=count)
        case ("drop", key):
            found = world.get(Item, key)
            if found is not None:
                world.drop(found)
        case ("advance", seconds):
            world.advance(seconds)
        case ("new", shelf):
            world.put(Item(world.new_id(Item), shelf, 1))
        case ("random",):
            world.random().random()


class Model:
    """The naive world: everything in one dictionary."""

    def __init__(self) -> None:
        self.first = {key.id: key for key in rows() if isinstance(key, Item)}
        self.items = dict(self.first)
        self.now, self.counter, self.draws = 1000, 12, 0

    def act(self, action: tuple[Any, ...]) -> None:
        match action:
            case ("put", key, shelf, count):
                self.items[key] = Item(key, shelf, count)
            case ("update", key, shelf, count) if key in self.items:
                self.items[key] = Item(key, shelf, count, self.items[key].tags)
            case ("drop", key):
                self.items.pop(key, None)
            case ("advance", seconds):
                self.now += seconds
            case ("new", shelf):
                self.counter += 1
                while f"I{self.counter:05d}" in self.items:
                    self.counter += 1
                self.items[f"I{self.counter:05d}"] = Item(f"I{self.counter:05d}", shelf, 1)
            case ("random",):
                self.draws += 1

    def ordered(self) -> list[Item]:
        old = [self.items[key] for key in self.first if key in self.items]
        return old + [self.items[key] for key in sorted(self.items) if key not in self.first]

    def state(self) -> Any:
        return self.now, self.draws, self.counter, self.ordered()


@settings(max_examples=200, deadline=None)
@given(st.lists(ACTIONS, max_size=25))
def test_a_world_is_what_the_naive_model_says(actions: list[tuple[Any, ...]]) -> None:
    world, model = cw.World(base()), Model()
    for action in actions:
        act(world, action)
        model.act(action)
        assert list(world.rows(Item)) == model.ordered()
        assert world.now == model.now
        for shelf in ("S0", "S9"):
            assert world.find(Item, shelf=shelf) == [one for one in model.ordered() if one.shelf == shelf]
        assert world.find(Item, count=1) == [one for one in model.ordered() if one.count == 1]
        assert world.find(Item, shelf="S1", count=1) == [one for one in world.find(Item, shelf="S1") if one.count == 1]
        assert world.count(Item) == len(model.items)


def shelf_and_count(item: Item) -> tuple[str, int]:
    return item.shelf, item.count


def fewest_first(item: Item) -> int:
    return -item.count


def counts(world: cw.World) -> dict[str, int]:
    return {shelf: world.count(Item, shelf=shelf) for shelf in ("S0", "S1", "S2", "S9")}


@settings(max_examples=200, deadline=None)
@given(st.lists(ACTIONS, max_size=25))
def test_what_is_remembered_of_the_base_is_what_would_be_computed_now(actions: list[tuple[Any, ...]]) -> None:
    shared = base()
    world, first = cw.World(shared), cw.World(shared)
    for action in actions:
        act(world, action)
        rows = list(world.rows(Item))
        assert world.table(Item) == {one.id: one for one in rows}
        assert world.prepared(Item, shelf_and_count) == [shelf_and_count(one) for one in rows]
        ordered = sorted(rows, key=fewest_first)  # rows of one count stay in the order of the table
        assert world.prepared(Item, shelf_and_count, fewest_first) == [shelf_and_count(one) for one in ordered]
        assert world.derived(counts, Item) == counts(world)
        assert first.derived(counts, Item) == counts(first)
    assert list(first.rows(Item)) == list(shared.rows(Item).values())
    assert first.derived(counts, Item) is first.derived(counts, Item), "it was computed once"
    assert first.prepared(Item, shelf_and_count) is cw.World(shared).prepared(Item, shelf_and_count)


def test_changes_on_the_way_do_not_show_in_rows() -> None:
    world = cw.World(base())
    seen = [world.put(Item(f"N{number}", "S9", 0)) and one.id for number, one in enumerate(world.rows(Item))]
    assert seen == [f"I{number:05d}" for number in range(1, 13)]
    again = [world.put(Item(f"O{number}", "S9", 0)) and one.id for number, one in enumerate(world.rows(Item))]
    assert len(again) == 24


def test_a_digest_asked_for_twice_in_a_call_that_fails_is_forgotten() -> None:
    world = cw.World(base())
    first = world.digest()
    world.begin(read_only=False)
    world.put(Item("N1", "S0", 1))
    assert world.digest() != first
    world.undo()
    assert world.digest() == first == cw.World(base()).digest()
    world.put(Item("N1", "S0", 1))
    assert world.digest() != first


@settings(max_examples=200, deadline=None)
@given(st.lists(ACTIONS, max_size=12), st.lists(ACTIONS, max_size=12))
def test_equal_digests_are_equal_states(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> None:
    first, second, models = cw.World(base()), cw.World(base()), (Model(), Model())
    for action in one:
        act(first, action)
        models[0].act(action)
        first.digest()  # asked for at every step here and once there: it is kept up to date
    for action in other:
        act(second, action)
        models[1].act(action)
    assert (first.digest() == second.digest()) == (models[0].state() == models[1].state())


@settings(max_examples=200, deadline=None)
@given(st.lists(ACTIONS, max_size=10), st.lists(ACTIONS, max_size=10), st.booleans())
def test_undoing_a_call_leaves_nothing_of_it(before: list[Any], during: list[Any], asked: bool) -> None:
    world = cw.World(base())
    for action in before:
        act(world, action)
    digest, dump = world.digest() if asked else None, world.dump()
    twin = world.fork()
    world.begin(read_only=False)
    for action in during:
        act(world, action)
        if asked:
            world.digest()
    world.undo()
    assert world.dump() == dump
    assert digest in (None, world.digest())
    assert world.digest() == twin.digest()
    assert world.new_id(Item) == twin.new_id(Item)
    assert world.random().random() == twin.random().random()


@settings(max_examples=100, deadline=None)
@given(st.lists(ACTIONS, max_size=10), st.lists(ACTIONS, max_size=10))
def test_a_fork_goes_its_own_way(shared: list[Any], own: list[Any]) -> None:
    world = cw.World(base())
    for action in shared:
        act(world, action)
    dump, digest = world.dump(), world.digest()
    fork = world.fork()
    for action in own:
        act(fork, action)
    assert (world.dump(), world.digest()) == (dump, digest)
    for action in own:
        act(world, action)
    assert (world.dump(), world.digest()) == (fork.dump(), fork.digest())


@settings(max_examples=100, deadline=None)
@given(st.lists(ACTIONS, max_size=15), st.lists(ACTIONS, max_size=15))
def test_the_difference_tells_every_row_that_changed(first: list[Any], then: list[Any]) -> None:
    world = cw.World(base())
    for action in first:
        act(world, action)
    before = world.fork()
    for action in then:
        act(world, action)
    found = difference(before, world).get("items", {})
    old = {one.id: row_json(one) for one in before.rows(Item)}
    new = {one.id: row_json(one) for one in world.rows(Item)}
    assert set(found.get("added", ())) == new.keys() - old.keys()
    assert set(found.get("removed", ())) == old.keys() - new.keys()
    assert found.get("changed", {}) == {
        key: {name: [old[key][name], new[key][name]] for name in new[key] if old[key][name] != new[key][name]}
        for key in sorted(old.keys() & new.keys())
        if old[key] != new[key]
    }


def test_the_base_never_changes() -> None:
    shared = base()
    total = shared.total
    rng = random.Random(3)
    worlds = [cw.World(shared) for _ in range(50)]
    for _ in range(2000):
        world = rng.choice(worlds)
        act(world, ("put", f"I{rng.randrange(1, 17):05d}", f"S{rng.randrange(4)}", rng.randrange(5)))
    assert shared.count_again() == total


def test_a_dump_can_be_loaded() -> None:
    world = cw.World(base())
    world.put(Item("I00099", "S1", 5, ("a", "b")))
    world.put(Cell(7, 7, 0.5))
    world.advance(60)
    again = cw.World(load_base([Item, Cell], world.dump()))
    assert again.dump() == world.dump()
    assert again.get(Item, "I00099") == Item("I00099", "S1", 5, ("a", "b"))
    assert again.get(Cell, (7, 7)) == Cell(7, 7, 0.5)


@pytest.mark.parametrize(
    ("dumped", "said"),
    [
        ({}, "must be"),
        ({"now": 1, "tables": {"nothing": []}}, "no table 'nothing'"),
        ({"now": 1, "tables": {"items": [1]}}, "a list of rows"),
        ({"now": 1, "tables": {"items": [{"id": "a"}]}}, "not a row of 'items'"),
        ({"now": 1, "tables": {"items": [{"id": "a", "shelf": {}, "count": 1}]}}, "'shelf'"),
    ],
)
def test_a_bad_dump_is_named(dumped: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        load_base([Item, Cell], dumped)


def test_rows_hold_nothing_that_can_change() -> None:
    with pytest.raises(DataError, match="tags"):
        Base([Item("a", "b", 1, ["x"])], now=0)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        cw.World(base()).put(Item("a", "b", 1, ["x"]))  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        Item("a", "b", 1).count = 2  # type: ignore[misc]
    with pytest.raises(DataError, match="two rows"):
        Base([Item("a", "b", 1), Item("a", "c", 1)], now=0)


def test_update_refuses_what_it_cannot_do() -> None:
    world = cw.World(base())
    item = world.need(Item, "I00001")
    with pytest.raises(UsageError, match="no field 'colour'"):
        world.update(item, colour="red")
    with pytest.raises(UsageError, match="key"):
        world.update(item, id="I00002")


def size_of_changes(world: cw.World) -> int:
    """What the changed rows come to, by looking at all of them."""
    changed = [row for rows in world._changed.values() for row in rows.values() if row is not None]
    return sum(size_of(table_of(type(row)).values_of(row), MOST_STATE) for row in changed)


@settings(max_examples=100, deadline=None)
@given(st.lists(ACTIONS, max_size=10), st.lists(ACTIONS, max_size=10), st.booleans())
def test_what_a_session_holds_is_known_at_any_time(before: list[Any], during: list[Any], failed: bool) -> None:
    world = cw.World(base())
    for action in before:
        act(world, action)
        assert world._held == size_of_changes(world)
    held = world._held
    world.begin(read_only=False)
    for action in during:
        act(world, action)
    if failed:
        world.undo()
        assert world._held == held
    assert world._held == size_of_changes(world)
    assert world.fork()._held == copy.copy(world)._held == world._held


def test_a_session_holds_no_more_than_its_bound() -> None:
    world = cw.World(base())
    for number in range(9):
        world.begin(read_only=False)
        world.put(Item(f"J{number}", "x" * (MOST_STATE // 10), 1))
        world.end()
    world.begin(read_only=False)
    with pytest.raises(cw.ToolError) as caught:
        world.put(Item("J9", "x" * (MOST_STATE // 10), 1))
    assert caught.value.code == "state_too_large"
    world.undo()
    assert 0.8 * MOST_STATE < world._held <= MOST_STATE
    world.put(Item("I00001", "small", 1))  # what fits goes on
    for number in range(9):
        world.drop(world.need(Item, f"J{number}"))
    assert world._held < 100


@cw.tool
def fill(world: cw.World, /, pages: int) -> int:
    """Put so many pages on a shelf."""
    for _ in range(pages):
        world.put(Item(world.new_id(Item), "x" * 1_000_000, 1))
    return world.count(Item)


def some(rng: random.Random, scale: float) -> list[Any]:
    return rows()


def test_a_call_that_would_pass_it_is_undone() -> None:
    environment = cw.StatefulEnvironment("shelves", tools=[fill], rows=(Item,), scenarios={"s": cw.Scenario(some)})
    session = environment.open()
    assert session.call("fill", {"pages": 10}).kind == "ok"
    before = session.digest()
    outcome = session.call("fill", {"pages": 10})
    assert (outcome.kind, outcome.code) == ("execution_error", "state_too_large")
    assert session.digest() == before
    assert session.call("fill", {"pages": 1}).value == 23


def test_a_missing_row_is_a_failure_of_the_call() -> None:
    with pytest.raises(cw.ToolError, match="'I99999' in items") as caught:
        cw.World(base()).need(Item, "I99999")
    assert caught.value.code == "NOT_FOUND"


def test_seeds_give_different_numbers_and_draws_too() -> None:
    worlds = [cw.World(base(seed)) for seed in (1, 1, 2)]
    drawn = [[world.random().random() for _ in range(3)] for world in worlds]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 3


def test_rows_travel_as_json() -> None:
    item = Item("I1", "S", 3, ("a",))
    assert row_json(item) == {"id": "I1", "shelf": "S", "count": 3, "tags": ["a"]}
    assert row_from_json(Item, row_json(item)) == item
    assert table_of(Cell).key_of(Cell(1, 2)) == (1, 2)
    with pytest.raises(UsageError, match="@callwright"):
        table_of(int)
    with pytest.raises(UsageError, match="no field"):
        cw.row("broken", key="nothing")(type("Broken", (), {"__annotations__": {"id": str}}))


def test_worlds_of_different_scenarios_have_no_difference() -> None:
    with pytest.raises(UsageError, match="not of one scenario"):
        difference(cw.World(base()), cw.World(base()))


def test_time_does_not_run_backwards() -> None:
    with pytest.raises(UsageError):
        cw.World(base()).advance(-1)


def test_a_deep_copy_is_not_needed() -> None:
    """What the overlay gives is what copying everything would have given."""
    world, rng = cw.World(base()), random.Random(5)
    copied = Model()
    kept: list[tuple[cw.World, Model]] = []
    for _ in range(60):
        if rng.random() < 0.2:
            kept.append((world.fork(), copy.deepcopy(copied)))
        action = ("put", f"I{rng.randrange(1, 17):05d}", f"S{rng.randrange(4)}", rng.randrange(5))
        act(world, action)
        copied.act(action)
    assert all(list(fork.rows(Item)) == model.ordered() for fork, model in kept)


def test_looking_ahead_changes_nothing_and_is_remembered_until_something_does() -> None:
    world, ran = cw.World(base()), []

    def settle(later: cw.World) -> None:
        ran.append(later.now)
        later.update(later.need(Item, "I00001"), count=99)

    digest = world.digest()
    assert world.ahead(settle).need(Item, "I00001").count == 99
    assert world.ahead(settle) is world.ahead(settle)
    assert (world.need(Item, "I00001").count, world.digest(), len(ran)) == (0, digest, 1)
    world.advance(5)
    assert world.ahead(settle).now == 1005
    world.begin(read_only=False)
    world.update(world.need(Item, "I00002"), count=7)
    assert world.ahead(settle).need(Item, "I00002").count == 7
    world.undo()
    assert world.ahead(settle).need(Item, "I00002").count == 1
    assert ran == [1000, 1005, 1005, 1005]


def test_a_table_without_rows_is_in_the_dump() -> None:
    empty = Base([], now=1, kinds=[Item])
    assert empty.dump() == {"now": 1, "tables": {"items": []}}
    assert load_base([Item], empty.dump()).dump() == empty.dump()
