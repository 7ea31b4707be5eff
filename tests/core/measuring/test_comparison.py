"""Evaluations compared: pairs, groups, flips, boards, and the layouts of tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import asdict

from callwright.errors import DataError, UnknownName
from callwright.measuring.comparison import board_of, compare
from callwright.measuring.folders import Evaluated, read_evaluated
from callwright.measuring.templates import TEMPLATES, Column, Template, table_of, template_named
from callwright.statistics.paired import bootstrap_difference, mcnemar
from callwright.training.verdicts import Verdict


def write(path: Path, right: str, *, family: int = 1, samples: int = 1, **more: Any) -> Path:
    """A folder whose verdicts are the letters: r right, w wrong, m masked; a family holds so many tasks."""
    path.mkdir(parents=True)
    stated = {"corpus": {"name": "c", "split": "s"}, "ir": "json", "sampler": {"name": "openai", "model": path.name}}
    (path / "settings.json").write_text(json.dumps({**stated, **more}))
    lines = []
    for place, letter in enumerate(right):
        task, sample = divmod(place, samples)
        verdict = Verdict(
            f"t{task}",
            task % 2,
            "single",
            answer=letter == "r",
            valid=letter == "r",
            failure={"r": "", "w": "answer:wrong", "m": "masked"}[letter],
            masked=letter == "m",
            sample=sample,
            family=f"f{task // family}" if family > 1 else "",
            groups={"kind": "even" if task % 2 == 0 else "odd"},
        )
        lines.append(json.dumps({**asdict(verdict), "completion": f"{path.name} {place}", "query": f"q{task}"}) + "\n")
    (path / "verdicts.jsonl").write_text("".join(lines))
    return path


def evaluated(path: Path, right: str, **more: Any) -> Evaluated:
    return read_evaluated(write(path, right, **more))


def test_pairs_are_counted_by_hand(tmp_path: Path) -> None:
    first = evaluated(tmp_path / "a", "rrrwwwrwmr")
    second = evaluated(tmp_path / "b", "rwrrrwrrrm")
    found = compare(first, second, [("kind",), ("depth", "kind")])
    whole = found.whole
    assert (whole.difference.n, whole.gained, whole.lost) == (8, 3, 1)
    assert (whole.first, whole.second) == (4 / 8, 6 / 8)
    assert whole.difference == bootstrap_difference([[0.0]] * 4 + [[1.0]] * 3 + [[-1.0]])
    assert whole.p == mcnemar(3, 1)
    assert [(group.name, group.difference.n) for group in found.tables["kind"]] == [("even", 4), ("odd", 4)]
    assert [group.name for group in found.tables["depth,kind"]] == ["0, even", "1, odd"]
    assert [(flip.task, flip.gained) for flip in found.flips] == [
        ("t1", False),
        ("t3", True),
        ("t4", True),
        ("t7", True),
    ]
    assert first.row(found.flips[0].rows[0])["completion"] == "a 1"
    assert second.row(found.flips[0].rows[1])["completion"] == "b 1"
    assert "2 tasks are masked in one of the two and left out" in found.remarks
    assert json.loads(json.dumps(found.to_json()))["all"]["gained"] == 3


def test_tasks_of_a_family_are_drawn_together(tmp_path: Path) -> None:
    left, right = "w" * 40, "r" * 20 + "w" * 20
    alone = compare(evaluated(tmp_path / "a", left), evaluated(tmp_path / "b", right)).whole.difference
    together = compare(
        evaluated(tmp_path / "c", left, family=10), evaluated(tmp_path / "d", right, family=10)
    ).whole.difference
    assert (alone.clusters, together.clusters) == (40, 4)
    assert alone.low is not None
    assert together.low is not None
    assert together.low < 0.1 < 0.3 < alone.low


def test_samples_are_shares_of_a_task(tmp_path: Path) -> None:
    first = evaluated(tmp_path / "a", "rrww" + "wwww" + "rrrm", samples=4)
    second = evaluated(tmp_path / "b", "rwww" + "rrww" + "rrrr", samples=4)
    found = compare(first, second)
    assert found.whole.difference.difference == pytest.approx((-0.25 + 0.5 + 0.0) / 3)
    assert (found.whole.gained, found.whole.lost, found.whole.p) == (1, 1, None)
    (flip,) = found.flips
    assert (flip.task, flip.rows) == ("t1", (4, 4)), "a wrong sample of the first and a right one of the second"


def test_what_differs_is_said(tmp_path: Path) -> None:
    found = compare(evaluated(tmp_path / "a", "rw"), evaluated(tmp_path / "b", "rwr", ir="xml", samples=1))
    assert "ir: json and xml" in found.remarks
    assert "1 tasks stand in one of the two only and are left out" in found.remarks
    with pytest.raises(DataError, match="have no task in common"):
        compare(evaluated(tmp_path / "c", "m"), evaluated(tmp_path / "d", "r"))


def test_a_board_has_benchmarks_and_checkpoints_in_the_order_given(tmp_path: Path) -> None:
    other = {"corpus": {"name": "d", "split": "s"}}
    one, two = evaluated(tmp_path / "x/a", "rw"), evaluated(tmp_path / "x/b", "rr")
    three = read_evaluated(write(tmp_path / "y/b", "rr", **other))
    board = board_of([one, two, three])
    assert (board.benchmarks, board.checkpoints) == (["c, s", "d, s"], ["a", "b"])
    assert [(it.first.name, it.second.name) for it in board.comparisons] == [("a", "b")]
    again = read_evaluated(write(tmp_path / "z/b", "ww"))
    with pytest.raises(DataError, match=r"are both 'b' on c, s; name them: NAME="):
        board_of([one, two, again])


def test_folders_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is no evaluation: it has no settings\.json"):
        read_evaluated(tmp_path / "none")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.toml").write_text("")
    with pytest.raises(DataError, match=r"is a run, no evaluation: evaluate its model into a folder of its own"):
        read_evaluated(tmp_path / "run")
    path = write(tmp_path / "a", "rw")
    torn = (path / "verdicts.jsonl").read_text()
    (path / "verdicts.jsonl").write_text(torn + '{"task": "t')
    assert len(read_evaluated(path).verdicts) == 2
    (path / "verdicts.jsonl").write_text(torn + "[]\n")
    with pytest.raises(DataError, match=r"verdicts.jsonl:3: no object"):
        read_evaluated(path)
    (path / "verdicts.jsonl").write_text('{"task": 5}\n')
    with pytest.raises(DataError, match=r"verdicts.jsonl:1: 'task' is a number, expected text"):
        read_evaluated(path)


# Templates ------------------------------------------------------------------------------------------------------------


def test_every_table_of_the_papers_has_its_layout() -> None:
    printed = {"tier": (1, 2, 3, 4, 5, 6, 7), "toolrl": (1, 2, 3, 5, 6, 7), "prove": (3, 4, 5, 6, 7)}
    assert set(TEMPLATES) == {f"{paper}-{number}" for paper, numbers in printed.items() for number in numbers}
    assert [column.heading for column in TEMPLATES["tier-1"].columns] == [
        "Overall Acc",
        *(f"{n}-Step" for n in range(7)),
    ]
    assert len(TEMPLATES["prove-3"].columns) == 9
    with pytest.raises(UnknownName, match="Did you mean 'tier-1'"):
        template_named("teir-1")


def test_a_template_takes_each_value_from_its_benchmark() -> None:
    template = Template(
        "t",
        "T",
        (Column("All", "one", "overall"), Column("3", "one", "depth 3"), Column("Calls", "two", "calls", count=True)),
    )
    results = {
        "one-v1, test": {"overall": 0.5, "by_depth": {"3": {"accuracy": 0.98571}}},
        "two, test": {"overall": 0.1, "values": {"calls": 1.1874}},
    }
    heads, rows = table_of(template, [("a", results), ("b", {"one": {"overall": None}})])
    assert heads == ["", "All", "3", "Calls"]
    assert rows == [["a", "50.00", "98.57", "1.19"], ["b", "–", "–", "–"]]


def test_a_mean_of_several_benchmarks_needs_all_of_them() -> None:
    layout = template_named("prove-3")
    measured = {f"tau2-{name}:1": {"values": {"overall": value}} for name, value in (("airline", 0.2), ("retail", 0.4))}
    assert layout.row(measured)[5:] == [0.2, 0.4, None, None]
    measured["tau2-telecom:1"] = {"values": {"overall": 0.6}}
    assert layout.row(measured)[5:] == pytest.approx([0.2, 0.4, 0.6, 0.4])
    turns = {"bfcl-multi-turn:v3": {"values": {"overall": 0.3, "multi_turn_base": 0.5}}}
    assert (layout.row(turns)[0], layout.row(turns)[4]) == (0.5, 0.3)
    assert template_named("tier-3").row(turns)[0] is None  # whose Overall is another figure


def test_columns_of_bfcl_are_figures_that_it_gives() -> None:
    from callwright_plugins.bfcl.aggregation import table

    figures = set(table("v3", {})) | {"multi_turn_base", "multi_turn_miss_param", "multi_turn_miss_func"}
    figures |= {"multi_turn_long_context"}
    named = {
        column.value
        for template in TEMPLATES.values()
        for column in template.columns
        if column.benchmark.startswith("bfcl")
    }
    assert named <= figures
