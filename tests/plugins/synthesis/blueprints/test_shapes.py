"""Shapes say where values come from; filled in other worlds, their calls come to the same."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from attrs import evolve
from tests.plugins.synthesis.depot import Far, depot

from callwright.capability import has
from callwright.environments.knowledge.suggestions import Gap
from callwright.environments.knowledge.suggestions import Template as Suggested
from callwright.environments.protocol import TellsGoalState
from callwright.language.program import Call
from callwright.plugins import default_registry
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.blueprints.binding import Binder
from callwright_plugins.synthesis.blueprints.knowledge import Knowledge, known
from callwright_plugins.synthesis.blueprints.repertoire import Repertoire, _distinct, _World
from callwright_plugins.synthesis.blueprints.shapes import (
    Entity,
    Free,
    FromResult,
    Shape,
    Shaper,
    Step,
    Variable,
    _is_unspoken,
    _spoken,
    joined,
    taken_up,
)
from callwright_plugins.synthesis.blueprints.texts import Blank, Written
from callwright_plugins.synthesis.exploration.forking import opened
from callwright_plugins.synthesis.exploration.values import Place, value_of
from callwright_plugins.synthesis.exploration.witness import Witness
from callwright_plugins.synthesis.language.inventing import invented_number, invented_text, moved_moment


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return known(depot(), registry=default_registry(), calls=1500)


@pytest.fixture(scope="module")
def repertoire(knowledge: Knowledge) -> Repertoire:
    return Repertoire(depot(), knowledge)


def shape_of(repertoire: Repertoire, source: str, target: str) -> Shape:
    return repertoire.edges[source, target][0][1]


def test_a_pin_is_the_users_a_token_is_told_and_a_parcel_is_of_the_world(repertoire: Repertoire) -> None:
    shape = shape_of(repertoire, "sign_in", "fetch_parcel")
    signed, fetched = shape.steps[0], shape.steps[-1]
    assert shape.tools[0] == "sign_in"
    pin = signed.arguments["pin"]
    assert isinstance(pin, Entity)
    assert shape.variables[pin.variable].of_the_user
    token = fetched.arguments["token"]
    assert isinstance(token, FromResult)
    assert (token.step, token.path) == (0, ("token",))
    parcel = fetched.arguments["parcel_id"]
    assert isinstance(parcel, Entity | FromResult)
    if isinstance(parcel, Entity):
        assert Place("result", "list_parcels", "items[].parcel_id") in shape.variables[parcel.variable].sources


def test_shapes_hold_no_step_that_was_of_no_use(repertoire: Repertoire) -> None:
    assert {shape.tools for shape in repertoire.single["drive_out"]} == {("open_gate", "drive_out")}
    assert {shape.tools for shape in repertoire.single["list_parcels"]} == {("list_parcels",)}


def test_every_shape_can_be_filled_in_other_worlds(repertoire: Repertoire) -> None:
    for seed in range(100, 110):
        session: Any = opened(depot(), "", seed)
        context = repertoire.context(session, Random(seed))
        binder = Binder(repertoire.tools, context, Random(seed))
        digest = session.digest()
        for pair, found in repertoire.edges.items():
            bound = next((one for _, shape in found if (one := binder.bind(session, shape, 10)) is not None), None)
            assert bound is not None, (seed, pair)
            again = depot().open("", seed)
            for made in bound.made:
                assert again.call(made.tool, dict(made.arguments)) == made.outcome
        for cell, shape in repertoire.failures.items():
            failed = binder.bind(session, shape, 10)
            if failed is not None:
                assert failed.made[-1].outcome.code == cell[1]
        assert session.digest() == digest


def test_chains_are_edges_joined_where_one_ends_and_the_other_begins(repertoire: Repertoire) -> None:
    first, second = shape_of(repertoire, "open_gate", "close_gate"), shape_of(repertoire, "close_gate", "open_gate")
    both = joined(first, second, len(first.steps) - 1)
    assert both is not None
    assert both.tools == ("open_gate", "close_gate", "open_gate")
    assert joined(first, shape_of(repertoire, "sign_in", "fetch_parcel"), len(first.steps) - 1) is None


def test_what_a_text_of_one_shape_is_in_another_keeps_its_blanks() -> None:
    """An entity of the second shape is a suggested text of the first: its blanks are those of the first already."""
    text = Suggested("put", "text", "{name} {word}")
    noted = Suggested("look", "note", "{word}")
    names, words = Gap(any_of=("Ada", "Bo")), Gap(any_of=("one", "two"))
    now = datetime(2026, 1, 1, tzinfo=UTC)
    first = Shape(
        (Step("put", {"text": Written(text, (("name", 0), ("word", 1)))}),),
        (),
        "ok",
        "",
        now,
        blanks=(Blank(names, "Ada"), Blank(words, "one")),
    )
    told = Variable((Place("result", "put", "text"),), "Ada one")
    second = Shape(
        (Step("put", {"text": Entity(0)}), Step("look", {"text": Entity(0), "note": Written(noted, (("word", 0),))})),
        (told,),
        "ok",
        "",
        now,
        source=0,
        blanks=(Blank(words, "two"),),
    )
    both = joined(first, second, 0)
    assert both is not None
    assert both.steps[1].arguments["text"] == first.steps[0].arguments["text"]
    assert both.steps[1].arguments["note"] == Written(noted, (("word", 2),))
    assert [blank.value for blank in both.blanks] == ["Ada", "one", "two"]


def made_and_listed(listed: str = "folder", pattern: str = r"/[^.\s]+") -> Shape:
    """A folder is made, and the one around it is listed."""
    folder = Gap(sources=("list_folders", "make_folder.path"), pattern=re.compile(pattern))
    made, shown = Suggested("make_folder", "path", "{folder}/{word}"), Suggested("list", "path", "{" + listed + "}")
    return Shape(
        (
            Step("make_folder", {"path": Written(made, (("folder", 0), ("word", 1)))}),
            Step("list", {"path": Written(shown, ((listed, 0),)), "deep": Free("deep", "fixed", True)}),
        ),
        (),
        "ok",
        "",
        datetime(2026, 1, 1, tzinfo=UTC),
        source=0,
        world=("", 1),
        blanks=(Blank(folder, "/home"), Blank(Gap(any_of=("alder", "dune")), "dune")),
    )


def test_what_was_made_may_be_taken_up() -> None:
    shape = made_and_listed()
    (other,) = taken_up(shape)
    assert other.steps[0] == shape.steps[0]
    path = other.steps[1].arguments["path"]
    assert path.value(other.blanks) == "/home/dune"
    assert other.blanks[path.blanks[0][1]].text == shape.steps[0].arguments["path"]
    assert other.steps[1].arguments["deep"] == shape.steps[1].arguments["deep"]
    assert other.world != shape.world  # no witness has it
    assert taken_up(other) == []
    assert len(_distinct([shape, other, *taken_up(shape)])) == 2


def test_what_was_made_is_not_taken_up_where_no_gap_takes_it() -> None:
    assert taken_up(made_and_listed(pattern=r"/h\w+")) == []
    told = evolve(
        made_and_listed(), blanks=(Blank(Gap(sources=("list_folders",)), "/home"), *made_and_listed().blanks[1:])
    )
    assert taken_up(told) == []


def test_chains_take_up_what_was_made() -> None:
    (listing,) = taken_up(made_and_listed())
    whole = joined(evolve(listing, steps=listing.steps[:1], source=-1), listing, 0)
    assert whole is not None
    path = whole.steps[1].arguments["path"]
    assert path.value(whole.blanks) == "/home/dune"
    assert whole.blanks[path.blanks[0][1]].text == whole.steps[0].arguments["path"]


def test_what_was_made_is_gone_on_with_whatever_its_text_was_elsewhere() -> None:
    """In the second witness the file that is written has no folder of its own: there its path is one blank."""
    file = Gap(sources=("write.path",), pattern=re.compile(r"/\S+\.txt"))
    put, read = Suggested("write", "path", "{folder}/{word}.txt"), Suggested("read", "path", "{file}")
    made = made_and_listed()
    written = Step("write", {"path": Written(put, (("folder", 2), ("word", 1)))})
    blanks = (*made.blanks, Blank(made.blanks[0].gap, "/home/dune", text=made.steps[0].arguments["path"]))
    first = evolve(made, steps=(made.steps[0], written), blanks=blanks)
    again = Step("write", {"path": Written(Suggested("write", "path", "{file}"), (("file", 0),))})
    reading = Step("read", {"path": Written(read, (("file", 0),))})
    second = evolve(made, steps=(again, reading), blanks=(Blank(file, "/home/ember.txt"),), source=0)
    whole = joined(first, second, 1)
    assert whole is not None
    path = whole.steps[2].arguments["path"]
    assert path.value(whole.blanks) == "/home/dune/dune.txt"
    assert whole.blanks[path.blanks[0][1]].text == written.arguments["path"]
    pictures = evolve(second, blanks=(Blank(Gap(sources=("write.path",), pattern=re.compile(r"/\S+\.png")), "/a.png"),))
    other = joined(first, pictures, 1)
    assert other is not None
    assert other.blanks[-1].text is None, "no picture was written"


def test_a_longer_shape_keeps_the_calls_that_are_bound(repertoire: Repertoire) -> None:
    session: Any = opened(depot(), "", 11)
    binder = Binder(repertoire.tools, repertoire.context(session, Random(11)), Random(11))
    first, second = shape_of(repertoire, "sign_in", "fetch_parcel"), shape_of(repertoire, "open_gate", "close_gate")
    bound = binder.bind(session, first, 10)
    assert bound is not None
    longer = evolve(first, steps=(*first.steps, *second.steps))
    found = binder.extend(bound, longer, 3, lambda _: True)
    assert found is not None
    assert found.made[: len(bound.made)] == bound.made
    assert [one.tool for one in found.made] == [*first.tools, *second.tools]
    assert binder.extend(bound, longer, 3, lambda _: False) is None
    digest = bound.session.digest()
    again = binder.extend(found, evolve(longer, steps=(*longer.steps, *second.steps[1:])), 3, lambda _: True)
    assert again is None, "the gate is closed already"
    assert bound.session.digest() == digest


def test_a_sample_is_compact_and_about_what_a_chain_is_about(repertoire: Repertoire) -> None:
    session: Any = opened(depot(), "", 7)
    context = repertoire.context(session, Random(1))
    everything = context.compact()
    assert len(everything["list_parcels: items[].parcel_id"]) == 5
    assert everything["me: pin"] == [session.knowledge("me")["pin"]]
    place = Place("result", "list_parcels", "items[].shelf")
    assert set(context.compact([place])) == {"list_parcels: items[].shelf"}


def test_forks_of_a_server_know_nothing_of_each_other() -> None:
    far = Far(disposable=True)
    one: Any = opened(far, "", 3)
    other = one.fork()
    assert one.call("open_gate", {}).kind == "ok"
    assert other.call("open_gate", {}).kind == "ok"
    third = one.fork()
    assert one.call("open_gate", {}).code == "ALREADY_OPEN"
    assert third.call("drive_out", {}).kind == "ok"
    assert one.fork().digest() == third.digest() == other.digest()
    begun = far.calls.count("open_gate")
    for _ in range(5):
        third.fork().call("list_parcels", {})
    assert far.calls.count("open_gate") == begun  # a call that only reads needs no other session
    one.close()


def test_what_is_known_of_a_place_of_a_server_is_not_found_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """To be at a place again takes a process of its own, mostly: calls and questions there are made once."""
    far, opens = Far(disposable=True), []
    open_ = Far.open
    monkeypatch.setattr(Far, "open", lambda self, *world: opens.append(world) or open_(self, *world))
    session: Any = opened(far, "", 3)

    def told() -> list[Any]:
        fork = session.fork()
        calls = [("list_parcels", {}), ("open_gate", {}), ("open_gate", {}), ("drive_out", {})]
        found = [fork.call(tool, arguments) for tool, arguments in calls]
        return [*found, fork.digest(), fork.knowledge("me"), has(fork, TellsGoalState)]

    first, made, begun = told(), len(far.calls), len(opens)
    assert [told() for _ in range(4)] == [first] * 4
    assert (len(far.calls), len(opens)) == (made, begun)
    fresh: Any = opened(Far(disposable=True), "", 3)
    assert [fresh.call("list_parcels", {}), fresh.call("open_gate", {})] == first[:2]
    session.forget()
    assert told() == first
    assert len(far.calls) > made
    session.close()


def test_made_up_numbers_stay_within_their_bounds_and_their_order_of_magnitude() -> None:
    rng = Random(5)
    for value in (0, 1, 7, 12, 250, 99_999, 1_000_000, -3):
        schema = {"minimum": min(0, value), "maximum": max(5, value)}
        for _ in range(50):
            made = invented_number(value, schema, rng)
            assert isinstance(made, int)
            assert schema["minimum"] <= made <= schema["maximum"]
            assert value <= 10 or value / 10 <= made
    assert invented_number(3, {"maximum": 0}, rng) == 3


def test_moments_keep_their_distance_and_their_form() -> None:
    then, now = datetime(2026, 3, 2, 9, tzinfo=UTC), datetime(2026, 5, 1, 9, tzinfo=UTC)
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M"):
        for days in (-40, -1, 0, 3, 200):
            value = (then + timedelta(days=days)).strftime(form)
            moved = moved_moment(value, then, now, 2)
            shift = 2 if days >= 0 else -2
            assert moved == (now + timedelta(days=days + shift)).strftime(form)
    assert moved_moment("9999-12-31", then, now, 5) == "9999-12-31"
    assert moved_moment("2026-13-45", then, now, 5) == "2026-13-45"


def test_made_up_texts_keep_what_a_schema_or_a_form_asks_for() -> None:
    rng = Random(2)
    assert invented_text("make_it", "code", "AB-12", {"pattern": "^[A-Z]{2}-[0-9]{2}$"}, rng) == "AB-12"
    assert invented_text("make_it", "path", "/etc/hosts", {}, rng) == "/etc/hosts"
    assert {invented_text("make_it", "body", "hello", {}, rng) for _ in range(40)} != {"hello"}
    assert "/" not in invented_text("make_it", "name", "Reports", {}, rng)
    assert re.fullmatch(r"[a-z]+-[a-z]+", invented_text("make_it", "labels", "U00007", {"pattern": r"^\S+$"}, rng))
    assert invented_text("make_it", "label", "x y", {"pattern": "^[0-9 ]+$|^x y$"}, rng) == "x y"
    assert re.fullmatch(r"[A-Z]\w+ [A-Z]\w+", invented_text("create_contact", "name", "Lake", {}, rng))
    assert invented_text("create_contact", "title", "07:30", {}, rng)[0].isupper()
    assert " " not in invented_text("add_traveler", "first_name", "a note", {}, rng)


def test_what_exploring_tried_for_want_of_anything_better_is_nobodys_wish() -> None:
    text = {"type": "string"}
    made = {"project": text, "since": text, "tags": {"type": "array", "items": text}, "note": text, "mark": text}
    made["mark"] = {"type": "string", "description": "Such as 07:30."}
    spec = ToolSpec("list_cards", parameters={"type": "object", "properties": made, "required": []})
    tags = [Free("tags", "text", "07:30"), Free("tags", "text", "spring")]
    given = {
        "project": Free("project", "text", "07:30"),
        "since": Free("since", "moment", "2026-03-02"),
        "tags": tags,
        "note": Free("note", "text", "07:30"),
        "mark": Free("mark", "text", "07:30"),
    }
    kept = _spoken(given, spec)
    assert set(kept) == {"since", "tags", "note", "mark"}  # a note is worded anew
    assert kept["tags"] == tags[1:]
    alone = {"project": given["project"]}
    assert _spoken(alone, spec) == alone, "nothing else would be left"
    needed = ToolSpec("list_cards", parameters={**spec.parameters, "required": ["project"]})
    assert "project" in _spoken(given, needed)


def test_a_note_that_happens_to_be_the_id_of_a_thing_is_about_nothing(repertoire: Repertoire) -> None:
    """The witness may have taken the id of a parcel for a note: the note is worded, and the parcel another one."""
    session: Any = opened(depot(), "", 4)
    context = repertoire.context(session, Random(1))
    (place,) = [one for one in context.bank.places if one.path == "items[].parcel_id" and one.owner == "list_parcels"]
    parcel = value_of(context.values(place)[0])
    text = {"type": "string"}
    tools = {"mark": ToolSpec("mark", parameters={"properties": {"parcel_id": text, "note": text, "other_id": text}})}
    calls = [Call(0, "mark", {"parcel_id": parcel, "note": parcel, "other_id": parcel})]
    (step,) = Shaper(tools, context).shape(calls, [{}]).steps
    assert isinstance(step.arguments["parcel_id"], Entity)
    assert step.arguments["other_id"] == step.arguments["parcel_id"]
    assert step.arguments["note"] == Free("note", "text", parcel)


def test_a_call_of_a_shape_can_be_asked_for_without_being_made(repertoire: Repertoire) -> None:
    session: Any = opened(depot(), "", 4)
    context = repertoire.context(session, Random(1))
    binder = Binder(repertoire.tools, context, Random(1))
    (shape, *_) = [one for one in repertoire.single["sign_in"] if len(one.steps) == 1]
    assert binder.arguments(shape) == {"pin": session.knowledge("me")["pin"]}
    assert binder.calls == 0
    assert Call(0, "sign_in", binder.arguments(shape) or {}).located == ()


def test_what_came_about_in_part_is_no_failure() -> None:
    partly = Witness("", 0, (Call(0, "open_gate", {}),), "partial", "NOT_ALL")
    world = _World(depot(), "", 0, [])
    world._results = lambda witness, calls: [{}]  # type: ignore[method-assign]
    shape = world.shape(partly)
    failed = world.shape(evolve(partly, kind="refused", code="CLOSED"))
    assert shape is not None
    assert (shape.kind, shape.code) == ("partial", "")
    assert failed is not None
    assert failed.code == "CLOSED"


def test_where_a_list_goes_on_is_nobodys_wish() -> None:
    """A cursor that no result told, and a key that tells requests apart, are left out; required ones stay."""
    spec = ToolSpec("list_cards", parameters={"type": "object", "properties": {}, "required": ["idempotency_key"]})
    free, told = Free("cursor", "text", "D00056"), FromResult(0, ("next_cursor",))
    assert _is_unspoken("cursor", free, spec)
    assert _is_unspoken("next_page_token", free, spec)
    assert not _is_unspoken("cursor", told, spec)
    assert not _is_unspoken("idempotency_key", free, spec)
    assert not _is_unspoken("status", free, spec)
