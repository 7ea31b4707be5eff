"""TensorBoard reads what its tracker writes, with TensorBoard's own reader."""

from __future__ import annotations

from typing import Any

import pytest

from callwright.testing import check_component
from callwright.training import Run, Step

needed = "needs TensorBoard: pip install 'callwright[tensorboard]'"
accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason=needed)
tensor_util = pytest.importorskip("tensorboard.util.tensor_util", reason=needed)
text_plugin = pytest.importorskip("tensorboard.plugins.text.text_plugin", reason=needed)


def read(run: Run) -> dict[str, dict[int, Any]]:
    """By tag, the value at each step."""
    found = accumulator.EventAccumulator(str(run.path / "trackers" / "tensorboard"), size_guidance={"tensors": 0})
    found.Reload()
    values: dict[str, dict[int, Any]] = {}
    for tag in found.Tags()["tensors"]:
        for event in found.Tensors(tag):
            assert event.step not in values.setdefault(tag, {}), f"{tag} twice at step {event.step}"
            values[tag][event.step] = tensor_util.make_ndarray(event.tensor_proto)
    return values


def test_a_run_that_was_stopped_and_went_on_is_one_curve(train: Any) -> None:
    run = train("tensorboard", stop=3)  # its newest checkpoint is that of step 2 or 3
    values = read(run)
    rows = {row["step"]: row for row in run.rows("metrics.jsonl")}
    assert {step: float(value) for step, value in values["reward"].items()} == pytest.approx(
        {step: row["reward"] for step, row in rows.items()}
    )
    assert sorted(values["scores/format"]) == [1, 2, 3, 4]
    assert sorted(values["evaluation/overall"]) == [0, 2, 4]
    assert sorted(values["rollouts/table"]) == [1, 2, 3, 4]
    assert b"toolworld-mini-v1" in values["recipe"][0].item()


def test_the_table_holds_rollouts_with_their_evidence(train: Any) -> None:
    run = train(["tensorboard"])
    header, *rows = read(run)["rollouts/table"][4].tolist()
    columns = [cell.decode() for cell in header]
    kept = [row for row in run.rows("rollouts.jsonl") if row["step"] == 4]
    assert len(rows) == len(kept) == 2
    for cells, row in zip(rows, kept, strict=True):
        shown = dict(zip(columns, (cell.decode().replace("    ", "", 1) for cell in cells), strict=True))
        assert shown["task"] == row["task"]
        assert float(shown["scores/format"]) == row["scores"]["format"]["value"]
        for score in row["scores"].values():
            for evidence in score["evidence"]:
                assert evidence["reason"].splitlines()[0] in shown["evidence"]


@pytest.mark.parametrize(
    "hostile",
    ["<script>alert(1)</script>", "![x](http://e.example/x.png)", "a\n\n![x](http://e.example/x.png)", "\r<img src=x>"],
)
def test_texts_of_a_model_load_nothing_in_a_browser(train: Any, tmp_path: Any, hostile: str) -> None:
    from callwright_plugins.trackers.tensorboard_events import TensorBoard

    run = Run.create(tmp_path / "one", recipe_text='name = "r"\n', manifest={})
    shown = TensorBoard().follow(run, None)
    shown.send(Step(1, {}, ({"completion": hostile, "total": None},)))
    shown.close(True)
    page = text_plugin.text_array_to_html(read(run)["rollouts/table"][1], True)
    assert "<table>" in page
    assert "<img" not in page
    assert "<script" not in page


def test_it_conforms() -> None:
    from callwright_plugins.trackers.tensorboard_events import TensorBoard

    assert check_component("tracker", TensorBoard()) == ()
