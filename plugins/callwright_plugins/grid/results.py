"""What came of a grid: means over seeds with intervals, paired differences, and what is missing."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from callwright.statistics.intervals import mean_interval, paired_difference
from callwright.training.run_folder import Run, append_jsonl, read_jsonl
from callwright_plugins.grid.metrics import Figures, by_depth, read_figures
from callwright_plugins.grid.plan import GridRun, Plan

ATTEMPTS: Final = "attempts.jsonl"


@define
class Ledger:
    """The processes of a grid that ended, in ``attempts.jsonl``: a run is finished once one of its own ended with 0."""

    folder: Path
    attempts: dict[str, list[dict[str, Any]]] = field(factory=dict)

    @classmethod
    def open(cls, folder: Path) -> Ledger:
        """What is written in the folder. Raises :class:`callwright.errors.DataError` for a damaged file."""
        made = cls(folder)
        path = folder / ATTEMPTS
        for row in read_jsonl(path, torn_tail=True) if path.exists() else ():
            made.attempts.setdefault(str(row.get("run")), []).append(row)
        return made

    def add(self, row: dict[str, Any]) -> None:
        """Write one down."""
        append_jsonl(self.folder / ATTEMPTS, [row])
        self.attempts.setdefault(row["run"], []).append(row)

    def of(self, run: GridRun) -> Sequence[Mapping[str, Any]]:
        """The attempts at a run, in their order."""
        return self.attempts.get(run.key, ())

    def finished(self, run: GridRun) -> bool:
        """Whether a run is over and its folder still there."""
        over = any(row.get("status") == 0 for row in self.of(run))
        return over and (self.folder / run.key / "recipe.toml").is_file()

    def seconds(self) -> float | None:
        """Mean wall time of the attempts that finished a run; ``None`` without any."""
        known = [row["wall_seconds"] for rows in self.attempts.values() for row in rows if row.get("status") == 0]
        return sum(known) / len(known) if known else None


@define
class Results:
    """A grid as ``grid.json`` holds it (``found``), and the figures of each finished run by its key."""

    found: dict[str, Any]
    figures: dict[str, Figures]
    folder: Path
    plan: Plan


def collect(plan: Plan, folder: Path, ledger: Ledger, names: Sequence[str]) -> Results:
    """Read all finished runs and summarise them."""
    figures = {run.key: read_figures(Run(folder / run.key)) for run in plan.runs if ledger.finished(run)}
    depths = sorted({depth for one in figures.values() for depth in one.depths})
    every = tuple(dict.fromkeys([*names, *by_depth(depths)]))
    values = {key: {name: one.value(name) for name in every} for key, one in figures.items()}

    def known(setting: str, name: str) -> dict[int, float]:
        """Values of a metric by seed."""
        found = {}
        for run in plan.runs:
            if run.setting.name == setting and (value := values.get(run.key, {}).get(name)) is not None:
                found[run.seed] = value
        return found

    settings = [
        {
            "name": setting.name,
            "overrides": list(setting.overrides),
            "metrics": {name: mean_interval(list(known(setting.name, name).values())).to_json() for name in every},
            "runs": [
                _run(run, ledger, figures.get(run.key), values.get(run.key))
                for run in plan.runs
                if run.setting == setting
            ],
        }
        for setting in plan.settings
    ]
    compared = [name for name in every if name != "reward" or not _rewards_vary(plan)]
    differences = [
        {
            "first": first.name,
            "second": second.name,
            "metrics": {
                name: paired_difference(known(first.name, name), known(second.name, name)).to_json()
                for name in compared
            },
        }
        for first, second in itertools.combinations(plan.settings, 2)
    ]
    found = {
        "recipe": plan.recipe,
        "set": list(plan.fixed),
        "over": {key: list(texts) for key, texts in plan.over},
        "seeds": list(plan.seeds),
        "metrics": list(names),
        "depths": depths,
        "level": 0.95,
        "settings": settings,
        "differences": differences,
    }
    found["remarks"] = remarks(plan, found)
    return Results(found, figures, folder, plan)


def _run(
    run: GridRun, ledger: Ledger, figures: Figures | None, values: Mapping[str, float | None] | None
) -> dict[str, Any]:
    attempts = ledger.of(run)
    row: dict[str, Any] = {"seed": run.seed, "folder": run.key, "finished": values is not None}
    if attempts:
        row["wall_seconds"] = round(sum(one["wall_seconds"] for one in attempts), 1)
        row["cpu_seconds"] = round(sum(one["cpu_seconds"] for one in attempts), 1)
        row["peak_memory_mb"] = max(one["peak_memory_mb"] for one in attempts)
    if values is not None:
        row["values"] = dict(values)
        if figures is not None and figures.alarm is not None:
            row["alarm"] = {"step": figures.alarm[0], "said": figures.alarm[1]}
    elif attempts and attempts[-1].get("status") not in (0, 130):
        row["failure"] = {"status": attempts[-1]["status"], "said": attempts[-1]["said"], "log": f"{run.key}.log"}
    return row


def _rewards_vary(plan: Plan) -> bool:
    return any(key.partition(".")[0] == "reward" for key, _ in plan.over)


def remarks(plan: Plan, found: Mapping[str, Any]) -> list[str]:
    """What a careful reader must know of these figures."""
    said = []
    runs = [(setting["name"], run) for setting in found["settings"] for run in setting["runs"]]
    for name, run in runs:
        if "failure" in run:
            failure = run["failure"]
            why = f"status {failure['status']}: {failure['said'] or 'it said nothing'} ({failure['log']})"
            said.append(f"{name}, seed {run['seed']} failed with {why}")
        if "alarm" in run:
            said.append(f"{name}, seed {run['seed']} raised the alarm at step {run['alarm']['step']}.")
    missing = sum(not run["finished"] and "failure" not in run for _, run in runs)
    if missing:
        said.append(f"{missing} of {len(runs)} runs are not finished; the same command goes on.")
    counts = {sum(run["finished"] for run in setting["runs"]) for setting in found["settings"]}
    if len(plan.seeds) == 1:
        said.append("One seed says nothing of chance, so there are no intervals. Give more of them: --seeds 0-3.")
    elif 1 in counts:
        said.append("Where one seed is finished, chance is not known, so there is no interval.")
    if len(plan.settings) > 1 and _rewards_vary(plan):
        said.append("The settings have different rewards, whose values do not compare: only accuracies are subtracted.")
    if len(found["differences"]) > 1 and len(plan.seeds) > 1:
        said.append(
            f"Each interval is 95% for itself. Of {len(found['differences'])} comparisons without any effect, about "
            f"{0.05 * len(found['differences']):.1f} would lie beside 0 by chance."
        )
    return said
