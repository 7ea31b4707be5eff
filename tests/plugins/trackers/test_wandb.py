"""W&B's offline files hold what its tracker logged."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callwright.errors import UsageError
from callwright.testing import check_component
from callwright.training import Run

needed = "needs W&B: pip install 'callwright[wandb]'"
wandb = pytest.importorskip("wandb", reason=needed)
records = pytest.importorskip("wandb.proto.wandb_internal_pb2", reason=needed)

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # W&B leaves a folder to be removed at exit

#: The file of an offline run is a log as LevelDB writes it, after seven bytes of its own: blocks, and records in them.
_HEADER, _BLOCK = 7, 32768


def read_records(path: Path) -> Iterator[Any]:
    data, at, parts = path.read_bytes(), _HEADER, b""
    while at + 7 <= len(data):
        if _BLOCK - at % _BLOCK < 7:  # too little for a header: the rest of a block is filled up
            at += _BLOCK - at % _BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record = records.Record()
            record.ParseFromString(parts)
            parts = b""
            yield record


def offline(run: Run) -> list[list[Any]]:
    """The records of each start of a run."""
    return [
        list(read_records(path)) for path in sorted((run.path / "trackers" / "wandb").glob("offline-run-*/*.wandb"))
    ]


def history(written: list[Any]) -> list[dict[str, Any]]:
    rows = []
    for record in written:
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            rows.append({"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in items})
    return rows


def test_a_run_that_was_stopped_and_went_on_has_one_id(train: Any, kept: Any) -> None:
    run = train({"name": "wandb", "offline": True, "project": "tools", "tags": ["a"]}, stop=3)
    starts = offline(run)
    assert len(starts) == 2
    begun = [next(one.run for one in start if one.WhichOneof("record_type") == "run") for start in starts]
    assert {one.run_id for one in begun} == {kept(run, "wandb")["id"]}
    assert (begun[0].project, begun[0].display_name, list(begun[0].tags)) == ("tools", run.path.name, ["a"])
    ends = [one.exit.exit_code for start in starts for one in start if one.WhichOneof("record_type") == "exit"]
    assert ends == [1, 0]
    rows = [row for start in starts for row in history(start)]
    kept_rows = {row["step"]: row["reward"] for row in run.rows("metrics.jsonl")}
    assert [(row["step"], row["reward"]) for row in rows if "reward" in row] == sorted(kept_rows.items())
    assert [row["step"] for row in rows if "evaluation/overall" in row] == [0, 2, 4]
    assert all("scores/format" in row for row in rows if "reward" in row)


def test_rollouts_are_tables_with_evidence(train: Any) -> None:
    run = train({"name": "wandb", "offline": True})
    (folder,) = (run.path / "trackers" / "wandb").glob("offline-run-*")
    (start,) = offline(run)
    tables = [(row["step"], row["rollouts/table/path"]) for row in history(start) if "rollouts/table/path" in row]
    assert [step for step, _ in tables] == [1, 2, 3, 4]
    table = json.loads((folder / "files" / tables[-1][1]).read_text(encoding="utf-8"))
    shown = [dict(zip(table["columns"], cells, strict=True)) for cells in table["data"]]
    rows = [row for row in run.rows("rollouts.jsonl") if row["step"] == 4]
    assert [one["completion"] for one in shown] == [row["completion"] for row in rows]
    assert [one["total"] for one in shown] == [row["total"] for row in rows]
    assert any(one["evidence"] for one in shown)


def test_nobody_is_asked_for_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from callwright_plugins.trackers.wandb_runs import WandB

    monkeypatch.setattr(wandb, "login", lambda **_: False)
    monkeypatch.setattr(wandb, "init", lambda **_: pytest.fail("it went on"))
    run = Run.create(tmp_path / "run", recipe_text='name = "r"\n', manifest={})
    with pytest.raises(UsageError, match="wandb login"):
        WandB().follow(run, None)


def test_it_conforms() -> None:
    from callwright_plugins.trackers.wandb_runs import WandB

    assert check_component("tracker", WandB(offline=True)) == ()
