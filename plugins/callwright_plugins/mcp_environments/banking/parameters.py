"""Parameters that several tools take."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

Token = Annotated[
    str,
    Field(
        description="Token of verify_identity, good for 15 minutes.",
        max_length=60,
        json_schema_extra={"x-sensitive": True},
    ),
]
Otp = Annotated[
    str,
    Field(
        description="One-time password of the customer, six digits; each works once.",
        pattern=r"^([0-9]{6})?$",
        json_schema_extra={"x-sensitive": True},
    ),
]
CustomerId = Annotated[str, Field(description="Id of a customer, such as C00012.", max_length=20)]
AccountId = Annotated[str, Field(description="Id of an account, such as A00012.", max_length=20)]
PayeeId = Annotated[str, Field(description="Id of a payee, such as P00012.", max_length=20)]
Amount = Annotated[int, Field(description="Amount in cents of the paying account's currency.", ge=1, le=10**11)]
Text = Annotated[str, Field(description="What the money is for; shown on both statements.", max_length=140)]
Convert = Annotated[bool, Field(description="Exchange the money if the other side has another currency.")]
Currency = Literal["EUR", "USD", "GBP", "CHF"]
