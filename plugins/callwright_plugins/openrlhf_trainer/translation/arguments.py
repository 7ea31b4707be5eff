"""Typed arguments of OpenRLHF's command line, and what of a recipe they do not say exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import evolve, field, frozen

Value = str | int | float


@frozen
class Argument:
    """A flag with its values; none for a switch."""

    flag: str
    values: tuple[Value, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The flag and its values as a process is given them."""
        return (self.flag, *map(str, self.values))


def argument(flag: str, *values: Value) -> Argument:
    """A flag with its values."""
    return Argument(flag, values)


@frozen
class Difference:
    """A key of the recipe that OpenRLHF does something else for than it says, or nothing at all.

    ``refused``: training by such a recipe would be training of something else, so it does not start.
    """

    key: str
    wanted: Any
    given: Any
    why: str
    refused: bool = field(default=False, kw_only=True)

    def to_json(self) -> dict[str, Any]:
        """The difference as it is printed."""
        return {"key": self.key, "wanted": self.wanted, "given": self.given, "why": self.why}


@frozen
class Translation:
    """Arguments that stand for a recipe or a part of it, what they only come close to, and what they leave out."""

    arguments: tuple[Argument, ...] = ()
    approximated: tuple[Difference, ...] = ()
    unsupported: tuple[Difference, ...] = ()

    def __add__(self, other: Translation) -> Translation:
        """Both, one after the other."""
        return Translation(
            self.arguments + other.arguments,
            self.approximated + other.approximated,
            self.unsupported + other.unsupported,
        )

    @property
    def argv(self) -> list[str]:
        """The words of the command line."""
        return [word for one in self.arguments for word in one.words]

    @property
    def exact(self) -> bool:
        """Whether every key of the recipe is followed to the letter."""
        return not self.approximated and not self.unsupported

    def extended(self, words: Sequence[str]) -> Translation:
        """With further words of the command line at the end, where they win."""
        return evolve(self, arguments=(*self.arguments, *(Argument(word) for word in words)))


def translation(
    *arguments: Argument, approximated: Iterable[Difference] = (), unsupported: Iterable[Difference] = ()
) -> Translation:
    """A translation of these parts."""
    return Translation(tuple(arguments), tuple(approximated), tuple(unsupported))
