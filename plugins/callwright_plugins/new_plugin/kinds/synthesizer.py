"""The synthesizer ``zebra``: questions that one call of a read-only tool answers, in any environment.

Everything that is drawn over several units is drawn in ``plan``. ``make`` hangs on its unit and the materials alone, so
that every executor makes the same tasks, and a synthesis that was killed goes on.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import callwright as cw
from callwright.training import Accepted, Made, Materials, Rejected, Unit

#: What is asked for where a parameter takes any text. Put here what your environment knows.
WORDS = ("apple", "book", "comb", "tea", "Ann")


class Zebra:
    """A unit is a call and a world. What does not execute there is rejected, and counted by its reason."""

    name = "zebra"

    def plan(self, materials: Materials) -> Sequence[Unit]:
        """As many units as tasks are wanted; their indices count from 0."""
        rng = random.Random(f"zebra/{materials.seed}")
        tools = [one for one in materials.environment.tools.values() if one.read_only and not one.hidden]
        units = []
        for place in range(materials.count if tools else 0):
            tool = tools[place % len(tools)]
            known = tool.parameters.get("properties", {})
            arguments = {name: drawn(known[name], rng) for name in tool.parameters.get("required", ())}
            payload = {"tool": tool.name, "arguments": arguments}
            units.append(Unit(f"{materials.environment.name}-{place}", place, rng.randrange(1000), payload))
        return units

    def make(self, unit: Unit, materials: Materials) -> Accepted | Rejected:
        """The task of a unit, with the answer that the live environment gives."""
        environment, tool, arguments = materials.environment, unit.payload["tool"], unit.payload["arguments"]
        session = environment.open("", unit.seed)
        try:
            outcome = session.call(tool, dict(arguments))
        finally:
            session.close()
        if outcome.kind != "ok":
            return Rejected("execution", outcome.code or outcome.kind, {"tool": tool, "said": outcome.message})
        said = ", ".join(f"{name}: {value}" for name, value in arguments.items())
        task = cw.Task(
            id=unit.id,
            query=f"Please look this up: {environment.tools[tool].description} {said}".strip(),
            tools={name: spec for name, spec in environment.tools.items() if not spec.hidden},
            answer=cw.Answer((outcome.value,)),
            environment=environment,
            seed=unit.seed,
            depth=1,
            program=cw.Program((cw.Call(0, tool, arguments),)),
        )
        return Accepted(materials.row(task), {"query": task.query, "value": outcome.value})

    def compare(self, made: Sequence[Made]) -> Sequence[Rejected | None]:
        """Of equal questions with equal answers the first one stays."""
        seen: list[object] = []
        verdicts: list[Rejected | None] = []
        for one in made:
            known = one.accepted.facts in seen
            verdicts.append(Rejected("duplicates", "the same question and answer") if known else None)
            seen.append(one.accepted.facts)
        return verdicts


def drawn(schema: Mapping[str, Any], rng: random.Random) -> Any:
    """A value that a parameter may take."""
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return rng.randint(1, 5)
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "array":
        return []
    return {} if kind == "object" else rng.choice(WORDS)
