"""Programs that break the rules of work, of talk, of files and of markets, one for each rule."""

from __future__ import annotations

from typing import Any

DAY = 86_400


# issue_tracker --------------------------------------------------------------------------------------------------------


def issue(p: Any, status: str = "Backlog", **changes: Any) -> Any:
    """An issue of a project with the software workflow, to which the signed-in person belongs."""
    me = p.need("profile", "me").user
    project = p.row("projects", lambda one: me in one.members, workflow="software", archived=False)
    blocked = {one.target for one in p.rows("links", kind="blocks")}
    found = p.row("issues", lambda one: one.key not in blocked and one.type != "epic", project=project.key)
    return p.edit(found, status=status, resolution="", **changes)


def moves(p: Any, to: str, status: str = "Backlog", more: dict[str, Any] | None = None, **changes: Any) -> Any:
    return p.call("transition_issue", issue=issue(p, status, **changes).key, to=to, **(more or {}))


def in_a_project_of_others(p: Any) -> Any:
    me = p.need("profile", "me").user
    theirs = [one.key for one in p.rows("projects", lambda one: me not in one.members, archived=False)]
    return p.call("add_comment", issue=p.row("issues", lambda one: one.project in theirs).key, body="Hello.")


def in_an_archive(p: Any) -> Any:
    found = issue(p)
    p.edit(p.need("projects", found.project), archived=True)
    return p.call("add_comment", issue=found.key, body="Hello.")


def two_issues(p: Any) -> tuple[str, str]:
    first = issue(p)
    linked = {one.source for one in p.rows("links")} | {one.target for one in p.rows("links")}
    free = [one.key for one in p.rows("issues", project=first.project) if one.key not in linked and one.type != "epic"]
    return free[0], free[1]


def resolves_blocked(p: Any) -> Any:
    first, second = two_issues(p)
    for key in (first, second):
        p.edit(p.need("issues", key), status="Backlog", resolution="")
    p.ok("link_issues", source=first, target=second, kind="blocks")
    return p.call("transition_issue", issue=second, to="Done", resolution="done")


def circle(p: Any) -> Any:
    first, second = two_issues(p)
    p.ok("link_issues", source=first, target=second, kind="blocks")
    return p.call("link_issues", source=second, target=first, kind="blocks")


def sprint(p: Any, state: str, filled: bool = True) -> Any:
    found = issue(p)
    chosen = p.row("sprints", project=found.project)
    for one in p.rows("sprints", project=found.project):
        p.edit(one, state="closed")
    for one in p.rows("issues", sprint=chosen.id):
        p.edit(one, sprint="")
    for one in p.rows("sprint_issues", sprint=chosen.id):
        p.world.drop(one)
    return p.edit(chosen, state=state)


def starts_second(p: Any) -> Any:
    chosen = sprint(p, "future")
    p.edit(p.row("sprints", lambda one: one.id != chosen.id, project=chosen.project), state="active")
    p.ok("add_to_sprint", sprint=chosen.id, issues=[issue(p, sprint="").key])
    return p.call("start_sprint", sprint=chosen.id)


def plans_closed(p: Any) -> Any:
    chosen = sprint(p, "future")
    return p.call("add_to_sprint", sprint=chosen.id, issues=[issue(p, "Done").key])


def assigns_former(p: Any) -> Any:
    found = issue(p)
    me = p.need("profile", "me").user
    other = next(one for one in p.need("projects", found.project).members if one != me)
    p.edit(p.need("users", other), active=False)
    return p.call("assign_issue", issue=found.key, user=other)


# payments -------------------------------------------------------------------------------------------------------------


def invoice(p: Any, cents: int = 10_000) -> str:
    customer = p.edit(p.row("customers", archived=False), card_limit_cents=10**8)
    line = {"description": "Work", "quantity": 1, "unit_price_cents": cents, "tax_bps": 0}
    return str(p.ok("create_invoice", customer_id=customer.id, lines=[line])["invoice_id"])


def sent(p: Any) -> str:
    made = invoice(p)
    p.ok("send_invoice", invoice_id=made)
    return made


def captured(p: Any, cents: int = 10_000) -> tuple[str, str]:
    made = sent(p)
    p.ok("capture_payment", invoice_id=made, amount_cents=cents)
    return made, p.row("payments", invoice_id=made).id


def sends_void(p: Any) -> Any:
    made = invoice(p)
    p.ok("void_invoice", invoice_id=made)
    return p.call("send_invoice", invoice_id=made)


def captures_late(p: Any) -> Any:
    made = sent(p)
    p.wait(8 * DAY)
    return p.call("capture_payment", invoice_id=made)


