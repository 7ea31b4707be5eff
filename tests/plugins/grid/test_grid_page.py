"""The page of a grid: it loads nothing, escapes everything, and its curves are those of the runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.statistics.intervals import mean_interval
from callwright.training.run_folder import Run
from callwright_plugins.grid.drawing import chart, curve, round_ends
from callwright_plugins.grid.output import shown
from callwright_plugins.grid.page import render
from callwright_plugins.grid.plan import Plan
from callwright_plugins.grid.results import Ledger, Results, collect

NASTY = '<script>alert("x")</script>&'


def make(folder: Path, rates: tuple[str, ...] = ("0.1", NASTY), seeds: tuple[int, ...] = (0, 1)) -> Results:
    """A grid whose runs were made by hand."""
    plan = Plan("nice.toml", "", (), (("trainer.rate", rates),), seeds)
    plan = plan.settle(folder)
    ledger = Ledger.open(folder)
    for run in plan.runs:
        made = Run.create(folder / run.key, recipe_text="", manifest={})
        made.append("metrics.jsonl", [{"step": step, "reward": step * (run.seed + 1.0)} for step in (1, 2, 3)])
        cells = {"2": {"accuracy": 0.5}}
        sides = {when: {"overall": share, "by_depth": cells} for when, share in (("before", 0.25), ("after", 0.75))}
        made.write_json("evaluation.json", {**sides, "during": [{"step": 2, "overall": 0.5}]})
        row = {"run": run.key, "status": 0, "wall_seconds": 1.0, "cpu_seconds": 1.0, "peak_memory_mb": 9, "said": ""}
        ledger.add(row)
    return collect(plan, folder, Ledger.open(folder), ("before", "after", "gain", "reward"))


def test_the_page_loads_nothing_and_escapes_what_it_is_given(tmp_path: Path) -> None:
    results = make(tmp_path / "grid")
    page = render(results, f"callwright grid {NASTY}")
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert not re.search(r"(?:src|href)=.?https?:|url\(|@import", page)
    assert page.count("rate=&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;") > 4
    assert page == render(make(tmp_path / "again"), f"callwright grid {NASTY}")
    assert page.count("<svg") == page.count("</svg>") == 4
    for link in re.findall(r'href="([^"]*)/report.html"', page):
        assert (tmp_path / "grid" / link / "recipe.toml").is_file()


def test_a_damaged_ledger_line_of_a_crash_is_left_out(tmp_path: Path) -> None:
    make(tmp_path, ("1",))
    with (tmp_path / "attempts.jsonl").open("a") as file:
        file.write('{"run": "rate=1/see')
    ledger = Ledger.open(tmp_path)
    plan = Plan("nice.toml", "", (), (("trainer.rate", ("1",)),), (0, 1, 2))
    assert [ledger.finished(run) for run in plan.runs] == [True, True, False]


def test_a_curve_is_the_mean_at_each_step_that_all_seeds_have() -> None:
    found = curve([{1: 0.0, 2: 1.0, 3: 4.0}, {2: 3.0, 3: 4.0, 4: 9.0}], smooth=False)
    assert found.points == ((2, mean_interval([1.0, 3.0])), (3, mean_interval([4.0, 4.0])))
    assert curve([], smooth=True).points == ()
    long = curve([dict.fromkeys(range(5000), 1.0)], smooth=True)
    assert len(long.points) <= 201
    assert (long.points[0][0], long.points[-1][0]) == (0, 4999)
    assert {one.mean for _, one in long.points} == {1.0}


def test_one_seed_has_a_line_and_no_band() -> None:
    one = chart(curve([{0: 0.1, 5: 0.2}], smooth=False), 0, 1, percent=True, description='a "b"')
    two = chart(curve([{0: 0.1, 5: 0.2}, {0: 0.2, 5: 0.2}], smooth=False), 0, 1, percent=True, description="")
    assert ('class="band"' in one, 'class="line"' in one) == (False, True)
    assert ('class="band"' in two, 'class="line"' in two) == (True, True)
    assert 'aria-label="a &quot;b&quot;"' in one


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_the_ends_of_an_axis_hold_the_range(low: float, width: float) -> None:
    high = low + width
    bottom, top = round_ends(low, high)
    assert bottom <= low + 1e-9 * abs(low)
    assert high <= top + 1e-9 * abs(high)
    assert top - bottom <= 3 * (high - low) + 1e-6 * abs(low)


@pytest.mark.parametrize(
    ("values", "name", "signed", "expected"),
    [
        ([0.5, 0.7], "after", False, ("60.0%", "[-67, 187]")),
        ([0.5], "after@3", False, ("50.0%", "")),
        ([], "after", False, ("–", "")),
        ([0.0, 0.0], "gain", False, ("+0.0", "[+0, +0]")),
        ([-0.0001, -0.0001], "before", False, ("0.0%", "[0, 0]")),
        ([1.5, 1.5], "reward", False, ("1.5", "[1.5, 1.5]")),
        ([1.5], "reward", True, ("+1.5", "")),
    ],
)
def test_figures_in_words(values: list[float], name: str, signed: bool, expected: tuple[str, str]) -> None:
    assert shown(mean_interval(values).to_json(), name, signed=signed) == expected
