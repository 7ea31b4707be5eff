"""What rows of all three data sets come to: tools, and who said, called or returned what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen


class BadRow(Exception):
    """A row that cannot be used. Its text is one of few, so that rows are counted by it."""


@frozen
class Parameter:
    """A parameter as the data declares it; ``default`` means nothing unless ``has_default``.

    ``declared`` is everything that its declaration says, as it stands there.
    """

    name: str
    type: str
    description: str
    required: bool
    has_default: bool = False
    default: Any = None
    declared: Mapping[str, Any] = field(factory=dict, repr=False, eq=False)


@frozen
class Tool:
    """A tool of a row's list."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]


@frozen
class Called:
    """A call: name and arguments."""

    tool: str
    arguments: Mapping[str, Any]


@frozen
class Turn:
    """What the user or the assistant said, what the assistant called, or what the tools returned."""

    by: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[Called, ...] = ()


@frozen
class Conversation:
    """A row: the tools that are offered, and its turns in order."""

    tools: tuple[Tool, ...]
    turns: tuple[Turn, ...]
