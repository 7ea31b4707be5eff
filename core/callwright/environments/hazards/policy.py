"""What is stated of hazards: kinds of faults with their rates, limits of calls in a time, and what bounds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

from attrs import evolve, field, fields_dict, frozen

from callwright.errors import DataError

#: What can go wrong with a call that fits its schema. The first three are failures, the others spoil what is read.
FaultKind: TypeAlias = Literal["unavailable", "timeout", "lost_reply", "dropped_fields", "truncated_page", "stale_read"]
#: The codes that their outcomes have.
CODES: Final[Mapping[str, str]] = {
    "unavailable": "UNAVAILABLE",
    "timeout": "TIMED_OUT",
    "lost_reply": "TIMED_OUT",
    "dropped_fields": "FIELDS_DROPPED",
    "truncated_page": "PAGE_TRUNCATED",
    "stale_read": "STALE_READ",
    "rate_limit": "RATE_LIMITED",
}
#: In a limit: each tool by itself.
EACH: Final = "*"
#: Behind the name of a part: all of its tools.
OF_A_PART: Final = ".*"
_MOST_SECONDS: Final = 86_400
_MOST_CALLS: Final = 1_000_000
S = TypeVar("S")


def _names(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@frozen
class Fault:
    """A kind of fault, and how often it befalls a call that fits its schema.

    - ``unavailable``: the call is not made (``UNAVAILABLE``); the same one works later.
    - ``timeout``: the call is not made, and takes ``seconds`` where time moves (``TIMED_OUT``).
    - ``lost_reply``: the call is made and its answer lost; a model reads the same as of ``timeout``.
    - ``dropped_fields``: a field is missing from what a read-only tool returns, never an id (``FIELDS_DROPPED``).
    - ``truncated_page``: half of a page arrives (``PAGE_TRUNCATED``).
    - ``stale_read``: a read-only tool answers as before the last change (``STALE_READ``).

    ``rate`` is a probability for each call, ``tools`` are the names of those that it befalls, all if there are none;
    in an environment of several ``email.*`` are those of the part ``email``.
    Spoiled results are ``partial`` and say so; ``silent`` ones look whole. Raises
    :class:`callwright.errors.DataError` for what is none of this.
    """

    kind: FaultKind
    rate: float = 0.1
    tools: tuple[str, ...] = field(default=(), converter=_names)
    seconds: int = 30
    silent: bool = False

    def __attrs_post_init__(self) -> None:
        if self.kind not in get_args(FaultKind):
            raise DataError(f"a fault is one of {', '.join(get_args(FaultKind))}, not {self.kind!r:.80}")
        if isinstance(self.rate, bool) or not isinstance(self.rate, int | float) or not 0 <= self.rate <= 1:
            raise DataError(f"the rate of a fault is a probability from 0 to 1, not {self.rate!r:.80}")
        if type(self.tools) is not tuple or not all(isinstance(name, str) and name for name in self.tools):
            raise DataError(f"the tools of a fault are a list of names, not {self.tools!r:.80}")
        if type(self.seconds) is not int or not 0 <= self.seconds <= _MOST_SECONDS:
            raise DataError(
                f"the seconds of a fault must be whole ones from 0 to {_MOST_SECONDS}, not {self.seconds!r:.80}"
            )
        if type(self.silent) is not bool:
            raise DataError(f"silent is true or false, not {self.silent!r:.80}")

    def befalls(self, tool: str) -> bool:
        """Whether it can befall calls of a tool."""
        return not self.tools or tool in self.tools


@frozen
class RateLimit:
    """At most ``calls`` calls in any ``seconds`` that pass; where time stands still, in a turn of the model.

    ``tool`` is a name, ``""`` for all tools of the environment together, ``"*"`` for each by itself; in an environment
    of several ``"email.*"`` for all of the part ``email`` together. Calls that are refused do not count. Raises
    :class:`callwright.errors.DataError` for numbers that are not whole or not above 0.
    """

    calls: int
    seconds: int = 60
    tool: str = ""

    def __attrs_post_init__(self) -> None:
        for name, most in (("calls", _MOST_CALLS), ("seconds", _MOST_SECONDS)):
            value = getattr(self, name)
            if type(value) is not int or not 0 < value <= most:
                raise DataError(f"the {name} of a limit must be a whole number from 1 to {most}, not {value!r:.80}")
        if not isinstance(self.tool, str):
            raise DataError(f"the tool of a limit is a name, '' or '*', not {self.tool!r:.80}")

    def group(self, tool: str) -> str | None:
        """What a call of a tool counts for: the tool, ``""`` for all of them, or ``None`` if it does not count."""
        if self.tool == EACH:
            return tool
        return self.tool if self.tool in ("", tool) else None


@frozen
class Hazards:
    """Faults and limits that hold in a session, in the order in which they are looked at.

    What is drawn hangs on ``seed``, the seed of the world, the tool, and how often it was called: the third call of a
    tool has the same luck in every session of a world, whatever else was called. At most ``in_a_row`` calls of one tool
    are hit in succession, so that calling again helps; 0 is no bound, and tasks may then not be solvable.

    ``Hazards()`` is none at all. Raises :class:`callwright.errors.DataError` for what is none of this.
    """

    faults: tuple[Fault, ...] = field(default=(), converter=_names)
    limits: tuple[RateLimit, ...] = field(default=(), converter=_names)
    seed: int = 0
    in_a_row: int = 2

    def __attrs_post_init__(self) -> None:
        for name, kind in (("faults", Fault), ("limits", RateLimit)):
            value = getattr(self, name)
            if type(value) is not tuple or not all(isinstance(one, kind) for one in value):
                raise DataError(f"the {name} of hazards are a list of {kind.__name__}, not {value!r:.80}")
        if type(self.seed) is not int:
            raise DataError(f"the seed of hazards must be a whole number, not {self.seed!r:.80}")
        if type(self.in_a_row) is not int or self.in_a_row < 0:
            raise DataError(f"in_a_row must be a whole number from 0 on, not {self.in_a_row!r:.80}")

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.faults or self.limits)

    def hit(self, world_seed: int, tool: str, number: int) -> Fault | None:
        """The fault that befalls the call of a tool with this number, counted from 0, of a world with this seed."""
        for place, fault in enumerate(self.faults):
            if fault.befalls(tool) and self.draw(world_seed, tool, number, place).random() < fault.rate:
                return fault
        return None

    def draw(self, world_seed: int, tool: str, number: int, what: object) -> Random:
        """What is drawn for one call, apart for each ``what``."""
        return Random(f"{self.seed}/{world_seed}/{tool}/{number}/{what}")

    def under(self, names: Callable[[str], str | None], part: str = "") -> Hazards:
        """Those of a part whose tools have other names there: ``names`` gives them, ``None`` for no tool of the part.

        ``part`` is its name: :data:`OF_A_PART` behind it stands for all of its tools. Limits of all tools together, or
        of each, hold in every part.
        """
        whole = part + OF_A_PART
        faults = []
        for fault in self.faults:
            tools = tuple(there for name in fault.tools if (there := names(name)) is not None)
            if whole in fault.tools:
                tools = ()
            elif fault.tools and not tools:
                continue
            faults.append(evolve(fault, tools=tools))
        limits = []
        for limit in self.limits:
            there = limit.tool if limit.tool in ("", EACH) else "" if limit.tool == whole else names(limit.tool)
            if there is not None:
                limits.append(evolve(limit, tool=there))
        return evolve(self, faults=tuple(faults), limits=tuple(limits))

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON: what :func:`read_hazards` reads."""
        faults = [
            {"kind": one.kind, "rate": one.rate, "tools": [*one.tools], "seconds": one.seconds, "silent": one.silent}
            for one in self.faults
        ]
        limits = [{"calls": one.calls, "seconds": one.seconds, "tool": one.tool} for one in self.limits]
        return {"faults": faults, "limits": limits, "seed": self.seed, "in_a_row": self.in_a_row}


