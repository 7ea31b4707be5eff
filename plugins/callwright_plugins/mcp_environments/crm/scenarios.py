"""Worlds of customer relations: a sales team's, a new one, and one of duplicates, closed deals and missing facts."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from callwright.environments.rows import table_of
from callwright.environments.stateful import NOW, Scenario
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
from callwright_plugins.mcp_environments.people import CITIES, company, email_of, person
from callwright_plugins.mcp_environments.times import DAY, HOUR

_PIPELINES: Final = (
    ("New business", (
        ("Qualified", "open", ()), ("Discovery", "open", ("activity:call",)),
        ("Proposal", "open", ("amount_cents", "close_date", "activity:meeting")),
        ("Negotiation", "open", ("decision_maker_id", "next_step")), ("Won", "won", ("amount_cents", "close_date")),
        ("Lost", "lost", ("lost_reason",)),
    )),
    ("Renewal", (
        ("Upcoming", "open", ()), ("Contacted", "open", ("activity:email",)), ("Agreed", "open", ("amount_cents",)),
        ("Won", "won", ("close_date",)), ("Lost", "lost", ("lost_reason",)),
    )),
)  # fmt: skip
_SOURCES: Final = ("web", "referral", "event", "cold_call", "other")
_TITLES: Final = ("Head of purchasing", "Engineer", "Director", "Assistant", "Owner", "Accountant", "")
_SUBJECTS: Final = ("Asked for a price", "Sent the brochure", "Talked about dates", "Wants a demo", "No answer yet")
_PRODUCTS: Final = ("Licences", "Support", "Training", "Installation", "Upgrade", "Pilot")
_REASONS: Final = ("too expensive", "chose somebody else", "no budget", "no answer")


class _Book:
    """The rows of customer relations in the making."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.rows: list[Any] = []
        self.numbers: dict[type[Any], int] = {}
        self.stages: dict[str, list[Stage]] = {}
        self.pipelines: list[Pipeline] = []
        for name, stages in _PIPELINES:
            pipeline = self.add(Pipeline, name)
            self.pipelines.append(pipeline)
            self.stages[pipeline.id] = [
                self.add(Stage, pipeline.id, title, place, kind, required)
                for place, (title, kind, required) in enumerate(stages)
            ]

    def add(self, kind: type[Any], *values: Any) -> Any:
        self.numbers[kind] = self.numbers.get(kind, 0) + 1
        made = kind(table_of(kind).identifier(self.numbers[kind]), *values)
        self.rows.append(made)
        return made

    def owner(self, role: str) -> Owner:
        first, last = person(self.rng)
        made: Owner = self.add(Owner, f"{first} {last}", email_of(first, last, self.numbers.get(Owner, 0) + 1), role)
        return made

    def org(self, name: str) -> Org:
        made: Org = self.add(Org, name, self.rng.choice(CITIES))
        return made

    def contact(self, name: tuple[str, str], org: Org | None, owner: Owner, address: str = "") -> Contact:
        made: Contact = self.add(
            Contact, " ".join(name), f"+00 555 {self.rng.randint(1000, 9999)}", self.rng.choice(_TITLES),
            "" if org is None else org.id, owner.id,
        )  # fmt: skip
        where = address or email_of(*name, self.numbers[Contact], "customer.example")
        self.rows.append(ContactEmail(where, made.id, True))
        return made

    def lead(
        self,
        name: tuple[str, str],
        org: str,
        owner: str,
        status: str,
        *,
        email: str | None = None,
        contact: str = "",
        deal: str = "",
    ) -> Lead:
        number = self.numbers.get(Lead, 0) + 1
        address = email_of(*name, number, "lead.example") if email is None else email
        made: Lead = self.add(
            Lead, " ".join(name), address, "", org, self.rng.choice(_SOURCES), status, owner,
            NOW - self.rng.randint(1, 90) * DAY, contact, deal,
        )  # fmt: skip
        return made

    def activity(self, kind: str, owner: Owner, *, lead: str = "", contact: str = "", deal: str = "") -> None:
        at = NOW - self.rng.randint(1, 60) * DAY - self.rng.randint(0, 8) * HOUR
        self.add(Activity, kind, self.rng.choice(_SUBJECTS), "", at, owner.id, lead, contact, deal)

    def deal(self, contact: Contact, owner: Owner, place: int, pipeline: int = 0, *, bare: bool = False) -> Deal:
        """A deal at a place of its pipeline, with what the stages on the way there require unless it is ``bare``."""
        rng, stages = self.rng, self.stages[self.pipelines[pipeline].id]
        stage = stages[place]
        way = [stage] if stage.kind == "lost" else stages[: place + 1]
        needed = set() if bare else {name for one in way for name in one.required}
        closed = stage.kind != "open"
        made: Deal = self.add(
            Deal,
            f"{rng.choice(_PRODUCTS)} for {contact.name}",
            contact.id,
            contact.org_id,
            stage.pipeline_id,
            stage.id,
            owner.id,
            rng.randint(5, 900) * 10_000 if "amount_cents" in needed else None,
            NOW // DAY * DAY + rng.randint(-5, 60) * DAY if "close_date" in needed else None,
            "Send the contract" if "next_step" in needed else "",
            contact.id if "decision_maker_id" in needed else "",
            rng.choice(_REASONS) if "lost_reason" in needed else "",
            NOW - rng.randint(61, 200) * DAY,
            NOW - rng.randint(1, 50) * DAY if closed else None,
        )
        for name in sorted(needed):
            if name.startswith("activity:"):
                self.activity(name.removeprefix("activity:"), owner, contact=contact.id, deal=made.id)
        return made


