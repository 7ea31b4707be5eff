"""The page of rewards: the figures of the rows, the texts beside them, and nothing of a text that runs."""

from __future__ import annotations

import gzip
import json
import re
from html import unescape
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import DataError
from callwright_plugins.report.page import write_scored
from callwright_plugins.report.scored import read_scored

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>\u202e'


def written(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in rows), encoding="utf-8")
    return path


def part(value: float, *codes: str, low: float = 0.0, high: float = 1.0) -> dict[str, Any]:
    evidence = [{"code": code, "reason": f"why {code}"} for code in codes]
    return {"value": value, "low": low, "high": high, "weight": 0.5, "evidence": evidence}


def reward(name: Any, total: float | None, stage: str = "done", **scores: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"id": name, "total": total, "scores": scores, "stage": stage}
    return row if total is not None else row | {"masked": f"call {name} tool: timeout"}


def page(path: Path, *given: Any, **more: Any) -> str:
    return unescape(re.sub("<[^>]+>", " ", write_scored(path, *given, **more).read_text(encoding="utf-8")))


def test_figures_are_those_of_the_rows(tmp_path: Path) -> None:
    random = Random(3)
    rows = []
    for number in range(200):
        value = random.choice((0.0, 0.25, 1.0))
        stage = "done" if value == 1 else "schema"
        lost = () if value == 1 else ("missing", "missing") if value else ("missing", "type")
        rows.append(reward(number, value, stage, names=part(4 * value - 3, *lost, low=-3.0), format=part(1.0)))
    rows += [reward(number, None) for number in range(200, 207)]
    found = read_scored(written(tmp_path / "r.jsonl", rows))
    totals = [row["total"] for row in rows[:200]]
    assert found.totals == totals
    term = found.terms["names"]
    assert term.shares / term.n == pytest.approx(sum(totals) / 200)
    assert (term.lost, term.n) == (sum(total < 1 for total in totals), 200)
    assert term.codes["missing"] == term.lost
    assert term.codes["type"] == totals.count(0.0)
    assert not found.terms["format"].codes
    assert dict(found.masked) == {"call # tool: timeout": 7}
    assert [row["total"] for why, row in found.shown() if why == "lost at schema"] == [0.0, 0.0]
    text = page(tmp_path / "r.jsonl")
    assert f"{totals.count(1.0)} of 200 rows lost no point" in text
    assert f"{term.lost} of 200 rows lost points, weight 0.5" in text
    assert f"{term.lost} rows: missing, such as “why missing”" in text
    assert "7 call # tool: timeout" in re.sub(r"\s+", " ", text)


def test_rows_in_which_a_term_has_no_points_are_no_lost_share(tmp_path: Path) -> None:
    rows = [reward(0, 1.0, names=part(0.0, high=0.0)), *(reward(n, 1.0, names=part(1.0)) for n in (1, 2))]
    term = read_scored(written(tmp_path / "r.jsonl", rows)).terms["names"]
    assert (term.share, term.lost, term.n) == (1.0, 0, 3)
    text = re.sub(r"\s+", " ", page(tmp_path / "r.jsonl"))
    assert "names 100.0% 0 of 3 rows lost points; 1 had none to earn, weight 0.5" in text


def test_texts_stand_beside_rows_and_run_nothing(tmp_path: Path) -> None:
    rewards = written(tmp_path / "r.jsonl", [reward(HOSTILE, 0.5, HOSTILE, **{HOSTILE: part(0.5, HOSTILE)})])
    rows = written(tmp_path / "in.jsonl", [{"id": HOSTILE, "completion": f"it says {HOSTILE}"}])
    html = write_scored(rewards, rows).read_text(encoding="utf-8")
    assert html.count("<script>") == 1
    assert "<img" not in html
    assert "\u202e" not in html
    assert "it says" in html
    assert "it says" not in write_scored(rewards).read_text(encoding="utf-8")


