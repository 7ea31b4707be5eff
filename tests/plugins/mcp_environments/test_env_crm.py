from __future__ import annotations

from typing import Any

import pytest
from environment_sessions import executed
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import StatefulSession
from callwright.testing import check_component
from callwright_plugins.mcp_environments.crm import environment
from callwright_plugins.mcp_environments.crm.rows import (
    Activity,
    Contact,
    ContactEmail,
    Deal,
    Lead,
    Merge,
    Org,
    Owner,
    Pipeline,
    Profile,
    Stage,
)

ENV = environment()
ME = "U00001"
SURFACE = {  # R: read-only, D: discovery, X: destructive
    "list_pipelines": "RD", "search_leads": "RD", "get_lead": "R", "search_contacts": "RD", "get_contact": "R",
    "list_deals": "RD", "get_deal": "R", "list_activities": "R", "create_lead": "", "convert_lead": "",
    "create_contact": "", "update_contact": "", "create_deal": "", "move_deal_stage": "", "log_activity": "",
    "merge_contacts": "X",
}  # fmt: skip
# The stages of the first pipeline, and what is asked for on the way.
QUALIFIED, DISCOVERY, PROPOSAL, NEGOTIATION, WON, LOST = (f"S{number:05d}" for number in range(1, 7))
PROPOSED = {"amount_cents": 100_00, "close_date": "2026-04-30"}


def lead(session: StatefulSession, status: str, email: str = "lead.example") -> str:
    for one in session.world.find(Lead, status=status):
        if one.owner_id == ME and (email in one.email if email else not one.email):
            return one.id
    raise AssertionError(status)


def deal(session: StatefulSession, stage: str, mine: bool = True, bare: bool = True) -> str:
    for one in session.world.find(Deal, stage_id=stage):
        if (one.owner_id == ME) == mine and (not session.world.find(Activity, deal_id=one.id)) == bare:
            return one.id
    raise AssertionError(stage)


def test_the_surface() -> None:
    marks = {
        name: "R" * spec.read_only + "D" * spec.discovery + "X" * spec.destructive for name, spec in ENV.tools.items()
    }
    assert marks == SURFACE
    assert len(marks) == 16


def test_conformance() -> None:
    check_component("environment", ENV)


