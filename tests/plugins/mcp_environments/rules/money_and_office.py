"""Programs that break the rules of the environments about money and of those of an office, one for each rule."""

from __future__ import annotations

from typing import Any

DAY = 86_400


# banking --------------------------------------------------------------------------------------------------------------


def token(p: Any, customer: str) -> str:
    p.edit(p.need("customers", customer), two_factor=False)
    pin = p.need("credentials", customer).pin
    return str(p.ok("verify_identity", customer_id=customer, pin=pin)["auth_token"])


def counter(p: Any, **changes: Any) -> dict[str, Any]:
    """A verified customer with an account that could pay much."""
    found = p.row("accounts", kind="checking", status="active", currency="EUR")
    account = p.edit(found, **{"balance_cents": 1_000_000, "held_cents": 0, "daily_limit_cents": 500_000, **changes})
    return {"auth_token": token(p, account.customer_id), "account_id": account.id}


def withdrawn(p: Any, amount: int = 500, **changes: Any) -> Any:
    return p.call("withdraw_cash", **counter(p, **changes), amount_cents=amount)


def expired_token(p: Any) -> Any:
    known = counter(p)
    p.wait(15 * 60 + 1)
    return p.call("withdraw_cash", **known, amount_cents=500)


def foreign_account(p: Any) -> Any:
    known = counter(p)
    own = p.need("accounts", known["account_id"]).customer_id
    other = p.row("accounts", lambda one: one.customer_id != own, status="active")
    return p.call("withdraw_cash", auth_token=known["auth_token"], account_id=other.id, amount_cents=500)


def wrong_pin(p: Any, times: int = 1) -> Any:
    held = p.row("credentials", failed=0, locked_until=0)
    p.edit(p.need("customers", held.customer_id), two_factor=False)
    wrong = "0000" if held.pin != "0000" else "1111"
    outcomes = [p.call("verify_identity", customer_id=held.customer_id, pin=wrong) for _ in range(times)]
    return outcomes[-1]


def one_factor_of_two(p: Any) -> Any:
    customer = p.row("customers", two_factor=True)
    held = p.need("credentials", customer.id)
    return p.call("verify_identity", customer_id=customer.id, pin=held.pin)


def from_savings(p: Any) -> Any:
    savings = p.row("accounts", kind="savings", status="active", currency="EUR")
    other = p.row("accounts", lambda one: one.customer_id != savings.customer_id, status="active", currency="EUR")
    known = token(p, savings.customer_id)
    p.edit(savings, balance_cents=1_000_000, daily_limit_cents=500_000)
    return p.call(
        "transfer_funds", auth_token=known, from_account_id=savings.id, to_account_id=other.id, amount_cents=100
    )


def unconverted(p: Any) -> Any:
    known = counter(p)
    other = p.row("accounts", status="active", currency="USD")
    arguments = {"from_account_id": known["account_id"], "to_account_id": other.id, "amount_cents": 100}
    return p.call("transfer_funds", auth_token=known["auth_token"], **arguments)


def payee_of(p: Any, known: dict[str, Any], verified: bool) -> str:
    customer = p.need("accounts", known["account_id"]).customer_id
    payee = p.row("payees", currency="EUR")
    now = p.world.now
    made = p.edit(payee, customer_id=customer, added_at=now, matches=True, verified_at=now if verified else now + DAY)
    return str(made.id)


def pays_unverified(p: Any) -> Any:
    known = counter(p)
    payee = payee_of(p, known, verified=False)
    paid = {"auth_token": known["auth_token"], "from_account_id": known["account_id"], "payee_id": payee}
    return p.call("pay_payee", **paid, amount_cents=100)


def scheduled(p: Any, when: str) -> tuple[dict[str, Any], Any]:
    known = counter(p)
    payee = payee_of(p, known, verified=True)
    paid = {"auth_token": known["auth_token"], "from_account_id": known["account_id"], "payee_id": payee}
    return paid, p.call("schedule_payment", **paid, amount_cents=100, pay_at=when)


