"""Frameworks and log formats by name: adapters to the agents of other stacks, and readers of what they recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from callwright.language.messages import Message
from callwright.plugins import Registry, default_registry
from callwright.tools.spec import FunctionTool, ToolSpec

if TYPE_CHECKING:
    from callwright.episodes.logs.log import Log


@runtime_checkable
class Framework(Protocol):
    """An agent framework: our tools as its own, its conversations as messages, its tools as ours."""

    @property
    def name(self) -> str:
        """The registered name."""

    def tools(self, log: Log) -> Any:
        """The tools that the log's task offers, as the framework takes them. Every call of one comes to ``log``.

        Their names, descriptions and schemas are those of the specs, and what the model reads of an outcome is
        :func:`callwright.environments.tell`; a failed call is marked as one where the framework can.
        """

    def messages(self, run: Any) -> Sequence[Message]:
        """The conversation of a finished run, whole: of whatever the framework returns from one.

        Raises :class:`callwright.errors.DataError` for what it cannot read.
        """

    def function_tools(self, tools: Iterable[Any]) -> Sequence[FunctionTool]:
        """Tools of the framework as ours, for :func:`callwright.environment`."""


@runtime_checkable
class LogFormat(Protocol):
    """A format of recorded conversations."""

    @property
    def name(self) -> str:
        """The registered name."""

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether a file is of this format, by its name and its first bytes (up to 64 KiB, decompressed)."""

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """The logs of a file in its order, of tasks with these tools beside those that the file itself states.

        What a file does not say is not guessed: such an outcome is ``unknown``. Raises
        :class:`callwright.errors.DataError`, with the line, for what cannot be read.
        """


def framework_of(name: str, registry: Registry | None = None, options: Mapping[str, Any] | None = None) -> Framework:
    """The adapter of a framework. Raises :class:`callwright.errors.UnknownName` for one that is not registered."""
    made: Framework = (registry or default_registry()).create("framework", name, **(options or {}))
    return made
