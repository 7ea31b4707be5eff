"""The gates in their order, and what a task came to at them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from attrs import frozen

from callwright.errors import CallwrightError, InfrastructureFailure
from callwright.plugins import Registry, default_registry
from callwright.training.synthesis.units import Rejected
from callwright.walk.tasks import Task
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint
from callwright_plugins.synthesis.gates.brittleness import NotBrittle
from callwright_plugins.synthesis.gates.case import Case
from callwright_plugins.synthesis.gates.naming import Unambiguous
from callwright_plugins.synthesis.gates.provenance import Provenance
from callwright_plugins.synthesis.gates.replay import Replay
from callwright_plugins.synthesis.gates.soundness import Sound

#: The fact of a task that holds its blueprint as JSON.
BLUEPRINT: Final = "blueprint"


class Gate(Protocol):
    """Something that every task has to pass. ``name`` is the stage under which it rejects."""

    @property
    def name(self) -> str:
        """The name."""

    def __call__(self, case: Case) -> Rejected | None:
        """Why the task does not pass; ``None`` if it does. What shows it is JSON."""


#: The gates that look at one task, in their order: later ones rely on what earlier ones have found.
GATES: Final[tuple[Gate, ...]] = (Replay(), Sound(), NotBrittle(), Provenance(), Unambiguous())


@frozen
class Gated:
    """What a task came to: the gates that it passed, in order, and why the next one rejected it (``None``: it passed
    all of them).
    """

    passed: tuple[str, ...]
    rejected: Rejected | None = None


def gate(
    task: Task,
    *,
    blueprint: Blueprint | None = None,
    registry: Registry | None = None,
    gates: Sequence[Gate] = GATES,
) -> Gated:
    """Hold a task against the gates, up to the first that rejects it. Without ``blueprint`` that of its facts counts.

    Raises :class:`callwright.InfrastructureFailure` where the machinery fails. A task that cannot be read or opened is
    rejected by the gate that found out.
    """
    passed: list[str] = []
    name = gates[0].name if gates else "replay"
    try:
        if blueprint is None and task.facts.get(BLUEPRINT) is not None:
            blueprint = Blueprint.from_json(task.facts[BLUEPRINT])
        case = Case(task, blueprint, registry or default_registry())
        for one in gates:
            name = one.name
            rejected = one(case)
            if rejected is not None:
                return Gated(tuple(passed), rejected)
            passed.append(name)
    except InfrastructureFailure:
        raise
    except CallwrightError as error:
        return Gated(tuple(passed), Rejected(name, "the task cannot be tried", {"error": str(error)[:400]}))
    return Gated(tuple(passed))
