"""MLflow's own client finds what its tracker logged, in a database of this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from callwright.testing import check_component

mlflow = pytest.importorskip("mlflow", reason="needs MLflow: pip install 'callwright[mlflow]'")
pytest.importorskip("sqlalchemy", reason="needs MLflow with its database: pip install 'callwright[mlflow]'")

# MLflow over a newer SQLAlchemy than it was written for.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture
def uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)  # where it puts artifacts
    return f"sqlite:///{tmp_path / 'mlflow.db'}"


def test_a_run_that_was_stopped_and_went_on_is_one_run(train: Any, kept: Any, uri: str) -> None:
    run = train({"name": "mlflow", "uri": uri, "experiment": "tools"}, stop=3)
    client = mlflow.MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("tools")
    (found,) = client.search_runs([experiment.experiment_id])
    assert found.info.run_id == kept(run, "mlflow")["id"]
    assert (found.info.status, found.info.run_name) == ("FINISHED", run.path.name)
    assert found.data.params["trainer.steps"] == "4"
    assert found.data.params["corpus"] == "toolworld-mini-v1"
    rows = {row["step"]: row for row in run.rows("metrics.jsonl")}
    curve = [(metric.step, metric.value) for metric in client.get_metric_history(found.info.run_id, "reward")]
    assert sorted(curve) == sorted((step, row["reward"]) for step, row in rows.items())
    part = client.get_metric_history(found.info.run_id, "scores/format")
    assert sorted(metric.step for metric in part) == [1, 2, 3, 4]
    measured = client.get_metric_history(found.info.run_id, "evaluation/overall")
    assert sorted(metric.step for metric in measured) == [0, 2, 4]


def test_rollouts_are_tables_with_evidence(train: Any, kept: Any, uri: str) -> None:
    run = train({"name": "mlflow", "uri": uri})
    client = mlflow.MlflowClient(tracking_uri=uri)
    known = kept(run, "mlflow")["id"]
    assert sorted(file.path for file in client.list_artifacts(known, "rollouts")) == [
        f"rollouts/step-{step:06d}.json" for step in (1, 2, 3, 4)
    ]
    table = json.loads(Path(client.download_artifacts(known, "rollouts/step-000004.json")).read_text(encoding="utf-8"))
    shown = [dict(zip(table["columns"], cells, strict=True)) for cells in table["data"]]
    rows = [row for row in run.rows("rollouts.jsonl") if row["step"] == 4]
    assert [one["completion"] for one in shown] == [row["completion"] for row in rows]
    assert [one["total"] for one in shown] == [row["total"] for row in rows]
    assert any(one["evidence"] for one in shown)


def test_a_server_that_is_not_there_stops_nothing(train: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    from structlog.testing import capture_logs

    with capture_logs() as logs:
        run = train({"name": "mlflow", "uri": "http://127.0.0.1:9"})
    (said,) = [log for log in logs if log["event"] == "tracker left out"]
    assert said["tracker"] == "mlflow"
    assert len(run.rows("metrics.jsonl")) == 4
    assert not (run.path / "trackers" / "mlflow.json").exists()


def test_it_conforms(uri: str) -> None:
    from callwright_plugins.trackers.mlflow_runs import MLflow

    assert check_component("tracker", MLflow(uri=uri)) == ()
