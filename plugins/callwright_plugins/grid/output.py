"""What ``callwright grid`` prints: the runs of a dry run, and the tables of what came of a grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from callwright.commands.terminal import screen, table, text
from callwright_plugins.grid.metrics import is_share
from callwright_plugins.grid.results import Ledger

if TYPE_CHECKING:
    from rich.table import Table

    from callwright_plugins.grid.plan import Plan

#: What came of a grid, as JSON and as a page.
RESULT: Final = "grid.json"
PAGE: Final = "grid.html"
#: More pairs of settings, or rows of depths, than this are in the file and on the page, not on the screen.
_PAIRS: Final = 10
_ROWS: Final = 40


def shown(cell: Mapping[str, Any], name: str, *, signed: bool = False) -> tuple[str, str]:
    """A mean and its interval: ``83.3%`` and ``[66, 93]``; a dash where nothing is known, no bounds where none are.

    A ``signed`` one, and a gain, is in points.
    """
    mean, low, high = cell["mean"], cell["low"], cell["high"]
    if mean is None:
        return "–", ""
    share, signed = is_share(name), signed or name.startswith("gain")
    scale, unit = (100, "" if signed else "%") if share else (1, "")
    sign = "+" if signed else ""
    fine, coarse = (f"{sign}z.1f", f"{sign}z.0f") if share else (f"{sign}.3g", f"{sign}.2g")  # z: never a minus 0
    bounds = "" if low is None else f"[{scale * low:{coarse}}, {scale * high:{coarse}}]"
    return f"{scale * mean:{fine}}{unit}", bounds


def _cell(cell: Mapping[str, Any], name: str, *, signed: bool = False) -> str:
    mean, bounds = shown(cell, name, signed=signed)
    return f"{mean}\n{bounds.replace(', ', ',')}" if bounds else mean  # in one word, which is not broken


def draw(found: Mapping[str, Any]) -> None:
    """The tables. What would be too much for a screen is left to the page, and said."""
    console = screen()
    names, settings, count = found["metrics"], found["settings"], len(found["seeds"])
    over = f"{count} seeds, with 95% intervals" if count > 1 else "one seed"
    for some in _parted(names, 5):  # Rich leaves out columns that do not fit
        main = table("setting", "runs", *some, right=range(1, len(some) + 2), title=f"Means over {over}")
        for setting in settings:
            finished = sum(run["finished"] for run in setting["runs"])
            cells = [_cell(setting["metrics"][name], name) for name in some]
            main.add_row(text(setting["name"]), str(finished), *cells)
        console.print(_wide(main))
    depths = found["depths"]
    if depths and len(depths) * len(settings) <= _ROWS:
        deep = table("setting", "depth", "before", "after", "gain", right=range(1, 5), title="By depth")
        for setting in settings:
            for depth in depths:
                cells = [_cell(setting["metrics"][f"{when}@{depth}"], when) for when in ("before", "after", "gain")]
                deep.add_row(text(setting["name"]), str(depth), *(cell.replace("\n", " ") for cell in cells))
            deep.add_section()
        console.print(_wide(deep))
    elif depths:
        console.print(text(f"Accuracy by depth is in {RESULT} and on the page."))
    differences = found["differences"]
    if differences and len(differences) <= _PAIRS:
        compared = [name for name in names if name in differences[0]["metrics"] and name != "before"]
        for some in _parted(compared, 3):
            title = "Differences over the same seeds"
            pairs = table("setting", "minus", *some, right=range(2, len(some) + 2), title=title)
            for pair in differences:
                cells = [_cell(pair["metrics"][name], name, signed=True) for name in some]
                pairs.add_row(text(pair["second"]), text(pair["first"]), *cells)
            console.print(_wide(pairs, 2))
    elif differences:
        console.print(text(f"{len(differences)} paired differences are in {RESULT} and on the page."))
    for remark in found["remarks"]:
        console.print(text(f"! {remark}", "yellow"))


def _wide(made: Table, columns: int = 1) -> Table:
    """Room for names of usual length, so that these are broken last."""
    for column in made.columns[:columns]:
        column.min_width = 18
    return made


def _parted(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), size):
        yield names[start : start + size]


def draw_plan(plan: Plan, ledger: Ledger, workers: int) -> None:
    """The runs that there are to do, and how long they will take as far as that is known."""
    console = screen()
    made = table("setting", "seed", "state", "folder", right=(1,))
    for run in plan.runs:
        made.add_row(text(run.setting.name), str(run.seed), state_of(ledger, run), text(ledger.folder / run.key))
    console.print(made)
    left = sum(not ledger.finished(run) for run in plan.runs)
    console.print(
        text(f"{left} of {len(plan.runs)} runs to do, {workers} at a time: {estimate(ledger, left, workers)}")
    )


def state_of(ledger: Ledger, run: Any) -> str:
    """``finished``, ``to do``, or ``to go on``."""
    if ledger.finished(run):
        return "finished"
    return "to go on" if (ledger.folder / run.key / "recipe.toml").is_file() else "to do"


def estimate(ledger: Ledger, left: int, workers: int) -> str:
    """How long the rest will take, by the runs that are finished."""
    seconds = ledger.seconds()
    if not left:
        return "nothing to do"
    if seconds is None:
        return "how long they take is not known before the first is finished"
    return f"{duration(seconds * -(-left // workers))} by the {duration(seconds)} of those that are finished"


def duration(seconds: float) -> str:
    """``48 s``, ``12 min``, ``3.4 h``."""
    if seconds < 100:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def brief(figures: Mapping[str, float | None]) -> str:
    """A finished run in a few words: its accuracy before and after."""
    first, last = figures.get("before"), figures.get("after")
    return "" if first is None or last is None else f"{100 * first:.1f}% → {100 * last:.1f}%"


def plan_as_json(plan: Plan, ledger: Ledger) -> dict[str, Any]:
    """What a dry run prints with ``--json``."""
    runs: Sequence[Mapping[str, Any]] = [
        {
            "setting": run.setting.name,
            "overrides": list(run.setting.overrides),
            "seed": run.seed,
            "folder": str(ledger.folder / run.key),
            "state": state_of(ledger, run),
        }
        for run in plan.runs
    ]
    return {"runs": runs, "seconds_a_run": ledger.seconds()}