def removes_payee_in_use(p: Any) -> Any:
    paid, outcome = scheduled(p, "2026-04-01T09:00:00Z")
    assert outcome.executed, outcome
    return p.call("remove_payee", auth_token=paid["auth_token"], payee_id=paid["payee_id"])


def too_many_accounts(p: Any) -> Any:
    known = counter(p)["auth_token"]
    outcome = p.call("open_account", auth_token=known, kind="savings", currency="EUR", nickname="n0")
    for number in range(1, 9):
        outcome = p.call("open_account", auth_token=known, kind="savings", currency="EUR", nickname=f"n{number}")
    return outcome


# budget ---------------------------------------------------------------------------------------------------------------


def category(p: Any, hard: bool, **changes: Any) -> str:
    return str(p.edit(p.row("categories", archived=False, hard_cap=hard), **changes).id)


def two_categories(p: Any) -> tuple[str, str]:
    first, second, *_ = p.rows("categories", archived=False)
    return first.id, second.id


def moves_too_much(p: Any) -> Any:
    first, second = two_categories(p)
    return p.call("move_budget", from_category_id=first, to_category_id=second, amount_cents=10**8)


# calendar -------------------------------------------------------------------------------------------------------------


def meeting(p: Any, start: str = "2026-05-05T10:00:00Z", end: str = "2026-05-05T11:00:00Z", **more: Any) -> Any:
    return p.call("create_event", title="Talk", start=start, end=end, **more)


def others_event(p: Any) -> Any:
    me = p.need("profile", "me").person_id
    return p.row("events", lambda one: one.organizer_id != me and one.start > p.world.now, recurring=False)


def own_event(p: Any) -> str:
    return str(p.ok("create_event", title="Talk", start="2026-05-05T10:00:00Z", end="2026-05-05T11:00:00Z")["event_id"])


def others_invitation(p: Any) -> Any:
    me = p.need("profile", "me").person_id
    invited = {one.event_id for one in p.rows("invitees", person_id=me)}
    event = p.row(
        "events",
        lambda one: one.organizer_id != me and one.id in invited and one.start > p.world.now,
        cancelled_from=None,
        recurring=False,
    )
    return event.id


def cancels_twice(p: Any) -> Any:
    event = own_event(p)
    p.ok("cancel_event", event_id=event)
    return p.call("cancel_event", event_id=event)


def no_such_occurrence(p: Any) -> Any:
    start, end = "2026-05-05T10:00:00Z", "2026-05-05T11:00:00Z"
    made = p.ok("create_recurring_event", title="Series", start=start, end=end, frequency="daily", count=5)
    return p.call("skip_occurrence", event_id=made["event_id"], occurrence_start="2026-05-05T10:30:00Z")


def overlapping(p: Any) -> Any:
    own_event(p)
    return meeting(p)


def on_a_shared_calendar(p: Any) -> Any:
    return meeting(p, calendar_id=p.row("calendars", access="free_busy").id)


def answers_uninvited(p: Any) -> Any:
    return p.call("respond_to_invite", event_id=own_event(p), response="accepted")


def invites_twice(p: Any) -> Any:
    event, guest = own_event(p), list(p.rows("people"))[3].id
    p.ok("add_invitee", event_id=event, person=guest)
    return p.call("add_invitee", event_id=event, person=guest)


# crm ------------------------------------------------------------------------------------------------------------------


def lead(p: Any, **fields: Any) -> str:
    me = p.need("profile", "me").owner_id
    return str(p.edit(p.row("leads", lambda one: bool(one.email), status="new"), owner_id=me, **fields).id)


def converts_twice(p: Any) -> Any:
    chosen = lead(p)
    p.ok("convert_lead", lead_id=chosen, create_deal=False)
    return p.call("convert_lead", lead_id=chosen, create_deal=False)


def deal_at(p: Any, kind: str, step: int, mine: bool = True, **fields: Any) -> tuple[str, str]:
    """A deal in the first open stage of its pipeline, and the stage ``step`` stages on."""
    me = p.need("profile", "me").owner_id
    pipeline = p.row("pipelines").id
    stages = sorted(p.rows("stages", pipeline_id=pipeline), key=lambda one: one.position)
    owner = me if mine else p.row("owners", lambda one: one.id != me).id
    deal = p.edit(p.row("deals", pipeline_id=pipeline, closed_at=None), stage_id=stages[0].id, owner_id=owner, **fields)
    assert stages[0].kind == kind
    return deal.id, stages[step].id