def refunds_late(p: Any) -> Any:
    _, payment = captured(p)
    p.wait(181 * DAY)
    return p.call("refund_payment", payment_id=payment)


def one_key_twice(p: Any) -> Any:
    made = sent(p)
    p.ok("capture_payment", invoice_id=made, amount_cents=100, idempotency_key="k")
    return p.call("capture_payment", invoice_id=made, amount_cents=200, idempotency_key="k")


def declined(p: Any) -> Any:
    made = invoice(p)
    p.edit(p.need("customers", p.need("invoices", made).customer_id), card_limit_cents=1)
    return p.call("send_invoice", invoice_id=made)


def webhook(p: Any, url: str = "https://shop.example.com/new-hook") -> Any:
    return p.call("register_webhook", url=url, events=["invoice.paid"])


def webhook_twice(p: Any) -> Any:
    assert webhook(p).executed
    return webhook(p)


# filesystem -----------------------------------------------------------------------------------------------------------


def shell(p: Any) -> tuple[Any, str]:
    user = p.need("users", p.row("shells").user)
    return user, user.home


def guesses(p: Any, times: int = 1) -> Any:
    me, _ = shell(p)
    other = p.row("users", lambda one: one.name not in (me.name, "root"))
    return [p.call("switch_user", user=other.name, password="not it") for _ in range(times)][-1]


def folder(p: Any) -> str:
    _, home = shell(p)
    p.ok("mkdir", path=f"{home}/made")
    p.ok("touch", path=f"{home}/made/file")
    return f"{home}/made"


def stands_in_it(p: Any) -> Any:
    made = folder(p)
    p.ok("cd", path=made)
    return p.call("rm_tree", path=made)


def over_quota(p: Any) -> Any:
    me, home = shell(p)
    p.edit(me, quota_bytes=p.need("usage", me.name).bytes)
    return p.call("write_file", path=f"{home}/more.txt", content="more")


def going_round(p: Any) -> Any:
    _, home = shell(p)
    p.ok("symlink", target=f"{home}/b", path=f"{home}/a")
    p.ok("symlink", target=f"{home}/a", path=f"{home}/b")
    return p.call("cat", path=f"{home}/a")


def reads_an_archive(p: Any) -> Any:
    made = folder(p)
    p.ok("make_archive", sources=[made], archive=f"{made}.tar")
    return p.call("cat", path=f"{made}.tar")


def own_home(p: Any, *name: str) -> str:
    return "/".join((shell(p)[1], *name))


# social_media ---------------------------------------------------------------------------------------------------------


def others_post(p: Any, private: bool = False, **changes: Any) -> Any:
    """A post of somebody whom no block keeps apart from the signed-in person."""
    me = p.need("profile", "me").user_id
    apart = {one.blocker_id for one in p.rows("blocks")} | {one.blocked_id for one in p.rows("blocks")}
    fits = [one.id for one in p.rows("users") if one.id != me and one.id not in apart]
    liked = {one.post_id for one in p.rows("likes", user_id=me)}
    found = p.row("posts", lambda one: one.author_id in fits and one.id not in liked and not one.shared_post_id)
    for follow in p.rows("follows", follower_id=me, followed_id=found.author_id):
        p.world.drop(follow)
    p.edit(p.need("users", found.author_id), private=private)
    return p.edit(found, **{"deleted": False, "comments": "everyone", **changes})


def reads_who_blocks(p: Any) -> Any:
    return p.call("get_profile", user=p.row("blocks", blocked_id=p.need("profile", "me").user_id).blocker_id)


def likes_twice(p: Any) -> Any:
    post = others_post(p).id
    p.ok("like_post", post_id=post)
    return p.call("like_post", post_id=post)


def follows_twice(p: Any) -> Any:
    author = others_post(p).author_id
    p.ok("follow_user", user=author)
    return p.call("follow_user", user=author)


# team_chat ------------------------------------------------------------------------------------------------------------


def channel(p: Any, member: bool = True, **changes: Any) -> Any:
    me = p.need("profile", "me").user_id
    mine = {one.channel_id for one in p.rows("memberships", user_id=me, role="member")}
    anywhere = {one.channel_id for one in p.rows("memberships", user_id=me)}
    fits = p.row("channels", lambda one: one.id in mine if member else one.id not in anywhere, private=False)
    return p.edit(fits, **{"archived": False, "posting": "everyone", **changes})


def posts(p: Any, text: str = "Hello.", **changes: Any) -> Any:
    return p.call("post_message", channel_id=channel(p, **changes).id, text=text)


