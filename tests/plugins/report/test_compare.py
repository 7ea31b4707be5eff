"""``callwright compare``: the terminal, the page, Markdown and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from callwright.cli.root import root
from callwright.commands.app import App


@pytest.fixture
def invoke(runner: CliRunner) -> Callable[..., Result]:
    def run(*words: str | Path) -> Result:
        return runner.invoke(root, [str(word) for word in words], obj=App(), catch_exceptions=False)

    return run


@pytest.fixture
def folders(invoke: Callable[..., Result], tmp_path: Path) -> tuple[Path, Path]:
    words = ("evaluate", "--corpus", "toolworld-mini-v1", "--split", "evaluation", "--limit", "60", "--sampler")
    for name, p in (("weak", 0.4), ("strong", 0.9)):
        options = ("--sampler-option", f"p={p}", "-o", tmp_path / name)
        assert invoke(*words, "noisy-gold", *options).exit_code == 0
    return tmp_path / "weak", tmp_path / "strong"


def test_two_evaluations_side_by_side(
    invoke: Callable[..., Result], folders: tuple[Path, Path], tmp_path: Path
) -> None:
    weak, strong = folders
    out = tmp_path / "out"
    shown = invoke("compare", f"before={weak}", f"after={strong}", "--template", "tier-1", "-o", out)
    assert shown.exit_code == 0
    assert "after against before on toolworld-mini-v1, evaluation" in shown.stdout
    assert shown.stdout.endswith(f"{out / 'compare.html'}\n")
    found = json.loads(invoke("compare", f"before={weak}", f"after={strong}", "--json").stdout)
    (one,) = found["comparisons"]
    accuracies = found["benchmarks"]["toolworld-mini-v1, evaluation"]
    assert one["all"]["difference"] == pytest.approx(accuracies["after"]["accuracy"] - accuracies["before"]["accuracy"])
    assert one["all"]["low"] > 0
    assert one["all"]["gained"] - one["all"]["lost"] == len([f for f in one["flips"] if f["gained"]]) - len(
        [f for f in one["flips"] if not f["gained"]]
    )
    rows = list(csv.DictReader(io.StringIO((out / "compare.csv").read_text())))
    whole = next(row for row in rows if row["checkpoint"] == "after" and row["group"] == "all")
    assert float(whole["difference"]) == one["all"]["difference"]
    assert (whole["against"], int(whole["gained"])) == ("before", one["all"]["gained"])
    assert {row["by"] for row in rows} == {"", "depth", "structure"}
    text = (out / "compare.md").read_text()
    assert "## after against before on toolworld-mini-v1, evaluation" in text
    page = (out / "compare.html").read_text()
    for flip in one["flips"][:3]:
        assert flip["task"] in page
    assert "after is better on toolworld-mini-v1, evaluation" in page
    assert "<script src" not in page
    again = tmp_path / "again"
    invoke("compare", f"before={weak}", f"after={strong}", "--template", "tier-1", "-o", again)
    for name in ("compare.html", "compare.md", "compare.csv"):
        assert (again / name).read_bytes() == (out / name).read_bytes()


def test_verdicts_that_were_edited_are_told_of(invoke: Callable[..., Result], folders: tuple[Path, Path]) -> None:
    weak, strong = folders
    assert "not as it was written" not in invoke("compare", weak, strong).stderr
    file = strong / "verdicts.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    edited = {**json.loads(lines[2]), "answer": not json.loads(lines[2])["answer"]}
    file.write_text("".join([*lines[:2], json.dumps(edited) + "\n", *lines[3:]]))
    done = invoke("compare", weak, strong)
    assert done.exit_code == 0
    assert f"{strong}: verdicts.jsonl, line 3: not as it was written" in done.stderr
    assert f"callwright doctor {strong}" in done.stderr
    file.write_text("".join(lines[:-1]))
    assert "line 60: missing" in invoke("compare", weak, strong).stderr
    (strong / "evaluation.json").unlink()  # of one that was killed a digest may have come before its row
    assert "missing" not in invoke("compare", weak, strong).stderr


def test_a_report_tells_of_verdicts_that_were_edited(invoke: Callable[..., Result], folders: tuple[Path, Path]) -> None:
    folder, _ = folders
    assert invoke("report", folder).stderr == ""
    assert "not as it was written" not in (folder / "report.html").read_text()
    file = folder / "verdicts.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    edited = {**json.loads(lines[2]), "answer": not json.loads(lines[2])["answer"]}
    file.write_text("".join([*lines[:2], json.dumps(edited) + "\n", *lines[3:]]))
    done = invoke("report", folder)
    assert done.exit_code == 0
    assert f"{folder}: verdicts.jsonl, line 3: not as it was written" in done.stderr
    assert "verdicts.jsonl, line 3: not as it was written" in (folder / "report.html").read_text()


def test_where_most_is_masked_the_bounds_stand_in_place_of_a_headline(
    invoke: Callable[..., Result], folders: tuple[Path, Path], tmp_path: Path
) -> None:
    weak, strong = folders
    file = strong / "verdicts.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    lost = {
        "answer": False,
        "valid": False,
        "failure": "masked",
        "error": "masked",
        "masked": True,
        "lost": "it was down",
    }
    file.write_text("".join(json.dumps({**row, **(lost if at % 2 else {})}) + "\n" for at, row in enumerate(rows)))
    right = sum(row["answer"] for row in rows[::2])
    said = f"{100 * right / 60:.1f}% to {100 * (right + 30) / 60:.1f}%, 30 masked"
    out = tmp_path / "out"
    done = invoke("compare", f"a={weak}", f"b={strong}", "-o", out)
    assert said in " ".join(done.stdout.replace("│", " ").split())
    assert said in (out / "compare.html").read_text()
    assert said in (out / "compare.md").read_text()


def test_an_evaluation_that_was_killed_is_not_called_edited(
    invoke: Callable[..., Result], folders: tuple[Path, Path]
) -> None:
    folder, _ = folders
    (folder / "evaluation.json").unlink()
    file = folder / "verdicts.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))  # its digest was written, it was not
    assert "written" not in invoke("report", folder).stderr


def test_text_of_a_model_cannot_leave_its_place(
    invoke: Callable[..., Result], folders: tuple[Path, Path], tmp_path: Path
) -> None:
    nasty = "<script>alert(1)</script>|=1+1\u202e"
    for folder in folders:
        rows = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text().splitlines()]
        for row in rows:
            row |= {"completion": nasty, "query": nasty, "groups": {"kind": "=cmd|' /C calc'!A0"}}
        (folder / "verdicts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert (
        invoke("compare", f"{nasty[:8]}={folders[0]}", folders[1], "--by", "kind", "-o", tmp_path / "o").exit_code == 0
    )
    page = (tmp_path / "o/compare.html").read_text()
    assert "<script>alert" not in page
    assert "\u202e" not in page
    rows = list(csv.reader(io.StringIO((tmp_path / "o/compare.csv").read_text())))
    assert not [cell for row in rows for cell in row if cell.startswith("=")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "nowhere is no evaluation"),
        (("{weak}", "{weak}"), "name them: NAME="),
        (("{weak}", "--by", "kin"), "no task has a group 'kin'"),
        (("{weak}", "--template", "tier-9"), "There is no table template named 'tier-9'"),
    ],
)
def test_requests_that_cannot_be_met(
    invoke: Callable[..., Result], folders: tuple[Path, Path], words: tuple[str, ...], said: str
) -> None:
    result = invoke("compare", *(word.format(weak=folders[0]) for word in words))
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
