"""One briefing for several environments: all roles, one person, one time, then the rules of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callwright.capability import has
from callwright.environments.briefing.policy import LEFT_OUT, Policy, moment_text, rule_lines
from callwright.environments.capabilities import Charges, HasPolicy, HasWorld, IsFitted, NamesPerson
from callwright.environments.protocol import Briefs, declares

if TYPE_CHECKING:
    from callwright.environments.composed.session import ComposedSession


def written_together(session: ComposedSession) -> str:
    """What a model is told of a composed session as it is now.

    Who is signed in to all parts is said once; what a part says of that person beyond it is said with the part.
    """
    environment = session.environment
    shared = session.people.me if session.people is not None else None
    people = "" if shared is None else str(shared)
    briefing = [part for part in environment.parts if declares(part, Briefs) and part.briefs]  # type: ignore[attr-defined]
    roles: list[str] = []
    persons: dict[str, list[str]] = {}
    blocks: list[str] = []
    for part in briefing:
        (inner,) = session.opened([part.name])
        policy = part.policy if has(part, HasPolicy) else None
        person = part.person if has(part, NamesPerson) else None
        if not (isinstance(policy, Policy) or callable(person)) or not has(inner, HasWorld):
            blocks.append(f"Of {part.name}:\n{inner.briefing()}")
            continue
        if callable(person):
            persons.setdefault(person(inner.world), []).append(part.name)
        if isinstance(policy, Policy):
            roles.append(f"{part.name}: {policy.role}")
            if policy.rules:
                blocks.append(
                    "\n".join(
                        [f"Rules of {part.name}, each with the code that breaking it comes to:", *rule_lines(policy)]
                    )
                )
    lines = roles
    if people:
        lines.append(f"Signed in: {people}.")
    if len(persons) == 1 and not people:
        lines.append(f"Signed in: {next(iter(persons))}.")
    elif persons:
        lines += [f"Signed in to {', '.join(names)}: {person}." for person, names in persons.items()]
    lines.append(f"Now: {moment_text(session.now)}.")
    if any(fit.compact for part in briefing if (fit := part.fit if has(part, IsFitted) else None) is not None):
        lines.append(LEFT_OUT)
    lines += _of_money(session)
    return "\n\n".join(["\n".join(lines), *blocks])


def _of_money(session: ComposedSession) -> list[str]:
    """Which parts post what they charge to which, and how it is said where that does not pay."""
    environment = session.environment
    if environment.bank_number is None:
        return []
    bank = environment.parts[environment.bank_number]
    codes: dict[str, list[str]] = {}
    for part in environment.parts:
        if part is not bank and has(part, Charges):
            codes.setdefault(part.charges.declined, []).append(part.name)
    return [
        f"Money of {', '.join(names)} goes through the account of the card in {bank.name}"
        + (f"; what it cannot pay is declined [{code}]." if code else ".")
        for code, names in codes.items()
    ]
