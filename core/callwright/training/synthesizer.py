"""Synthesizers and teachers: where new tasks come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from callwright.environments.protocol import Environment
from callwright.language.messages import Message
from callwright.walk.tasks import Task


@runtime_checkable
class Teacher(Protocol):
    """The language model, or the script, that plays user and assistant during synthesis."""

    @property
    def name(self) -> str:
        """The registered name."""

    def reply(self, messages: Sequence[Message], *, seed: int = 0) -> str:
        """The next message, reproducibly for a seed where the model allows it."""


@runtime_checkable
class Synthesizer(Protocol):
    """Makes tasks out of an environment's live state."""

    @property
    def name(self) -> str:
        """The registered name."""

    def synthesize(self, environment: Environment, teacher: Teacher, *, count: int, seed: int = 0) -> Iterator[Task]:
        """Up to ``count`` accepted tasks. Rejections are logged with their reason."""
