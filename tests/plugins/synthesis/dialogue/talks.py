"""Blueprints made by hand, for a depot whose rules are known."""

from __future__ import annotations

from typing import Any

from tests.plugins.synthesis.depot import depot

import callwright as cw
from callwright.episodes.conversation import Conversation
from callwright.language.program import Call, Reference
from callwright.training.synthesis.synthesizer import Materials
from callwright.walk.sampling import SamplingRequest
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Failing, Stage
from callwright_plugins.synthesis.grounded import LIMITS
from callwright_plugins.synthesis.language.plan import Plan

DEPOT = depot()
MATERIALS = Materials(DEPOT)
OFFERED = tuple(DEPOT.tools)


def pin() -> str:
    session: Any = DEPOT.open("", 0)
    found: str = session.knowledge("me")["pin"]
    return found


def plan(*calls: tuple[str, dict[str, Any]]) -> Plan:
    return Plan(tuple(Call(at, tool, arguments) for at, (tool, arguments) in enumerate(calls)))


def stage(*calls: tuple[str, dict[str, Any]], asked: Plan | None = None, **more: Any) -> Stage:
    made = plan(*calls)
    return Stage(asked or made, made.calls, **more)


def blueprint(*stages: Stage, kind: Any = "task", **more: Any) -> Blueprint:
    return Blueprint("depot", "", 0, kind, stages, more.pop("offered", OFFERED), **more)


def fetching(**more: Any) -> Stage:
    """Look, sign in, fetch: of which the user asks for the last two."""
    calls = (
        ("list_parcels", {}),
        ("sign_in", {"pin": pin()}),
        (
            "fetch_parcel",
            {"token": Reference(1, ("token",)), "parcel_id": Reference(0, ("items", 0, "parcel_id"))},
        ),
    )
    asked = plan(
        ("list_parcels", {}),
        ("sign_in", {"pin": pin()}),
        ("fetch_parcel", {"token": Reference(1, ("token",)), "parcel_id": Reference(0, ("items", 0, "parcel_id"))}),
    )
    return stage(*calls, asked=asked, **more)


def recovering() -> Stage:
    """Driving out fails, since the gate is closed, and is done again when it is open."""
    return stage(
        ("drive_out", {}),
        ("open_gate", {}),
        ("drive_out", {}),
        asked=plan(("drive_out", {})),
        after=((), (), (1,)),
        failing=(Failing(0, "GATE_CLOSED", "tool"),),
    )


def played(task: cw.Task, ir: str) -> Conversation:
    """The episode that the reference makes of a task."""
    registry, parser = cw.default_registry(), cw.parser(ir)
    gold = registry.create("sampler", "gold", ir=ir)
    conditions = cw.Conditions(limits=LIMITS)
    found = Conversation(task, parser, [cw.Message.user(task.query)], conditions)
    while not found.over:
        request = SamplingRequest(found.messages, task, turns=found.turns, limits=LIMITS)
        found.accept(gold.sample([request])[0][0])
    return found
