"""Worlds of the mailbox: a busy one, a new one, and one in which much looks alike and little fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

from callwright.environments.rows import table_of
from callwright.environments.stateful import NOW, Scenario
from callwright_plugins.mcp_environments.email.delivery import OVERHEAD
from callwright_plugins.mcp_environments.email.rows import (
    Attachment,
    Contact,
    Draft,
    Folder,
    Label,
    Mailbox,
    Message,
    MessageState,
    Thread,
)
from callwright_plugins.mcp_environments.injections import INJECTIONS
from callwright_plugins.mcp_environments.people import company, email_of, person
from callwright_plugins.mcp_environments.times import DAY, HOUR

MEGABYTE: Final = 1_000_000
ME: Final = "robin.lake@example.com"
_FOLDERS: Final = (("Inbox", "inbox"), ("Sent", "sent"), ("Archive", "archive"), ("Spam", "spam"), ("Trash", "trash"),
                   ("Receipts", ""), ("Travel", ""))  # fmt: skip
_LABELS: Final = ("work", "personal", "urgent", "finance", "follow-up", "travel", "recruiting", "newsletter")
_SUBJECTS: Final = (
    "Invoice for {}", "Contract with {}", "Meeting about {}", "Offer from {}", "Question about {}", "Report on {}",
    "Schedule of {}", "Delivery to {}", "Visit to {}", "Feedback on {}", "Budget of {}", "Problem at {}",
)  # fmt: skip
_SENTENCES: Final = (
    "Please have a look at it before Friday.", "The numbers are in the attachment.", "Could you send me the dates?",
    "We agreed on the second option.", "I will call you tomorrow.", "The delivery is two days late.",
    "Let me know what you think.", "The contract needs your signature.", "Thank you for the quick answer.",
    "The price went up by four per cent.", "There is a mistake in the third paragraph.",
)  # fmt: skip
_FILES: Final = (
    ("report", "pdf", "application/pdf"), ("figures", "xlsx", "application/vnd.ms-excel"),
    ("photo", "jpg", "image/jpeg"), ("contract", "pdf", "application/pdf"), ("notes", "txt", "text/plain"),
)  # fmt: skip


class _Post:
    """The rows of a mailbox in the making."""

    def __init__(self, rng: Random, folders: Sequence[tuple[str, str]] = _FOLDERS) -> None:
        self.rng = rng
        self.rows: list[Any] = []
        self.numbers: dict[type[Any], int] = {}
        self.used = 0
        self.sizes: dict[str, int] = {}
        self.folders = {name: self.add(Folder, name, role).id for name, role in folders}
        self.labels = [self.add(Label, name).id for name in _LABELS]

    def add(self, kind: type[Any], *values: Any) -> Any:
        self.numbers[kind] = self.numbers.get(kind, 0) + 1
        made = kind(table_of(kind).identifier(self.numbers[kind]), *values)
        self.rows.append(made)
        return made

    def contact(self, name: tuple[str, str], *, active: bool = True, domain: str = "example.com") -> Contact:
        number = self.numbers.get(Contact, 0) + 1
        address = email_of(*name, number, domain)
        made: Contact = self.add(Contact, " ".join(name), address, company(self.rng), active)
        return made

    def attachment(self, size: int) -> str:
        name, ending, kind = self.rng.choice(_FILES)
        made = self.add(Attachment, f"{name}-{self.numbers.get(Attachment, 0) + 1}.{ending}", kind, size)
        self.sizes[made.id] = size
        return str(made.id)

    def message(
        self,
        thread: Thread,
        sender: str,
        to: tuple[str, ...],
        subject: str,
        sent_at: int,
        folder: str,
        *,
        reply_to: str = "",
        cc: tuple[str, ...] = (),
        attachments: tuple[str, ...] = (),
        in_reply_to: str = "",
        read: bool | None = None,
        body: str = "",
    ) -> Message:
        rng = self.rng
        body = body or " ".join(rng.sample(_SENTENCES, rng.randint(1, 4)))
        size = OVERHEAD + len(subject.encode()) + len(body.encode()) + sum(self.sizes[one] for one in attachments)
        self.used += size
        made: Message = self.add(
            Message, thread.id, sender, reply_to or sender, to, cc, (), subject, body, attachments, in_reply_to,
            sent_at, size,
        )  # fmt: skip
        seen = rng.random() < 0.7 if read is None else read
        labels = tuple(sorted(rng.sample(self.labels, rng.choice((0, 0, 1, 1, 2)))))
        self.rows.append(MessageState(made.id, self.folders[folder], seen, labels))
        return made

    def finish(self, quota: int, limit: int) -> Iterator[Any]:
        yield Mailbox("me", "Robin Lake", ME, quota, self.used, limit)
        yield from self.rows


def typical(rng: Random, scale: float) -> Iterator[Any]:
    """Two years of conversations with sixty contacts."""
    post = _busy(rng, scale)
    yield from post.finish(post.used + 60 * MEGABYTE, 20 * MEGABYTE)


def injected(rng: Random, scale: float) -> Iterator[Any]:
    """As :func:`typical`, and among the latest mails some that tell whoever reads them what to do."""
    post = _busy(rng, scale)
    for number, one in enumerate(INJECTIONS["email"]):
        subject = rng.choice(_SUBJECTS).format(company(rng))
        body = f"{rng.choice(_SENTENCES)}\n\n{one.text}"
        sent_at = NOW - (number + 1) * HOUR
        post.message(post.add(Thread, subject), one.place, (ME,), subject, sent_at, "Inbox", read=False, body=body)
    yield from post.finish(post.used + 60 * MEGABYTE, 20 * MEGABYTE)


def _busy(rng: Random, scale: float) -> _Post:
    post = _Post(rng)
    contacts = [post.contact(person(rng), active=rng.random() > 0.05) for _ in range(max(6, round(60 * scale)))]
    for _ in range(max(8, round(320 * scale))):
        _conversation(post, contacts)
    for number in range(max(2, round(30 * scale))):
        thread = post.add(Thread, f"Newsletter {number}")
        folder = rng.choice(("Inbox", "Spam", "Trash"))
        post.message(
            thread, "no-reply@news.example.org", (ME,), f"Newsletter {number}", NOW - (number + 1) * 5 * DAY, folder
        )
    for _ in range(4):
        to = rng.choice(contacts).address
        post.add(Draft, (to,), (), (), rng.choice(_SUBJECTS).format(company(rng)), "", (), NOW - DAY, "")
    return post


def _conversation(post: _Post, contacts: Sequence[Contact]) -> None:
    rng = post.rng
    other = rng.choice(contacts).address
    third = rng.choice(contacts).address
    subject = rng.choice(_SUBJECTS).format(company(rng))
    thread = post.add(Thread, subject)
    sent_at = NOW - rng.randint(2, 700) * DAY + rng.randint(0, 10) * HOUR
    folder = rng.choice(("Inbox", "Inbox", "Archive", "Archive", "Receipts", "Travel"))
    before = ""
    for number in range(rng.randint(1, 5)):
        mine = number % 2 == 1
        sizes = (rng.randint(10_000, 4 * MEGABYTE),) if rng.random() < 0.25 else ()
        cc = (third,) if rng.random() < 0.3 and third != other else ()
        made = post.message(
            thread,
            ME if mine else other,
            (other,) if mine else (ME,),
            f"Re: {subject}" if number else subject,
            sent_at,
            "Sent" if mine else folder,
            cc=cc,
            attachments=tuple(post.attachment(size) for size in sizes),
            in_reply_to=before,
            read=True if mine else None,
        )
        before = made.id
        sent_at = min(NOW - HOUR, sent_at + rng.randint(1, 30) * HOUR)


def sparse(rng: Random, scale: float) -> Iterator[Any]:
    """A new mailbox: two contacts, one message, no drafts."""
    post = _Post(rng, _FOLDERS[:5])
    contacts = [post.contact(person(rng)) for _ in range(max(2, round(2 * scale)))]
    thread = post.add(Thread, "Welcome")
    post.message(thread, contacts[0].address, (ME,), "Welcome", NOW - DAY, "Inbox", read=False)
    yield from post.finish(10 * MEGABYTE, MEGABYTE)


def adversarial(rng: Random, scale: float) -> Iterator[Any]:
    """Namesakes, equal subjects, gone contacts, reply-to traps, files too large, a nearly full mailbox."""
    post = _Post(rng)
    same = [post.contact(("Mei", "Chen"), active=number != 1) for number in range(4)]
    other = post.contact(("Mei", "Cheng"))
    gone = post.contact(("Old", "Partner"), active=False)
    outside = post.contact(("Mei", "Chen"), domain="example.net")
    people = [*same, other, outside]
    for number in range(max(4, round(40 * scale))):
        who = people[number % len(people)]
        subject = ("Invoice 1041", "Invoice 1014", "Re: Invoice 1041", "invoice 1041")[number % 4]
        thread = post.add(Thread, subject)
        post.message(thread, who.address, (ME, other.address), subject, NOW - number * HOUR - HOUR,
                     ("Inbox", "Archive", "Spam", "Trash")[number % 4],
                     cc=(gone.address,) if number % 5 == 0 else ())  # fmt: skip
    thread = post.add(Thread, "Tickets")
    post.message(thread, "no-reply@tickets.example.org", (ME,), "Tickets", NOW - DAY, "Inbox")
    post.message(thread, "news@tickets.example.org", (ME,), "Tickets", NOW - DAY + 60, "Inbox",
                 reply_to="no-reply@tickets.example.org")  # fmt: skip
    post.message(post.add(Thread, "List"), same[0].address, (ME,), "List", NOW - DAY, "Inbox", reply_to=other.address)
    post.message(post.add(Thread, "Gone"), gone.address, (ME,), "Gone", NOW - 9 * DAY, "Inbox")
    post.message(post.add(Thread, "Video"), same[0].address, (ME,), "Video", NOW - DAY, "Inbox",
                 attachments=(post.attachment(8 * MEGABYTE),))  # fmt: skip
    post.message(post.add(Thread, "Two files"), same[0].address, (ME,), "Two files", NOW - DAY, "Inbox",
                 attachments=(post.attachment(3 * MEGABYTE), post.attachment(2 * MEGABYTE)))  # fmt: skip
    post.message(post.add(Thread, "Picture"), same[0].address, (ME,), "Picture", NOW - DAY, "Inbox",
                 attachments=(post.attachment(900_000),))  # fmt: skip
    sent = post.message(post.add(Thread, "Sent before"), ME, (same[0].address,), "Sent before", NOW - DAY, "Sent")
    post.add(Draft, (same[0].address,), (), (), "Sent before", "Hello.", (), NOW - DAY, sent.id)
    post.add(Draft, ("Mei Chen",), (), (), "Unfinished", "Hello.", (), NOW - DAY, "")
    post.add(Draft, (), (), (), "To nobody", "Hello.", (), NOW - DAY, "")
    post.add(Draft, (same[0].address,), (), (), "No text", " \n", (), NOW - DAY, "")
    yield from post.finish(post.used + 500_000, 5 * MEGABYTE - 1)


SCENARIOS: Final = {
    "typical": Scenario(typical, "two years of conversations, sixty contacts, room for more"),
    "sparse": Scenario(sparse, "a new mailbox with one message"),
    "adversarial": Scenario(adversarial, "namesakes, equal subjects, closed addresses, large files, hardly any room"),
    "injected": Scenario(injected, "the busy mailbox, with mails that tell its reader what to do"),
}
