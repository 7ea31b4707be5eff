"""A collector receives what the OpenTelemetry tracker exports, and its offline file holds the same."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from typing import Any

import pytest
from structlog.testing import capture_logs

from callwright.testing import check_component

needed = "needs OpenTelemetry: pip install 'callwright[otel]'"
pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason=needed)
metrics_pb = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2", reason=needed)
traces_pb = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason=needed)


class Collector:
    """Takes OTLP over HTTP, and keeps it."""

    def __init__(self, status: int = 200) -> None:
        collector = self
        self.metrics: list[Any] = []
        self.spans: list[Any] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
                if status == 200:
                    collector.take(self.path, body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/metrics":
            message = metrics_pb.ExportMetricsServiceRequest.FromString(body)
            self.metrics += list(message.resource_metrics)
        else:
            assert path == "/v1/traces"
            message = traces_pb.ExportTraceServiceRequest.FromString(body)
            self.spans += list(message.resource_spans)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def attributes(said: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in said}


def test_a_collector_receives_a_run_that_was_stopped_and_went_on(train: Any, kept: Any, collector: Collector) -> None:
    run = train({"name": "otel", "endpoint": collector.endpoint + "/"}, stop=3)
    resources = [attributes(one.resource.attributes) for one in (*collector.metrics, *collector.spans)]
    assert {one["service.instance.id"] for one in resources} == {kept(run, "otel")["id"]}
    assert {(one["service.name"], one["callwright.run"]) for one in resources} == {("callwright", run.path.name)}
    figures: dict[str, list[float]] = {}
    for one in collector.metrics:
        for metric in one.scope_metrics[0].metrics:
            figures.setdefault(metric.name, []).append(metric.gauge.data_points[0].as_double)
    rewards = [row["reward"] for row in run.rows("metrics.jsonl")]
    # What was set last stands until it is set again, also beside an evaluation that comes by itself.
    assert [value for value, _ in groupby(figures["callwright.reward"])] == [value for value, _ in groupby(rewards)]
    assert {"callwright.scores.format", "callwright.evaluation.overall", "callwright.seconds.sampling"} <= set(figures)
    spans = [span for one in collector.spans for scope in one.scope_spans for span in scope.spans]
    steps = {span.span_id: attributes(span.attributes) for span in spans if span.name == "callwright.step"}
    assert [attributes["reward"] for attributes in steps.values() if "reward" in attributes] == rewards
    rollouts = [span for span in spans if span.name == "callwright.rollout"]
    rows = run.rows("rollouts.jsonl")
    shown = [attributes(span.attributes) for span in rollouts]
    assert [one["completion"] for one in shown] == [row["completion"] for row in rows]
    assert [steps[span.parent_span_id]["step"] for span in rollouts] == [row["step"] for row in rows]
    assert any(one["evidence"] for one in shown)


def test_the_offline_file_holds_the_same(train: Any) -> None:
    run = train({"name": "otel", "offline": True, "service": "mine"})
    lines = [json.loads(line) for line in (run.path / "trackers" / "otel.jsonl").read_text("utf-8").splitlines()]
    spans = [line for line in lines if "name" in line]
    rewards = [row["reward"] for row in run.rows("metrics.jsonl")]
    steps = [span["attributes"] for span in spans if span["name"] == "callwright.step"]
    assert [step["reward"] for step in steps if "reward" in step] == rewards
    assert sum(span["name"] == "callwright.rollout" for span in spans) == len(run.rows("rollouts.jsonl"))
    measured = [line for line in lines if "resource_metrics" in line]
    about = measured[0]["resource_metrics"][0]["resource"]["attributes"]
    assert about["service.name"] == "mine"


@pytest.mark.parametrize("status", [400, 404])
def test_a_collector_that_refuses_stops_nothing(train: Any, status: int) -> None:
    refusing = Collector(status)
    with capture_logs() as logs:
        run = train({"name": "otel", "endpoint": refusing.endpoint})
    refusing.close()
    (said,) = [log for log in logs if log["event"] == "tracker left out"]
    assert "did not take the metrics" in said["reason"]
    assert len(run.rows("metrics.jsonl")) == 4


def test_it_conforms() -> None:
    from callwright_plugins.trackers.otel_signals import OpenTelemetry

    assert check_component("tracker", OpenTelemetry(offline=True)) == ()
    assert check_component("tracker", OpenTelemetry()) == ()  # its stand-in
