"""What pages ask for: tables, groups, curves, comparisons, disagreement, notes and what is made of them."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from tests.plugins.viewer.conftest import GROUP, board_of, make_run, write_rows

from callwright.errors import UsageError
from callwright.statistics.intervals import paired_difference
from callwright_plugins.viewer.answers import lab, notes
from callwright_plugins.viewer.serving.api import Board


def rows_of(board: Board, source: str = "first") -> list[dict[str, object]]:
    found: list[dict[str, object]] = board.answer("rows", {"source": source, "limit": "500"})["rows"]
    return found


def test_pages_follow_one_another_in_every_order(board: Board) -> None:
    for sort in ("n", "-total", "step", "score.format", "-advantage", "query", "tool"):
        whole = board.answer("rows", {"source": "first", "sort": sort, "limit": "500"})["rows"]
        parts = [
            row
            for offset in range(0, 72, 10)
            for row in board.answer("rows", {"source": "first", "sort": sort, "offset": str(offset), "limit": "10"})[
                "rows"
            ]
        ]
        assert parts == whole
    totals = [row["total"] for row in board.answer("rows", {"source": "first", "sort": "-total"})["rows"]]
    assert totals == sorted(totals, reverse=True)


def test_groups_count_what_is_in_them(board: Board) -> None:
    groups = board.answer("groups", {"source": "first", "by": "group"})
    assert groups["total"] == 18
    assert all(row["count"] == GROUP for row in groups["rows"])
    for row in groups["rows"]:
        totals = [one["total"] for one in rows_of(board) if one["group"] == row["name"]]
        assert row["mean"] == pytest.approx(statistics.fmean(totals))  # type: ignore[arg-type]
        assert row["spread"] == pytest.approx(statistics.pstdev(totals), abs=1e-9)  # type: ignore[arg-type]
    by_step = board.answer("groups", {"source": "first", "by": "step", "sort": "name"})
    assert [row["name"] for row in by_step["rows"]] == [1, 2, 3, 4, 5, 6]
    with pytest.raises(UsageError, match="sorted by"):
        board.answer("groups", {"source": "first", "by": "step", "sort": "failure"})


def test_facets_count_everything(board: Board) -> None:
    told = board.answer("facets", {"source": "first"})
    assert sum(one["count"] for one in told["facets"]["answered"]) == 72
    assert sum(told["totals"]["bars"]) == 72
    assert told["steps"] == [1, 6]
    tools = {one["value"]: one["count"] for one in told["facets"]["tool"]}
    name = next(iter(tools))
    assert tools[name] == sum(name in row["tools"] for row in rows_of(board))  # type: ignore[operator]


def test_a_name_of_a_tool_may_hold_spaces(tmp_path: Path) -> None:
    calls: tuple[dict[str, int], ...] = ({"Get Price": 1, "Find": 1}, {"Get": 1}, {"Price": 2, "Get\nPrice": 1}, {})
    rows = [
        {"task": f"t-{n}", "step": 1, "group": "1-0", "sample": n, "total": 1.0, "calls": made}
        for n, made in enumerate(calls)
    ]
    write_rows(tmp_path / "run" / "rollouts.jsonl", rows)
    make_run(tmp_path / "run", steps=0)
    board = board_of(tmp_path / "run")
    try:
        told = board.answer("facets", {"source": "run"})["facets"]["tool"]
        assert {one["value"]: one["count"] for one in told} == {"Get Price": 2, "Find": 1, "Get": 1, "Price": 1}
        for text, met in (
            ('tool:"Get Price"', [0, 2]),
            ("tool:Get", [1]),
            ("tool:Price", [2]),
            ("tool:Get*", [0, 1, 2]),
            ("tool:none", [3]),
        ):
            found = board.answer("rows", {"source": "run", "q": text})["rows"]
            assert [row["sample"] for row in found] == met, text
        assert rows_of(board, "run")[0]["tools"] == ["Find", "Get Price"]
    finally:
        board.close()


def test_a_group_is_what_an_algorithm_saw(board: Board) -> None:
    told = board.answer("group", {"source": "first", "name": "2-1"})
    assert [row["sample"] for row in told["rows"]] == [0, 1, 2, 3]
    assert sum(row["advantage"] for row in told["rows"]) == pytest.approx(0, abs=1e-5)
    assert told["mean"] == pytest.approx(statistics.fmean(row["total"] for row in told["rows"]))
    assert all(row["document"]["conversation"] for row in told["rows"])


def test_a_task_is_shown_over_the_steps(board: Board) -> None:
    task = str(rows_of(board)[0]["task"])
    told = board.answer("task", {"source": "first", "name": task})
    assert told["rows"]
    assert {row["task"] for row in told["rows"]} == {task}
    steps = [row["step"] for row in told["rows"]]
    assert steps == sorted(steps)


def test_curves_are_the_figures_of_the_steps(board: Board) -> None:
    told = board.answer("curves", {"source": "first"})
    assert told["steps"] == [1, 2, 3, 4, 5, 6]
    assert told["figures"]["reward"] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    assert told["figures"]["scores/format"] == [1.0] * 6
    assert "kl" not in told["figures"]
    assert told["seconds"] == {"sampling": [0.3] * 6, "training": [0.2] * 6}
    assert told["figures"]["memory (GB)"] == [0.5] * 6
    assert told["figures"]["tokens/s"] == [pytest.approx(200)] * 6
    assert (told["recipe"], told["seed"]) == ("seen", 3)


def test_a_comparison_is_paired_by_task(board: Board) -> None:
    told = board.answer("compare", {"first": "first", "second": "second"})
    means: list[dict[str, float]] = []
    for source in ("first", "second"):
        by_task: dict[str, list[bool]] = {}
        for row in rows_of(board, source):
            by_task.setdefault(str(row["task"]), []).append(bool(row["answered"]))
        means.append({task: statistics.fmean(some) for task, some in by_task.items()})
    wanted = paired_difference(*means)
    assert told["of"] == "answered"
    assert told["difference"]["mean"] == pytest.approx(wanted.mean)
    assert told["difference"]["low"] == pytest.approx(wanted.low)
    assert told["gained"] == sum(means[1][task] > means[0][task] for task in means[0])
    assert told["flips"]
    assert all(one["first"] != one["second"] for one in told["flips"])
    assert sum(told["sides"][0]["totals"]["bars"]) == 72


def test_rewards_that_disagree_are_found(run: Path, tmp_path: Path) -> None:
    board = board_of(run)
    rows = rows_of(board)
    board.close()
    # A reward that turns everything round disagrees on every pair that differs.
    turned = write_rows(
        tmp_path / "turned.jsonl",
        ({"id": row["n"], "total": -float(row["total"]), "scores": {}, "stage": "done"} for row in rows),  # type: ignore[arg-type]
    )
    board = board_of(run, turned)
    told = board.answer("agreement", {"source": "first"})
    cell = next(one for one in told["cells"] if (one["first"], one["second"]) == ("total", "turned"))
    pairs = [
        (left, right)
        for left, right in combinations(rows, 2)
        if left["group"] == right["group"] and abs(left["total"] - right["total"]) > 1e-9  # type: ignore[operator]
    ]
    assert (cell["alike"], cell["opposite"], cell["one"]) == (0, len(pairs), 0)
    listed = board.answer("disagreeing", {"source": "first", "first": "total", "second": "turned"})
    assert listed["count"] == len(pairs) > 0
    assert all(
        pair["first"][0] > pair["first"][1] and pair["second"][0] < pair["second"][1] for pair in listed["pairs"]
    )
    with pytest.raises(UsageError, match="There is no reward"):
        lab.disagreeing(board.indexes["first"], [], "total", "nothing")
    board.close()


def test_notes_stay_and_are_filtered_by(own: Path) -> None:
    board = board_of(own)
    index = board.indexes["own"]
    notes.write_note(index, 3, "good", "")
    notes.write_note(index, 4, "bad", "the unit")
    notes.write_note(index, 4, "look", "the unit\nagain")
    notes.write_note(index, 5, "bad", "")
    notes.write_note(index, 5, "", "")
    board.close()
    board = board_of(own)
    assert board.answer("notes", {"source": "own"}) == [
        {"n": 3, "mark": "good", "comment": ""},
        {"n": 4, "mark": "look", "comment": "the unit\nagain"},
    ]
    assert [row["n"] for row in board.answer("rows", {"source": "own", "q": "mark:any"})["rows"]] == [3, 4]
    assert [row["n"] for row in board.answer("rows", {"source": "own", "q": "mark:good"})["rows"]] == [3]
    assert board.answer("rows", {"source": "own", "q": "mark:none"})["total"] == 22
    assert [row["n"] for row in board.answer("rows", {"source": "own", "q": "mark:comment"})["rows"]] == [4]
    for n, mark in ((99, "good"), (1, "fine")):
        with pytest.raises(UsageError):
            notes.write_note(board.indexes["own"], n, mark, "")
    board.close()


def test_a_note_about_a_row_that_is_another_one_now_does_not_count(own: Path) -> None:
    board = board_of(own)
    notes.write_note(board.indexes["own"], 1, "good", "")
    board.close()
    (own / "rollouts.jsonl").unlink()
    make_run(own, 1, right=0.1)
    board = board_of(own)
    assert board.answer("notes", {"source": "own"}) == []
    board.close()


def test_marks_of_tasks_are_decisions(tmp_path: Path) -> None:
    import callwright as cw
    from callwright.walk.task_rows.decisions import decisions_file, read_decisions

    tasks = tmp_path / "tasks.jsonl"
    cw.write_tasks(tasks, cw.corpus("toolworld-mini-v1")["evaluation"][16:19])
    board = board_of(tasks)
    notes.write_note(board.indexes["tasks"], 2, "bad", "odd")
    name = board.answer("rows", {"source": "tasks"})["rows"][1]["task"]
    assert read_decisions(decisions_file(tasks))[name].verdict == "drop"
    assert board.answer("notes", {"source": "tasks"}) == [{"n": 2, "mark": "bad", "comment": "odd"}]
    board.close()


def test_marked_rows_become_rows_preferences_and_tests(own: Path, tmp_path: Path) -> None:
    board = board_of(own)
    rows = rows_of(board, "own")
    index = board.indexes["own"]
    for what in ("sft", "preference", "lab", "tests"):
        with pytest.raises(UsageError, match="mark"):
            notes.exported(index, what)
    good = next(
        row for row in rows if row["answered"] and any(o["task"] == row["task"] and not o["answered"] for o in rows)
    )
    bad = next(row for row in rows if row["task"] == good["task"] and not row["answered"])
    notes.write_note(index, int(good["n"]), "good", "")  # type: ignore[call-overload]
    notes.write_note(index, int(bad["n"]), "bad", "")  # type: ignore[call-overload]
    held = [index.row(int(row["n"])) for row in (good, bad)]  # type: ignore[call-overload]
    better, worse = (row["completion"] for row in held if row is not None)
    [sft] = map(json.loads, notes.exported(index, "sft")[1].splitlines())
    assert sft["completion"] == better
    [pair] = map(json.loads, notes.exported(index, "preference")[1].splitlines())
    assert (pair["chosen"], pair["rejected"]) == (better, worse)
    probes = [json.loads(line) for line in notes.exported(index, "lab")[1].splitlines()]
    assert [one["completion"] for one in probes] == sorted(
        (better, worse), key=[one["completion"] for one in probes].index
    )
    name, text = notes.exported(index, "tests")
    (tmp_path / name).write_text(text, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / name)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    turned = text.replace(ascii(worse), '"@"').replace(ascii(better), ascii(worse)).replace('"@"', ascii(better))
    (tmp_path / name).write_text(turned, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / name)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout
    board.close()
