"""Names: what people call the things that ids stand for, as discovery tools show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import field, frozen

from callwright_plugins.synthesis.language.values.hints import snake

_LABELS: Final = ("name", "title", "display_name", "label", "nickname", "subject", "topic", "full_name")


def _frozen_names(given: Mapping[str, str]) -> dict[str, str]:
    return {str(key): str(name) for key, name in given.items()}


@frozen
class Names:
    """Ids and the names that they are shown with: ``of`` maps an id to its name.

    ``kinds`` says of an id what it stands for (``account``), where that is known.
    """

    of: Mapping[str, str] = field(factory=dict, converter=_frozen_names)
    kinds: Mapping[str, str] = field(factory=dict, converter=_frozen_names)
    by_name: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, eq=False)

    @by_name.default
    def _by_name(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for key, name in self.of.items():
            found.setdefault(name, []).append(key)
        return {name: tuple(keys) for name, keys in found.items()}

    def ids(self, name: str, kind: str = "") -> tuple[str, ...]:
        """The ids that a name may stand for; where some are known to be of this kind, only those."""
        keys = self.by_name.get(name, ())
        fitting = tuple(key for key in keys if kind and self._fits(key, kind))
        return fitting or keys

    def _fits(self, key: str, kind: str) -> bool:
        own = self.kinds.get(key, "")
        return bool(own) and (own == kind or kind.endswith(f"_{own}"))

    def merged(self, other: Names) -> Names:
        """Both; where they differ, the other one is right."""
        return Names({**self.of, **other.of}, {**self.kinds, **other.kinds})


def names_in(results: Iterable[Any]) -> Names:
    """The names in results of discovery tools: objects with an id (``account_id``, ``id``) and a label.

    The id is the first member that ends so; the label is a member such as ``name`` or ``title``, or first and last
    name together. An id that is shown with two names keeps the one that it was shown with last.
    """
    of: dict[str, str] = {}
    kinds: dict[str, str] = {}
    waiting = list(results)[::-1]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            key = next(
                (k for k, v in value.items() if (k == "id" or snake(k).endswith("_id")) and isinstance(v, str) and v),
                "",
            )
            label = _label(value)
            if key and label and label != value[key]:
                of[value[key]] = label
                if key != "id":
                    kinds[value[key]] = snake(key).removesuffix("_id")
            waiting.extend(list(value.values())[::-1])
        elif isinstance(value, list | tuple):
            waiting.extend(value[::-1])
    return Names(of, kinds)


def _label(value: Mapping[str, Any]) -> str:
    for name in _LABELS:
        found = value.get(name)
        if isinstance(found, str) and found.strip():
            return found
    first, last = (value.get(f"{half}_name", value.get(half)) for half in ("first", "last"))
    return f"{first} {last}" if isinstance(first, str) and isinstance(last, str) else ""
