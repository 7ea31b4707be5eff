"""Curves: the figures of a run's steps, and where its time went."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from callwright.training.run_folder import METRICS
from callwright_plugins.viewer.sources.entries import number_of, table, whole
from callwright_plugins.viewer.sources.finding import Source

_TIMINGS: Final = "timings.jsonl"
#: Points of a curve at most: more are thinned evenly, the last one stays.
_MOST: Final = 2000


def curves(source: Source) -> dict[str, Any]:
    """Every figure by step, nested ones as ``scores/format``; seconds of each phase; evaluations.

    ``{"steps": [S], "figures": {name: [S]}, "seconds": {phase: [S]}, "evaluations": […], "seed", "recipe"}``; ``null``
    where a step says nothing. Steps that only wrote part of a line are left out.
    """
    if source.folder is None:
        return {"steps": [], "figures": {}, "seconds": {}, "evaluations": [], "recipe": None, "seed": None}
    rows = list(_rows(source.folder / METRICS))
    if len(rows) > _MOST:
        every = -(-len(rows) // _MOST)
        rows = [*rows[:-1][::every], rows[-1]]
    steps = [whole(row.get("step")) for row in rows]
    names = list(dict.fromkeys(name for row in rows for name, _ in _figures(row)))
    flat = [dict(_figures(row)) for row in rows]
    phases = [_seconds(row) for row in _rows(source.folder / _TIMINGS)]
    by_step = {row["step"]: row for row in phases if "step" in row}
    parts = list(dict.fromkeys(name for row in phases for name in row if name not in ("step", "memory")))
    figures = {name: [row.get(name) for row in flat] for name in names}
    seconds = {name: [by_step.get(step, {}).get(name) for step in steps] for name in parts}
    spent_at = [sum(value for value in column if value is not None) for column in zip(*seconds.values(), strict=True)]
    tokens = figures.get("tokens")
    if tokens and spent_at:
        figures["tokens/s"] = [
            None if count is None or not spent else count / spent for count, spent in zip(tokens, spent_at, strict=True)
        ]
    memory = [by_step.get(step, {}).get("memory") for step in steps]
    if any(held is not None for held in memory):
        figures["memory (GB)"] = [None if held is None else held / 1e9 for held in memory]
    return {
        "steps": steps,
        "figures": figures,
        "seconds": seconds,
        "evaluations": _evaluations(source),
        **_recipe(source),
    }


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return
    for line in lines[:-1]:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


def _figures(row: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, float]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _figures(value, f"{within}{name}/")
        elif name != "step" and (figure := number_of(value)) is not None:
            yield f"{within}{name}", figure


def _seconds(row: Mapping[str, Any]) -> dict[str, Any]:
    """The seconds of a training step by phase. Other phases than training are not by step."""
    if row.get("phase") not in ("train", None) or not isinstance(row.get("step"), int):
        return {}
    named = {key: value for key, value in row.items() if key not in ("phase", "step", "seconds")}
    if not named.keys() - {"memory"}:
        named["all"] = row.get("seconds")
    return {"step": row["step"], **{name: value for name, value in named.items() if number_of(value) is not None}}


def _evaluations(source: Source) -> list[dict[str, Any]]:
    told = table(source.json("evaluation.json"))
    made = []
    for name in ("before", "after"):
        result = table(told.get(name))
        if result:
            made.append({"name": name, "step": None, **_accuracy(result)})
    for one in told.get("during") or []:
        made.insert(
            -1 if made and made[-1]["name"] == "after" else len(made),
            {"name": "during", **_accuracy(table(one)), "step": table(one).get("step")},
        )
    if not made and told:
        made.append({"name": "result", "step": None, **_accuracy(told)})
    return made


def _accuracy(result: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "overall": number_of(result.get("overall")),
        "by_depth": {
            name: {key: number_of(table(cell).get(key)) for key in ("accuracy", "low", "high", "n")}
            for name, cell in table(result.get("by_depth")).items()
        },
    }


def _recipe(source: Source) -> dict[str, Any]:
    told = recipe_of(source)
    return {"recipe": told.get("name"), "seed": told.get("seed")}


def recipe_of(source: Source) -> dict[str, Any]:
    """The recipe of a run as data; empty where there is none."""
    try:
        return tomllib.loads(((source.folder or Path("/nowhere")) / "recipe.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