def typical(rng: Random, scale: float) -> Iterator[Any]:
    """Five sales people, ninety organisations, leads, contacts and deals of half a year."""
    book = _Book(rng)
    me = book.owner("sales")
    owners = [me, *(book.owner("sales") for _ in range(3)), book.owner("manager")]
    book.rows.append(Profile("me", me.id))
    names = sorted({company(rng) for _ in range(max(5, round(110 * scale)))})
    orgs = [book.org(name) for name in names]
    contacts = [
        book.contact(person(rng), rng.choice(orgs), rng.choice(owners)) for _ in range(max(8, round(220 * scale)))
    ]
    for number in range(max(12, round(150 * scale))):
        pipeline = number % 2
        contact = contacts[number % len(contacts)]
        book.deal(contact, owners[number % 3 if number % 4 else 0], rng.randrange(6 - pipeline), pipeline)
    for number in range(max(8, round(130 * scale))):
        owner = owners[number % len(owners)] if number % 3 else me
        status = ("new", "working", "qualified", "unqualified", "converted")[number % 5]
        if status == "converted":
            contact = contacts[number % len(contacts)]
            made = book.lead(person(rng), rng.choice(orgs).name, owner.id, status, contact=contact.id)
            book.activity(rng.choice(("call", "email")), owner, lead=made.id, contact=contact.id)
            continue
        made = book.lead(
            person(rng), rng.choice(orgs).name if number % 2 else company(rng), owner.id if number % 7 else "", status
        )
        if status != "new":
            book.activity(rng.choice(("call", "email", "note")), owner, lead=made.id)
    for number in range(max(10, round(300 * scale))):
        book.activity(rng.choice(("call", "email", "meeting", "note")), rng.choice(owners),
                      contact=contacts[number % len(contacts)].id)  # fmt: skip
    yield from book.rows


def sparse(rng: Random, scale: float) -> Iterator[Any]:
    """A team of one with one lead and one contact."""
    book = _Book(rng)
    me = book.owner("sales")
    book.rows.append(Profile("me", me.id))
    for _ in range(max(1, round(scale))):
        book.contact(person(rng), None, me)
        book.lead(person(rng), "", me.id, "new")
    yield from book.rows


def adversarial(rng: Random, scale: float) -> Iterator[Any]:
    """Namesakes with nearly equal addresses, deals that lack what the next stage needs, leads in every state."""
    book = _Book(rng)
    me, other = book.owner("sales"), book.owner("sales")
    book.owner("manager")
    book.rows.append(Profile("me", me.id))
    orgs = [book.org(name) for name in ("Cobalt Foods", "Cobalt Food", "COBALT Works", "Cobalt")]
    twins = [
        book.contact(("Maja", "Silva"), orgs[number % 4] if number else None, me, address)
        for number, address in enumerate(
            ("maja.silva@customer.example", "m.silva@customer.example", "maja.silva@customer.example.org",
             "majasilva@customer.example", "maja.silva1@customer.example")
        )
    ]  # fmt: skip
    book.rows.append(ContactEmail("maja@home.example", twins[0].id, False))
    book.rows.append(Merge("K09999", twins[0].id))
    name = ("Maja", "Silva")
    book.lead(name, "cobalt foods", me.id, "qualified", email="maja.silva@customer.example")  # is a contact already
    book.lead(name, "Cobalt Foods", me.id, "new", email="")
    book.lead(name, "Cobalt Foods", me.id, "unqualified", email="maja.s@lead.example")
    book.lead(name, "Cobalt Foods", other.id, "working", email="maja.t@lead.example")
    book.lead(name, "Cobalt Foods", me.id, "converted", email="maja.u@lead.example", contact=twins[1].id)
    book.lead(name, "Cobalt Foods", "", "new", email="maja.v@lead.example")
    for number in range(max(12, round(48 * scale))):
        contact, owner = twins[number % 5], me if number % 4 else other
        book.deal(contact, owner, number % 6, bare=number % 6 < 4 and number % 2 == 0)
    for number in range(max(2, round(20 * scale))):
        book.deal(twins[number % 5], me, number % 5, 1)
        book.lead(name, "Cobalt", me.id, ("new", "working", "qualified")[number % 3])
    yield from book.rows


SCENARIOS: Final = {
    "typical": Scenario(typical, "five sales people, ninety organisations, half a year of leads and deals"),
    "sparse": Scenario(sparse, "a team of one with one lead and one contact"),
    "adversarial": Scenario(adversarial, "namesakes, near-equal addresses, closed deals, stages that lack facts"),
}
