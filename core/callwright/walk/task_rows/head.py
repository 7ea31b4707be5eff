"""What a file of tasks says of itself: the version of the format, its environments as they were, and its limits.

The head is the first line of a file of JSON lines, and metadata of a Parquet file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import asdict, field, frozen

from callwright.errors import DataError, UsageError
from callwright.walk.limits import TurnLimits
from callwright.walk.task_rows.schema import MARK, VERSION
from callwright.walk.task_rows.stated import Fingerprint, Stated


def _limits(limits: TurnLimits) -> dict[str, Any]:
    return {name: value for name, value in asdict(limits).items() if value is not None}


@frozen
class Head:
    """``limits`` are those of the episodes of its tasks, where it states any; ``about`` is what its writer tells."""

    environments: Mapping[Stated, Fingerprint]
    limits: TurnLimits | None = None
    about: Mapping[str, Any] = field(factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON."""
        listed = [
            {"name": one.name, **({} if one.options == "{}" else {"options": one.to_json()["options"]}), **it.to_json()}
            for one, it in self.environments.items()
        ]
        limits = {} if self.limits is None else {"limits": _limits(self.limits)}
        return {MARK: VERSION, "environments": listed, **limits, **({"about": dict(self.about)} if self.about else {})}

    @classmethod
    def from_json(cls, value: Any) -> Head:
        """Raises :class:`callwright.errors.DataError` for anything else, and for another version of the format."""
        if not is_head(value):
            raise DataError(f'it has no head: its first line must be {{"{MARK}": {VERSION}, "environments": …}}')
        if value[MARK] != VERSION:
            raise DataError(
                f"it is of version {value[MARK]!r:.20} of the format, and this Callwright reads version {VERSION}"
            )
        listed, limits, about = value.get("environments"), value.get("limits"), value.get("about", {})
        if not isinstance(listed, list) or not isinstance(about, Mapping):
            raise DataError("its head has no list of 'environments', or an 'about' that is no object")
        found = {}
        for one in listed:
            if not isinstance(one, Mapping):
                raise DataError(f"its head lists {one!r:.80} among its environments")
            named = {key: one[key] for key in ("name", "options") if key in one}
            found[Stated.from_json(named)] = Fingerprint.from_json(one)
        try:
            held = None if limits is None else TurnLimits(**limits)
        except (TypeError, UsageError) as error:
            raise DataError(f"the limits in its head are none: {error}") from error
        return cls(found, held, dict(about))


def is_head(value: Any) -> bool:
    """Whether a value is a head, of whatever version."""
    return isinstance(value, Mapping) and MARK in value
