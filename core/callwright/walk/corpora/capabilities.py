"""What corpora may offer beyond :class:`callwright.walk.tasks.Corpus`: examples, compact prompts, fingerprints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Task


@runtime_checkable
class DrawsShots(Protocol):
    """A corpus with worked examples for prompts: ``callwright evaluate --shots N`` asks for them."""

    def shots(self, task: Task, count: int) -> Sequence[Task]:
        """``count`` solved tasks for the prompt of a task, never the task itself."""


@runtime_checkable
class WritesPrompts(Protocol):
    """A corpus with prompts of its own for tiny models: ``model.prompt = "compact"`` takes them."""

    def prompt_text(self, task: Task) -> str:
        """The whole prompt of a task, in a few words."""


@runtime_checkable
class HasVocabulary(Protocol):
    """A corpus whose texts are made of known pieces: ``[model.tiny]`` makes a model with a vocabulary of them."""

    def vocabulary(self) -> list[str]:
        """Every piece that a prompt or a program of the corpus is made of."""


@runtime_checkable
class HasFingerprint(Protocol):
    """A corpus that makes its tasks on demand and can say what fixes them: ledgers then look at the first ones only."""

    def fingerprint(self, split: str) -> Mapping[str, Any] | None:
        """JSON that fixes the tasks of a split; ``None`` for a split that it does not know."""


@runtime_checkable
class LimitsTurns(Protocol):
    """A corpus of conversations: its limits hold where a recipe or command states none."""

    @property
    def limits(self) -> TurnLimits:
        """How many turns an attempt may have, and what it may cost."""
