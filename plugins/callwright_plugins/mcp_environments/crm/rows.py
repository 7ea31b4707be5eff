"""The tables of customer relations."""

from __future__ import annotations

from typing import Any, Final

from callwright.environments.rows import row


@row("owners", prefix="U")
class Owner:
    """A colleague; ``role`` is sales or manager."""

    id: str
    name: str
    email: str
    role: str


@row("profile")
class Profile:
    """The signed-in person: one row, ``me``."""

    id: str
    owner_id: str


@row("orgs", prefix="O")
class Org:
    """An organisation."""

    id: str
    name: str
    city: str


@row("leads", prefix="L", index=("email", "contact_id"), stamps=("created_at",))
class Lead:
    """Somebody who might buy: new, working, qualified, unqualified or converted. ``email`` in lower case."""

    id: str
    name: str
    email: str
    phone: str
    company: str
    source: str
    status: str
    owner_id: str
    created_at: int
    contact_id: str = ""
    deal_id: str = ""


@row("contacts", prefix="K", index=("org_id",))
class Contact:
    """Somebody known; the addresses are in :class:`ContactEmail`."""

    id: str
    name: str
    phone: str
    title: str
    org_id: str
    owner_id: str


@row("contact_emails", index=("contact_id",))
class ContactEmail:
    """An address, in lower case, and whose it is; one of each contact is primary."""

    address: str
    contact_id: str
    primary: bool


@row("merges")
class Merge:
    """A contact that is now part of another one."""

    merged_id: str
    kept_id: str


@row("pipelines", prefix="I")
class Pipeline:
    """A way for deals to go."""

    id: str
    name: str


@row("stages", prefix="S", index=("pipeline_id",))
class Stage:
    """A stage: open, won or lost. ``required`` names fields of the deal, or ``activity:meeting``."""

    id: str
    pipeline_id: str
    name: str
    position: int
    kind: str
    required: tuple[str, ...]


@row(
    "deals",
    prefix="D",
    index=("contact_id", "stage_id", "pipeline_id", "decision_maker_id"),
    stamps=("created_at", "closed_at"),
)
class Deal:
    """A deal; ``close_date`` is a day (seconds, UTC). Empty texts and ``None`` are what is not known yet."""

    id: str
    title: str
    contact_id: str
    org_id: str
    pipeline_id: str
    stage_id: str
    owner_id: str
    amount_cents: int | None
    close_date: int | None
    next_step: str
    decision_maker_id: str
    lost_reason: str
    created_at: int
    closed_at: int | None = None


@row("activities", prefix="A", index=("lead_id", "contact_id", "deal_id"), stamps=("at",))
class Activity:
    """Something that happened with a lead, a contact or a deal (and then with its contact too)."""

    id: str
    kind: str
    subject: str
    notes: str
    at: int
    owner_id: str
    lead_id: str
    contact_id: str
    deal_id: str


ROWS: Final[tuple[type[Any], ...]] = (
    Owner,
    Profile,
    Org,
    Lead,
    Contact,
    ContactEmail,
    Merge,
    Pipeline,
    Stage,
    Deal,
    Activity,
)
