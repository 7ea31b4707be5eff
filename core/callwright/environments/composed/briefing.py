"""One briefing for several environments: all roles, one person, one time, then the rules of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callwright.environments.briefing.policy import Policy, moment_text, rule_lines
from callwright.environments.protocol import Briefs, declares

if TYPE_CHECKING:
    from callwright.environments.composed.session import ComposedSession


def written_together(session: ComposedSession, people: str = "") -> str:
    """What a model is told of a composed session as it is now.

    ``people`` is who is signed in everywhere; what else a part calls that person is said with the part.
    """
    environment = session.environment
    briefing = [part for part in environment.parts if declares(part, Briefs) and part.briefs]  # type: ignore[attr-defined]
    roles: list[str] = []
    persons: dict[str, list[str]] = {}
    blocks: list[str] = []
    for part in briefing:
        (inner,) = session.opened([part.name])
        policy: Any = getattr(part, "policy", None)
        person: Any = getattr(part, "person", None)
        if not (isinstance(policy, Policy) or callable(person)) or not hasattr(inner, "world"):
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
    return "\n\n".join(["\n".join(lines), *blocks])
