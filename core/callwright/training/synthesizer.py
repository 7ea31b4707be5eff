"""Synthesizers: where new tasks come from. Their words come from teachers (:mod:`.teaching.teacher`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from callwright.environments.protocol import Environment
from callwright.training.teaching.teacher import Teacher
from callwright.walk.tasks import Task


@runtime_checkable
class Synthesizer(Protocol):
    """Makes tasks out of an environment's live state."""

    @property
    def name(self) -> str:
        """The registered name."""

    def synthesize(self, environment: Environment, teacher: Teacher, *, count: int, seed: int = 0) -> Iterator[Task]:
        """Up to ``count`` accepted tasks. Rejections are logged with their reason."""
