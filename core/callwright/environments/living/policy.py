"""Clock policies: how much time passes with a call, with a turn of the user, and where a task jumps ahead."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from attrs import asdict, field, fields_dict, frozen

from callwright.errors import DataError

#: The longest that anything may take: worlds live through what happens on the way. Ten years.
MOST_SECONDS: Final = 315_360_000


def _jumps(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@frozen
class ClockPolicy:
    """How a session's clock moves, in whole seconds.

    A call takes ``call`` seconds, give or take up to ``call_spread``; a user takes ``user_turn`` seconds to answer,
    give or take ``user_turn_spread``. ``jumps`` are seconds that pass beside that with the user's first, second … turn:
    "it is two hours later". What is drawn is drawn from ``seed`` and the time at which it is drawn: sessions that are
    in one state go the same way, whatever led to it.

    A spread is smaller than what it spreads, so that time always moves. Raises :class:`callwright.errors.DataError`
    for numbers that are not whole, negative, or above ten years.
    """

    call: int = 20
    call_spread: int = 0
    user_turn: int = 180
    user_turn_spread: int = 0
    jumps: tuple[int, ...] = field(default=(), converter=_jumps)
    seed: int = 0

    def __attrs_post_init__(self) -> None:
        if type(self.jumps) is not tuple:
            raise DataError(f"a clock's jumps must be a list of seconds, not {self.jumps!r:.80}")
        if type(self.seed) is not int:
            raise DataError(f"a clock's seed must be a whole number, not {self.seed!r:.80}")
        for name in ("call", "call_spread", "user_turn", "user_turn_spread"):
            _check_seconds(name, getattr(self, name))
        for seconds in self.jumps:
            _check_seconds("jumps", seconds)
        for name in ("call", "user_turn"):
            taken, spread = getattr(self, name), getattr(self, f"{name}_spread")
            if spread and spread >= taken:
                raise DataError(f"a clock's {name}_spread ({spread}) must be smaller than its {name} ({taken})")

    def of_call(self, now: int) -> int:
        """The seconds of a call that begins at a time."""
        return self.call + self._drawn("call", now, self.call_spread)

    def of_user_turn(self, now: int, number: int) -> int:
        """The seconds of the user's turn with this number, counted from 0, that begins at a time."""
        jump = self.jumps[number] if number < len(self.jumps) else 0
        return self.user_turn + jump + self._drawn("user_turn", now, self.user_turn_spread)

    def _drawn(self, what: str, now: int, spread: int) -> int:
        return Random(f"{self.seed}/{what}/{now}").randint(-spread, spread) if spread else 0

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON: what :func:`read_policy` reads."""
        return {**asdict(self), "jumps": list(self.jumps)}


def read_policy(stated: Any) -> ClockPolicy | None:
    """The policy that a file or an option states: an object with fields of :class:`ClockPolicy`, or a text.

    The text is ``on`` (or True) for the default one, ``off`` (or False, or None) for a clock that stands still, else
    ``call=20,user_turn=300``. Raises :class:`callwright.errors.DataError` for anything else.
    """
    if stated is None or stated is False or stated == "off":
        return None
    if stated is True or stated == "on":
        return ClockPolicy()
    if isinstance(stated, ClockPolicy):
        return stated
    if isinstance(stated, str):
        stated = dict(_pair(part) for part in stated.split(","))
    if not isinstance(stated, Mapping):
        raise DataError(f"a clock is an object, 'on', 'off' or a text such as 'call=20,user_turn=180': {stated!r:.80}")
    known = fields_dict(ClockPolicy)
    for name in stated:
        if name not in known:
            raise DataError(f"a clock has no {name!r:.80}; it has {', '.join(known)}")
    return ClockPolicy(**stated)


def _pair(part: str) -> tuple[str, Any]:
    name, sign, text = part.partition("=")
    try:
        if not sign:
            raise ValueError
        name = name.strip()
        return name, [int(one) for one in text.split("+")] if name == "jumps" else int(text)
    except ValueError:
        raise DataError(
            f"{part[:80]!r} does not say how a clock moves; write 'on', 'off' or 'call=20,user_turn=180,jumps=0+7200'"
        ) from None


def _check_seconds(name: str, value: Any) -> None:
    if type(value) is not int or not 0 <= value <= MOST_SECONDS:
        raise DataError(f"a clock's {name} must be whole seconds from 0 to {MOST_SECONDS}, not {value!r:.80}")
