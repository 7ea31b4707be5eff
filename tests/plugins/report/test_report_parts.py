"""Charts, examples and words, each by itself."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.training.run_folder import Run
from callwright_plugins.report.drawing.charts import Frame, Line, chart, label, smoothed, thinned, ticks
from callwright_plugins.report.drawing.markup import attribute, cut, percent, points, safe
from callwright_plugins.report.reading import read_run
from callwright_plugins.report.sections.examples import pick
from callwright_plugins.report.sections.fewer_calls import count, fewer_calls
from callwright_plugins.report.verdict import Change

MakeRun = Callable[..., Path]
FRAME = Frame(320, 130)
VALUES = st.lists(st.none() | st.floats(-1e6, 1e6), min_size=1, max_size=60)


@given(VALUES, st.integers(1, 15))
def test_smoothing_is_the_mean_of_the_window(values: list[float | None], window: int) -> None:
    half = window // 2
    for index, found in enumerate(smoothed(values, window)):
        known = [value for value in values[max(0, index - half) : index + half + 1] if value is not None]
        if not known:
            assert found is None
        else:
            assert found == pytest.approx(sum(known) / len(known), rel=1e-6, abs=1e-6)


@given(st.integers(1, 5000))
def test_thinning_keeps_the_mean_and_few_points(count: int) -> None:
    steps = list(range(count))
    xs, (line,) = thinned(steps, [Line("x", [float(step % 7) for step in steps])])
    assert len(xs) == len(line.values) <= 400
    assert xs == sorted(xs)
    if count <= 400:
        assert xs == steps


@given(st.floats(-1e9, 1e9), st.floats(1e-9, 1e9), st.integers(1, 8))
def test_ticks_are_round_few_and_inside(low: float, span: float, count: int) -> None:
    high = low + span
    found = ticks(low, high, count)
    assert len(found) <= 2 * count + 2
    assert found == sorted(found)
    tolerance = 1e-6 * max(span, abs(low), abs(high))
    assert all(low - tolerance <= value <= high + tolerance for value in found)


@pytest.mark.parametrize(
    ("low", "high", "count", "expected"),
    [
        (0, 1, 4, [0, 0.25, 0.5, 0.75, 1.0]),
        (1, 100, 5, [20, 40, 60, 80, 100]),
        (-0.3, 0.3, 3, [-0.2, 0, 0.2]),
        (5, 5, 3, [5]),
    ],
)
def test_ticks_of_usual_ranges(low: float, high: float, count: int, expected: list[float]) -> None:
    assert ticks(low, high, count) == expected


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (0.12345, "0.123"),
        (1234, "1,234"),
        (99.96, "100"),
        (-2.5, "−2.5"),
        (0.0001, "1e−4"),
        (2_000_000, "2e6"),
    ],
)
def test_labels(value: float, shown: str) -> None:
    assert label(value) == shown


@given(VALUES)
def test_lines_stay_inside_the_frame(values: list[float | None]) -> None:
    svg = chart(list(range(1, len(values) + 1)), [Line("x", values)], FRAME, description="x")
    for path in re.findall(r' d="([^"]*)"', svg):
        for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path):
            assert FRAME.left - 0.1 <= float(x) <= FRAME.width - FRAME.right + 0.1
            assert FRAME.top - 0.1 <= float(y) <= FRAME.height - FRAME.bottom + 0.1


def test_a_gap_in_the_values_is_a_gap_in_the_line() -> None:
    svg = chart([1, 2, 3, 4, 5], [Line("x", [1, 2, None, 1, None], smooth=False)], FRAME, description="x")
    (path,) = re.findall(r' d="([^"]*)"', svg)
    assert path.count("M") == 2
    assert path.count("L") == 1
    assert path.count("h") == 1  # the last value stands alone, as a dot


def test_examples_are_best_typical_and_worst_of_the_end(make_run: MakeRun) -> None:
    path = make_run(steps=90)
    found = pick(read_run(Run(path)))
    rows = [json.loads(line) for line in (path / "rollouts.jsonl").read_text().splitlines()]
    for depth in range(7):
        late = [row["total"] for row in rows if row["depth"] == depth and row["step"] > 60]
        mine = {one.why: one.row for one in found if one.depth == depth}
        assert all(row["step"] > 60 for row in mine.values())
        if len(set(late)) == 1:
            assert set(mine) == {"typical"}
            continue
        assert mine["best"]["total"] == max(late)
        assert mine["worst"]["total"] == min(late)
        if len(late) > 2:
            assert mine["typical"]["total"] in late
            assert len({(row["step"], row["task"]) for row in mine.values()}) >= 2


def test_masked_rollouts_are_no_examples(make_run: MakeRun) -> None:
    path = make_run(steps=9)
    rows = [
        json.loads(line) | {"total": None, "masked": "down"}
        for line in (path / "rollouts.jsonl").read_text().splitlines()
    ]
    (path / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert pick(read_run(Run(path))) == []


def wilson_change(before: int, after: int, n: int) -> Change:
    from callwright.training.evaluation import wilson

    return Change("x", n, (before / n, *wilson(before, n)), (after / n, *wilson(after, n)))


def test_bounds_of_a_gain_are_newcombes() -> None:
    # Newcombe (1998), table II, example (a): 56/70 against 48/80: 0.2, 95% interval 0.0524 to 0.3339 (method 10).
    from callwright.training.evaluation import wilson

    change = Change("x", 70, (48 / 80, *wilson(48, 80)), (56 / 70, *wilson(56, 70)))
    bounds = change.bounds
    assert bounds is not None
    assert bounds[0] == pytest.approx(0.0524, abs=5e-5)
    assert bounds[1] == pytest.approx(0.3339, abs=5e-5)


@pytest.mark.parametrize(
    ("before", "after", "direction"), [(10, 30, 1), (30, 10, -1), (20, 22, 0), (0, 0, 0), (40, 40, 0)]
)
def test_what_is_beyond_chance(before: int, after: int, direction: int) -> None:
    assert wilson_change(before, after, 40).direction == direction


def test_what_was_not_measured_has_no_direction() -> None:
    change = Change("x", 3, None, (0.5, 0.2, 0.8))
    assert change.gain is None
    assert change.direction == 0


@pytest.mark.parametrize(
    ("share", "text"), [(0.8333, "83.3%"), (0.9, "90%"), (0, "0%"), (1, "100%"), (None, "–"), (0.0004, "0%")]
)
def test_percent(share: float | None, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(("share", "text"), [(0.25, "+25"), (-0.036, "−3.6"), (0, "0"), (-0.0001, "0")])
def test_points(share: float, text: str) -> None:
    assert points(share, signed=True) == text


@given(st.text())
def test_safe_text_holds_no_markup(text: str) -> None:
    assert not set("<>") & set(safe(text))
    safe(text).encode("utf-8")


@given(st.text("<>&\"'= a;#xq34"))
def test_an_attribute_ends_where_it_is_meant_to(text: str) -> None:
    """A browser that reads the element finds one attribute, with the text as its value, and no other."""
    seen: list[tuple[str, list[tuple[str, str | None]]]] = []
    reader = HTMLParser()
    reader.handle_starttag = lambda tag, attributes: seen.append((tag, attributes))  # type: ignore[method-assign]
    reader.feed(f'<p title="{attribute(text)}">')
    assert seen == [("p", [("title", text)])]


def test_cut() -> None:
    assert cut("abc", 3) == "abc"
    assert cut("abcdef", 3) == "abc … (3 more characters)"


def test_figures_that_are_no_numbers_are_absent(make_run: MakeRun) -> None:
    path = make_run(steps=3)
    rows = [{"step": 1, "kl": math.inf}, {"step": 2, "kl": True}, {"step": 3, "kl": "x"}, {"step": 3, "kl": 0.5}]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = read_run(Run(path))
    assert data.series("kl") == [None, None, 0.5]  # of a step that is there twice, the later row counts
    assert data.series("scores", "format") == [None, None, None]


def write_lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_right_answers_with_fewer_calls_are_counted(make_run: MakeRun) -> None:
    run = make_run(steps=3)
    seen = {"kind": "ok", "code": "", "value": "0", "state": ""}
    rows: list[dict[str, object]] = [
        {"depth": 3, "answered": True, "observations": [seen]},
        {"depth": 3, "answered": True, "observations": [seen] * 3},
        {"depth": 2, "answered": True, "observations": [seen] * 3},
        {"depth": 2, "answered": True, "observations": [seen], "masked": "the server is gone"},
        {"depth": 3, "answered": False, "observations": [seen]},
        {"depth": 1, "answered": True, "observations": []},
        {"depth": 4, "answered": True},  # of a version that kept no observations
    ]
    write_lines(run / "rollouts.jsonl", rows)
    found = count(read_run(Run(run)), "rollouts.jsonl")
    assert (dict(found.right), found.fewer.total(), found.fewer[3]) == ({3: 2, 2: 1}, 1, 1)
    (page,) = fewer_calls(read_run(Run(run)), "rollouts.jsonl")
    assert "<b>33.3%</b> of 3 right answers make fewer calls than the reference program." in page
    assert "<td>1 of 2</td>" in page
    write_lines(run / "rollouts.jsonl", rows[-1:])
    assert list(fewer_calls(read_run(Run(run)), "rollouts.jsonl")) == []


def test_an_evaluation_counts_its_calls_by_tool(make_run: MakeRun) -> None:
    run = make_run(steps=3)
    rows: list[dict[str, object]] = [
        {"depth": 3, "answer": True, "calls": {"Find": 2, "Sort": 1}},
        {"depth": 3, "answer": True, "calls": {"Sort": 1}},
        {"depth": 3, "answer": False, "calls": {}},
        {"depth": 3, "answer": True},
        {"depth": 3, "answer": True, "calls": {"Sort": "one"}, "masked": True},
    ]
    write_lines(run / "verdicts.jsonl", rows)
    (page,) = fewer_calls(read_run(Run(run)), "verdicts.jsonl")
    assert "<b>50%</b> of 2 right answers" in page
    assert "callwright lab DIR/verdicts.jsonl --corpus NAME" in page
    data = read_run(Run(run))
    data.recipe["benchmark"] = {"name": "bfcl-v3"}
    (page,) = fewer_calls(data, "verdicts.jsonl")
    assert "these files do not say." in page
