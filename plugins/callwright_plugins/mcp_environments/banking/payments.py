"""Tools about payees and payments to come."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import Refused, ToolError, tool
from callwright_plugins.mcp_environments.banking.access import (
    authorised,
    count_wrong,
    need_credential,
    own_account,
    own_payee,
)
from callwright_plugins.mcp_environments.banking.iban import is_iban, is_own, normalised
from callwright_plugins.mcp_environments.banking.ledger import converted, house_account, payee_status, refuse_unusable
from callwright_plugins.mcp_environments.banking.parameters import (
    AccountId,
    Amount,
    Convert,
    Currency,
    Otp,
    PayeeId,
    Text,
    Token,
)
from callwright_plugins.mcp_environments.banking.rows import Customer, Payee, ScheduledPayment
from callwright_plugins.mcp_environments.banking.schedule import note_due, settle
from callwright_plugins.mcp_environments.banking.views import PayeeView, ScheduledView, payee_view, scheduled_view
from callwright_plugins.mcp_environments.times import DAY, iso, parse_time

#: How long a payee that nothing proves waits, and how far ahead payments are scheduled.
COOLING_OFF: Final = DAY
FURTHEST: Final = 3 * 366 * DAY


class RemovedPayee(TypedDict):
    """The payee that is gone."""

    payee_id: str
    removed: bool


@tool
def add_payee(
    world: World,
    /,
    auth_token: Token,
    name: Annotated[str, Field(description="Name of the account's owner, exactly.", min_length=1, max_length=80)],
    iban: Annotated[str, Field(description="Number of the account (IBAN); spaces do not matter.", max_length=44)],
    currency: Annotated[Currency, Field(description="Currency of that account.")] = "EUR",
    otp: Otp = "",
) -> PayeeView:
    """Add somebody whom the customer wants to pay.

    Accounts of this bank under that very name, and payees confirmed with a one-time password, are verified at once;
    others after a day. A name that is not the account's is a partial success: the payee is there but cannot be paid. A
    wrong one-time password is refused (BAD_OTP) and counts towards the lock.
    """
    settle(world)
    customer = authorised(world, auth_token)
    number = normalised(iban)
    if not is_iban(number):
        raise ToolError("INVALID_IBAN", f"{iban[:44]!r} is no account number: its check digits are wrong")
    if any(payee.iban == number for payee in world.find(Payee, customer_id=customer.id)):
        raise ToolError("ALREADY_EXISTS", f"customer {customer.id} already has a payee with the account {number}")
    target = house_account(world, number)
    if target is None and is_own(number):
        raise ToolError("NOT_FOUND", f"this bank has no account {number}")
    if target is not None and target.currency != currency:
        raise ToolError("CURRENCY_MISMATCH", f"the account {number} is in {target.currency}, not {currency}")
    verified_at, matches = world.now + COOLING_OFF, True
    if target is not None:
        owner = world.need(Customer, target.customer_id)
        matches = _plain(owner.name) == _plain(name)
        verified_at = world.now
        if not matches:
            world.warn("NAME_MISMATCH", f"the account {number} is not in the name of {name!r}; it cannot be paid")
    elif otp:
        credential = need_credential(world, customer.id)
        if otp in credential.otps:
            world.update(credential, otps=tuple(one for one in credential.otps if one != otp), failed=0)
            verified_at = world.now
        else:
            count_wrong(world, credential)
            raise Refused("BAD_OTP", f"the one-time password is wrong; without one {name[:80]!r} is verified in a day")
    return payee_view(
        world.put(
            Payee(
                id=world.new_id(Payee),
                customer_id=customer.id,
                name=name.strip(),
                iban=number,
                currency=currency,
                added_at=world.now,
                verified_at=verified_at,
                matches=matches,
            )
        ),
        world.now,
    )


@tool(destructive=True)
def remove_payee(world: World, /, auth_token: Token, payee_id: PayeeId) -> RemovedPayee:
    """Remove a payee of the customer. Scheduled payments to it must be cancelled first."""
    settle(world)
    customer = authorised(world, auth_token)
    payee = own_payee(world, customer, payee_id)
    waiting = world.find(ScheduledPayment, status="pending", payee_id=payee_id)
    if waiting:
        raise ToolError(
            "PAYEE_IN_USE",
            f"payments to {payee_id} are scheduled ({', '.join(one.id for one in waiting[:5])}); cancel them first",
        )
    world.drop(payee)
    return {"payee_id": payee_id, "removed": True}


@tool
def schedule_payment(
    world: World,
    /,
    auth_token: Token,
    from_account_id: AccountId,
    payee_id: PayeeId,
    amount_cents: Amount,
    pay_at: Annotated[
        str, Field(description="When to pay first: a day or a time (ISO 8601, UTC) in the future.", max_length=40)
    ],
    repeat: Annotated[Literal["once", "weekly", "monthly"], Field(description="How often to pay.")] = "once",
    times: Annotated[int, Field(description="How many payments in all; 1 for once.", ge=1, le=120)] = 1,
    description: Text = "",
    convert: Convert = False,
) -> ScheduledView:
    """Let a payee be paid at a later time, once or repeatedly.

    The money must be there, and the payee verified, when the time comes, not now; a payment that cannot be made then
    fails and is not tried again.
    """
    settle(world)
    customer = authorised(world, auth_token)
    account = own_account(world, customer, from_account_id)
    payee = own_payee(world, customer, payee_id)
    refuse_unusable(account)
    if account.kind == "savings":
        raise ToolError("INVALID_STATE", f"the savings account {account.id} pays no payees")
    if payee_status(payee, world.now) == "mismatch":
        raise ToolError("PAYEE_UNVERIFIED", f"the account of payee {payee_id} has another name; it cannot be paid")
    converted(world, amount_cents, account.currency, payee.currency, convert)
    at = parse_time(pay_at)
    if not world.now < at <= world.now + FURTHEST:
        raise ToolError("INVALID_TIME", f"{pay_at!r} is not in the next three years; it is {iso(world.now)}")
    if (repeat == "once") != (times == 1):
        raise ToolError("INVALID_STATE", f"repeat {repeat!r} and times {times} do not go together; once is times 1")
    if at < payee.verified_at:
        world.warn(
            "PAYEE_UNVERIFIED", f"payee {payee_id} is not verified before {iso(payee.verified_at)}; it will fail"
        )
    note_due(world, at)
    return scheduled_view(
        world.put(
            ScheduledPayment(
                id=world.new_id(ScheduledPayment),
                customer_id=customer.id,
                account_id=account.id,
                payee_id=payee_id,
                amount_cents=amount_cents,
                description=description,
                due_at=at,
                repeat=repeat,
                left=times,
                anchor_day=datetime.fromtimestamp(at, UTC).day,
                status="pending",
                convert=convert,
            )
        )
    )


@tool(destructive=True)
def cancel_scheduled_payment(
    world: World,
    /,
    auth_token: Token,
    scheduled_payment_id: Annotated[
        str, Field(description="Id of a scheduled payment, such as S00012; get_account lists them.", max_length=20)
    ],
) -> ScheduledView:
    """Cancel what is left of a scheduled payment of the customer. One that is done, failed or cancelled cannot be."""
    settle(world)
    customer = authorised(world, auth_token)
    one = world.need(
        ScheduledPayment,
        scheduled_payment_id,
        message=f"there is no scheduled payment {scheduled_payment_id!r}; get_account lists those of an account",
    )
    if one.customer_id != customer.id:
        raise ToolError("PERMISSION_DENIED", f"{scheduled_payment_id} is not a payment of customer {customer.id}")
    if one.status != "pending":
        raise ToolError("INVALID_STATE", f"the scheduled payment {scheduled_payment_id} is {one.status} already")
    return scheduled_view(world.update(one, status="cancelled"))


def _plain(name: str) -> str:
    return " ".join(name.casefold().split())


PAYMENTS: Final = (add_payee, remove_payee, schedule_payment, cancel_scheduled_payment)
