"""Rollouts: one of them whole, its tokens, its group, and its task over the steps."""

from __future__ import annotations

import statistics
from typing import Any, Final

from callwright_plugins.viewer.answers.tables import briefs, members
from callwright_plugins.viewer.index.building import Index
from callwright_plugins.viewer.sources.documents import document
from callwright_plugins.viewer.sources.entries import listed

#: Rows of a task that are shown over the steps, at most.
_MOST: Final = 500


def rollout(index: Index, n: int) -> dict[str, Any] | None:
    """A row with its document and what stands next to it; ``None`` where there is no such row."""
    found, row = briefs(index, [n]), index.row(n)
    if not found or row is None:
        return None
    return {**found[0], "document": document(index.source.kind, row)}


def tokens(index: Index, n: int) -> list[list[Any]]:
    """The tokens of a rollout with their log-probabilities, ``null`` for those without loss; empty if none are kept."""
    row = index.row(n) or {}
    return [one for one in listed(row.get("tokens")) if isinstance(one, list) and len(one) == 2]


def group(index: Index, name: str, limit: int = 32) -> dict[str, Any]:
    """The samples of one prompt, as GRPO sees them: totals, advantages, their mean and deviation, and their texts."""
    rows = members(index, "group", name, limit)
    totals = [row["total"] for row in rows if row["total"] is not None]
    for row in rows:
        held = index.row(row["n"])
        row["document"] = None if held is None else document(index.source.kind, held)
    return {
        "name": name,
        "rows": rows,
        "mean": statistics.fmean(totals) if totals else None,
        "deviation": statistics.pstdev(totals) if totals else None,
    }


def over_time(index: Index, task: str) -> dict[str, Any]:
    """Every row of a task by step: how it fared while the policy learnt."""
    rows = members(index, "task", task, _MOST)
    return {"task": task, "rows": rows}
