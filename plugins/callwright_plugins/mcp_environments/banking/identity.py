"""Tools about who the customer is and what belongs to them: tokens, new accounts, cards."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import Refused, ToolError, tool
from callwright_plugins.mcp_environments.banking.access import (
    ATTEMPTS,
    TOKEN_LIFE,
    attempts_left,
    authorised,
    count_wrong,
    need_credential,
    need_customer,
    refuse_locked,
)
from callwright_plugins.mcp_environments.banking.iban import own_iban
from callwright_plugins.mcp_environments.banking.parameters import Currency, CustomerId, Otp, Token
from callwright_plugins.mcp_environments.banking.rows import Account, AuthToken, Card
from callwright_plugins.mcp_environments.banking.schedule import settle
from callwright_plugins.mcp_environments.banking.views import AccountView, CardView, account_view, card_view
from callwright_plugins.mcp_environments.times import iso, month_of

MOST_ACCOUNTS: Final = 8


class Verification(TypedDict):
    """The secrets were right; the token, and how long it is good."""

    verified: bool
    attempts_left: Annotated[
        int, Field(description="Wrong secrets that may still be given before the customer is locked.")
    ]
    auth_token: str
    expires_at: Annotated[str, Field(description="Until when the token is good (UTC).")]


@tool(latency=2)
def verify_identity(
    world: World,
    /,
    customer_id: CustomerId,
    pin: Annotated[
        str,
        Field(description="The customer's PIN.", pattern=r"^[0-9]{4}$", json_schema_extra={"x-sensitive": True}),
    ],
    otp: Otp = "",
) -> Verification:
    """Check a customer's PIN, and the one-time password of those with two factors, and get a token for 15 minutes.

    Everything that changes something needs the token. Wrong secrets are refused (BAD_PIN, BAD_OTP) and counted: after
    three in a row the customer is locked for a day.
    """
    settle(world)
    customer = need_customer(world, customer_id)
    credential = need_credential(world, customer_id)
    refuse_locked(world, credential)
    if customer.two_factor and not otp:
        raise ToolError("OTP_REQUIRED", f"customer {customer_id} has two factors: give pin and otp")
    if pin != credential.pin or (customer.two_factor and otp not in credential.otps):
        wrong = "BAD_PIN" if pin != credential.pin else "BAD_OTP"
        left = attempts_left(world, count_wrong(world, credential))
        locked = "" if left else ", locked for a day"
        raise Refused(wrong, f"that is wrong; {left} of {ATTEMPTS} attempts left{locked}")
    if customer.two_factor:
        credential = world.update(credential, otps=tuple(one for one in credential.otps if one != otp))
    world.update(credential, failed=0, locked_until=0)
    token = world.put(
        AuthToken(
            token=f"tok_{world.random().getrandbits(96):024x}",
            customer_id=customer_id,
            issued_at=world.now,
            expires_at=world.now + TOKEN_LIFE,
        )
    )
    return {
        "verified": True,
        "attempts_left": ATTEMPTS,
        "auth_token": token.token,
        "expires_at": iso(token.expires_at),
    }


@tool(irreversible=True)
def open_account(
    world: World,
    /,
    auth_token: Token,
    kind: Annotated[Literal["checking", "savings", "business"], Field(description="Kind of account.")],
    currency: Annotated[Currency, Field(description="Its currency.")],
    nickname: Annotated[str, Field(description="What the customer calls it.", max_length=40)] = "",
) -> AccountView:
    """Open an empty account for the customer of the token; a customer has at most eight that are not closed."""
    settle(world)
    customer = authorised(world, auth_token)
    accounts = world.find(Account, customer_id=customer.id)
    if sum(1 for account in accounts if account.status != "closed") >= MOST_ACCOUNTS:
        raise ToolError(
            "ACCOUNT_LIMIT", f"customer {customer.id} has {MOST_ACCOUNTS} accounts already, the most there are"
        )
    if nickname and any(account.nickname == nickname and account.status != "closed" for account in accounts):
        raise ToolError("ALREADY_EXISTS", f"customer {customer.id} already has an account called {nickname!r}")
    account_id = world.new_id(Account)
    return account_view(
        world.put(
            Account(
                id=account_id,
                customer_id=customer.id,
                kind=kind,
                currency=currency,
                nickname=nickname or f"{kind} {currency}",
                iban=own_iban(int(account_id[1:])),
                balance_cents=0,
                held_cents=0,
                overdraft_cents=0,
                daily_limit_cents=500_000 if kind == "business" else 200_000,
                status="active",
                opened_at=world.now,
            )
        )
    )


@tool(idempotent=True, latency=1, irreversible=True)
def set_card_status(
    world: World,
    /,
    auth_token: Token,
    card_id: Annotated[str, Field(description="Id of a card, such as K00012; get_account lists them.", max_length=20)],
    status: Annotated[
        Literal["active", "frozen", "lost", "stolen"],
        Field(description="frozen can be taken back, lost and stolen cannot."),
    ],
) -> CardView:
    """Freeze, unfreeze, or report a card as lost or stolen. Lost, stolen and expired cards stay unusable."""
    settle(world)
    customer = authorised(world, auth_token)
    card = world.need(Card, card_id, message=f"there is no card {card_id!r}; get_account lists those of an account")
    if card.customer_id != customer.id:
        raise ToolError("PERMISSION_DENIED", f"the card {card_id} is not one of customer {customer.id}")
    if card.status == status:
        return card_view(card)
    if card.status in ("lost", "stolen"):
        raise ToolError("INVALID_STATE", f"the card {card_id} was reported {card.status}, which is final")
    if status == "active" and card.expires < month_of(world.now):
        raise ToolError("INVALID_STATE", f"the card {card_id} expired at the end of {card.expires}")
    return card_view(world.update(card, status=status))


IDENTITY: Final = (verify_identity, open_account, set_card_status)
