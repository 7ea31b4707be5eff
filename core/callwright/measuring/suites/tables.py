"""The tables of a suite: rows that were measured beside rows that were printed, and what each run came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import asdict, frozen

from callwright.measuring.suites.suite import Suite, TableOf
from callwright.measuring.templates import Column, shown


@frozen
class RunState:
    """What came of a run: a result with its benchmark, or why there is none.

    ``official`` is ``None`` where nothing was measured; ``why`` says why that is, or why it is not official.
    """

    name: str
    benchmark: str
    settings: str
    official: bool | None
    why: Sequence[str] = ()
    values: Mapping[str, float | None] = {}
    note: str = ""

    @property
    def state(self) -> str:
        """In a word or two."""
        return "not measured" if self.official is None else "official" if self.official else "not official"

    @property
    def reasons(self) -> list[str]:
        """Why it is what it is, a sentence each, and what its settings leave open."""
        return [*(f"{self.state}: {reason}" for reason in self.why), *([self.note] if self.note else [])]


@frozen
class Row:
    """A row of texts; ``printed`` says that its numbers are the source's and not measured here."""

    name: str
    cells: Sequence[str]
    printed: bool


@frozen
class Table:
    """A table as texts."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Row]
    notes: Sequence[str] = ()


@frozen
class Tables:
    """Everything that a suite came to: the same of the same results, whenever it was made."""

    title: str
    source: str
    notes: Sequence[str]
    tables: Sequence[Table]
    runs: Sequence[RunState]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        stated = asdict(self)
        stated["runs"] = [{**run, "state": one.state} for run, one in zip(stated["runs"], self.runs, strict=True)]
        return stated


def tables_of(
    suite: Suite, results: Mapping[str, Mapping[str, Any]], runs: Sequence[RunState], checkpoint: str
) -> Tables:
    """The tables of a suite. ``results`` are those of its runs, by the runs' names; others were not measured.

    ``checkpoint`` is what rows of ours are called.
    """
    states = {run.name: run for run in runs}
    tables = [_table(one, results, states, checkpoint) for one in suite.tables]
    return Tables(suite.title, suite.source, tuple(suite.notes), tables, runs)


def _table(
    stated: TableOf, results: Mapping[str, Mapping[str, Any]], states: Mapping[str, RunState], checkpoint: str
) -> Table:
    layout = stated.layout()
    rows, notes = [], []
    for ours in stated.ours:
        counted = [run for run in ours.runs if run in results and results[run].get("headline", True)]
        measured = {states[run].benchmark: results[run] for run in counted}
        cells = [shown(*pair, stated.decimals) for pair in zip(layout.columns, layout.row(measured), strict=True)]
        rows.append(Row(f"{checkpoint}, {ours.label}" if ours.label else checkpoint, cells, False))
        notes += [f"{run} is {states[run].state}" for run in ours.runs]
        notes += [_too_few(run, results[run]) for run in ours.runs if run in results and run not in counted]
    for name, *values in stated.printed:
        cells = [_printed(column, value, stated.decimals) for column, value in zip(layout.columns, values, strict=True)]
        rows.append(Row(str(name), cells, True))
    said = [one for one in (layout.note, stated.note) if one]
    return Table(
        stated.title or layout.title,
        ["", *(column.heading for column in layout.columns)],
        rows,
        list(dict.fromkeys([*said, *notes])),
    )


def _too_few(run: str, result: Mapping[str, Any]) -> str:
    """Why a run that was measured has no figures."""
    masked = result["masked"]
    return f"{run} has no figures: {masked:,} of its {masked + result['n']:,} answers are masked"


def _printed(column: Column, value: str | float, decimals: int) -> str:
    if isinstance(value, str):
        return "–"
    return f"{value:.2f}" if column.count else f"{value:.{decimals}f}"
