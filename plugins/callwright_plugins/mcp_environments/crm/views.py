"""What tools of customer relations return."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.crm.records import address_of
from callwright_plugins.mcp_environments.crm.rows import (
    Activity,
    Contact,
    ContactEmail,
    Deal,
    Lead,
    Org,
    Owner,
    Pipeline,
    Stage,
)
from callwright_plugins.mcp_environments.times import iso, iso_date


class StageView(TypedDict):
    """A stage and what a deal needs to enter it; ``activity:meeting`` is a meeting logged with the deal."""

    stage_id: str
    name: str
    position: Annotated[int, Field(description="In the pipeline, from 0 on.")]
    kind: str
    required: Annotated[
        list[str], Field(description="What a deal needs to enter it; activity:meeting is a meeting logged with it.")
    ]


class PipelineView(TypedDict):
    """A pipeline with its stages in order."""

    pipeline_id: str
    name: str
    stages: list[StageView]


class LeadView(TypedDict):
    """A lead; ``contact_id`` and ``deal_id`` are what became of it."""

    lead_id: str
    name: str
    email: str
    phone: str
    company: str
    source: str
    status: str
    owner_id: Annotated[str, Field(description="Colleague who looks after it.")]
    owner_name: str
    created_at: str
    contact_id: Annotated[str, Field(description="What it became; empty: nothing yet.")]
    deal_id: Annotated[str, Field(description="What it became; empty: none.")]


class ContactSummary(TypedDict):
    """A contact in a list."""

    contact_id: str
    name: str
    email: str
    title: str
    org_id: str
    org_name: str


class ContactView(ContactSummary):
    """A contact."""

    other_emails: list[str]
    phone: str
    owner_id: str
    deal_ids: list[str]
    activity_count: int


class DealView(TypedDict):
    """A deal; ``status`` is open, won or lost."""

    deal_id: str
    title: str
    status: str
    pipeline_id: str
    stage_id: str
    stage_name: str
    contact_id: str
    org_id: str
    owner_id: Annotated[str, Field(description="Colleague who looks after it.")]
    amount_cents: int | None
    close_date: Annotated[str | None, Field(description="When it is expected to close; null: not known.")]
    next_step: str
    decision_maker_id: Annotated[str, Field(description="A contact; empty: not known.")]
    lost_reason: Annotated[str, Field(description="Empty unless it is lost.")]
    created_at: str
    closed_at: Annotated[str | None, Field(description="When it was won or lost; null: it is open.")]


class ActivityView(TypedDict):
    """Something that happened."""

    activity_id: str
    kind: str
    subject: str
    notes: str
    at: Annotated[str, Field(description="UTC.")]
    owner_id: Annotated[str, Field(description="Colleague who did it.")]
    lead_id: str
    contact_id: str
    deal_id: str


class ConversionView(TypedDict):
    """What became of a lead; ``contact_existed`` says whether the contact had been there before."""

    lead_id: str
    contact_id: str
    contact_existed: Annotated[bool, Field(description="Whether it was there before.")]
    org_id: str
    deal_id: Annotated[str, Field(description="Empty: none was opened.")]


class MergeView(TypedDict):
    """What a merge has moved."""

    contact: ContactView
    merged_contact_id: Annotated[str, Field(description="Gone.")]
    moved_deals: int
    moved_activities: int
    moved_leads: int


def pipeline_view(world: World, pipeline: Pipeline) -> PipelineView:
    """A pipeline."""
    stages = sorted(world.find(Stage, pipeline_id=pipeline.id), key=lambda one: one.position)
    return {
        "pipeline_id": pipeline.id,
        "name": pipeline.name,
        "stages": [
            {
                "stage_id": one.id,
                "name": one.name,
                "position": one.position,
                "kind": one.kind,
                "required": list(one.required),
            }
            for one in stages
        ],
    }


def lead_view(world: World, lead: Lead) -> LeadView:
    """A lead."""
    owner = world.get(Owner, lead.owner_id)
    return {
        "lead_id": lead.id,
        "name": lead.name,
        "email": lead.email,
        "phone": lead.phone,
        "company": lead.company,
        "source": lead.source,
        "status": lead.status,
        "owner_id": lead.owner_id,
        "owner_name": "" if owner is None else owner.name,
        "created_at": iso(lead.created_at),
        "contact_id": lead.contact_id,
        "deal_id": lead.deal_id,
    }


def contact_summary(world: World, contact: Contact) -> ContactSummary:
    """A contact in a list."""
    org = world.get(Org, contact.org_id)
    return {
        "contact_id": contact.id,
        "name": contact.name,
        "email": address_of(world, contact.id),
        "title": contact.title,
        "org_id": contact.org_id,
        "org_name": "" if org is None else org.name,
    }


def contact_view(world: World, contact: Contact) -> ContactView:
    """A contact."""
    others = [one.address for one in world.find(ContactEmail, contact_id=contact.id) if not one.primary]
    return {
        **contact_summary(world, contact),
        "other_emails": sorted(others),
        "phone": contact.phone,
        "owner_id": contact.owner_id,
        "deal_ids": [one.id for one in world.find(Deal, contact_id=contact.id)],
        "activity_count": world.count(Activity, contact_id=contact.id),
    }


def deal_view(world: World, deal: Deal) -> DealView:
    """A deal."""
    stage = world.need(Stage, deal.stage_id)
    return {
        "deal_id": deal.id,
        "title": deal.title,
        "status": stage.kind,
        "pipeline_id": deal.pipeline_id,
        "stage_id": stage.id,
        "stage_name": stage.name,
        "contact_id": deal.contact_id,
        "org_id": deal.org_id,
        "owner_id": deal.owner_id,
        "amount_cents": deal.amount_cents,
        "close_date": None if deal.close_date is None else iso_date(deal.close_date),
        "next_step": deal.next_step,
        "decision_maker_id": deal.decision_maker_id,
        "lost_reason": deal.lost_reason,
        "created_at": iso(deal.created_at),
        "closed_at": None if deal.closed_at is None else iso(deal.closed_at),
    }


def activity_view(one: Activity) -> ActivityView:
    """Something that happened."""
    return {
        "activity_id": one.id,
        "kind": one.kind,
        "subject": one.subject,
        "notes": one.notes,
        "at": iso(one.at),
        "owner_id": one.owner_id,
        "lead_id": one.lead_id,
        "contact_id": one.contact_id,
        "deal_id": one.deal_id,
    }