MAJA = "maja.silva@customer.example"
FAILURES: list[tuple[str, Any]] = [
    ("DUPLICATE_EMAIL", lambda s: ("create_contact", {"name": "x", "email": MAJA.upper()})),
    ("DUPLICATE_EMAIL", lambda s: ("create_contact", {"name": "x", "email": "maja@home.example"})),
    ("DUPLICATE_EMAIL", lambda s: ("create_lead", {"name": "x", "email": MAJA})),
    ("DUPLICATE_EMAIL", lambda s: ("create_lead", {"name": "x", "email": "Maja.T@lead.example"})),
    ("DUPLICATE_EMAIL", lambda s: ("update_contact", {"contact_id": "K00002", "email": MAJA})),
    ("BAD_EMAIL", lambda s: ("create_lead", {"name": "x", "email": "nobody"})),
    ("LEAD_ALREADY_CONVERTED", lambda s: ("convert_lead", {"lead_id": lead(s, "converted")})),
    ("LEAD_ALREADY_CONVERTED", lambda s: ("log_activity", {"kind": "note", "subject": "x",
                                          "lead_id": lead(s, "converted")})),
    ("INVALID_STATE", lambda s: ("convert_lead", {"lead_id": lead(s, "unqualified")})),
    ("INVALID_STATE", lambda s: ("move_deal_stage", {"deal_id": deal(s, QUALIFIED), "stage_id": QUALIFIED})),
    ("STAGE_SKIP_FORBIDDEN", lambda s: ("move_deal_stage", {"deal_id": deal(s, QUALIFIED), "stage_id": PROPOSAL})),
    ("STAGE_SKIP_FORBIDDEN", lambda s: ("move_deal_stage", {"deal_id": deal(s, QUALIFIED), "stage_id": WON})),
    ("DEAL_CLOSED", lambda s: ("move_deal_stage", {"deal_id": deal(s, LOST), "stage_id": QUALIFIED})),
    ("DEAL_CLOSED", lambda s: ("move_deal_stage", {"deal_id": deal(s, WON, bare=False), "stage_id": LOST,
                               "lost_reason": "x"})),
    ("MISSING_REQUIRED_FIELD", lambda s: ("move_deal_stage", {"deal_id": deal(s, QUALIFIED), "stage_id": DISCOVERY})),
    ("MISSING_REQUIRED_FIELD", lambda s: ("move_deal_stage", {"deal_id": deal(s, QUALIFIED), "stage_id": LOST})),
    ("MISSING_REQUIRED_FIELD", lambda s: ("move_deal_stage", {"deal_id": deal(s, PROPOSAL), "stage_id": NEGOTIATION,
                                          "next_step": "x"})),
    ("MISSING_REQUIRED_FIELD", lambda s: ("convert_lead", {"lead_id": lead(s, "new", "")})),
    ("FK_NOT_FOUND", lambda s: ("create_contact", {"name": "x", "email": "a@b.example", "org_id": "O99999"})),
    ("FK_NOT_FOUND", lambda s: ("update_contact", {"contact_id": "K00001", "org_id": "O99999"})),
    ("FK_NOT_FOUND", lambda s: ("create_deal", {"title": "x", "contact_id": "K99999"})),
    ("FK_NOT_FOUND", lambda s: ("create_deal", {"title": "x", "contact_id": "K00001", "pipeline_id": "I99999"})),
    ("FK_NOT_FOUND", lambda s: ("move_deal_stage", {"deal_id": deal(s, QUALIFIED), "stage_id": "S00007"})),
    ("FK_NOT_FOUND", lambda s: ("move_deal_stage", {"deal_id": deal(s, PROPOSAL), "stage_id": NEGOTIATION,
                                "next_step": "x", "decision_maker_id": "K99999"})),
    ("FK_NOT_FOUND", lambda s: ("log_activity", {"kind": "note", "subject": "x", "deal_id": "D99999"})),
    ("FK_NOT_FOUND", lambda s: ("convert_lead", {"lead_id": lead(s, "qualified"), "org_id": "O99999"})),
    ("SELF_MERGE", lambda s: ("merge_contacts", {"keep_contact_id": "K00001", "merge_contact_id": "K00001"})),
    ("PERMISSION_DENIED", lambda s: ("move_deal_stage", {"deal_id": deal(s, QUALIFIED, mine=False),
                                     "stage_id": LOST, "lost_reason": "x"})),
    ("PERMISSION_DENIED", lambda s: ("convert_lead", {"lead_id": s.world.find(Lead, owner_id="U00002")[0].id})),
    ("NOT_FOUND", lambda s: ("get_contact", {"contact_id": "K09999"})),
    ("NOT_FOUND", lambda s: ("merge_contacts", {"keep_contact_id": "K00001", "merge_contact_id": "K09999"})),
    ("NOT_FOUND", lambda s: ("list_deals", {"stage_id": "S99999"})),
    ("NOTHING_TO_CHANGE", lambda s: ("update_contact", {"contact_id": "K00001"})),
    ("BAD_TARGET", lambda s: ("log_activity", {"kind": "note", "subject": "x"})),
    ("BAD_TARGET", lambda s: ("log_activity", {"kind": "note", "subject": "x", "contact_id": "K00001",
                              "deal_id": "D00001"})),
    ("FUTURE_TIME", lambda s: ("log_activity", {"kind": "note", "subject": "x", "contact_id": "K00001",
                               "at": "2026-03-02T09:01Z"})),
    ("BAD_DATE", lambda s: ("move_deal_stage", {"deal_id": deal(s, QUALIFIED), "stage_id": LOST, "lost_reason": "x",
                            "close_date": "soon"})),
]  # fmt: skip


@pytest.mark.parametrize(("code", "case"), FAILURES)
def test_failures_leave_the_state(code: str, case: Any) -> None:
    session = ENV.open("adversarial")
    tool, arguments = case(session)
    before = session.digest()
    outcome = session.call(tool, arguments)
    assert (outcome.kind, outcome.code) == ("execution_error", code), outcome
    assert outcome.message
    assert session.digest() == before


# Golden edges --------------------


