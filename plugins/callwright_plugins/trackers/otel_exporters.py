"""Where signals of OpenTelemetry go: a collector, or a file of JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import frozen
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, MetricExportResult
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SpanExportResult


@frozen
class Exporters:
    """One for metrics and one for spans, and the file that they write, if they do."""

    metrics: Any
    spans: Any
    file: Any = None

    def export(self, measured: Any, spans: Any) -> None:
        """Send both. Raises ``ConnectionError`` where the collector does not take them."""
        if self.metrics.export(measured) is not MetricExportResult.SUCCESS:
            raise ConnectionError("the collector did not take the metrics")
        if self.spans.export(spans) is not SpanExportResult.SUCCESS:
            raise ConnectionError("the collector did not take the spans")

    def close(self) -> None:
        """Let go of the connections, or of the file."""
        self.metrics.shutdown()
        self.spans.shutdown()
        if self.file is not None:
            self.file.close()


def to_collector(endpoint: str | None) -> Exporters:
    """OTLP over HTTP to the collector at this address, or where OpenTelemetry's variables say."""
    base = None if endpoint is None else endpoint.rstrip("/")
    at = {name: None if base is None else f"{base}/v1/{name}" for name in ("metrics", "traces")}
    return Exporters(OTLPMetricExporter(at["metrics"]), OTLPSpanExporter(at["traces"]))


def to_file(path: Path) -> Exporters:
    """A line of JSON for each export, after those that the file has."""
    path.parent.mkdir(exist_ok=True)
    out = path.open("a", encoding="utf-8")
    return Exporters(
        ConsoleMetricExporter(out, formatter=lambda data: data.to_json(indent=None) + "\n"),
        ConsoleSpanExporter(out=out, formatter=lambda span: span.to_json(indent=None) + "\n"),
        out,
    )
