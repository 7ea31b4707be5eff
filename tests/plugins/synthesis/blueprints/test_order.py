"""What has to come before what: calls that are made sooner than they were, in a turn and from turn to turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import callwright as cw
from callwright.environments.protocol import Environment
from callwright.errors import DataError
from callwright.language.program import Call, Reference
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Stage, edges_of, pairs_of
from callwright_plugins.synthesis.blueprints.order import ordered
from callwright_plugins.synthesis.exploration.forking import opened
from callwright_plugins.synthesis.language.plan import Plan

Said = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module")
def files() -> Environment:
    return cw.environment("filesystem")


def turn(*calls: Said) -> Stage:
    made = tuple(Call(place, tool, arguments) for place, (tool, arguments) in enumerate(calls))
    return Stage(Plan(made), made)


def order_of(environment: Environment, *turns: Stage) -> Sequence[Stage]:
    session = opened(environment, "", 3)
    try:
        return ordered(turns, environment.tools, session)
    finally:
        session.close()


def edges(environment: Environment, *turns: Stage) -> list[tuple[int, int]]:
    return edges_of(order_of(environment, *turns))


def in_order(environment: Environment, *turns: Stage) -> list[tuple[tuple[int, int], ...]]:
    return [stage.edges for stage in order_of(environment, *turns)]


def write(path: str, content: str = "seven plums") -> Said:
    return "write_file", {"path": path, "content": content}


def read(path: str) -> Said:
    return "cat", {"path": path}


def test_a_listing_follows_what_is_made_there_and_nothing_else(files: Environment) -> None:
    made, there, elsewhere = (
        ("mkdir", {"path": "/tmp/harbour"}),
        ("ls", {"path": "/tmp/harbour"}),
        ("ls", {"path": "/home"}),
    )
    assert edges(files, turn(made, there)) == [(0, 1)]
    assert edges(files, turn(made, elsewhere)) == []
    assert edges(files, turn(made, elsewhere, there)) == [(0, 2)]


def test_reads_follow_the_write_that_they_tell_of(files: Environment) -> None:
    calls = turn(write("/tmp/a.txt"), write("/tmp/b.txt"), read("/tmp/a.txt"), read("/tmp/b.txt"))
    assert edges(files, calls) == [(0, 2), (1, 3)]


def test_what_is_read_before_it_is_written_over_comes_first(files: Environment) -> None:
    calls = turn(write("/tmp/a.txt"), read("/tmp/a.txt"), write("/tmp/a.txt", "eight pears"), read("/tmp/a.txt"))
    assert in_order(files, calls) == [((0, 1), (0, 2), (1, 2), (2, 3))]
    # Whoever does not read it writes over it just so; that it was there is told.
    assert edges(files, calls) == [(0, 1), (0, 2), (2, 3)]


def test_later_turns_follow_earlier_ones(files: Environment) -> None:
    first, second = turn(("mkdir", {"path": "/tmp/quay"}), write("/tmp/a.txt")), turn(write("/tmp/quay/b.txt"))
    third = turn(read("/tmp/a.txt"), read("/tmp/quay/b.txt"))
    made = order_of(files, first, second, third)
    assert [one.needs for one in made] == [((), ()), ((0,),), ((1,), (2,))]
    assert [one.after for one in made] == [((), ()), ((),), ((), ())]
    assert edges_of(made) == [(0, 2), (1, 3), (2, 4)]
    assert pairs_of(made) == {("mkdir", "write_file"), ("write_file", "cat")}
    assert all(Stage.from_json(one.to_json()) == one for one in made)


def test_ids_that_are_given_out_in_another_order_are_no_reason() -> None:
    email = cw.environment("email")

    def draft(subject: str) -> Said:
        return "create_draft", {"to": ["ada@example.com"], "subject": subject, "body": "More tomorrow."}

    assert edges(email, turn(draft("Plums"), draft("Pears"))) == []
    session = opened(email, "", 3)
    one = session.fork().call(*draft("Plums")).value
    session.close()
    name = next(name for name, value in one.items() if name.endswith("id") and isinstance(value, str))
    # The second turn takes the id that the first one was given: it goes with the draft, wherever that comes.
    update = turn(("update_draft", {"draft_id": one[name], "subject": "Quinces"}), draft("Pears"))
    assert edges(email, turn(draft("Plums")), update) == [(0, 1)]


def test_what_is_put_into_one_basket_is_put_there_in_any_order() -> None:
    """Each tells of the whole basket as it is then."""
    shopping = cw.environment("shopping")
    session = shopping.open("", 3)
    found = session.call("search_products", {"in_stock_only": True}).value["items"]
    wanted: list[str] = []
    for one in (variant for product in found for variant in product["variant_ids"]):
        if len(wanted) < 2 and session.call("add_to_cart", {"variant_id": one}).executed:
            wanted.append(one)
    put = turn(*(("add_to_cart", {"variant_id": one}) for one in wanted), ("view_cart", {}))
    assert edges(shopping, put) == [(0, 2), (1, 2)]


def test_of_several_that_will_do_the_one_that_told_of_it_is_needed() -> None:
    """Two places are kept that are one: whichever was kept first would have had the id that is asked about."""
    maps = cw.environment("maps")
    session: Any = maps.open("", 3)
    where = session.call("list_saved_places", {}).value["items"][0]["location"]
    first = session.call("save_place", {"location": where, "label": "first"}).value["saved_id"]
    keep = [("save_place", {"location": where, "label": label}) for label in ("first", "second")]
    near = ("places_nearby", {"location": first})
    assert edges(maps, turn(*keep), turn(near)) == [(0, 2)]
    assert edges(maps, turn(keep[0]), turn(keep[1], near)) == [(0, 2)]


def test_references_are_edges_once(files: Environment) -> None:
    made = order_of(files, turn(("pwd", {}), ("ls", {"path": Reference(0, ("path",))})))
    assert made[0].after == made[0].needs == ((), ())
    assert edges_of(made) == [(0, 1)]


def test_a_call_follows_no_later_one() -> None:
    stage = Stage(Plan(()), (Call(0, "pwd", {}),), needs=((0,),))
    with pytest.raises(DataError, match="no earlier call"):
        Blueprint("filesystem", "", 0, "task", (stage,), ())
    with pytest.raises(DataError, match="says for 2 of them"):
        Stage(Plan(()), (Call(0, "pwd", {}),), needs=((), ()))