def test_lead_to_contact_to_deal_to_won() -> None:
    session = ENV.open("sparse")
    made = executed(session, "create_lead", name="Ada Berg", email="Ada@New.example", company="New Works")["lead_id"]
    assert session.call("create_deal", {"title": "x", "contact_id": "K00002"}).code == "FK_NOT_FOUND"
    executed(session, "log_activity", kind="call", subject="First call", lead_id=made)
    assert executed(session, "get_lead", lead_id=made)["status"] == "working"
    done = executed(session, "convert_lead", lead_id=made, create_deal=False)
    assert (done["contact_id"], done["contact_existed"], done["deal_id"]) == ("K00002", False, "")
    assert executed(session, "get_contact", contact_id="K00002")["org_name"] == "New Works"
    assert executed(session, "list_activities", contact_id="K00002")["items"][0]["subject"] == "First call"
    assert session.call("convert_lead", {"lead_id": made}).code == "LEAD_ALREADY_CONVERTED"
    pipeline = executed(session, "list_pipelines")["items"][0]
    stages = {one["name"]: one["stage_id"] for one in pipeline["stages"]}
    bought = executed(session, "create_deal", title="Pilot", contact_id="K00002", pipeline_id=pipeline["pipeline_id"])
    one = {"deal_id": bought["deal_id"]}
    assert bought["stage_id"] == stages["Qualified"]
    assert session.call("move_deal_stage", {**one, "stage_id": stages["Discovery"]}).code == "MISSING_REQUIRED_FIELD"
    executed(session, "log_activity", kind="call", subject="Needs", **one)
    executed(session, "move_deal_stage", stage_id=stages["Discovery"], **one)
    executed(session, "log_activity", kind="meeting", subject="Demo", **one)
    executed(session, "move_deal_stage", stage_id=stages["Proposal"], **one, **PROPOSED)
    facts = {"decision_maker_id": "K00002", "next_step": "Sign"}
    executed(session, "move_deal_stage", stage_id=stages["Negotiation"], **one, **facts)
    won = executed(session, "move_deal_stage", stage_id=stages["Won"], **one)
    assert (won["status"], won["amount_cents"], won["close_date"]) == ("won", 10_000, "2026-04-30")
    assert session.call("move_deal_stage", {**one, "stage_id": stages["Proposal"]}).code == "DEAL_CLOSED"


def test_search_then_merge_moves_everything() -> None:
    session = ENV.open("adversarial")
    world = session.world
    found = [one["contact_id"] for one in executed(session, "search_contacts", query="silva")["items"]]
    kept, merged = found[0], found[1]
    deals = {one.id for name in (kept, merged) for one in world.find(Deal, contact_id=name)}
    activities = {one.id for name in (kept, merged) for one in world.find(Activity, contact_id=name)}
    addresses = {one.address for name in (kept, merged) for one in world.find(ContactEmail, contact_id=name)}
    primary = executed(session, "get_contact", contact_id=kept)["email"]
    view = executed(session, "merge_contacts", keep_contact_id=kept, merge_contact_id=merged)["contact"]
    assert set(view["deal_ids"]) == deals
    assert {one.id for one in world.find(Activity, contact_id=kept)} == activities
    assert view["email"] == primary
    assert {view["email"], *view["other_emails"]} == addresses
    assert view["org_id"] == "O00002"  # the kept one had none
    gone = session.call("get_contact", {"contact_id": merged})
    assert gone.code == "NOT_FOUND"
    assert kept in gone.message
    third = found[2]
    executed(session, "merge_contacts", keep_contact_id=third, merge_contact_id=kept)
    assert third in session.call("get_contact", {"contact_id": merged}).message  # along the whole chain


# The rules of the domain --------------------


def test_a_lead_with_the_address_of_a_contact_becomes_that_contact() -> None:
    session = ENV.open("adversarial")
    before = session.world.count(Contact), session.world.count(Org)
    known = next(one.id for one in session.world.find(Lead, email=MAJA))
    done = executed(session, "convert_lead", lead_id=known, deal_title="Big one", amount_cents=5)
    assert (done["contact_id"], done["contact_existed"]) == ("K00001", True)
    # "cobalt foods" is the organisation Cobalt Foods, not Cobalt Food or Cobalt.
    assert done["org_id"] == "O00001"
    assert (session.world.count(Contact), session.world.count(Org)) == before
    view = executed(session, "get_deal", deal_id=done["deal_id"])
    assert (view["title"], view["amount_cents"], view["stage_id"], view["owner_id"]) == ("Big one", 5, QUALIFIED, ME)


def test_nobodys_lead_becomes_that_of_who_converts_it_and_managers_may_do_all() -> None:
    session = ENV.open("adversarial")
    free = session.world.find(Lead, owner_id="")[0].id
    executed(session, "convert_lead", lead_id=free)
    assert executed(session, "get_lead", lead_id=free)["owner_id"] == ME
    session.world.update(session.world.need(Profile, "me"), owner_id="U00003")
    executed(session, "move_deal_stage", deal_id=deal(session, QUALIFIED, mine=False), stage_id=LOST, lost_reason="x")


