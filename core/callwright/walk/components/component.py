"""Reward components: each scores one property of an attempt, at once or after it has waited."""

from __future__ import annotations

from abc import ABC, abstractmethod
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, ClassVar

from callwright.walk.components.scores import Evidence, Score

if TYPE_CHECKING:
    from callwright.machines.questions import Asked, Question
    from callwright.walk.attempt import Attempt


class RewardComponent(ABC):
    """One verifiable property of an attempt.

    Subclasses set ``name``, the range ``low`` … ``high`` and, if it fits one, the ``stage`` (of :data:`STAGES`) that
    the property belongs to. ``score`` is pure: same attempt, same score. It must not raise on any completion.
    """

    name: ClassVar[str] = ""
    stage: ClassVar[str] = ""
    low: float = 0.0
    high: float = 1.0

    @abstractmethod
    def score(self, attempt: Attempt) -> Score:
        """The score of an attempt, with evidence for every point that is lost."""

    @property
    def waits(self) -> bool:
        """Whether scores are waited for: ``score`` is a coroutine function, or takes a batch (:mod:`.waiting`)."""
        return iscoroutinefunction(self.score)

    def waiting(self) -> Asked:
        """How it is asked, if it waits."""
        from callwright.machines.questions import Asked

        limits = {key: getattr(self, key) for key in ("concurrency", "time_limit") if hasattr(self, key)}
        return Asked(self, self.score, **limits)

    def prepare(self, attempt: Attempt) -> None:
        """Compute what ``score`` will read of an attempt, before it is asked, if it waits.

        The event loop is everybody's: what parses and executes there keeps all others waiting. So the attempt is
        executed before, by default.
        """
        _ = attempt.whole_trace


def score_of(component: RewardComponent, attempt: Attempt) -> Score:
    """The score that a component gives an attempt, whether it waits or not. Raises what stands in place of it."""
    if not component.waits:
        return component.score(attempt)
    from callwright.machines import event_loop

    component.prepare(attempt)
    (found,) = event_loop.run(component.waiting().answers([attempt]))
    if isinstance(found, Exception):
        raise found
    score: Score = found
    return score


def question_of(component: RewardComponent, asked: Asked, attempt: Attempt) -> Question:
    """A component that waits is asked about an attempt."""
    from callwright.machines.questions import Question

    component.prepare(attempt)
    return Question(asked, attempt)


_CLOSED: dict[tuple[float, float, str], Score] = {}


def closed(component: RewardComponent, blocking: str) -> Score:
    """The score of a component behind a gate that ``blocking`` has shut: one, whatever the attempt."""
    key = (component.low, component.high, blocking)
    score = _CLOSED.get(key)
    if score is None:
        evidence = Evidence("gate_closed", f"not looked at, because {blocking} is not at its maximum")
        score = _CLOSED[key] = Score(component.low, component.low, component.high, (evidence,))
    return score