def test_the_same_files_give_the_same_bytes_packed_or_not(tmp_path: Path) -> None:
    rows = [reward(0, 0.5, "answer", answer=part(0.5, "wrong")), reward(1, 1.0, answer=part(1.0))]
    plain = written(tmp_path / "r.jsonl", rows)
    first = write_scored(plain, output=tmp_path / "a.html").read_bytes()
    assert write_scored(plain, output=tmp_path / "b.html").read_bytes() == first
    packed = tmp_path / "r.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert write_scored(packed).name == "r.jsonl.report.html"
    assert page(packed).count("rows lost no point") == 1


def test_what_is_damaged_or_masked_is_said(tmp_path: Path) -> None:
    text = page(written(tmp_path / "r.jsonl", [reward(0, None), "no JSON", reward(1, None), reward(2, 1.0)]))
    assert "1 damaged row was left out" in text
    assert "Most rows are masked" in text
    assert "Every row is masked" in page(written(tmp_path / "m.jsonl", [reward(0, None)]))


def test_rewards_that_were_edited_are_told_of(tmp_path: Path, runner: CliRunner) -> None:
    text = "<think> two and two </think>\n<response> 4 </response>"
    rows = written(tmp_path / "in.jsonl", [{"id": n, "completion": text, "ground_truth": text} for n in range(3)])
    out = tmp_path / "r.jsonl"
    done = runner.invoke(root, ["score", str(rows), "--recipe", "toolrl", "-o", str(out)], obj=App())
    assert done.exit_code == 0, done.stderr
    whole = runner.invoke(root, ["report", str(out)], obj=App())
    assert (whole.exit_code, whole.stderr) == (0, "")
    first, *others = out.read_text().splitlines(keepends=True)
    out.write_text("".join([json.dumps({**json.loads(first), "total": -3.0}) + "\n", *others]))
    done = runner.invoke(root, ["report", str(out)], obj=App())
    assert done.exit_code == 0
    assert f"{out}: r.jsonl is not as it was written" in done.stderr
    assert "r.jsonl is not as it was written" in page(out)


@pytest.mark.parametrize(
    ("rows", "told"),
    [([], "has no rows of rewards"), ([{"id": 1, "completion": "x"}], "'total' and 'scores', and this one has 'id'")],
)
def test_another_file_is_refused(tmp_path: Path, rows: list[Any], told: str) -> None:
    with pytest.raises(DataError, match=told):
        write_scored(written(tmp_path / "r.jsonl", rows))


def test_logs_of_other_stacks_are_shown_as_conversations(tmp_path: Path, runner: CliRunner) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "country", "arguments": '{"car": "Fiat"}'}}
    messages = [
        {"role": "user", "content": "Which country builds Fiat?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"result":"Italy"}'},
        {"role": "assistant", "content": "Italy."},
    ]
    parameters = {"type": "object", "properties": {"make": {"type": "string"}}, "required": ["make"]}
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([{"type": "function", "function": {"name": "country", "parameters": parameters}}]))
    logs = written(tmp_path / "logs.jsonl", [{"id": "fiat", "messages": messages, "truth": {"answer": ["Italy"]}}])
    out = tmp_path / "rewards.jsonl"
    asked = ["score", str(logs), "--format", "openai", "--tools", str(tools), "-o", str(out)]
    done = runner.invoke(root, asked, obj=App())
    assert done.exit_code == 0, done.output
    done = runner.invoke(root, ["report", str(out), "--scored", str(logs), "--tools", str(tools)], obj=App())
    assert done.exit_code == 0, done.output
    text = unescape(re.sub("<[^>]+>", " ", Path(f"{out}.report.html").read_text(encoding="utf-8")))
    assert 'country({"car": "Fiat"})' in text
    assert "Which country builds Fiat?" in text
    assert "expected no parameter of this name" in text


def test_a_folder_has_its_texts_already(tmp_path: Path, runner: CliRunner) -> None:
    done = runner.invoke(root, ["report", str(tmp_path), "--scored", "x.jsonl"], obj=App())
    assert done.exit_code == 2
    assert "--scored and --tools are for a file of rewards" in done.stderr
