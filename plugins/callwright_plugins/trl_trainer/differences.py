"""Where TRL does something else than a recipe says: listed, refused by name, or let pass by the user."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from attrs import field, frozen

from callwright.errors import UsageError
from callwright.options import WrongOption


@frozen
class Difference:
    """A key of the recipe that is followed in another way than by the trainer ``local``.

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

    def __str__(self) -> str:
        """The difference as a line of text."""
        return f"{self.key}: {self.given!r} in place of {self.wanted!r}; {self.why}"


def foreign(differences: Iterable[Difference]) -> list[UsageError]:
    """A mistake for each key that cannot be followed at all."""
    return [
        WrongOption(f"{one.key} = {one.wanted!r}: {one.why}", tuple(one.key.split(".")))
        for one in differences
        if one.refused
    ]


def refuse_inexact(differences: Iterable[Difference], allowed: Collection[str]) -> None:
    """Raises :class:`callwright.UsageError` naming all that is not as the recipe says, but for the ``allowed`` keys."""
    left = [one for one in differences if one.key not in allowed]
    if left:
        lines = "\n".join(f"  {one}" for one in left)
        keys = ",".join(dict.fromkeys(one.key for one in left))
        raise UsageError(
            f"strict: TRL does not do exactly what the recipe says (--strict-except {keys} lets it pass)\n{lines}"
        )
