"""Tools that create, convert, move, log and merge."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from callwright.environments.world import World
from callwright.tools.spec import ToolError, tool
from callwright_plugins.mcp_environments.crm.reading import ContactId, DealId, LeadId
from callwright_plugins.mcp_environments.crm.records import (
    known_contact,
    me,
    org_named,
    pipeline_stages,
    referenced_org,
    refuse_duplicate,
    require_owner,
)
from callwright_plugins.mcp_environments.crm.rows import (
    Activity,
    Contact,
    ContactEmail,
    Deal,
    Lead,
    Merge,
    Stage,
)
from callwright_plugins.mcp_environments.crm.views import (
    ActivityView,
    ContactView,
    ConversionView,
    DealView,
    LeadView,
    MergeView,
    activity_view,
    contact_view,
    deal_view,
    lead_view,
)
from callwright_plugins.mcp_environments.times import iso, parse_day, parse_time

_ADDRESS = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"
Name = Annotated[str, Field(description="Full name.", min_length=1, max_length=120)]
Address = Annotated[str, Field(description="Email address.", pattern=_ADDRESS, max_length=120)]
Phone = Annotated[str, Field(description="Phone number.", max_length=40)]
JobTitle = Annotated[str, Field(description="Job title.", max_length=80)]
OrgId = Annotated[str, Field(description="Id of an organisation, such as O00003; empty for none.", max_length=40)]
DealTitle = Annotated[str, Field(description="Title of the deal.", min_length=1, max_length=120)]
PipelineId = Annotated[str, Field(description="Id of a pipeline; empty: the first one.", max_length=40)]
Cents = Annotated[int, Field(description="Amount in cents.", ge=0, le=10**12)]
Day = Annotated[str, Field(description="Day such as 2026-04-30.", min_length=1, max_length=10)]


@tool
def create_lead(
    world: World,
    /,
    name: Name,
    email: Annotated[str, Field(description="Email address; may be empty.", max_length=120)] = "",
    phone: Phone = "",
    company: Annotated[str, Field(description="Name of the company.", max_length=120)] = "",
    source: Annotated[
        Literal["web", "referral", "event", "cold_call", "other"], Field(description="Where the lead comes from.")
    ] = "other",
) -> LeadView:
    """Create a lead of yours. DUPLICATE_EMAIL if a contact or an open lead has the address, BAD_EMAIL."""
    address = email.strip().lower()
    if address and ("@" not in address[1:-1] or " " in address):
        raise ToolError("BAD_EMAIL", f"{email[:60]!r} is not an email address")
    refuse_duplicate(world, address, leads=True)
    lead = Lead(world.new_id(Lead), name, address, phone, company, source, "new", me(world).id, world.now)
    return lead_view(world, world.put(lead))


@tool(irreversible=True)
def convert_lead(
    world: World,
    /,
    lead_id: LeadId,
    create_deal: Annotated[bool, Field(description="Whether to open a deal in the first stage.")] = True,
    deal_title: Annotated[str, Field(description="Title of the deal; empty: from the lead.", max_length=120)] = "",
    pipeline_id: PipelineId = "",
    amount_cents: Annotated[int | None, Field(description="Amount of the deal in cents.", ge=0, le=10**12)] = None,
    org_id: Annotated[str, Field(description="Its organisation; empty: by the company's name.", max_length=40)] = "",
) -> ConversionView:
    """Make a contact of an open lead (or take the one with its address), with organisation and deal.

    LEAD_ALREADY_CONVERTED; INVALID_STATE if it is unqualified; MISSING_REQUIRED_FIELD without an address;
    PERMISSION_DENIED for a lead of somebody else; FK_NOT_FOUND for an organisation or pipeline that does not exist.
    """
    lead = world.need(Lead, lead_id)
    _refuse_converted(lead)
    if lead.status == "unqualified":
        raise ToolError("INVALID_STATE", f"{lead.id} was found unqualified and cannot be converted")
    require_owner(world, lead.owner_id, f"lead {lead.id}")
    if not lead.email:
        raise ToolError("MISSING_REQUIRED_FIELD", f"{lead.id} has no email address, which a contact needs")
    stages = pipeline_stages(world, pipeline_id)
    org = referenced_org(world, org_id) or org_named(world, lead.company)
    own = me(world).id
    held = world.get(ContactEmail, lead.email)
    if held is None:
        contact = world.put(Contact(world.new_id(Contact), lead.name, lead.phone, "", org, own))
        world.put(ContactEmail(lead.email, contact.id, True))
    else:
        contact = world.need(Contact, held.contact_id)
        contact = world.update(contact, phone=contact.phone or lead.phone, org_id=contact.org_id or org)
    deal_id = ""
    if create_deal:
        title = deal_title or (f"{lead.company}: {lead.name}" if lead.company else lead.name)
        deal_id = _open_deal(world, title, contact, stages[0], amount_cents).id
    for activity in world.find(Activity, lead_id=lead.id):
        world.update(activity, contact_id=contact.id)
    owner = lead.owner_id or own
    world.update(lead, status="converted", owner_id=owner, contact_id=contact.id, deal_id=deal_id)
    return {
        "lead_id": lead.id,
        "contact_id": contact.id,
        "contact_existed": held is not None,
        "org_id": contact.org_id,
        "deal_id": deal_id,
    }


def _refuse_converted(lead: Lead) -> None:
    if lead.status == "converted":
        raise ToolError("LEAD_ALREADY_CONVERTED", f"{lead.id} is contact {lead.contact_id} now; go on with that")


def _open_deal(world: World, title: str, contact: Contact, stage: Stage, amount_cents: int | None) -> Deal:
    deal = Deal(
        world.new_id(Deal), title, contact.id, contact.org_id, stage.pipeline_id, stage.id, me(world).id, amount_cents,
        None, "", "", "", world.now,
    )  # fmt: skip
    return world.put(deal)


@tool
def create_contact(
    world: World,
    /,
    name: Name,
    email: Address,
    phone: Phone = "",
    title: JobTitle = "",
    org_id: OrgId = "",
) -> ContactView:
    """Create a contact. DUPLICATE_EMAIL if another one has the address, FK_NOT_FOUND for an unknown organisation."""
    address = email.lower()
    refuse_duplicate(world, address)
    org = referenced_org(world, org_id)
    contact = world.put(Contact(world.new_id(Contact), name, phone, title, org, me(world).id))
    world.put(ContactEmail(address, contact.id, True))
    return contact_view(world, contact)


@tool(idempotent=True)
def update_contact(
    world: World,
    /,
    contact_id: ContactId,
    name: Name | None = None,
    email: Address | None = None,
    phone: Phone | None = None,
    title: JobTitle | None = None,
    org_id: OrgId | None = None,
) -> ContactView:
    """Change a contact; what is left out stays. A new address takes the place of the primary one.

    DUPLICATE_EMAIL if another contact has it, FK_NOT_FOUND for an unknown organisation, NOTHING_TO_CHANGE.
    """
    contact = known_contact(world, contact_id)
    given = {"name": name, "phone": phone, "title": title, "org_id": org_id}
    changes = {field: value for field, value in given.items() if value is not None}
    if not changes and email is None:
        raise ToolError("NOTHING_TO_CHANGE", "name at least one of name, email, phone, title and org_id")
    if org_id is not None:
        referenced_org(world, org_id)
    if email is not None:
        address = email.lower()
        refuse_duplicate(world, address, contact_id=contact.id)
        for held in world.find(ContactEmail, contact_id=contact.id):
            if held.primary and held.address != address:
                world.drop(held)
        world.put(ContactEmail(address, contact.id, True))
    return contact_view(world, world.update(contact, **changes))


@tool
def create_deal(
    world: World,
    /,
    title: DealTitle,
    contact_id: ContactId,
    pipeline_id: PipelineId = "",
    amount_cents: Cents | None = None,
) -> DealView:
    """Open a deal of yours with a contact, in the first stage of a pipeline. FK_NOT_FOUND if one does not exist."""
    contact = known_contact(world, contact_id, "FK_NOT_FOUND")
    stage = pipeline_stages(world, pipeline_id)[0]
    return deal_view(world, _open_deal(world, title, contact, stage, amount_cents))


@tool(irreversible=True)
def move_deal_stage(
    world: World,
    /,
    deal_id: DealId,
    stage_id: Annotated[str, Field(description="Id of a stage of its pipeline.", min_length=1, max_length=40)],
    amount_cents: Cents | None = None,
    close_date: Day | None = None,
    next_step: Annotated[str | None, Field(description="What happens next.", min_length=1, max_length=200)] = None,
    decision_maker_id: Annotated[
        str | None, Field(description="Id of the contact who decides.", min_length=1, max_length=40)
    ] = None,
    lost_reason: Annotated[str | None, Field(description="Why it was lost.", min_length=1, max_length=200)] = None,
) -> DealView:
    """Move a deal to another stage of its pipeline, with the facts that the stage requires (list_pipelines).

    STAGE_SKIP_FORBIDDEN for more than one step ahead, MISSING_REQUIRED_FIELD, DEAL_CLOSED, FK_NOT_FOUND for a stage of
    another pipeline or an unknown contact; PERMISSION_DENIED for a deal of somebody else.
    """
    deal = world.need(Deal, deal_id)
    stages = pipeline_stages(world, deal.pipeline_id)
    current = world.need(Stage, deal.stage_id)
    if current.kind != "open":
        raise ToolError("DEAL_CLOSED", f"{deal.id} was {current.kind} on {iso(deal.closed_at or 0)}")
    require_owner(world, deal.owner_id, f"deal {deal.id}")
    target = next((one for one in stages if one.id == stage_id), None)
    if target is None:
        raise ToolError("FK_NOT_FOUND", f"{stage_id[:40]!r} is no stage of {deal.pipeline_id}; see list_pipelines")
    _refuse_skip(stages, current, target)
    if decision_maker_id is not None:
        known_contact(world, decision_maker_id, "FK_NOT_FOUND")
    given = {
        "amount_cents": amount_cents,
        "close_date": None if close_date is None else parse_day(close_date),
        "next_step": next_step,
        "decision_maker_id": decision_maker_id,
        "lost_reason": lost_reason,
    }
    changed = world.update(deal, **{field: value for field, value in given.items() if value is not None})
    missing = [name for name in target.required if not _has(world, changed, name)]
    if missing:
        raise ToolError(
            "MISSING_REQUIRED_FIELD",
            f"{target.name} ({target.id}) needs {', '.join(missing)} of {deal.id}: give fields here, and log "
            "activities with log_activity and deal_id",
        )
    closed_at = None if target.kind == "open" else world.now
    return deal_view(world, world.update(changed, stage_id=target.id, closed_at=closed_at))


def _refuse_skip(stages: list[Stage], current: Stage, target: Stage) -> None:
    """Fails with ``STAGE_SKIP_FORBIDDEN``, or ``INVALID_STATE`` if it is the stage in which the deal is."""
    if target.id == current.id:
        raise ToolError("INVALID_STATE", f"the deal is in {current.name} ({current.id}) already")
    if target.kind == "lost" or (target.kind == "open" and target.position < current.position):
        return
    following = next((one for one in stages if one.position > current.position and one.kind != "lost"), current)
    if target.id != following.id:
        raise ToolError(
            "STAGE_SKIP_FORBIDDEN",
            f"after {current.name} comes {following.name} ({following.id}), not {target.name}; go one stage at a time",
        )


def _has(world: World, deal: Deal, required: str) -> bool:
    if required.startswith("activity:"):
        wanted = required.removeprefix("activity:")
        return any(one.kind == wanted for one in world.find(Activity, deal_id=deal.id))
    value: Any = getattr(deal, required)
    return value is not None and value != ""


@tool
def log_activity(
    world: World,
    /,
    kind: Annotated[Literal["call", "email", "meeting", "note"], Field(description="What it was.")],
    subject: Annotated[str, Field(description="What it was about.", min_length=1, max_length=200)],
    lead_id: Annotated[str, Field(description="Id of the lead, if with one.", max_length=40)] = "",
    contact_id: Annotated[str, Field(description="Id of the contact, if with one.", max_length=40)] = "",
    deal_id: Annotated[str, Field(description="Id of the deal, if about one.", max_length=40)] = "",
    notes: Annotated[str, Field(description="Notes.", max_length=4000)] = "",
    at: Annotated[str, Field(description="ISO 8601 time at which it was; empty: now.", max_length=40)] = "",
) -> ActivityView:
    """Log what happened with one lead, contact or deal (a deal's counts for its contact too).

    A new lead becomes working. BAD_TARGET unless exactly one is given, FK_NOT_FOUND if it does not exist,
    LEAD_ALREADY_CONVERTED, FUTURE_TIME.
    """
    if sum(map(bool, (lead_id, contact_id, deal_id))) != 1:
        raise ToolError("BAD_TARGET", "give exactly one of lead_id, contact_id and deal_id")
    moment = parse_time(at) if at else world.now
    if not 0 <= moment <= world.now:
        raise ToolError("FUTURE_TIME", f"{at[:40]} is not a time up to now ({iso(world.now)})")
    if lead_id:
        lead = world.need(Lead, lead_id, "FK_NOT_FOUND")
        _refuse_converted(lead)
        if lead.status == "new":
            world.update(lead, status="working")
    elif deal_id:
        contact_id = world.need(Deal, deal_id, "FK_NOT_FOUND").contact_id
    else:
        known_contact(world, contact_id, "FK_NOT_FOUND")
    activity = Activity(
        world.new_id(Activity), kind, subject, notes, moment, me(world).id, lead_id, contact_id, deal_id
    )
    return activity_view(world.put(activity))


@tool(destructive=True, irreversible=True)
def merge_contacts(
    world: World,
    /,
    keep_contact_id: Annotated[str, Field(description="Id of the contact to keep.", min_length=1, max_length=40)],
    merge_contact_id: Annotated[str, Field(description="Id of the contact to dissolve.", min_length=1, max_length=40)],
) -> MergeView:
    """Dissolve a contact into another: deals, leads, activities and addresses move, gaps of the kept one are filled.

    SELF_MERGE for the same contact twice, NOT_FOUND for one that does not exist or was merged before.
    """
    kept, merged = known_contact(world, keep_contact_id), known_contact(world, merge_contact_id)
    if kept.id == merged.id:
        raise ToolError("SELF_MERGE", f"{kept.id} cannot be merged into itself; name two contacts")
    deals = world.find(Deal, contact_id=merged.id)
    for deal in deals:
        world.update(deal, contact_id=kept.id)
    for deal in world.find(Deal, decision_maker_id=merged.id):
        world.update(deal, decision_maker_id=kept.id)
    activities = world.find(Activity, contact_id=merged.id)
    for activity in activities:
        world.update(activity, contact_id=kept.id)
    leads = world.find(Lead, contact_id=merged.id)
    for lead in leads:
        world.update(lead, contact_id=kept.id)
    has_address = bool(world.find(ContactEmail, contact_id=kept.id))
    for held in world.find(ContactEmail, contact_id=merged.id):
        world.update(held, contact_id=kept.id, primary=held.primary and not has_address)
    kept = world.update(
        kept,
        phone=kept.phone or merged.phone,
        title=kept.title or merged.title,
        org_id=kept.org_id or merged.org_id,
    )
    world.drop(merged)
    world.put(Merge(merged.id, kept.id))
    return {
        "contact": contact_view(world, kept),
        "merged_contact_id": merged.id,
        "moved_deals": len(deals),
        "moved_activities": len(activities),
        "moved_leads": len(leads),
    }


WRITING = [
    create_lead,
    convert_lead,
    create_contact,
    update_contact,
    create_deal,
    move_deal_stage,
    log_activity,
    merge_contacts,
]