def posted(p: Any) -> str:
    return str(p.ok("post_message", channel_id=channel(p).id, text="Hello.")["message_id"])


def in_a_locked_thread(p: Any) -> Any:
    where = channel(p).id
    message = p.edit(p.need("messages", p.row("thread_locks").thread_id), channel_id=where)
    return p.call("reply_in_thread", message_id=message.id, text="Hello.")


def reacts_twice(p: Any) -> Any:
    message = posted(p)
    p.ok("add_reaction", message_id=message, emoji="heart")
    return p.call("add_reaction", message_id=message, emoji="heart")


def pins(p: Any, same: bool) -> Any:
    where = channel(p).id
    for pin in p.rows("pins", channel_id=where):
        p.world.drop(pin)
    message = posted(p)
    outcome = p.call("pin_message", message_id=message)
    for _ in range(11):
        message = message if same else posted(p)
        outcome = p.call("pin_message", message_id=message)
        if outcome.failed:
            break
    return outcome


def mentions_absent(p: Any) -> Any:
    where = channel(p)
    inside = {one.user_id for one in p.rows("memberships", channel_id=where.id)}
    absent = p.row("workspace_users", lambda one: one.id not in inside, kind="member")
    return p.call("post_message", channel_id=where.id, text=f"Hello @{absent.handle}")


def invites(p: Any, guest: bool) -> Any:
    where = channel(p)
    inside = [one.user_id for one in p.rows("memberships", channel_id=where.id)]
    if not guest:
        return p.call("invite_member", channel_id=where.id, user_id=inside[0])
    outside = p.row("workspace_users", lambda one: one.id not in inside, kind="member")
    p.edit(outside, kind="guest")
    return p.call("invite_member", channel_id=where.id, user_id=outside.id)


# trading --------------------------------------------------------------------------------------------------------------


def symbol(p: Any, **changes: Any) -> Any:
    traded = {one.symbol for one in p.rows("orders", status="open")}
    return p.edit(p.row("symbols", lambda one: one.symbol not in traded, halted=False), **changes)


def limit(p: Any, price: int = 0, shares: int = 1, side: str = "buy", **changes: Any) -> Any:
    chosen = symbol(p, **changes)
    order = {"symbol": chosen.symbol, "side": side, "shares": shares}
    return p.call("place_limit_order", **order, limit_price_cents=price or chosen.prev_close_cents)


def market(p: Any, shares: int, keep: int) -> Any:
    """A market order where others offer ``keep`` shares."""
    chosen = symbol(p)
    offers = list(p.rows("book_levels", symbol=chosen.symbol, side="sell"))
    for offer in offers:
        p.world.drop(offer)
    if keep:
        p.world.put(type(offers[0])(**{**as_dict(offers[0]), "remaining": keep}))
    return p.call("place_market_order", symbol=chosen.symbol, side="buy", shares=shares)


def as_dict(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in type(row).__annotations__}


def at_night(p: Any) -> Any:
    p.wait(10 * 3600)
    return limit(p)


def sells_to_itself(p: Any) -> Any:
    holding = p.row("positions", lambda one: one.shares - one.reserved >= 2)
    chosen = p.need("symbols", holding.symbol)
    p.edit(chosen, halted=False)
    for offer in p.rows("book_levels", symbol=chosen.symbol):
        p.world.drop(offer)
    order = {"symbol": chosen.symbol, "shares": 1, "account_id": holding.account_id}
    price = chosen.prev_close_cents - chosen.prev_close_cents % chosen.tick_cents
    assert p.call("place_limit_order", **order, side="sell", limit_price_cents=price).executed
    return p.call("place_limit_order", **order, side="buy", limit_price_cents=price)


def alerts(p: Any, count: int, above: int) -> Any:
    chosen = symbol(p)
    outcome = None
    for number in range(count):
        outcome = p.call(
            "set_price_alert", symbol=chosen.symbol, direction="above", price_cents=chosen.last_cents + above + number
        )
    return outcome


# video_meeting --------------------------------------------------------------------------------------------------------


def meeting(p: Any, status: str = "scheduled", host: bool = True, **changes: Any) -> Any:
    """A meeting of the signed-in person, who is in no other one."""
    me = p.need("profile", "me").user_id
    for one in p.rows("meetings", status="live"):
        if me in (one.host_id, *one.cohost_ids, *one.invited_ids):
            p.edit(one, status="ended", ended_at=p.world.now)
    p.edit(p.need("users", me), plan="business")
    found = p.row("meetings", host_id=me, status="scheduled")
    other = p.row("users", lambda one: one.id != me).id
    plain = {"passcode": "", "recording": "host", "waiting_room": True, "host_id": me if host else other}
    invited = (*(one for one in found.invited_ids if one != other), me) if not host else found.invited_ids
    made = p.edit(found, **{**plain, "invited_ids": invited, **changes})
    if status != "scheduled":
        p.ok("start_meeting", meeting_id=made.id)
    if status == "ended":
        p.ok("end_meeting", meeting_id=made.id)
    return p.need("meetings", made.id)