def test_back_as_far_as_one_likes_and_lost_from_anywhere() -> None:
    session = ENV.open("adversarial")
    one = {"deal_id": deal(session, PROPOSAL)}
    executed(session, "move_deal_stage", stage_id=QUALIFIED, **one)
    assert executed(session, "move_deal_stage", stage_id=LOST, lost_reason="no budget", **one)["status"] == "lost"


def test_a_new_address_takes_the_place_of_the_primary_one() -> None:
    session = ENV.open("adversarial")
    view = executed(session, "update_contact", contact_id="K00001", email="Maja@Home.example")
    assert (view["email"], view["other_emails"]) == ("maja@home.example", [])
    executed(session, "create_contact", name="Somebody else", email=MAJA)  # the old address is free


def test_only_an_open_lead_keeps_an_address_from_another_one() -> None:
    session = ENV.open("adversarial")
    found = executed(session, "search_leads", query="maja.s@lead.example")["items"]
    assert [one["status"] for one in found] == ["unqualified"]
    executed(session, "create_lead", name="Maja Silva", email="maja.s@lead.example")
    again = session.call("create_lead", {"name": "Maja Silva", "email": "maja.s@lead.example"})
    assert again.code == "DUPLICATE_EMAIL"


def test_a_merged_address_stays_taken() -> None:
    session = ENV.open("adversarial")
    address = executed(session, "get_contact", contact_id="K00002")["email"]
    executed(session, "merge_contacts", keep_contact_id="K00001", merge_contact_id="K00002")
    outcome = session.call("create_contact", {"name": "x", "email": address})
    assert outcome.code == "DUPLICATE_EMAIL"
    assert "K00001" in outcome.message


# Invariants --------------------

calls = st.lists(
    st.tuples(
        st.sampled_from(["lead", "convert", "contact", "update", "deal", "move", "log", "merge"]),
        st.integers(0, 80),
        st.integers(0, 12),
    ),
    max_size=25,
)


@given(calls, st.sampled_from(["sparse", "adversarial"]))
@settings(max_examples=60)
def test_references_addresses_and_stages_hold(script: list[tuple[str, int, int]], scenario: str) -> None:
    session = ENV.open(scenario)
    world = session.world
    for kind, number, other in script:
        leads, contacts, deals = list(world.rows(Lead)), list(world.rows(Contact)), list(world.rows(Deal))
        who, second = contacts[number % len(contacts)].id, contacts[other % len(contacts)].id
        target: Any = deals[number % len(deals)] if deals else None
        stages = list(world.rows(Stage))
        address = f"person{other}@customer.example"
        call: dict[str, tuple[str, dict[str, Any]]] = {
            "lead": ("create_lead", {"name": "x", "email": address, "company": f"Company {other}"}),
            "convert": ("convert_lead", {"lead_id": leads[number % len(leads)].id, "create_deal": other % 2 == 0}),
            "contact": ("create_contact", {"name": "x", "email": address.title()}),
            "update": ("update_contact", {"contact_id": who, "email": address}),
            "deal": ("create_deal", {"title": "x", "contact_id": who}),
            "move": ("move_deal_stage", {"deal_id": target.id if target else "D1", "decision_maker_id": second,
                     "stage_id": stages[other % len(stages)].id, "next_step": "x", "lost_reason": "x", **PROPOSED}),
            "log": ("log_activity", {"kind": ("call", "meeting", "email", "note")[other % 4], "subject": "x",
                    "deal_id": target.id if target else "D1"}),
            "merge": ("merge_contacts", {"keep_contact_id": who, "merge_contact_id": second}),
        }  # fmt: skip
        before = session.digest()
        outcome = session.call(*call[kind])
        if outcome.kind == "execution_error":
            assert session.digest() == before
        elif kind == "move":
            was, now = world.need(Stage, target.stage_id), world.need(Stage, outcome.value["stage_id"])
            assert was.kind == "open"
            assert now.kind == "lost" or now.position <= was.position + 1
            for name in now.required:
                if name.startswith("activity:"):
                    assert name[9:] in {one.kind for one in world.find(Activity, deal_id=target.id)}
                else:
                    assert outcome.value[name] not in (None, "")
        elif kind == "merge":
            assert world.count(Deal) == len(deals)
        check(session)


