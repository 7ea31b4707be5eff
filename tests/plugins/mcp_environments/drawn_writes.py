"""Calls that change something in an environment, drawn with values that its own rows suggest by their names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from callwright.environments.rows import table_of
from callwright.environments.stateful import StatefulEnvironment, StatefulSession
from callwright.testing.arguments import fitting_arguments
from callwright.walk.execution import copy_json

_TEXTS = ("amber", "birch", "cedar", "dune")
_DAYS = ("2026-03-17", "2026-03-18", "2026-03-24", "2026-03-25")
#: Parameters whose values no row suggests.
_GIVEN: dict[str, tuple[Any, ...]] = {
    "currency": ("EUR", "USD"),
    "pay_at": tuple(f"{day}T10:00:00Z" for day in _DAYS),
    "starts_at": tuple(f"{day}T10:00:00Z" for day in _DAYS),
    "new_start": tuple(f"{day}T10:00Z" for day in _DAYS),
    "start": tuple(f"{day}T08:00Z" for day in _DAYS),
    "day": ("", "2026-03-01"),
    "first_day": _DAYS,
    "month": ("", "2026-03"),
    "check_in": _DAYS[:1],
    "check_out": ("2026-03-19", "2026-03-20"),
    "birth_date": ("1990-05-01",),
    "passport_expires": ("2031-05-01",),
    "passport_no": ("X1234567", "Y7654321"),
    "time": ("22:00", "21:30"),
    "until": ("",),
    "time_zone": ("",),
    "url": ("https://example.com/one", "https://example.com/two"),
    "events": (["invoice.sent"], ["invoice.paid"]),
    "lines": (
        [{"description": "paper", "quantity": 2, "unit_price_cents": 500}],
        [{"description": "ink", "quantity": 1, "unit_price_cents": 900}],
    ),
    "amount_cents": (100, 200, 300),
    "path": ("one.txt", "two.txt", "three", "four"),
    "destination": ("five", "six"),
    "archive": ("seven.tar", "eight.tar"),
    "mode": (),
    "color": ("#ff0000", "#00ff00"),
    "celsius": (20.5, 21.0),
    "labels": (["one"], ["two"]),
    "idempotency_key": ("", "k1", "k2"),
    "occurrence_start": ("",),
    "calendar_id": ("",),
    "deal_id": ("",),
    "lead_id": ("",),
    "org_id": ("",),
    "at": ("",),
    "started": ("",),
    "location": ("Arnsberg",),
    "issues": (),
}
_PREFIXES = ("from_", "to_", "new_", "keep_", "merge_", "source_")
_CODES = {"cvv": ("cvv", "card_cvv"), "lock_code": ("code",), "alarm_code": ("code",), "pin": ("pin",)}


@cache
def _suggested(environment: StatefulEnvironment, scenario: str, parameter: str) -> tuple[Any, ...]:
    if parameter in _GIVEN:
        return _GIVEN[parameter]
    stem = parameter.removesuffix("_id").removesuffix("_ids")
    for prefix in _PREFIXES:
        stem = stem.removeprefix(prefix)
    rows = environment.base(scenario, 1)
    found: list[Any] = []
    for kind in environment.kinds:
        table = table_of(kind)
        names = [name for name in table.fields if name in (parameter, *_CODES.get(parameter, ()))]
        if table.name.rstrip("s") in (stem, f"{stem}s", f"flight_{stem}", f"hotel_{stem}") or stem in table.name:
            names += table.key[:1]
        for row in list(rows.rows(kind).values())[-60:]:
            found += [getattr(row, name) for name in names]
            if parameter in ("to", "email", "person", "invitees") and isinstance(getattr(row, "email", None), str):
                found.append(row.email)
    return tuple(dict.fromkeys(value for value in found if isinstance(value, str) and value))


def signed_in(environment: StatefulEnvironment, scenario: str = "typical", seed: int = 1) -> StatefulSession:
    """A session in which a call can succeed: at the bank, with a token."""
    session = environment.open(scenario, seed)
    if environment.name == "banking":
        for customer in session.world.base.rows(environment.kinds[0]).values():
            secret = session.world.base.rows(environment.kinds[1])[customer.id]
            accounts = session.world.find(environment.kinds[3], customer_id=customer.id, status="active")
            if not customer.two_factor and len(accounts) > 1:
                session.call("verify_identity", {"customer_id": customer.id, "pin": secret.pin})
                break
    return session


def _bank(session: StatefulSession, arguments: dict[str, Any], random: Random) -> None:
    kinds = session.environment.kinds
    token = next(iter(session.world.rows(kinds[2])))
    arguments["auth_token"] = token.token
    for name, kind in (("account_id", 3), ("card_id", 4), ("payee_id", 5), ("scheduled_payment_id", 7)):
        owned = [row.id for row in session.world.rows(kinds[kind]) if row.customer_id == token.customer_id]
        for parameter in [parameter for parameter in arguments if parameter.endswith(name)]:
            if owned:
                arguments[parameter] = random.choice(owned)


def drawn(environment: StatefulEnvironment, tool: str, random: Random, session: StatefulSession) -> Any:
    """Arguments for a tool, or ``None``."""
    spec = environment.tools[tool]
    arguments = fitting_arguments(spec, random, _TEXTS)
    for parameter in arguments or ():
        values = _suggested(environment, "typical", parameter)
        if values and parameter in arguments:
            listed = isinstance(arguments[parameter], list) and not isinstance(values[0], list)
            arguments[parameter] = [random.choice(values)] if listed else random.choice(values)
    if not arguments and spec.parameters.get("required"):
        return None
    arguments = arguments or {}
    for start, end in (("start", "end"), ("new_start", "new_end")):
        if start in arguments:
            arguments[end] = arguments[start].replace("08:", "09:").replace("10:", "11:")
    if "auth_token" in arguments:
        _bank(session, arguments, random)
    return arguments if spec.compiled.literal.validator.is_valid(arguments) else None


@cache
def writes(environment: StatefulEnvironment, rounds: int = 60, each: int = 3) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Calls that succeed in a fresh session and change it: up to ``each`` of every tool that were found."""
    random = Random(environment.name)
    first = signed_in(environment)
    return tuple(
        (tool, arguments)
        for tool, spec in environment.tools.items()
        if not spec.read_only
        for arguments in _some(environment, tool, random, first, rounds, each)
    )


def _some(
    environment: StatefulEnvironment, tool: str, random: Random, first: StatefulSession, rounds: int, each: int
) -> Iterator[dict[str, Any]]:
    seen: list[Any] = []
    for _ in range(rounds):
        arguments = drawn(environment, tool, random, first)
        if arguments is None or arguments in seen:
            continue
        session = first.fork()
        if session.call(tool, copy_json(arguments)).executed and session.digest() != first.digest():
            seen.append(arguments)
            yield arguments
            if len(seen) == each:
                return