def read_hazards(stated: Any) -> Hazards:
    """The hazards that a file or an option states: an object with the fields of :class:`Hazards`, faults and limits as
    objects, or a text.

    The text is ``off`` for none, else ``unavailable=0.1,timeout=0.05,limit=20/60,seed=1``: rates of faults, calls in
    seconds, and the numbers of :class:`Hazards`; ``email.unavailable=0.2`` is of the part ``email`` alone. Raises
    :class:`callwright.errors.DataError` for anything else.
    """
    if isinstance(stated, Hazards):
        return stated
    if isinstance(stated, str):
        return Hazards() if stated == "off" else _written(stated)
    given = dict(_object(stated, "hazards", Hazards))
    for name, kind in (("faults", Fault), ("limits", RateLimit)):
        listed = given.get(name, [])
        if not isinstance(listed, list | tuple):
            raise DataError(f"the {name} of hazards are a list, not {listed!r:.80}")
        given[name] = [one if isinstance(one, kind) else _made(kind, one, f"one of the {name}") for one in listed]
    return Hazards(**given)


def _written(text: str) -> Hazards:
    found: dict[str, Any] = {"faults": [], "limits": []}
    for part in text.split(","):
        name, sign, value = (one.strip() for one in part.partition("="))
        try:
            if not sign:
                raise ValueError
            part, _, what = name.rpartition(".")
            if what == "limit":
                calls, per, seconds = value.partition("/")
                of = part + OF_A_PART if part else ""
                found["limits"].append(RateLimit(int(calls), int(seconds) if per else 60, of))
            elif name in ("seed", "in_a_row"):
                found[name] = int(value)
            else:
                of_part = (part + OF_A_PART,) if part else ()
                found["faults"].append(Fault(what, float(value), of_part))  # type: ignore[arg-type]  # it says which
        except ValueError:
            raise DataError(
                f"{part[:80]!r} does not say what calls meet; write 'off' or 'unavailable=0.1,timeout=0.05,limit=20/60'"
            ) from None
    return Hazards(**found)


def _made(kind: type[S], stated: Any, what: str) -> S:
    given = _object(stated, what, kind)
    needed = "kind" if kind is Fault else "calls"
    if needed not in given:
        raise DataError(f"{what} has no {needed!r}: {stated!r:.80}")
    return kind(**given)


def _object(stated: Any, what: str, kind: type[Any]) -> Mapping[str, Any]:
    if not isinstance(stated, Mapping):
        raise DataError(f"{what} must be an object, not {stated!r:.80}")
    known = fields_dict(kind)
    for name in stated:
        if name not in known:
            raise DataError(f"{what} have no {name!r:.80}; there are {', '.join(known)}")
    return stated