def second_live(p: Any) -> Any:
    meeting(p, "live")
    me = p.need("profile", "me").user_id
    other = p.edit(p.row("meetings", host_id=me, status="scheduled"), passcode="")
    return p.call("start_meeting", meeting_id=other.id)


def admits(p: Any, waiting: bool, capacity: int = 50) -> Any:
    live = meeting(p, "live", capacity=capacity)
    there = {one.user_id for one in p.rows("waiting_room", meeting_id=live.id)}
    user = p.row("users", lambda one: (one.id in there) == waiting and one.id != live.host_id)
    return p.call("admit_participant", meeting_id=live.id, user=user.id)


def records_twice(p: Any) -> Any:
    live = meeting(p, "live")
    p.ok("start_recording", meeting_id=live.id)
    return p.call("start_recording", meeting_id=live.id)


def uninvited(p: Any) -> Any:
    me = p.need("profile", "me").user_id
    other = p.row("meetings", lambda one: me not in (one.host_id, *one.cohost_ids, *one.invited_ids))
    return p.call("get_meeting", meeting_id=other.id)


def schedules(p: Any, starts_at: str = "2026-03-10T10:00:00Z", minutes: int = 30) -> Any:
    p.edit(p.need("users", p.need("profile", "me").user_id), plan="free")
    return p.call("schedule_meeting", topic="Talk", starts_at=starts_at, minutes=minutes, recording="nobody")


