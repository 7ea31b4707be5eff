"""Comparing end states: against every renaming there is, and by example."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from random import Random
from typing import Any

import pytest

import callwright as cw
from callwright.environments.base import Base
from callwright.environments.goals import Comparison, compare, end_state, equal_states
from callwright.environments.goals.comparing import Standard
from callwright.environments.goals.matching import renaming
from callwright.environments.goals.words import parsed, written
from callwright.environments.rows import table_of
from callwright.errors import DataError


@cw.row("orders", prefix="O", stamps=("placed_at",), relative={"due_at": "placed_at"}, unordered=("tags",))
class Order:
    """An order."""

    id: str
    what: str
    placed_at: int = 0
    due_at: int = 0
    tags: tuple[str, ...] = ()
    seen: int = 0


@cw.row("lines", prefix="L")
class Line:
    """A line of an order."""

    id: str
    order: str
    quantity: int
    note: str = ""


@cw.row("tickets", key="key", generated=("key",), bookkeeping=("number",))
class Ticket:
    """A ticket with a key of its own kind."""

    key: str
    title: str
    number: int


@cw.row("log", prefix="X", bookkeeping=True)
class Entry:
    """What happened."""

    id: str
    text: str


NOW = 1_000_000


def world() -> cw.World:
    rows = [Order("O00001", "pen", 500, 600, ("a", "b")), Line("L00001", "O00001", 1), Ticket("T-1", "old", 1)]
    return cw.World(Base(rows, now=NOW, kinds=[Order, Line, Ticket, Entry]))


def order(state: cw.World, what: str, *quantities: int, note: str = "") -> str:
    made = state.put(Order(state.new_id(Order), what, state.now, state.now + 60))
    for quantity in quantities:
        state.put(Line(state.new_id(Line), made.id, quantity, note.replace("#", made.id)))
    state.put(Entry(state.new_id(Entry), f"ordered {what}"))
    return made.id


def compared(expected: cw.World, found: cw.World) -> Comparison:
    mine, theirs = end_state(expected), end_state(found)
    comparison = compare(None, mine, theirs)
    assert equal_states(mine, theirs) == equal_states(theirs, mine) == comparison.equal
    standard = Standard(mine)  # which is read once, and held against several
    assert [standard.equals(one) for one in (theirs, mine, theirs)] == [comparison.equal, True, comparison.equal]
    return comparison


def told(comparison: Comparison) -> list[str]:
    return list(map(str, comparison.differences))


# The renaming ---------------------------------------------------------------------------------------------------------


def _by_trying(expected: Any, found: Any, names: list[str], others: list[str]) -> bool:
    goal = Counter((label, written(value, str)) for label, value in found)
    return any(
        Counter((label, written(value, dict(zip(names, chosen, strict=True)).__getitem__)) for label, value in expected)
        == goal
        for chosen in permutations(others)
    )


def _facts(random: Random, names: list[str]) -> list[tuple[str, Any]]:
    """Facts over names: each is in one at least, as ids are in the row that they name."""
    facts: list[tuple[str, Any]] = [("row", [name, random.choice("ab")]) for name in names]
    for _ in range(random.randint(0, 6)):
        kind = random.random()
        if kind < 0.5:
            facts.append(("edge", [random.choice(names), random.choice(names)]))
        elif kind < 0.8:
            facts.append(("set", {"unordered": random.sample(names, min(2, len(names)))}))
        else:
            facts.append(("text", f"see {random.choice(names)}, and {random.choice(names)}!"))
    return facts


def test_a_renaming_is_found_if_and_only_if_trying_all_of_them_finds_one() -> None:
    random, answers = Random(0), Counter[bool]()
    for _ in range(1500):
        names = [f"O{number:05d}" for number in range(random.randint(1, 5))]
        others = [f"O{number:05d}" for number in range(3, 3 + len(names))]
        facts = _facts(random, names)
        shuffled = others[:]
        random.shuffle(shuffled)
        again = dict(zip(names, shuffled, strict=True))

        def renamed(value: Any, again: dict[str, str] = again) -> Any:
            if isinstance(value, str):
                for old, new in again.items():
                    value = value.replace(old, f"<{new}>")
                return value.replace("<", "").replace(">", "")
            if isinstance(value, dict):
                return {key: [renamed(one) for one in inner] for key, inner in value.items()}
            return [renamed(one) for one in value]

        copies = [(label, renamed(value)) for label, value in facts]
        random.shuffle(copies)
        if random.random() < 0.6:  # somebody meddles
            at = random.randrange(len(copies))
            copies[at] = random.choice(_facts(random, others))
        mine = [(label, parsed(value, set(names))) for label, value in facts]
        theirs = [(label, parsed(value, set(others))) for label, value in copies]
        present = sorted({name for name in others if any(name in repr(value) for _, value in copies)})
        possible = len(present) == len(names) and _by_trying(mine, theirs, names, present)
        found = renaming(mine, theirs)
        assert (found is not None) == possible, (facts, copies)
        if found is not None:
            assert Counter((label, written(value, found.__getitem__)) for label, value in mine) == Counter(
                (label, written(value, str)) for label, value in theirs
            )
        answers[possible] += 1
    assert min(answers.values()) > 200


def _circles(*lengths: int) -> list[tuple[str, Any]]:
    """Names in circles: colours alone cannot tell one circle of six from two of three."""
    facts: list[tuple[str, Any]] = []
    first = 1
    for length in lengths:
        names = [f"O{number:05d}" for number in range(first, first + length)]
        facts += [("next", [name, other]) for name, other in zip(names, [*names[1:], names[0]], strict=True)]
        first += length
    made = {f"O{number:05d}" for number in range(1, first)}
    return [(label, parsed(value, made)) for label, value in facts]


def test_what_looks_alike_everywhere_is_told_apart() -> None:
    assert renaming(_circles(3, 3), _circles(6)) is None
    assert renaming(_circles(3, 4, 5), _circles(5, 3, 4)) is not None
    assert renaming(_circles(4, 4, 4), _circles(3, 4, 5)) is None
    assert renaming(_circles(*(3,) * 41, 4, 4, 4), _circles(4, 4, 4, *(3,) * 41)) is not None


def test_the_search_is_bounded() -> None:
    assert renaming(_circles(3, 4, 5), _circles(5, 3, 4), most_written=20) is None


# Rows -----------------------------------------------------------------------------------------------------------------


def test_ids_follow_the_rows_and_the_references_follow_the_ids() -> None:
    one, other = world(), world()
    order(one, "ink", 1, 2, note="for #")
    order(one, "gum", 3)
    order(other, "gum", 3)
    order(other, "ink", 2, 1, note="for #")
    assert one.digest() != other.digest()
    assert compared(one, other)
    assert compared(one, other).right == 5


def test_equal_rows_in_unequal_company_are_told_apart() -> None:
    one, other = world(), world()
    for state, quantities in ((one, ((1, 2), (1, 3))), (other, ((1, 1), (2, 3)))):
        for some in quantities:
            order(state, "ink", *some)
    found = compared(one, other)
    assert not found
    assert 0 < found.credit < 1


def test_many_equal_rows_cost_little() -> None:
    one, other = world(), world()
    for state in (one, other):
        for number in range(60):
            order(state, "ink", *((1, 2) if (number % 2) == (state is one) else (2, 1)))
    assert compared(one, other)


def test_names_of_another_kind_and_in_texts() -> None:
    one, other = world(), world()
    one.put(Ticket("T-2", "see T-3", 2))
    one.put(Ticket("T-3", "late", 3))
    other.put(Ticket("T-2", "late", 2))
    other.put(Ticket("T-3", "see T-2", 3))
    assert compared(one, other)
    other.update(other.need(Ticket, "T-3"), title="see T-1")
    assert told(compared(one, other)) == ['tickets[T-3].title is "see T-1", expected "see T-3"']


def test_times() -> None:
    one, other = world(), world()
    order(one, "ink")
    other.advance(40)
    order(other, "ink")
    assert compared(one, other)
    row = other.need(Order, "O00002")
    other.update(row, due_at=row.due_at + 1)
    assert told(compared(one, other)) == ['orders[O00002].due_at is {"seconds": 61}, expected {"seconds": 60}']
    other.update(row, placed_at=5)
    assert not compared(one, other)


def test_the_order_of_tags_is_nothing_and_their_number_is() -> None:
    one, other = world(), world()
    pen = one.need(Order, "O00001")
    one.update(pen, tags=("b", "a"))
    assert compared(one, other)
    one.update(pen, tags=("a", "b", "b"))
    assert told(compared(one, other)) == ["orders[O00001] is as it was, expected changed"]


def test_what_came_and_went_is_nothing() -> None:
    one, other = world(), world()
    order(one, "ink", 1)
    for kind in (Line, Order):
        for row in list(one.rows(kind))[1:]:
            one.drop(row)
    assert one.digest() != other.digest()
    assert compared(one, other)


def test_what_was_taken_away_and_made_again_is_nothing_unless_something_names_it() -> None:
    one, other = world(), world()
    line = one.need(Line, "L00001")
    one.drop(line)
    again = one.put(Line(one.new_id(Line), line.order, line.quantity, line.note))
    assert compared(one, other)
    one.update(again, note="twice")
    assert not compared(one, other)
    one.put(again)
    one.put(Ticket("T-2", f"about {again.id}", 2))
    assert not compared(one, other)
    pen = other.need(Order, "O00001")  # which the line names
    other.drop(pen)
    other.put(Order(other.new_id(Order), pen.what, pen.placed_at, pen.due_at, pen.tags, pen.seen))
    assert not compared(world(), other)


def test_credit_is_by_row_and_differences_say_what_is_where() -> None:
    expected, found = world(), world()
    order(expected, "ink", 1, 2)
    expected.update(expected.need(Line, "L00001"), quantity=5)
    order(found, "ink", 1, 7)
    comparison = compared(expected, found)
    assert (comparison.right, comparison.wrong, comparison.credit) == (2, 2, 0.5)
    assert told(comparison) == [
        "lines[L00001] is as it was, expected changed",
        "lines[L00003].quantity is 7, expected 2",
    ]
    nothing = compared(expected, world())
    assert nothing.credit == 0.0
    superfluous = compared(world(), found)
    assert superfluous.credit == 0.0
    assert told(superfluous)[0].startswith('lines[L00002] is {"id": "L00002", "order": "O00002", "quantity": 1')
    assert compared(world(), world()).credit == 1.0


def test_rows_that_were_so_before_earn_nothing() -> None:
    begun = world()
    order(begun, "ink", 1)
    expected, idle = begun.fork(), begun.fork()
    expected.update(expected.need(Line, "L00001"), quantity=5)
    assert compare(None, end_state(expected), end_state(idle)).credit == pytest.approx(2 / 3)
    assert compare(end_state(begun), end_state(expected), end_state(idle)).credit == 0.0


def test_a_state_that_is_none_is_named() -> None:
    with pytest.raises(DataError, match="not an end state of rows"):
        compare(None, {"form": "rows"}, {"form": "rows", "made": [], "tables": {}})
    with pytest.raises(DataError, match="two environments"):
        compare(None, {"a": 1}, end_state(world()))


def test_declarations_are_checked() -> None:
    for said in ({"bookkeeping": ("odd",)}, {"stamps": ("odd",)}, {"relative": {"id": "odd"}}, {"generated": ("odd",)}):
        with pytest.raises(cw.UsageError, match="no field 'odd'"):
            cw.row("things", **said)(type("Thing", (), {"__annotations__": {"id": str}}))  # type: ignore[arg-type]
    assert not table_of(Entry).is_compared


# Paths ----------------------------------------------------------------------------------------------------------------


def test_other_states_are_compared_path_by_path() -> None:
    before = {"items": {"1": "pen"}, "open": True}
    expected = {"items": {"1": "pen", "2": "ink"}, "open": True}
    assert compare(before, expected, {"items": {"1": "pen", "2": "ink"}, "open": True}) == Comparison(1)
    found = compare(before, expected, {"items": {"2": "gum"}, "open": 1})
    assert told(found) == [
        'items.1 is not there, expected "pen"',
        'items.2 is "gum", expected "ink"',
        "open is 1, expected true",
    ]
    assert found.credit == 0.0
    assert compare(before, {}, {}).right == 2
    assert compare(None, {"a": 1}, {"a": 1.0}).equal


@cw.row("rooms", prefix="R")
class Room:
    """A room that is heated."""

    id: str
    degrees: float
    lit: Any = False


def test_one_point_nought_is_one_and_true_is_not() -> None:
    """As in states that are not of rows: what an agent wrote as 21 may be 21.0 in the reference."""

    def left(degrees: float, lit: Any = False) -> cw.World:
        state = cw.World(Base([Room("R00001", 18.5)], now=NOW, kinds=[Room]))
        state.update(state.need(Room, "R00001"), degrees=degrees, lit=lit)
        state.put(Room(state.new_id(Room), degrees))
        return state

    assert compared(left(21.0), left(21)) == Comparison(right=2)
    assert not compared(left(21.0), left(21.5))
    assert not compared(left(21, lit=True), left(21, lit=1))
