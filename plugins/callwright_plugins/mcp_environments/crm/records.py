"""Finding records, whose they are, and which addresses are taken."""

from __future__ import annotations

from typing import Final

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.crm.rows import (
    Contact,
    ContactEmail,
    Lead,
    Merge,
    Org,
    Owner,
    Pipeline,
    Profile,
    Stage,
)

#: The states of leads that somebody may still work on.
OPEN: Final = ("new", "working", "qualified")


def me(world: World) -> Owner:
    """The signed-in person."""
    return world.need(Owner, world.need(Profile, "me").owner_id)


def known_contact(world: World, contact_id: str, code: str = "NOT_FOUND") -> Contact:
    """A contact; of one that was merged, the failure says into which."""
    contact = world.get(Contact, contact_id)
    if contact is None:
        merged, kept = world.get(Merge, contact_id), ""
        while merged is not None:
            kept = merged.kept_id
            merged = world.get(Merge, kept)
        where = f"it was merged into {kept}" if kept else "search_contacts gives ids"
        raise ToolError(code, f"there is no contact {contact_id[:40]!r}; {where}")
    return contact


def referenced_org(world: World, org_id: str) -> str:
    """The id of an organisation that exists, or empty. Fails with ``FK_NOT_FOUND``."""
    if org_id:
        world.need(
            Org, org_id, "FK_NOT_FOUND", f"there is no organisation {org_id[:40]!r}; contacts and deals name theirs"
        )
    return org_id


def pipeline_stages(world: World, pipeline_id: str) -> list[Stage]:
    """The stages of a pipeline in order; of the first pipeline for an empty id. Fails with ``FK_NOT_FOUND``."""
    wanted = pipeline_id or next(iter(world.rows(Pipeline))).id
    world.need(Pipeline, wanted, "FK_NOT_FOUND", f"there is no pipeline {wanted[:40]!r}; see list_pipelines")
    return sorted(world.find(Stage, pipeline_id=wanted), key=lambda one: one.position)


def require_owner(world: World, owner_id: str, what: str) -> None:
    """Fails with ``PERMISSION_DENIED`` for what belongs to somebody else, unless one is a manager."""
    own = me(world)
    if owner_id not in ("", own.id) and own.role != "manager":
        owner = world.need(Owner, owner_id)
        raise ToolError(
            "PERMISSION_DENIED", f"{what} belongs to {owner.name} ({owner.email}); only they or a manager may"
        )


def address_of(world: World, contact_id: str) -> str:
    """The primary address of a contact, or empty."""
    return next((one.address for one in world.find(ContactEmail, contact_id=contact_id) if one.primary), "")


def refuse_duplicate(world: World, address: str, *, contact_id: str = "", leads: bool = False) -> None:
    """Fails with ``DUPLICATE_EMAIL`` if another contact (or, with ``leads``, an open lead) has the address."""
    held = world.get(ContactEmail, address)
    if held is not None and held.contact_id != contact_id:
        raise ToolError("DUPLICATE_EMAIL", f"{address} belongs to contact {held.contact_id}; use that one")
    if leads and address:
        for lead in world.find(Lead, email=address):
            if lead.status in OPEN:
                raise ToolError("DUPLICATE_EMAIL", f"{address} belongs to lead {lead.id} ({lead.status}); use that one")


def org_named(world: World, company: str) -> str:
    """The id of the organisation of this name, made if there is none; empty for no name."""
    name = company.strip()
    if not name:
        return ""
    for org in world.rows(Org):
        if org.name.lower() == name.lower():
            return org.id
    return world.put(Org(world.new_id(Org), name, "")).id