BREAKING: dict[str, list[tuple[str, Any]]] = {
    "issue_tracker": [
        ("NOT_PROJECT_MEMBER", in_a_project_of_others),
        ("PROJECT_ARCHIVED", in_an_archive),
        ("ILLEGAL_TRANSITION", lambda p: moves(p, "In Review")),
        ("ASSIGNEE_REQUIRED", lambda p: moves(p, "In Progress", "Selected", assignee="")),
        ("RESOLUTION_REQUIRED", lambda p: moves(p, "Done")),
        ("BLOCKED_BY_OPEN_LINK", resolves_blocked),
        ("LINK_CYCLE", circle),
        ("SPRINT_ACTIVE", starts_second),
        ("SPRINT_CLOSED", lambda p: p.call("start_sprint", sprint=sprint(p, "closed").id)),
        ("EMPTY_SPRINT", lambda p: p.call("start_sprint", sprint=sprint(p, "future").id)),
        ("NOT_PLANNABLE", plans_closed),
        ("FUTURE_TIME", lambda p: p.call("log_work", issue=issue(p).key, minutes=60, started="2026-03-09T09:00:00Z")),
        ("USER_INACTIVE", assigns_former),
    ],
    "payments": [
        ("INVOICE_VOID", sends_void),
        ("INVALID_STATE", lambda p: p.call("void_invoice", invoice_id=captured(p, 100)[0])),
        ("ALREADY_PAID", lambda p: p.call("send_invoice", invoice_id=captured(p)[0])),
        (
            "CAPTURE_EXCEEDS_AUTHORIZATION",
            lambda p: p.call("capture_payment", invoice_id=sent(p), amount_cents=10_001),
        ),
        ("AUTH_WINDOW_EXPIRED", captures_late),
        ("REFUND_EXCEEDS_CAPTURE", lambda p: p.call("refund_payment", payment_id=captured(p)[1], amount_cents=10_001)),
        ("REFUND_WINDOW_CLOSED", refunds_late),
        ("DUPLICATE_IDEMPOTENCY_KEY", one_key_twice),
        ("CARD_DECLINED", declined),
        ("INVALID_URL", lambda p: webhook(p, "not an address")),
        ("ALREADY_EXISTS", webhook_twice),
    ],
    "filesystem": [
        ("EACCES", lambda p: p.call("ls", path="/root")),
        ("EPERM", lambda p: p.call("chmod", path="/etc", mode="777")),
        ("BAD_PASSWORD", guesses),
        ("LOCKED", lambda p: guesses(p, 4)),
        ("ENOENT", lambda p: p.call("cat", path=own_home(p, "not there"))),
        ("EEXIST", lambda p: p.call("mkdir", path=folder(p))),
        ("EISDIR", lambda p: p.call("rm", path=folder(p))),
        ("ENOTEMPTY", lambda p: p.call("rmdir", path=folder(p))),
        ("EBUSY", stands_in_it),
        ("EDQUOT", over_quota),
        ("ELOOP", going_round),
        ("BINARY_FILE", reads_an_archive),
    ],
    "social_media": [
        ("BLOCKED", reads_who_blocks),
        ("PRIVATE_PROFILE", lambda p: p.call("get_post", post_id=others_post(p, private=True).id)),
        ("POST_DELETED", lambda p: p.call("get_post", post_id=others_post(p, deleted=True).id)),
        ("NOT_AUTHOR", lambda p: p.call("delete_post", post_id=others_post(p).id)),
        (
            "COMMENTS_CLOSED",
            lambda p: p.call("comment_on_post", post_id=others_post(p, comments="nobody").id, text="Hello."),
        ),
        ("TOO_LONG", lambda p: p.call("create_post", text="x" * 281)),
        ("EMPTY_TEXT", lambda p: p.call("create_post", text=" ")),
        ("ALREADY_LIKED", likes_twice),
        ("ALREADY_FOLLOWING", follows_twice),
        ("NOT_FOLLOWING", lambda p: p.call("unfollow_user", user=others_post(p).author_id)),
    ],
    "team_chat": [
        ("NOT_IN_CHANNEL", lambda p: posts(p, member=False)),
        ("CHANNEL_ARCHIVED", lambda p: posts(p, archived=True)),
        ("PERMISSION_DENIED", lambda p: posts(p, posting="admins")),
        ("THREAD_LOCKED", in_a_locked_thread),
        ("EMPTY_MESSAGE", lambda p: posts(p, " ")),
        ("MENTION_NOT_DELIVERED", mentions_absent),
        ("ALREADY_REACTED", reacts_twice),
        ("PIN_LIMIT", lambda p: pins(p, same=False)),
        ("ALREADY_PINNED", lambda p: pins(p, same=True)),
        ("NAME_TAKEN", lambda p: p.call("create_channel", name=p.row("channels").name)),
        ("ALREADY_MEMBER", lambda p: invites(p, guest=False)),
        ("GUEST_LIMIT", lambda p: invites(p, guest=True)),
    ],
    "trading": [
        ("MARKET_CLOSED", at_night),
        ("SYMBOL_HALTED", lambda p: limit(p, halted=True)),
        ("TICK_SIZE", lambda p: limit(p, price=1001, tick_cents=5, prev_close_cents=1000)),
        ("PRICE_BAND", lambda p: limit(p, price=1)),
        ("INSUFFICIENT_BUYING_POWER", lambda p: limit(p, shares=100_000)),
        ("INSUFFICIENT_SHARES", lambda p: limit(p, shares=100_000, side="sell")),
        ("SELF_TRADE", sells_to_itself),
        ("NO_LIQUIDITY", lambda p: market(p, 1, keep=0)),
        ("PARTIAL_FILL", lambda p: market(p, 10, keep=1)),
        ("ORDER_NOT_OPEN", lambda p: p.call("cancel_order", order_id=p.row("orders", status="filled").id)),
        ("INVALID_STATE", lambda p: alerts(p, 1, above=-2)),
        ("ALERT_LIMIT", lambda p: alerts(p, 21, above=10)),
    ],
    "video_meeting": [
        ("NOT_HOST", lambda p: p.call("start_meeting", meeting_id=meeting(p, host=False).id)),
        ("BAD_PASSCODE", lambda p: p.call("start_meeting", meeting_id=meeting(p, passcode="123456").id)),
        ("HOST_BUSY", second_live),
        ("NOT_STARTED", lambda p: p.call("end_meeting", meeting_id=meeting(p).id)),
        ("ALREADY_ENDED", lambda p: p.call("start_meeting", meeting_id=meeting(p, "ended").id)),
        ("NOT_IN_WAITING_ROOM", lambda p: admits(p, waiting=False)),
        ("CAPACITY", lambda p: admits(p, waiting=True, capacity=1)),
        (
            "RECORDING_DISABLED",
            lambda p: p.call("start_recording", meeting_id=meeting(p, "live", recording="nobody").id),
        ),
        ("ALREADY_RECORDING", records_twice),
        ("PERMISSION_DENIED", uninvited),
        ("PAST_TIME", lambda p: schedules(p, "2026-03-01T10:00:00Z")),
        ("DURATION_LIMIT", lambda p: schedules(p, minutes=90)),
    ],
}
