"""The user's mail."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, Literal, NotRequired

from typing_extensions import TypedDict

from callwright.tools.spec import ToolError
from callwright_plugins.depthbench.toolkit import (
    REFERENCE_ONLY,
    Day,
    Domain,
    Email,
    Row,
    Rows,
    at_least_by,
    edited,
    first_by,
    keep,
    keep_having,
    says,
    table,
    the_day,
)
from callwright_plugins.depthbench.world import Context, at_hand, naming, pick, roll, shuffled, stream

DOMAIN: Final = Domain("mailbox")
FOLDERS: Final = ("inbox", "archive", "invoices", "travel")
Folder = Literal["inbox", "archive", "invoices", "travel"]
SENDERS: Final = ("Hana Sato", "Marco Rossi", "Priya Weber", "Yusuf Dahl", "Zoe Quinn")
Sender = Literal["Hana Sato", "Marco Rossi", "Priya Weber", "Yusuf Dahl", "Zoe Quinn"]
LABELS: Final = ("family", "follow-up", "important", "work")
Label = Literal["family", "follow-up", "important", "work"]
_SUBJECTS: Final = (
    "Change of plans",
    "Draft for review",
    "Dinner on Friday",
    "Invoice attached",
    "Minutes of the meeting",
    "New address",
    "Photos from the trip",
    "Question about the contract",
    "Reminder",
    "Schedule for next week",
    "Tickets",
    "Your order",
)
_BODIES: Final = (
    "Please have a look before noon.",
    "I shall be ten minutes late.",
    "Everything is settled, thank you.",
    "Could we talk about this tomorrow?",
    "The figures are on page three.",
    "See you at the usual place.",
    "I have attached the signed copy.",
    "Let me know what you think.",
)


class Message(TypedDict):
    """A message; the last stands there after the filter by day."""

    message_id: str
    sender: Sender
    subject: str
    received: Day
    labels: list[Label]
    days_since: NotRequired[int]


class FolderContent(TypedDict):
    """The messages of a folder."""

    folder: Folder
    messages: list[Message]


class MessageText(TypedDict):
    """What a message says."""

    message_id: str
    sender: Sender
    body: str


class Reply(TypedDict):
    """A reply that was sent."""

    reply_id: str
    to: Sender
    subject: str
    text: str


class SentMessage(TypedDict):
    """A message that was sent."""

    sent_id: str
    recipients: list[str]
    subject: str
    priority: str


MessageTable = Annotated[list[Message], REFERENCE_ONLY]
_folders: dict[tuple[str, str], Rows] = {}


def messages_in(context: Context, folder: str) -> Rows:
    """Between fourteen and twenty messages of the last six weeks, in no particular order."""
    key = f"{at_hand.get().version.name}/{context.key}"
    rows = _folders.get((key, folder))
    if rows is None:
        rng = stream(f"mail/{context.key}/{folder}")
        user = context.key[5:9]
        made: list[Row] = []
        for number in range(14 + int(naming(rng, f"mail/{user}/{folder}").random() * 7)):
            made.append(
                {
                    "message_id": f"M{FOLDERS.index(folder) + 1}{user}{number:02d}",
                    "sender": pick(rng, SENDERS),
                    "subject": pick(rng, _SUBJECTS),
                    "received": (context.today - timedelta(days=int(rng.random() * 42))).isoformat(),
                    "labels": sorted(shuffled(rng, LABELS)[: 1 + int(rng.random() * 2)]),
                }
            )
        rows = Rows(made)
        if len(_folders) > 8192:  # a session may be of any user of any world; what is kept of it is bounded
            _folders.clear()
        _folders[key, folder] = rows
    return edited("messages", rows, lambda row: row["message_id"])


def _the_message(context: Context, message_id: str) -> Row:
    if len(message_id) == 8 and message_id[1] in "1234":
        for row in messages_in(context, FOLDERS[int(message_id[1]) - 1]):
            if row["message_id"] == message_id:
                return row
    raise ToolError("unknown_message", f"the user has no message {message_id[:20]!r}")


@DOMAIN.tool("retrieval", "messages")
def open_mail_folder(context: Context, /, folder: Folder) -> FolderContent:
    """The messages of a folder of the user's mail, in no particular order."""
    return {"folder": folder, "messages": messages_in(context, folder)}  # type: ignore[typeddict-item]


@DOMAIN.tool("retrieval")
def keep_messages_from(messages: MessageTable, sender: Sender) -> list[Message]:
    """The given messages that someone sent."""
    return keep(table(messages, "message_id", "sender"), "sender", sender)  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def keep_messages_since(messages: MessageTable, day: Day) -> list[Message]:
    """The given messages that came on a day or later."""
    since = the_day(day)
    rows = table(messages, "message_id", "received")
    return at_least_by(rows, lambda row: (the_day(row["received"]) - since).days, "days_since")  # type: ignore[return-value]


@DOMAIN.tool("retrieval")
def keep_messages_labelled(messages: MessageTable, label: Label) -> list[Message]:
    """The given messages that carry a label."""
    return keep_having(table(messages, "message_id", "labels"), "labels", label)  # type: ignore[return-value]


@DOMAIN.tool("retrieval", "message_id")
def choose_latest_message(messages: MessageTable) -> Message:
    """The newest of the given messages."""
    rows = table(messages, "message_id", "received")
    newest = max((row["received"] for row in rows), default="")
    return first_by([row for row in rows if row["received"] == newest], lambda row: row["message_id"])  # type: ignore[return-value]


@DOMAIN.tool("information", "body")
def read_mail_message(context: Context, /, message_id: str) -> MessageText:
    """What a message of the user's mail says."""
    row = _the_message(context, message_id)
    seed = roll(f"body/{message_id}", 64)
    body = f"{_BODIES[seed % 8]} {_BODIES[(seed % 8 + 1 + seed // 8 % 7) % 8]}"
    return {"message_id": message_id, "sender": row["sender"], "body": body}


@DOMAIN.tool("workflow", "reply_id", read_only=False)
def reply_to_message(
    context: Context, /, message_id: str, text: Annotated[str, says(minLength=1, maxLength=500)]
) -> Reply:
    """Reply to a message of the user's mail."""
    row = _the_message(context, message_id)
    number = roll(f"reply/{message_id}/{text}", 90_000) + 10_000
    return {"reply_id": f"R{number}", "to": row["sender"], "subject": f"Re: {row['subject']}", "text": text}


@DOMAIN.tool("workflow", "sent_id", read_only=False)
def send_mail_message(
    recipients: Annotated[list[Email], says(minItems=1, maxItems=10)],
    subject: Annotated[str, says(minLength=1, maxLength=120)],
    body: Annotated[str, says(minLength=1, maxLength=2000)],
    priority: Literal["low", "normal", "high"] = "normal",
) -> SentMessage:
    """Send a message."""
    to = sorted(set(recipients))
    number = roll(f"send/{'/'.join(to)}/{subject}/{body}/{priority}", 900_000) + 100_000
    return {"sent_id": f"X{number}", "recipients": to, "subject": subject, "priority": priority}
