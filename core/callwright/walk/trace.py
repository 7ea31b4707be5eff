"""Traces: what executing a program came to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from callwright.environments.protocol import Outcome
from callwright.language.program import Returns


@frozen
class Step:
    """One executed call: its id, the arguments after references were resolved, the outcome and the state after it."""

    call: int
    tool: str
    arguments: Mapping[str, Any] = field(repr=False)
    outcome: Outcome
    state: str = field(default="", repr=False)


@frozen(slots=False)
class Trace:
    """Every step, and the final answer: the last value (``returns="one"``) or all of them.

    ``state`` is the session's digest before the first call.
    """

    steps: tuple[Step, ...] = ()
    returns: Returns = "one"
    state: str = field(default="", repr=False)

    @property
    def executed(self) -> bool:
        """Whether every call executed. True, vacuously, for no calls."""
        return all(step.outcome.executed for step in self.steps)

    @property
    def failures(self) -> tuple[Step, ...]:
        """The steps that did not execute."""
        return tuple(step for step in self.steps if not step.outcome.executed)

    @property
    def infrastructure(self) -> Step | None:
        """The first step at which the machinery failed, which masks the sample."""
        return next((step for step in self.steps if step.outcome.kind == "infrastructure_error"), None)

    @property
    def masked(self) -> str | None:
        """How the machinery failed, in words; ``None`` if it did not."""
        step = self.infrastructure
        return f"call {step.call} {step.tool}: {step.outcome.code}: {step.outcome.message}" if step else None

    @property
    def returned(self) -> tuple[Any, ...]:
        """The values that the program hands to its user."""
        if not self.steps:
            return ()
        return tuple(step.outcome.value for step in (self.steps if self.returns == "all" else self.steps[-1:]))
