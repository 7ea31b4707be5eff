"""Tools that read leads, contacts, deals and activities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import tool
from callwright_plugins.mcp_environments.crm.records import OPEN, known_contact, me
from callwright_plugins.mcp_environments.crm.rows import (
    Activity,
    Contact,
    ContactEmail,
    Deal,
    Lead,
    Org,
    Pipeline,
    Stage,
)
from callwright_plugins.mcp_environments.crm.views import (
    ActivityView,
    ContactSummary,
    ContactView,
    DealView,
    LeadView,
    PipelineView,
    activity_view,
    contact_summary,
    contact_view,
    deal_view,
    lead_view,
    pipeline_view,
)

LeadId = Annotated[str, Field(description="Id of a lead, such as L00012.", min_length=1, max_length=40)]
ContactId = Annotated[str, Field(description="Id of a contact, such as K00012.", min_length=1, max_length=40)]
DealId = Annotated[str, Field(description="Id of a deal, such as D00012.", min_length=1, max_length=40)]
Query = Annotated[str, Field(description="Part of a name, address or company; empty: all.", max_length=80)]
OnlyMine = Annotated[bool, Field(description="Only what belongs to you.")]
MaybeId = Annotated[str, Field(description="Only with this one (id); empty: any.", max_length=40)]


@tool(read_only=True, discovery=True)
def list_pipelines(world: World, /, limit: Limit = 20, cursor: Cursor = "") -> Page[PipelineView]:
    """List the pipelines with their stages in order, and what a deal needs to enter each stage."""
    return page(list(world.rows(Pipeline)), lambda one: pipeline_view(world, one), limit, cursor)


@tool(read_only=True, discovery=True)
def search_leads(
    world: World,
    /,
    query: Query = "",
    status: Annotated[
        Literal["any", "open", "new", "working", "qualified", "unqualified", "converted"],
        Field(description="Only leads in this state; open: new, working or qualified."),
    ] = "any",
    only_mine: OnlyMine = False,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[LeadView]:
    """Search leads, newest first."""
    text, own = query.strip().lower(), me(world).id
    states = OPEN if status == "open" else (status,)
    found = [
        one
        for one in world.rows(Lead)
        if (status == "any" or one.status in states)
        and (not only_mine or one.owner_id == own)
        and (text in one.name.lower() or text in one.email or text in one.company.lower())
    ]
    found.sort(key=lambda one: (-one.created_at, one.id))
    return page(found, lambda one: lead_view(world, one), limit, cursor)


@tool(read_only=True)
def get_lead(world: World, /, lead_id: LeadId) -> LeadView:
    """A lead; of a converted one also the contact and the deal that it became."""
    return lead_view(world, world.need(Lead, lead_id))


@tool(read_only=True, discovery=True)
def search_contacts(
    world: World, /, query: Query = "", org_id: MaybeId = "", limit: Limit = 20, cursor: Cursor = ""
) -> Page[ContactSummary]:
    """Search contacts by name, any of their addresses, or organisation."""
    text = query.strip().lower()
    if org_id:
        world.need(Org, org_id)
    named = world.prepared(Contact, _with_name)
    if text:
        by_address = {one.contact_id for one in world.rows(ContactEmail) if text in one.address}
        orgs = {one.id for one in world.rows(Org) if text in one.name.lower()}
        named = [pair for pair in named if text in pair[1] or pair[0].id in by_address or pair[0].org_id in orgs]
    held = [one for one, _ in named if not org_id or one.org_id == org_id]
    return page(held, lambda one: contact_summary(world, one), limit, cursor)


@tool(read_only=True)
def get_contact(world: World, /, contact_id: ContactId) -> ContactView:
    """A contact with all addresses and deals. NOT_FOUND for one that was merged says where it went."""
    return contact_view(world, known_contact(world, contact_id))


@tool(read_only=True, discovery=True)
def list_deals(
    world: World,
    /,
    pipeline_id: MaybeId = "",
    stage_id: MaybeId = "",
    contact_id: MaybeId = "",
    status: Annotated[Literal["any", "open", "won", "lost"], Field(description="Only deals in this state.")] = "any",
    only_mine: OnlyMine = False,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[DealView]:
    """List deals, newest first. NOT_FOUND for a pipeline, stage or contact that does not exist."""
    if pipeline_id:
        world.need(Pipeline, pipeline_id)
    if stage_id:
        world.need(Stage, stage_id)
    if contact_id:
        known_contact(world, contact_id)
    given = {"contact_id": contact_id, "stage_id": stage_id, "pipeline_id": pipeline_id}
    held: Sequence[Deal] = world.prepared(Deal, _itself, _newest_first)
    for name, value in given.items():
        if value:
            held = [one for one in held if getattr(one, name) == value]
    kinds, own = {one.id: one.kind for one in world.rows(Stage)}, me(world).id
    found = [one for one in held if status in ("any", kinds[one.stage_id]) and (not only_mine or one.owner_id == own)]
    return page(found, lambda one: deal_view(world, one), limit, cursor)


def _with_name(contact: Contact) -> tuple[Contact, str]:
    return contact, contact.name.lower()


def _itself(deal: Deal) -> Deal:
    return deal


def _newest_first(deal: Deal) -> tuple[int, str]:
    return -deal.created_at, deal.id


@tool(read_only=True)
def get_deal(world: World, /, deal_id: DealId) -> DealView:
    """A deal with its stage and what is known of it."""
    return deal_view(world, world.need(Deal, deal_id))


@tool(read_only=True)
def list_activities(
    world: World,
    /,
    lead_id: MaybeId = "",
    contact_id: MaybeId = "",
    deal_id: MaybeId = "",
    kind: Annotated[
        Literal["any", "call", "email", "meeting", "note"], Field(description="Only of this kind.")
    ] = "any",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[ActivityView]:
    """List what happened with a lead, a contact or a deal (all of those that are given), newest first."""
    if lead_id:
        world.need(Lead, lead_id)
    if contact_id:
        known_contact(world, contact_id)
    if deal_id:
        world.need(Deal, deal_id)
    given = {"deal_id": deal_id, "lead_id": lead_id, "contact_id": contact_id}
    held = world.find(Activity, **{name: value for name, value in given.items() if value})
    found = sorted((one for one in held if kind in ("any", one.kind)), key=lambda one: (-one.at, one.id))
    return page(found, activity_view, limit, cursor)


READING = [
    list_pipelines,
    search_leads,
    get_lead,
    search_contacts,
    get_contact,
    list_deals,
    get_deal,
    list_activities,
]