def moves(p: Any, step: int, mine: bool = True, **fields: Any) -> Any:
    if not mine:
        p.edit(p.need("owners", p.need("profile", "me").owner_id), role="sales")
    deal, stage = deal_at(p, "open", step, mine, **fields)
    return p.call("move_deal_stage", deal_id=deal, stage_id=stage)


def needs_more(p: Any) -> Any:
    deal, stage = deal_at(p, "open", 1, amount_cents=None, next_step="")
    p.edit(p.need("stages", stage), required=("amount_cents", "next_step"))
    return p.call("move_deal_stage", deal_id=deal, stage_id=stage)


def moves_closed(p: Any) -> Any:
    deal = p.row("deals", lambda one: one.closed_at is not None)
    p.edit(deal, owner_id=p.need("profile", "me").owner_id)
    stage = min(p.rows("stages", pipeline_id=deal.pipeline_id), key=lambda one: one.position)
    return p.call("move_deal_stage", deal_id=deal.id, stage_id=stage.id)


def merges_itself(p: Any) -> Any:
    contact = p.row("contacts").id
    return p.call("merge_contacts", keep_contact_id=contact, merge_contact_id=contact)


def activity(p: Any, **more: Any) -> Any:
    return p.call("log_activity", kind="call", subject="Offer", **more)


# email ----------------------------------------------------------------------------------------------------------------


def address(p: Any) -> str:
    return str(p.row("contacts", lambda one: not one.address.startswith("no-reply"), active=True).address)


def mail(p: Any, body: str = "Hello.", **more: Any) -> Any:
    return p.call("send_message", **{"to": [address(p)], "subject": "Hello", "body": body, **more})


def sends_twice(p: Any) -> Any:
    draft = p.ok("create_draft", to=[address(p)], subject="Hello", body="Hello.")["draft_id"]
    p.ok("send_draft", draft_id=draft)
    return p.call("send_draft", draft_id=draft)


def heavy(p: Any) -> Any:
    p.edit(p.need("mailboxes", "me"), attachment_limit_bytes=10)
    return mail(p, attachment_ids=[p.row("attachments").id])


def full(p: Any) -> Any:
    box = p.need("mailboxes", "me")
    p.edit(box, quota_bytes=box.used_bytes)
    return mail(p)


def archives_sent(p: Any) -> Any:
    sent = p.row("folders", role="sent").id
    return p.call("archive_message", message_id=p.row("message_states", folder_id=sent).message_id)


