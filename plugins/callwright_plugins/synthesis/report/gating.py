"""Gating: what the gates say of a task, a line each, for people to read."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING

from attrs import frozen

from callwright.errors import CallwrightError

if TYPE_CHECKING:
    from callwright.plugins import Registry
    from callwright.walk.tasks import Task


@frozen
class Told:
    """What a gate said: its name, whether the task passed, and why not."""

    gate: str
    passed: bool
    reason: str = ""


def told_by_gates(task: Task, registry: Registry) -> list[Told]:
    """The gates up to the first that the task does not pass."""
    try:
        found = import_module("callwright_plugins.synthesis.gates.gate").gate(task, registry=registry)
    except ModuleNotFoundError as error:
        return [Told("gates", False, f"are not installed: {error.name}")]
    except CallwrightError as error:
        return [Told("machinery", False, str(error))]
    told = [Told(name, True) for name in found.passed]
    if found.rejected is not None:
        evidence = json.dumps(found.rejected.evidence, ensure_ascii=False, default=str)
        told.append(Told(found.rejected.stage, False, f"{found.rejected.reason}: {evidence[:600]}"))
    return told
