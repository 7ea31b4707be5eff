"""One person in all apps: the twenty environments take in whom they are given, and are as they were without."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

import callwright as cw
from callwright.environments.people.introducing import styled
from callwright.environments.people.person import FRIENDS, People, Person, drawn, read_people, whole
from callwright.environments.rows import row_json
from callwright.errors import DataError
from callwright_plugins.mcp_environments import TOOLS

ADA = Person("Ada Berg-Olsen", "ada@berg.example", "+49 30 1", "7 Elm Row", "Ulm", "ada.berg")
BO = Person("Bo Chan", "bo.chan@example.org")
#: What names somebody in them, and who knows others by an address that more than one of them tells.
NAMED = ("banking", "calendar", "crm", "email", "issue_tracker", "shopping", "travel_booking", "video_meeting")
NAMELESS = {"budget", "trading", "payments"}
CONTACTS = {
    "email": "list_contacts", "calendar": "list_people", "issue_tracker": "list_users", "video_meeting": "list_users",
}  # fmt: skip


def alone(name: str, scenario: str = "typical", seed: int = 3) -> Any:
    return cw.environment(name).open(scenario, seed)


def text_of(session: Any) -> str:
    world = session.world
    return json.dumps([row_json(row) for kind in session.environment.kinds for row in world.rows(kind)])


@pytest.mark.parametrize("name", TOOLS)
def test_each_takes_in_whom_it_is_given(name: str) -> None:
    environment: Any = cw.environment(name)
    for scenario in environment.scenarios:
        for seed in (0, 3):
            session = alone(name, scenario, seed)
            found = environment.people(session.world)
            before = text_of(session)
            digest = session.digest()
            session.introduce(People(whole(ADA), (whole(BO),)))
            after = text_of(session)
            if found.me is not None:
                for what in (found.me.email, found.me.phone, f'"{found.me.login}"' if found.me.login else ""):
                    assert not what or what not in after
                    assert not what or what in before
                assert (found.me.name in before) <= (ADA.name in after or ADA.first in after)
            if found.others:
                assert BO.name in after
            named = bool(found.me or found.others)
            assert (session.digest() != digest) == named
            assert alone(name, scenario, seed).digest() == digest, "the environment alone is as it was"
            assert {kind: len(rows) for kind, rows in session.world.base.tables.items()} == {
                kind: len(rows) for kind, rows in alone(name, scenario, seed).world.base.tables.items()
            }
            assert named or name in NAMELESS or scenario != "typical"


@pytest.mark.parametrize("name", NAMED)
def test_what_the_person_knows_is_what_was_given(name: str) -> None:
    session = alone(name)
    session.introduce(People(whole(ADA)))
    known = session.knowledge()
    assert known["name"] == ADA.name
    assert known.get("email", ADA.email) == ADA.email


def test_ids_numbers_and_scripts_stay_so_that_calls_come_to_the_same() -> None:
    shop, other = alone("shopping"), alone("shopping")
    other.introduce(People(whole(ADA)))
    for tool, arguments in (("list_addresses", {}), ("list_orders", {}), ("search_products", {"query": "kettle"})):
        mine, theirs = (session.call(tool, arguments) for session in (shop, other))
        assert mine.kind == theirs.kind
    home = other.call("list_addresses", {}).value["items"][0]
    assert (home["recipient"], home["street"], home["city"]) == (ADA.name, ADA.street, ADA.city)


def test_one_person_is_signed_in_everywhere_and_friends_have_one_address() -> None:
    environment = cw.compose(*TOOLS, people=[ADA, BO])
    session = environment.open("typical", 3)
    assert f"Signed in: {whole(ADA)}." in session.briefing()
    known = session.knowledge()
    assert (known["name"], known["email"]) == (ADA.name, ADA.email)
    for part, tool in CONTACTS.items():
        public = tool if tool in environment.tools else f"{part}__{tool}"
        if public not in environment.tools:
            continue
        found = json.dumps(session.call(public, {"limit": 100}).value)
        assert BO.name in found
        assert BO.email in found


def test_without_people_they_are_drawn_from_the_seed_and_own_ones_stay() -> None:
    environment = cw.compose("email", "calendar")
    session, again, other = environment.open(seed=4), environment.open(seed=4), environment.open(seed=5)
    assert session.people == again.people == drawn(4) != drawn(5) == other.people
    assert session.digest() == again.digest() != other.digest()
    assert len(drawn(4).others) == FRIENDS
    assert session.knowledge()["name"] == drawn(4).me.name  # type: ignore[union-attr]
    own = cw.compose("email", "calendar", people="own").open(seed=4)
    assert own.people is None
    assert own.part("email").digest() == cw.environment("email").open(seed=4).digest()
    session.reset(seed=5)
    assert session.digest() == other.digest()


def test_sessions_with_people_are_pickled_and_forked() -> None:
    environment = cw.compose("email", "team_chat", people=ADA)
    session = environment.open(seed=1)
    session.call("list_folders", {})
    session.call("create_draft", {"subject": "Tea"})
    for other in (session.fork(), pickle.loads(pickle.dumps(session))):
        assert other.digest() == session.digest()
        assert other.part("email").knowledge()["name"] == ADA.name
    assert pickle.loads(pickle.dumps(environment)).people == environment.people


def test_people_of_a_file_are_objects() -> None:
    environment = cw.environment(
        "email+calendar", people=[{"name": "Ada Berg"}, {"name": "Bo Chan", "email": "b@c.example"}]
    )
    assert environment.open().people == read_people([Person("Ada Berg"), Person("Bo Chan", "b@c.example")])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ([], "persons"), ("Ada Berg", "persons"), ({"nam": "Ada Berg"}, "with a name"), (3, "persons"),
        ({"name": "Ada"}, "first and a last"),
        ({"name": "Ada Berg", "mail": "x"}, "has no 'mail'"), ({"name": "Ada Berg", "email": "Ada"}, "lower case"),
        ([{"name": "Ada Berg"}, {"name": "Ada Berg", "email": "x@y.z"}], "the name 'Ada Berg'"),
        ({"name": "Ada  Berg"}, "a line"), ({"name": 3}, "a line"),
    ],
)  # fmt: skip
def test_what_is_no_person_is_said(stated: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        cw.compose("email", "calendar", people=stated)


def test_logins_are_written_as_those_that_they_take_the_place_of() -> None:
    assert [styled(old, "ada.berg") for old in ("x_y1", "x.y1", "uma")] == ["ada_berg", "ada.berg", "aberg"]
    assert styled("uma", "ada") == "ada"


def test_namesakes_stay_namesakes() -> None:
    session = alone("email", "adversarial", 0)
    session.introduce(drawn(1))
    names = [contact["name"] for contact in session.call("list_contacts", {}).value["items"]]
    before = [contact["name"] for contact in alone("email", "adversarial", 0).call("list_contacts", {}).value["items"]]
    assert len(set(names)) >= len(set(before))
    assert len(names) == len(before)
