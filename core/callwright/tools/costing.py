"""What a call costs: money, time, and that nothing takes it back; as tools declare it, and in words for a model.

TIER assumes that calls are "cheap, repeatable, and safe" and names what is not so outside of it (arXiv 2605.16790,
section 7). Tools say it here; nothing is told to a model unless :func:`telling_costs` makes the spec that it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from callwright.errors import UsageError

if TYPE_CHECKING:
    from callwright.tools.spec import ToolSpec

#: The longest that one call may take: a day, in seconds.
MOST_LATENCY: Final = 86_400
_MINUTE: Final = 60


def check_costs(spec: ToolSpec) -> None:
    """Raises :class:`callwright.UsageError` for a cost or a latency that is none, and for a read that is irreversible.

    ``cost`` is whole cents from 0 on, or a name; ``latency`` whole seconds up to a day.
    """
    cost, latency = spec.cost, spec.latency
    if not (type(cost) is int and cost >= 0) and not (type(cost) is str and cost):
        raise UsageError(
            f"tool {spec.name!r}: cost must be whole cents from 0 on, or members of the result that tell them, not "
            f"{cost!r:.60}"
        )
    if type(latency) is not int or not 0 <= latency <= MOST_LATENCY:
        raise UsageError(
            f"tool {spec.name!r}: latency must be whole seconds from 0 to {MOST_LATENCY}, not {latency!r:.60}"
        )
    if spec.irreversible and spec.read_only:
        raise UsageError(f"tool {spec.name!r} is declared read_only, so there is nothing irreversible in it")


def cost_of(spec: ToolSpec, value: Any) -> int:
    """What a call cost that returned ``value``, in cents: 0 where the result does not tell it in whole cents."""
    if type(spec.cost) is int:
        return spec.cost
    return sum(_told(path.strip(), value) for path in str(spec.cost).split("+"))


def _told(path: str, value: Any) -> int:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if type(value) is int and value > 0 else 0


def in_words(spec: ToolSpec) -> str:
    """What a call of a tool costs, in a sentence or two; an empty text if it is free, immediate and can be undone."""
    said = []
    if type(spec.cost) is str:
        said.append(f"Costs {spec.cost} of the result.")
    elif spec.cost:
        said.append(f"Costs {spec.cost} cents a call.")
    if spec.latency:
        said.append(f"Takes {_duration(spec.latency)}.")
    if spec.irreversible:
        said.append("Cannot be undone.")
    return " ".join(said)


def listed_costs(specs: Iterable[ToolSpec]) -> tuple[str, ...]:
    """What calls of these tools cost, in a line each for money, time, and what cannot be undone; none if all is free.

    For a briefing, where a model plans: what one tool costs stands with the tool (:func:`telling_costs`).
    """
    tools = list(specs)
    paid = [
        f"{spec.name} ({spec.cost} of the result)" if type(spec.cost) is str else f"{spec.name} ({spec.cost} cents)"
        for spec in tools
        if spec.cost
    ]
    slow = [f"{spec.name} ({_duration(spec.latency)})" for spec in tools if spec.latency]
    final = [spec.name for spec in tools if spec.irreversible]
    kinds = (("Calls that cost money", paid), ("Calls that take time", slow), ("Calls that cannot be undone", final))
    return tuple(f"{what}: {', '.join(names)}." for what, names in kinds if names)


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, _MINUTE)
    return " ".join(f"{number} {unit}" for number, unit in ((minutes, "min"), (rest, "s")) if number)


def telling_costs(spec: ToolSpec) -> ToolSpec:
    """The spec with the words of :func:`in_words` behind its description; itself if there are none."""
    words = in_words(spec)
    return evolve(spec, description=f"{spec.description}\n\n{words}" if spec.description else words) if words else spec
