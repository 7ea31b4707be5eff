"""ToolRL's section 3.3 over abstract programs, in exact fractions, with every assignment tried.

R_correct = 6 R_max / S_max - 3 with S_max = 1 + |G| + sum |keys(G_j)|; R_format is 1 if "all required fields appear and
are in the correct order". Ours: 0/0 is 1; only G empty: r_name 0; a reference is the position of the call it refers to.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

from specification_oracle import AbstractCall, Facts, Ref, in_order, same

Written = tuple[str, dict[str, Any]]


def total(facts: Facts, truth: Facts, *, guarded: bool = False) -> Fraction:
    """The reward of a completion of json, xml or direct; one that is no program has no fields and no calls (ours)."""
    if not (facts.envelope and facts.tree) or len({call.id for call in facts.calls}) != len(facts.calls):
        return Fraction(-3)
    if any(call.arguments is None for call in facts.calls):
        return Fraction(-3)
    fields = int(bool(facts.calls) == bool(truth.calls))  # <tool_call> or <response>
    return fields + 6 * share(written(truth), written(facts), guarded) - 3


def written(facts: Facts) -> list[Written]:
    """Names and parameters; references as the position of what they refer to, those that dangle as what they are."""
    calls = in_order(facts)
    position = {call.id: at for at, call in enumerate(calls)}
    return [(call.tool, _plain(dict(call.arguments or {}), position, call, calls)) for call in calls]


def _plain(value: Any, position: dict[int, int], call: AbstractCall, calls: Sequence[AbstractCall]) -> Any:
    if isinstance(value, Ref):
        to = position.get(value.call)
        right = to is not None and (value.says is None or value.says == calls[to].tool)
        return {"refers to": [to if right else f"no call: {value.call}", *map(str, value.path)]}
    if isinstance(value, dict):
        return {name: _plain(inner, position, call, calls) for name, inner in value.items()}
    return [_plain(item, position, call, calls) for item in value] if isinstance(value, list) else value


def share(truth: list[Written], predicted: list[Written], guarded: bool = False) -> Fraction:
    """R_max / S_max."""
    n_g, n_p = {name for name, _ in truth}, {name for name, _ in predicted}
    r_name = Fraction(len(n_g & n_p), len(n_g | n_p)) if n_g | n_p else Fraction(1)
    padded = [*predicted, *[None] * len(truth)]
    r_rest = max(
        (
            sum((pair(g, padded[at]) for g, at in zip(truth, order, strict=True)), Fraction(0))
            for order in permutations(range(len(padded)), len(truth))
        ),
        default=Fraction(0),
    )
    of_calls = Fraction(len(truth) + sum(len(parameters) for _, parameters in truth))
    if guarded and truth:  # ours: |G| right calls among more are worth less
        of_calls *= max(Fraction(1), Fraction(len(predicted), len(truth)))
    return (r_name + r_rest) / (1 + of_calls)


def pair(g: Written, p: Written | None) -> Fraction:
    """r_param + r_value of a true call and the predicted one that it is given; names need not agree, as printed."""
    if p is None:
        return Fraction(0)
    mine, theirs = g[1], p[1]
    keys = mine.keys() | theirs.keys()
    r_param = Fraction(len(mine.keys() & theirs.keys()), len(keys)) if keys else Fraction(1)
    return r_param + sum(name in theirs and same(mine[name], theirs[name]) for name in mine)
