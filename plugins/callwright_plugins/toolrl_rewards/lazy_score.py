"""A score that finds its evidence when somebody asks for it, so that training does not pay for what nobody reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from callwright.walk.reward import Evidence, Score

# The slots of a frozen class, which are set once, here.
_slots: Mapping[str, Any] = vars(Score)
_set_value, _set_low = _slots["value"].__set__, _slots["low"].__set__
_set_high, _set_masked = _slots["high"].__set__, _slots["masked"].__set__
_set_evidence = _slots["evidence"].__set__


class LazyScore(Score):
    """A :class:`callwright.Score` whose ``evidence`` is ``why(*given)``, computed at the first look and kept."""

    __slots__ = ("_given", "_why")

    def __init__(
        self, value: float, low: float, high: float, why: Callable[..., tuple[Evidence, ...]], *given: Any
    ) -> None:
        _set_value(self, value)
        _set_low(self, low)
        _set_high(self, high)
        _set_masked(self, None)
        _set_why(self, why)
        _set_given(self, given)

    def __getattr__(self, name: str) -> Any:
        """Reached only while the slot ``evidence`` is empty."""
        if name != "evidence":
            raise AttributeError(name)
        evidence = self._why(*self._given)
        _set_evidence(self, evidence)
        return evidence


_own_slots: Mapping[str, Any] = vars(LazyScore)
_set_why, _set_given = _own_slots["_why"].__set__, _own_slots["_given"].__set__
