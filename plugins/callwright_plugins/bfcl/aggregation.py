"""The official tables: figures of each version, made of the shares of its categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: Category -> a value for every task: the share of its samples that are right.
Shares = Mapping[str, Sequence[float]]
_TURNS = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context")
_LIVE = ("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple")


def _share(found: Shares, category: str) -> float | None:
    values = found.get(category)
    return sum(values) / len(values) if values else None


def _mean(values: Sequence[float | None]) -> float | None:
    """The unweighted mean; ``None`` where a part is missing."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None


def _pooled(found: Shares, categories: Sequence[str]) -> float | None:
    """Over all tasks of the categories together; ``None`` where one is missing."""
    if any(not found.get(one) for one in categories):
        return None
    values = [value for one in categories for value in found[one]]
    return sum(values) / len(values)


def table(version: str, found: Shares) -> dict[str, float | None]:
    """The figures of ``v3`` or ``v4``; ``None`` for each of which a part was not measured.

    v3: non-live has irrelevance as its fifth part, live all six categories by their sizes, and overall is the mean of
    non-live, live and multi-turn. v4: non-live and live are calls alone, and overall weighs non-live, live and
    irrelevance by 10% each, multi-turn by 30% and the agentic part, which is not measured here, by 40%.
    """
    v3 = version == "v3"
    languages = ("simple", "java", "javascript") if v3 else ("simple_python", "simple_java", "simple_javascript")
    simple = _mean([_share(found, one) for one in languages])
    calls = [simple, *(_share(found, one) for one in ("multiple", "parallel", "parallel_multiple"))]
    irrelevance = _share(found, "irrelevance")
    non_live = _mean([*calls, irrelevance] if v3 else calls)
    live = _pooled(found, (*_LIVE, "live_irrelevance", "live_relevance") if v3 else _LIVE)
    multi_turn = _mean([_share(found, one) for one in _TURNS])
    figures = {
        "overall": _mean([non_live, live, multi_turn]) if v3 else None,
        "non-live": non_live,
        "non-live AST": _mean(calls),
        "non-live simple": simple,
        "non-live exec (ToolRL; in no aggregate)": None,
        "live": live,
        "live AST": _pooled(found, _LIVE),
        "multi-turn": multi_turn,
        "non-live irrelevance": irrelevance,
        "irrelevance": _mean([irrelevance, _share(found, "live_irrelevance")]),
        "relevance": _share(found, "live_relevance"),
    }
    return figures if v3 else {**figures, "agentic": None}
