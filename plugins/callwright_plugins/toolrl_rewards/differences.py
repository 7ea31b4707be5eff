"""Why calls differ from the expected ones, in words. Computed only when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from callwright.language.long_numbers import json_text
from callwright.language.shortening import shortened
from callwright.walk.reward import Evidence
from callwright_plugins.toolrl_rewards.assignment import assign


class RawCall(NamedTuple):
    """A call as these rewards compare it."""

    name: str
    parameters: Mapping[str, Any]


def explain_calls(
    mine: Sequence[RawCall], theirs: Sequence[RawCall], *, equal: Callable[[Any, Any], bool]
) -> tuple[Evidence, ...]:
    """What each true call misses, and which predicted calls answer to none, under the assignment that agrees most.

    A predicted call's number is its position, from 0.
    """
    found: list[Evidence] = []
    weights = [[_agreement(one, other, equal) for other in theirs] for one in mine]
    chosen = assign(weights)
    for call, column, row in zip(mine, chosen, weights, strict=True):
        if column < 0 or row[column] == 0.0:
            reason = f"no call does what {call.name}({_shown(dict(call.parameters))}) does"
            found.append(Evidence("missing_call", reason, expected=call.name))
            continue
        found.extend(_pair(call, theirs[column], column, equal))
    taken = {column for column, row in zip(chosen, weights, strict=True) if column >= 0 and row[column] > 0.0}
    for index, call in enumerate(theirs):
        if index not in taken:
            reason = f"call {index} {call.name} answers to no expected call"
            found.append(Evidence("extra_call", reason, index, found=call.name[:80]))
    return tuple(found)


def _agreement(mine: RawCall, theirs: RawCall, equal: Callable[[Any, Any], bool]) -> float:
    same = sum(
        key in theirs.parameters and equal(value, theirs.parameters[key]) for key, value in mine.parameters.items()
    )
    keys = len(mine.parameters.keys() & theirs.parameters.keys())
    return 1000.0 * (mine.name == theirs.name) + same + 0.01 * keys


def _pair(mine: RawCall, theirs: RawCall, call: int, equal: Callable[[Any, Any], bool]) -> list[Evidence]:
    found = []
    if mine.name != theirs.name:
        reason = f"call {call} calls {theirs.name[:80]}, expected {mine.name}"
        found.append(Evidence("wrong_name", reason, call, "", mine.name, theirs.name[:80]))
    for key, value in mine.parameters.items():
        if key not in theirs.parameters:
            reason = f"call {call} {mine.name} lacks {key}"
            found.append(Evidence("missing_parameter", reason, call, key, _shown(value), "nothing"))
        elif not equal(value, theirs.parameters[key]):
            given = _shown(theirs.parameters[key])
            reason = f"call {call} {mine.name}.{key} is {given}, expected {_shown(value)}"
            found.append(Evidence("wrong_value", reason, call, key, _shown(value), given))
    for key in theirs.parameters:
        if key not in mine.parameters:
            reason = f"call {call} {mine.name} has the parameter {key[:80]}, which is not expected"
            found.append(Evidence("extra_parameter", reason, call, key[:80], "no such parameter", "one"))
    return found


def _shown(value: Any) -> str:
    try:
        text = json_text(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return shortened(text, 80)
