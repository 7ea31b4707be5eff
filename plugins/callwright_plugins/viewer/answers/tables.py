"""Tables: rows that a filter lets through, sorted, in pages or in groups; and what there is to filter by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from callwright.errors import UsageError
from callwright_plugins.viewer.index.building import COLUMNS, TEXTS, Index
from callwright_plugins.viewer.index.filtering import FLAGS, Filter, column_of, read_filter

#: Rows of a page at most.
MOST: Final = 500
_SHOWN: Final = tuple(one for one in (*COLUMNS, *TEXTS) if one not in ("start", "size", "raw"))
_FACETS: Final = ("answered", "failure", "stage", "depth", "structure", "branch")
_BARS: Final = 24
#: Values that a facet lists.
_VALUES: Final = 12
Marked = Mapping[str, Sequence[int]]


def page(
    index: Index, text: str = "", sort: str = "n", offset: int = 0, limit: int = 100, marked: Marked | None = None
) -> dict[str, Any]:
    """Rows ``offset`` to ``offset + limit`` of those that the filter lets through. ``-total`` sorts the other way."""
    components = index.components
    chosen = read_filter(text, components, marked)
    order = _order(sort, components)
    total = index.matching(chosen.where, chosen.values)
    found = index.rows(
        f"SELECT n FROM rollouts WHERE {chosen.where} ORDER BY {order} LIMIT ? OFFSET ?",
        (*chosen.values, max(0, min(limit, MOST)), max(0, offset)),
    )
    return {"total": total, "offset": offset, "rows": briefs(index, [row["n"] for row in found])}


def briefs(index: Index, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """The rows with these numbers as tables show them, in this order."""
    components = index.components
    listed = ", ".join(str(int(n)) for n in numbers)
    rows = index.rows(f"SELECT * FROM rollouts JOIN texts USING (n) WHERE n IN ({listed})")
    made = {row["n"]: _brief(row, components) for row in rows}
    return [made[n] for n in numbers if n in made]


def _brief(row: Any, components: Mapping[str, str]) -> dict[str, Any]:
    made = {name: row[name] for name in _SHOWN}
    made["group"] = made.pop("grp")
    made["tools"] = (made["tools"] or "").strip("\n").splitlines()
    for name in FLAGS:
        made[name] = None if made[name] is None else bool(made[name])
    made["scores"] = {name: row[column] for name, column in components.items() if row[column] is not None}
    return made


def grouped(
    index: Index,
    by: str,
    text: str = "",
    sort: str = "-count",
    offset: int = 0,
    limit: int = 100,
    marked: Marked | None = None,
) -> dict[str, Any]:
    """The rows in groups that say the same under ``by``, with the mean and the spread of their totals."""
    components = index.components
    chosen = read_filter(text, components, marked)
    column = column_of(by, components)
    orders = {
        "count": "count",
        "total": "mean",
        "spread": "spread",
        "answered": "answered",
        "name": "name",
    }
    plain = sort.removeprefix("-")
    if plain not in orders:
        raise UsageError(f"groups are sorted by {', '.join(orders)}, not by {plain!r:.40}")
    order = f"{orders[plain]} {'DESC' if sort.startswith('-') else 'ASC'}, name"
    found = index.rows(
        f"SELECT {column} AS name, count(*) AS count, avg(total) AS mean, min(total) AS low, max(total) AS high, "
        "avg(total * total) - avg(total) * avg(total) AS spread, avg(answered) AS answered, min(n) AS first "
        f"FROM rollouts WHERE {chosen.where} GROUP BY {column} ORDER BY {order} LIMIT ? OFFSET ?",
        (*chosen.values, max(0, min(limit, MOST)), max(0, offset)),
    )
    total = index.one(
        f"SELECT count(*) FROM (SELECT 1 FROM rollouts WHERE {chosen.where} GROUP BY {column})", chosen.values
    )[0]
    rows = [
        {
            "name": " ".join(row["name"].split("\n")).strip() if by == "tool" and row["name"] else row["name"],
            "count": row["count"],
            "mean": row["mean"],
            "low": row["low"],
            "high": row["high"],
            "spread": max(0.0, row["spread"]) ** 0.5 if row["spread"] is not None else None,
            "answered": row["answered"],
            "first": row["first"],
        }
        for row in found
    ]
    return {"total": total, "offset": offset, "by": by, "rows": rows}


def facets(index: Index, text: str = "", marked: Marked | None = None) -> dict[str, Any]:
    """What there is to filter by, in what the filter lets through: values with their counts, and totals as bars."""
    chosen = read_filter(text, index.components, marked)
    columns = ", ".join((*_FACETS, "tools"))
    # One reading of the table for all of them: what says the same is counted together.
    rows = index.rows(
        f"SELECT {columns}, count(*) AS count, sum(total) AS sum, count(total) AS known, min(step) AS first, "
        f"max(step) AS last FROM rollouts WHERE {chosen.where} GROUP BY {columns}",
        chosen.values,
    )
    found: dict[str, Any] = {}
    for name in _FACETS:
        counted: dict[Any, list[float]] = {}
        for row in rows:
            if row[name] not in (None, ""):
                held = counted.setdefault(row[name], [0, 0.0, 0])
                held[0] += row["count"]
                held[1] += row["sum"] or 0.0
                held[2] += row["known"]
        if len(counted) > 1 or (counted and text):
            best = sorted(counted.items(), key=lambda one: (-one[1][0], str(one[0])))[:_VALUES]
            found[name] = [
                {
                    "value": _flag(value) if name in FLAGS else value,
                    "count": count,
                    "mean": total / known if known else None,
                }
                for value, (count, total, known) in best
            ]
    tools: Counter[str] = Counter()
    for row in rows:
        for name in (row["tools"] or "").strip("\n").splitlines():
            tools[name] += row["count"]
    if tools:
        best_tools = sorted(tools.items(), key=lambda one: (-one[1], one[0]))[:_VALUES]
        found["tool"] = [{"value": name, "count": count, "mean": None} for name, count in best_tools]
    steps = [row[end] for row in rows for end in ("first", "last") if row[end] is not None]
    return {
        "facets": found,
        "totals": histogram(index, chosen),
        "steps": [min(steps), max(steps)] if steps else [None, None],
    }


def _flag(value: Any) -> str:
    return "yes" if value else "no"


def histogram(
    index: Index, chosen: Filter, low: float | None = None, high: float | None = None
) -> dict[str, Any] | None:
    """Totals as bars of equal width between the smallest and the largest; ``None`` where nothing has one."""
    if low is None or high is None:
        ends = index.one(f"SELECT min(total), max(total) FROM rollouts WHERE {chosen.where}", chosen.values)
        low, high = ends[0], ends[1]
    if low is None or high is None:
        return None
    width = (high - low) / _BARS or 1.0
    bars = [0] * _BARS
    for row in index.rows(
        f"SELECT min({_BARS - 1}, CAST((total - ?) / ? AS INTEGER)) AS bar, count(*) AS count FROM rollouts "
        f"WHERE {chosen.where} AND total IS NOT NULL GROUP BY bar",
        (low, width, *chosen.values),
    ):
        bars[max(0, row["bar"])] = row["count"]
    return {"low": low, "high": high, "bars": bars}


def members(index: Index, column: str, value: str, limit: int = MOST) -> list[dict[str, Any]]:
    """The rows of a group or of a task, by step and sample."""
    rows = index.rows(
        f"SELECT n FROM rollouts WHERE {column_of(column, index.components)} = ? ORDER BY step, sample, n LIMIT ?",
        (value, limit),
    )
    return briefs(index, [row["n"] for row in rows])


def _order(sort: str, components: Mapping[str, str]) -> str:
    name, down = sort.removeprefix("-"), sort.startswith("-")
    column = column_of(name, components)
    return f"{column} IS NULL, {column} {'DESC' if down else 'ASC'}, n"