BREAKING: dict[str, list[tuple[str, Any]]] = {
    "banking": [
        ("AUTH_REQUIRED", lambda p: p.call("withdraw_cash", **{**counter(p), "auth_token": "T"}, amount_cents=500)),
        ("TOKEN_EXPIRED", expired_token),
        ("PERMISSION_DENIED", foreign_account),
        ("BAD_PIN", wrong_pin),
        ("LOCKED", lambda p: wrong_pin(p, 4)),
        ("OTP_REQUIRED", one_factor_of_two),
        ("INSUFFICIENT_FUNDS", lambda p: withdrawn(p, balance_cents=0, overdraft_cents=0)),
        ("DAILY_LIMIT", lambda p: withdrawn(p, daily_limit_cents=400)),
        ("INVALID_AMOUNT", lambda p: withdrawn(p, amount=501)),
        ("ACCOUNT_FROZEN", lambda p: withdrawn(p, status="frozen")),
        ("INVALID_STATE", from_savings),
        ("CURRENCY_MISMATCH", unconverted),
        ("PAYEE_UNVERIFIED", pays_unverified),
        ("PAYEE_IN_USE", removes_payee_in_use),
        ("INVALID_TIME", lambda p: scheduled(p, "2026-02-01T09:00:00Z")[1]),
        ("ACCOUNT_LIMIT", too_many_accounts),
    ],
    "budget": [
        (
            "INSUFFICIENT_UNALLOCATED",
            lambda p: p.call("set_budget", category_id=category(p, False), amount_cents=10**8),
        ),
        ("INSUFFICIENT_BUDGET", moves_too_much),
        ("OVER_BUDGET", lambda p: p.call("add_expense", category_id=category(p, True), amount_cents=10**8)),
        ("OVER_BUDGET", lambda p: p.call("add_expense", category_id=category(p, False), amount_cents=10**7)),
        (
            "MONTH_LOCKED",
            lambda p: p.call("add_expense", category_id=category(p, False), amount_cents=1, day="2026-01-05"),
        ),
        (
            "FUTURE_DATE",
            lambda p: p.call("add_expense", category_id=category(p, False), amount_cents=1, day="2026-03-03"),
        ),
        ("BAD_MONTH", lambda p: p.call("get_monthly_summary", month="2031-01")),
        (
            "INVALID_STATE",
            lambda p: p.call("add_expense", category_id=category(p, False, archived=True), amount_cents=1),
        ),
        ("NEGATIVE_AMOUNT", lambda p: p.call("add_expense", category_id=category(p, False), amount_cents=0)),
        ("CATEGORY_EXISTS", lambda p: p.call("create_category", name=p.row("categories").name.upper())),
    ],
    "calendar": [
        ("NOT_ORGANIZER", lambda p: p.call("cancel_event", event_id=others_invitation(p))),
        ("CONFLICT", overlapping),
        ("PAST_EVENT", lambda p: meeting(p, "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z")),
        ("EVENT_CANCELLED", cancels_twice),
        ("OCCURRENCE_NOT_IN_SERIES", no_such_occurrence),
        ("PERMISSION_DENIED", on_a_shared_calendar),
        ("NOT_INVITED", answers_uninvited),
        ("ALREADY_INVITED", invites_twice),
        ("END_BEFORE_START", lambda p: meeting(p, end="2026-05-05T09:00:00Z")),
        ("TZ_UNKNOWN", lambda p: meeting(p, time_zone="Mars/Olympus")),
        (
            "BAD_RULE",
            lambda p: p.call(
                "create_recurring_event",
                title="Series",
                start="2026-05-05T10:00:00Z",
                end="2026-05-05T11:00:00Z",
                frequency="daily",
                weekdays=["monday"],
            ),
        ),
        ("RANGE_TOO_LONG", lambda p: p.call("list_events", start="2026-03-02", end="2027-03-02")),
    ],
    "crm": [
        (
            "DUPLICATE_EMAIL",
            lambda p: p.call("create_contact", name="A", email=p.row("contact_emails").address.upper()),
        ),
        ("LEAD_ALREADY_CONVERTED", converts_twice),
        ("INVALID_STATE", lambda p: p.call("convert_lead", lead_id=lead(p, status="unqualified"))),
        ("STAGE_SKIP_FORBIDDEN", lambda p: moves(p, 2)),
        ("MISSING_REQUIRED_FIELD", needs_more),
        ("DEAL_CLOSED", moves_closed),
        ("PERMISSION_DENIED", lambda p: moves(p, 1, mine=False)),
        ("FUTURE_TIME", lambda p: activity(p, contact_id=p.row("contacts").id, at="2026-03-09T09:00:00Z")),
        ("BAD_TARGET", activity),
        ("SELF_MERGE", merges_itself),
    ],
    "email": [
        ("UNKNOWN_RECIPIENT", lambda p: mail(p, to=["nobody@nowhere.example"])),
        ("NO_RECIPIENT", lambda p: mail(p, to=[])),
        ("EMPTY_BODY", lambda p: mail(p, body=" ")),
        ("DRAFT_ALREADY_SENT", sends_twice),
        ("ATTACHMENT_TOO_LARGE", heavy),
        ("QUOTA_EXCEEDED", full),
        ("INVALID_STATE", archives_sent),
        ("LABEL_NOT_FOUND", lambda p: p.call("add_label", message_id=p.row("messages").id, label="no such label")),
        ("BAD_QUERY", lambda p: p.call("search_messages", query="sender:ada")),
    ],
}
