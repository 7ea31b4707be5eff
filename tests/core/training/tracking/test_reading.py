"""What is new in a run folder, as steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from callwright.training import Run, Step
from callwright.training.tracking.reading import Marks, News
from callwright.training.tracking.rows import LONGEST, cells_of, figures_of


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "run", recipe_text='name = "r"\n', manifest={})


def rollout(step: int, **more: Any) -> dict[str, Any]:
    evidence = [{"code": "type", "reason": "call 1 F.rating is 'four', expected number"}]
    scores = {"format": {"value": 1.0, "high": 1.0, "evidence": []}, "types": {"value": 0.75, "high": 1.0}}
    scores["types"]["evidence"] = evidence
    return {"step": step, "task": "t-1", "depth": 2, "total": 0.35, "completion": "c", "scores": scores, **more}


def train(run: Run, *steps: int, rollouts: bool = True) -> None:
    for step in steps:
        run.append("metrics.jsonl", [{"step": step, "reward": step / 10, "scores": {"format": 1.0}, "alarm": None}])
        run.append("timings.jsonl", [{"phase": "train", "step": step, "seconds": 2.0, "sampling": 1.5}])
        if rollouts:
            run.append("rollouts.jsonl", [rollout(step)])


def test_a_step_holds_curves_parts_seconds_and_rollouts(run: Run) -> None:
    run.append("timings.jsonl", [{"phase": "warm", "step": 900, "seconds": 60.0}])
    train(run, 1)
    (step,) = News(run, Marks()).read()
    assert step.number == 1
    assert step.figures == {"reward": 0.1, "scores/format": 1.0, "seconds": 2.0, "seconds/sampling": 1.5}
    (cells,) = step.rollouts
    assert cells["scores/types"] == 0.75
    assert cells["evidence"] == "types 0.75 of 1.0: call 1 F.rating is 'four', expected number"
    assert (cells["total"], cells["task"], cells["completion"], cells["failure"]) == (0.35, "t-1", "c", None)


def test_only_what_is_new_is_read(run: Run) -> None:
    news = News(run, Marks())
    assert news.read() == []
    train(run, 1, 2)
    assert [step.number for step in news.read()] == [1, 2]
    assert news.read() == []
    train(run, 3, rollouts=False)
    assert [(step.number, len(step.rollouts)) for step in news.read()] == [(3, 0)]
    run.append("rollouts.jsonl", [rollout(3), rollout(3)])  # some trainers write them later
    (late,) = news.read()
    assert (late.number, dict(late.figures), len(late.rollouts)) == (3, {}, 2)


def test_a_line_that_is_still_written_waits(run: Run) -> None:
    train(run, 1)
    path = run.path / "metrics.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"step": 2, "rew')
    news = News(run, Marks())
    assert [step.number for step in news.read()] == [1]
    path.write_bytes(whole + b'{"step": 2, "reward": 0.5}\n')
    assert news.read() == [Step(2, {"reward": 0.5})]


def test_another_process_goes_on_where_this_one_was(run: Run) -> None:
    train(run, 1, 2, 3)
    first = News(run, Marks())
    first.read()
    kept = json.loads(json.dumps(first.marks.to_json()))
    for name in ("metrics.jsonl", "timings.jsonl", "rollouts.jsonl"):
        run.truncate(name, 1)  # back to the checkpoint of step 1
    train(run, 2, 3, 4)
    second = News(run, Marks(**kept))
    assert [(step.number, len(step.rollouts)) for step in second.read()] == [(4, 1)]


def test_files_that_become_shorter_are_read_again_and_sent_once(run: Run) -> None:
    train(run, 1, 2, 3)
    news = News(run, Marks())
    assert len(news.read()) == 3
    for name in ("metrics.jsonl", "timings.jsonl", "rollouts.jsonl"):
        run.truncate(name, 1)
    assert news.read() == []
    train(run, 2, 3, 4, 5)
    assert [step.number for step in news.read()] == [4, 5]


def test_evaluations_are_sent_once_each(run: Run) -> None:
    measured = {"overall": 0.25, "n": 40, "headline": True, "by_depth": {"2": {"accuracy": 0.5, "n": 4, "low": 0.1}}}
    run.write_json("evaluation.json", {"before": measured, "during": [], "after": None})
    news = News(run, Marks())
    (before,) = news.read()
    assert before.number == 0
    assert before.figures["evaluation/overall"] == 0.25
    assert before.figures["evaluation/by_depth/2/accuracy"] == 0.5
    assert not [name for name in before.figures if name.endswith(("/low", "2/n"))]
    train(run, 1, 2)
    run.write_json("evaluation.json", {"before": measured, "during": [{"step": 2, **measured}], "after": None})
    one, two = news.read()
    assert "evaluation/overall" not in one.figures
    assert two.figures["evaluation/overall"] == 0.25
    assert "evaluation/step" not in two.figures
    run.write_json(
        "evaluation.json", {"before": measured, "during": [{"step": 2, **measured}], "after": {"overall": 0.75}}
    )
    assert news.read() == [Step(2, {"evaluation/overall": 0.75})]
    assert news.read() == []


def test_all_rows_of_a_table_have_the_same_columns(run: Run) -> None:
    closed = rollout(1)
    del closed["scores"]["types"]  # behind a gate that closed
    run.append("rollouts.jsonl", [closed, rollout(1)])
    (step,) = News(run, Marks()).read()
    assert list(step.rollouts[0]) == list(step.rollouts[1])
    assert step.rollouts[0]["scores/types"] is None


@pytest.mark.parametrize("text", ["\ud800 half", "\x00\x1b[31m\u202e", "x" * 1_000_000, "<script>", "\U0001f600"])
def test_texts_of_a_model_become_cells_that_any_program_takes(text: str) -> None:
    cells = cells_of(rollout(1, completion=text, observations=[text, {"a": 10**400}], query=10**400))
    for cell in cells.values():
        assert not isinstance(cell, str) or len(cell.encode("utf-8").decode()) <= LONGEST + 5
    assert cells["completion"] == (
        text[: LONGEST - 1] + "…" if len(text) > LONGEST else text.replace("\ud800", "\\ud800")
    )


def test_what_is_no_number_is_no_curve() -> None:
    assert figures_of({"step": 3, "alarm": "text", "none": None, "huge": 10**400, "list": [1], "flag": True}) == {
        "flag": 1.0
    }
