"""Rows of a run folder as a tracker shows them: figures by name, and the cells of a rollout."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from callwright.language.shortening import shortened
from callwright.training.tracking.tracker import Cell, flat

#: Characters of a cell: what a person reads. The run folder has the whole text.
LONGEST: Final = 20_000
_FIRST: Final = ("task", "structure", "depth", "total", "advantage", "answered", "failure", "masked")
_TEXTS: Final = ("query", "completion", "observations")


def figures_of(row: Mapping[str, Any], within: str = "") -> dict[str, float]:
    """The numbers of a row but its step, those of nested tables by their path: ``scores/format``."""
    found = {}
    for name, value in flat(row, within, "/").items():
        if name != "step" and isinstance(value, int | float):
            try:
                found[name] = float(value)
            except OverflowError:  # an integer that is no number of a curve
                continue
    return found


def seconds_of(row: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a row of ``timings.jsonl``: ``seconds``, its parts as ``seconds/sampling``, and ``memory``."""
    figures = figures_of(row)
    whole = ("seconds", "memory")
    return {name if name in whole else f"seconds/{name}": value for name, value in figures.items()}


def evaluations_of(written: Any, last: int) -> Iterator[tuple[str, int, dict[str, float]]]:
    """The evaluations of ``evaluation.json``: which it is, its step and its figures; ``last`` is the newest step.

    Of the breakdowns only accuracies are curves: their bounds and counts are in the run folder.
    """
    if not isinstance(written, Mapping):
        return
    before, after = written.get("before"), written.get("after")
    during = [one for one in written.get("during") or () if isinstance(one, Mapping)]
    for name, one, usual in (
        ("before", before, 0),
        *((f"during-{one.get('step')}", one, last) for one in during),
        ("after", after, last),
    ):
        if isinstance(one, Mapping):
            figures = {
                figure: value
                for figure, value in figures_of(one, "evaluation").items()
                if figure.count("/") == 1 or figure.endswith("/accuracy")
            }
            figures.pop("evaluation/step", None)
            yield name, int(one.get("step", usual)), figures


def cells_of(row: Mapping[str, Any]) -> dict[str, Cell]:
    """A row of ``rollouts.jsonl`` as cells: what it earned, each part of the reward, the evidence and the texts."""
    scores = row.get("scores")
    scores = scores if isinstance(scores, Mapping) else {}
    cells = {name: _cell(row.get(name)) for name in _FIRST}
    cells |= {f"scores/{name}": _cell(score.get("value")) for name, score in scores.items()}
    cells["evidence"] = _cell("\n".join(_said(scores)))
    return cells | {name: _cell(row.get(name)) for name in _TEXTS}


def _said(scores: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, score in scores.items():
        reasons = [str(evidence.get("reason", evidence)) for evidence in score.get("evidence") or ()]
        if reasons:
            yield f"{name} {score.get('value')} of {score.get('high')}: " + "; ".join(reasons)


def _cell(value: Any) -> Cell:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            value = str(value)[:LONGEST]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # Text of a model may hold half of a surrogate pair, which no other program takes.
    return shortened(text, LONGEST).encode("utf-8", "backslashreplace").decode()
