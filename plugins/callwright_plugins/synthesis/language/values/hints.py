"""What the grammar knows of a place for a value: its types, its closed set, and whether it names something."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import field, frozen

from callwright.tools.reading import json_types

#: Names of parameters whose values are secrets.
SENSITIVE: Final = re.compile(
    r"(?:^|_)(?:password|passwd|passphrase|passcode|pin|pin_code|otp|cvv|cvc|secret|token|api_?key|credentials?|"
    r"security_code|access_code|one_time_code|verification_code)(?:$|_)",
    re.IGNORECASE,
)
_ID_TEXT: Final = re.compile(r"\b(?:id|ids|key)\b", re.IGNORECASE)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ROLES: Final = ("from_", "to_", "new_", "keep_", "merge_", "source_", "target_", "accepted_", "ignore_", "decision_")


@frozen
class Hint:
    """A place for a value. ``types`` are JSON's, ``None`` for any; ``kind`` is what an id names, empty for no id."""

    types: frozenset[str] | None = None
    options: tuple[str, ...] = ()
    cents: bool = False
    kind: str = ""
    items: Hint | None = field(default=None, repr=False)
    members: Mapping[str, Hint] = field(factory=dict, repr=False)

    def takes(self, *types: str) -> bool:
        """Whether a value of one of these types fits."""
        return self.types is None or bool(self.types & set(types))


ANYTHING: Final = Hint()


def hint_of(name: str, schema: Any) -> Hint:
    """The hint of a parameter, or of a member of an object, by its name and schema."""
    found = json_types(schema)
    branches = list(_branches(schema))
    options = [one for branch in branches for one in branch.get("enum", [branch["const"]] if "const" in branch else [])]
    items = next((branch["items"] for branch in branches if isinstance(branch.get("items"), Mapping)), None)
    stated = (branch["properties"] for branch in branches if isinstance(branch.get("properties"), Mapping))
    members: Mapping[str, Any] = next(stated, {})
    about = next((str(branch["description"]) for branch in branches if branch.get("description")), "")
    return Hint(
        types=found,
        options=tuple(one for one in options if isinstance(one, str)),
        cents=name.endswith("_cents") and found is not None and "integer" in found and not found & {"number", "string"},
        kind=_kind(name, about),
        items=hint_of(_singular(name), items) if items is not None else None,
        members={key: hint_of(key, inner) for key, inner in members.items()},
    )


def _branches(schema: Any) -> Iterable[Mapping[str, Any]]:
    if isinstance(schema, Mapping):
        yield schema
        for key in ("anyOf", "oneOf"):
            for inner in schema.get(key, ()):
                yield from _branches(inner)


def _singular(name: str) -> str:
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def snake(name: str) -> str:
    """A name in small letters with underscores: ``note_id`` for ``noteId``."""
    return _CAMEL.sub("_", name).lower()


def _kind(name: str, about: str) -> str:
    stem = name = snake(name)
    for ending in ("_ids", "_id", "_key", "_number"):
        if name.endswith(ending):
            return thing(name.removesuffix(ending))
    return thing(stem) if _ID_TEXT.search(about) and not about.lower().startswith("part of") else ""


def thing(stem: str) -> str:
    """What an id stands for: ``account`` for ``from_account``."""
    for role in _ROLES:
        stem = stem.removeprefix(role)
    return stem or "thing"
