"""Units of synthesis: what is to be made, and what became of it. All of it is JSON, so that it can wait on a disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import Attribute, field, frozen

from callwright.errors import ComponentError, DataError
from callwright.walk.task_rows.plain_json import survives_json


def _name(instance: Any, attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, str) or not value.strip():
        what = type(instance).__name__.lower()
        raise ComponentError(f"the {attribute.name!r} of {what} is a text that says something, not {value!r:.80}")


def _number(instance: Any, attribute: Attribute[Any], value: Any) -> None:
    if type(value) is not int or (attribute.name == "index" and value < 0):
        raise ComponentError(f"the {attribute.name!r} of a unit is a whole number, not {value!r:.80}")


def _json(instance: Any, attribute: Attribute[Any], value: Any) -> None:
    try:
        same = survives_json(value)
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same or not isinstance(value, Mapping):
        raise ComponentError(
            f"the {attribute.name!r} of {type(instance).__name__} is an object of JSON, without tuples and NaN, not "
            f"{value!r:.80}"
        )


@frozen
class Unit:
    """Something to be made, by itself: it hangs on nothing but what is in it and on the plan's materials.

    ``id`` is its own among the units of its environment, ``index`` its place in the plan (from 0), ``seed`` what it
    draws by. ``payload`` is JSON of the synthesizer's own. Raises :class:`callwright.errors.ComponentError` for others.
    """

    id: str = field(validator=_name)
    index: int = field(validator=_number)
    seed: int = field(validator=_number)
    payload: Mapping[str, Any] = field(factory=dict, validator=_json)

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {"id": self.id, "index": self.index, "seed": self.seed, "payload": dict(self.payload)}

    @classmethod
    def from_json(cls, value: Any) -> Unit:
        """What :meth:`to_json` wrote. Raises :class:`callwright.errors.DataError`."""
        try:
            return cls(value["id"], value["index"], value["seed"], value["payload"])
        except (KeyError, TypeError, ComponentError) as error:
            raise DataError(f"no unit of synthesis: {value!r:.80}") from error


@frozen
class Accepted:
    """A task: its row (:mod:`callwright.walk.task_rows.rows`), and what else is known of it, for stages that compare.

    Raises :class:`callwright.errors.ComponentError` for what is no JSON.
    """

    row: Mapping[str, Any] = field(validator=_json)
    facts: Mapping[str, Any] = field(factory=dict, validator=_json)

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {"row": dict(self.row), "facts": dict(self.facts)}


@frozen
class Rejected:
    """No task: the stage that said so, its reason in a few words (they are counted), and what shows it.

    Raises :class:`callwright.errors.ComponentError` for a stage or a reason that says nothing.
    """

    stage: str = field(validator=_name)
    reason: str = field(validator=_name)
    evidence: Mapping[str, Any] = field(factory=dict, validator=_json)

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {"stage": self.stage, "reason": self.reason, "evidence": dict(self.evidence)}


@frozen
class Made:
    """A unit that was accepted."""

    unit: Unit
    accepted: Accepted
    #: The number of its environment among those of the recipe.
    environment: int = 0