def check(session: StatefulSession) -> None:
    world = session.world
    for one in world.rows(Deal):
        assert world.get(Contact, one.contact_id) is not None
        assert not one.org_id or world.get(Org, one.org_id) is not None
        assert not one.decision_maker_id or world.get(Contact, one.decision_maker_id) is not None
        stage = world.need(Stage, one.stage_id)
        assert stage.pipeline_id == one.pipeline_id
        assert (one.closed_at is None) == (stage.kind == "open")
        assert world.get(Owner, one.owner_id) is not None
    for held in world.rows(ContactEmail):
        assert held.address == held.address.lower()
        assert world.get(Contact, held.contact_id) is not None
    for contact in world.rows(Contact):
        assert sum(held.primary for held in world.find(ContactEmail, contact_id=contact.id)) == 1
        assert not contact.org_id or world.get(Org, contact.org_id) is not None
    for lead in world.rows(Lead):
        assert (lead.status == "converted") == bool(lead.contact_id)
        assert not lead.contact_id or world.get(Contact, lead.contact_id) is not None
        assert not lead.deal_id or world.get(Deal, lead.deal_id) is not None
    for activity in world.rows(Activity):
        assert activity.at <= world.now
        assert not activity.contact_id or world.get(Contact, activity.contact_id) is not None
        assert not activity.deal_id or world.need(Deal, activity.deal_id).contact_id == activity.contact_id
    for merge in world.rows(Merge):
        assert world.get(Contact, merge.merged_id) is None


# Scenarios --------------------


@pytest.mark.parametrize("scenario", list(ENV.scenarios))
@pytest.mark.parametrize("seed", [0, 7])
def test_references_hold(scenario: str, seed: int) -> None:
    session = environment(scale=2).open(scenario, seed)
    assert session.world.base.total == environment(scale=2).open(scenario, seed).world.base.total
    check(session)
    assert session.world.get(Owner, session.world.need(Profile, "me").owner_id) is not None
    assert all(session.world.get(Pipeline, one.pipeline_id) is not None for one in session.world.rows(Stage))
    names = [one.name.lower() for one in session.world.rows(Org)]
    assert len(names) == len(set(names))


def test_typical_has_hundreds_of_rows_and_scale_multiplies_them() -> None:
    sizes = [sum(map(len, environment(scale=scale).open().world.base.tables.values())) for scale in (1, 3)]
    assert sizes[0] > 1000
    assert sizes[1] > 2.5 * sizes[0]


def test_every_tool_works_in_typical() -> None:
    session = ENV.open()
    mine = next(
        one
        for one in session.world.rows(Deal)
        if one.owner_id == ME and session.world.need(Stage, one.stage_id).kind == "open"
    )  # fmt: skip
    lost = next(one.id for one in session.world.find(Stage, pipeline_id=mine.pipeline_id) if one.kind == "lost")
    contacts = [one["contact_id"] for one in executed(session, "search_contacts")["items"][:2]]
    ready = executed(session, "search_leads", status="qualified", only_mine=True)["items"][0]["lead_id"]
    table: dict[str, dict[str, Any]] = {
        "list_pipelines": {}, "search_leads": {"status": "open"}, "get_lead": {"lead_id": ready},
        "search_contacts": {"query": "a"}, "get_contact": {"contact_id": contacts[0]}, "list_deals": {"status": "won"},
        "get_deal": {"deal_id": mine.id}, "list_activities": {"contact_id": contacts[0]},
        "create_lead": {"name": "New Lead", "email": "new@lead.example"}, "convert_lead": {"lead_id": ready},
        "create_contact": {"name": "New Contact", "email": "new@contact.example"},
        "update_contact": {"contact_id": contacts[0], "title": "Director"},
        "create_deal": {"title": "New", "contact_id": contacts[0]},
        "move_deal_stage": {"deal_id": mine.id, "stage_id": lost, "lost_reason": "no budget"},
        "log_activity": {"kind": "call", "subject": "x", "contact_id": contacts[0]},
        "merge_contacts": {"keep_contact_id": contacts[0], "merge_contact_id": contacts[1]},
    }  # fmt: skip
    assert set(table) == set(SURFACE)
    for tool, arguments in table.items():
        executed(session, tool, **arguments)


def test_sparse_answers_with_empty_pages() -> None:
    session = ENV.open("sparse")
    assert session.call("list_deals", {}).kind == "empty"
    assert session.call("list_activities", {}).kind == "empty"
    assert session.call("search_leads", {"status": "converted"}).kind == "empty"
