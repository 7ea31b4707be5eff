"""Tables: rows that a filter lets through, sorted, in pages or in groups; and what there is to filter by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from callwright.errors import UsageError
from callwright_plugins.viewer.index.building import Index
from callwright_plugins.viewer.index.filtering import FLAGS, Filter, column_of, read_filter

#: Rows of a page at most.
MOST: Final = 500
_SHOWN: Final = (
    "n id task step grp sample depth structure failure stage total advantage answered masked truncated calls failed "
    "tools branch query"
).split()
_FACETS: Final = ("answered", "failure", "stage", "depth", "structure", "branch")
_BARS: Final = 24
Marked = Mapping[str, Sequence[int]]


def page(
    index: Index, text: str = "", sort: str = "n", offset: int = 0, limit: int = 100, marked: Marked | None = None
) -> dict[str, Any]:
    """Rows ``offset`` to ``offset + limit`` of those that the filter lets through. ``-total`` sorts the other way."""
    components = index.components
    chosen = read_filter(text, components, marked)
    order = _order(sort, components)
    limit = max(0, min(limit, MOST))
    total = index.one(f"SELECT count(*) FROM rollouts WHERE {chosen.where}", chosen.values)[0]
    rows = index.rows(
        f"SELECT {', '.join((*_SHOWN, *components.values()))} FROM rollouts WHERE {chosen.where} "
        f"ORDER BY {order} LIMIT ? OFFSET ?",
        (*chosen.values, limit, max(0, offset)),
    )
    return {"total": total, "offset": offset, "rows": [brief(row, components) for row in rows]}


def brief(row: Any, components: Mapping[str, str]) -> dict[str, Any]:
    """A row as tables show it."""
    made = {name: row[name] for name in _SHOWN}
    made["group"] = made.pop("grp")
    made["tools"] = (made["tools"] or "").split()
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
            "name": row["name"].strip() if by == "tool" and row["name"] else row["name"],
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
    found: dict[str, Any] = {}
    for name in _FACETS:
        rows = index.rows(
            f"SELECT {name} AS value, count(*) AS count, avg(total) AS mean FROM rollouts WHERE {chosen.where} "
            "AND value IS NOT NULL AND value != '' GROUP BY 1 ORDER BY count DESC, 1 LIMIT 12",
            chosen.values,
        )
        if len(rows) > 1 or (rows and text):
            found[name] = [
                {
                    "value": _flag(row["value"]) if name in FLAGS else row["value"],
                    "count": row["count"],
                    "mean": row["mean"],
                }
                for row in rows
            ]
    tools = _tools(index, chosen)
    if tools:
        found["tool"] = [{"value": name, "count": count, "mean": None} for name, count in tools.most_common(12)]
    return {"facets": found, "totals": histogram(index, chosen), "steps": _steps(index, chosen)}


def _flag(value: Any) -> str:
    return "yes" if value else "no"


def _tools(index: Index, chosen: Filter) -> Counter[str]:
    counted: Counter[str] = Counter()
    for row in index.rows(
        f"SELECT tools, count(*) AS count FROM rollouts WHERE {chosen.where} AND tools != '' GROUP BY tools",
        chosen.values,
    ):
        for name in row["tools"].split():
            counted[name] += row["count"]
    return counted


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


def _steps(index: Index, chosen: Filter) -> list[int | None]:
    row = index.one(f"SELECT min(step), max(step) FROM rollouts WHERE {chosen.where}", chosen.values)
    return [row[0], row[1]]


def members(index: Index, column: str, value: str, limit: int = MOST) -> list[dict[str, Any]]:
    """The rows of a group or of a task, by step and sample."""
    components = index.components
    stored = column_of(column, components)
    rows = index.rows(
        f"SELECT {', '.join((*_SHOWN, *components.values()))} FROM rollouts WHERE {stored} = ? "
        "ORDER BY step, sample, n LIMIT ?",
        (value, limit),
    )
    return [brief(row, components) for row in rows]


def _order(sort: str, components: Mapping[str, str]) -> str:
    name, down = sort.removeprefix("-"), sort.startswith("-")
    column = column_of(name, components)
    return f"{column} IS NULL, {column} {'DESC' if down else 'ASC'}, n"
