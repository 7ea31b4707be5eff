"""OpenTelemetry: a gauge for each figure, and a trace for each step with a span for each rollout."""

from __future__ import annotations

import re
import uuid
from typing import Any, Final

from attrs import evolve, field, frozen
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from callwright.training import Run, Step
from callwright_plugins.trackers.options import maybe_text, text, truth
from callwright_plugins.trackers.otel_exporters import Exporters, to_collector, to_file

_NO_NAME: Final = re.compile(r"[^\w.-]", re.ASCII)


@frozen
class OpenTelemetry:
    """Sends runs to a collector. ``endpoint`` is its base, for OTLP over HTTP; left out, OpenTelemetry's variables say.

    ``offline``: into ``trackers/otel.jsonl`` of the run folder.
    """

    endpoint: str | None = field(default=None, validator=maybe_text)
    service: str = field(default="callwright", validator=text)
    offline: bool = field(default=False, validator=truth)

    @property
    def name(self) -> str:
        """The registered name."""
        return "otel"

    @property
    def network_checks(self) -> tuple[str, ...]:
        """Whatever is not offline."""
        return () if self.offline else ("*",)

    def stand_in(self) -> OpenTelemetry:
        """The same in the run folder."""
        return evolve(self, offline=True)

    def follow(self, run: Run, known: str | None) -> Signals:
        """Signals of a new ``service.instance.id``, or of this one."""
        made = known or str(uuid.uuid4())
        about = {"service.name": self.service, "service.instance.id": made, "callwright.run": run.path.name}
        out = to_file(run.path / "trackers" / "otel.jsonl") if self.offline else to_collector(self.endpoint)
        return Signals(made, about, out)


class Signals:
    """The signals of a run. They are exported here, step by step, so that what cannot be is known."""

    def __init__(self, instance: str, about: dict[str, Any], out: Exporters) -> None:
        self.id, self._out = instance, out
        resource = Resource.create(about)
        self._reader, self._ended = InMemoryMetricReader(), InMemorySpanExporter()
        self._meters = MeterProvider([self._reader], resource, shutdown_on_exit=False)
        self._meter = self._meters.get_meter("callwright")
        tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self._ended))
        self._tracer = tracers.get_tracer("callwright")
        self._gauges: dict[str, Any] = {}

    def send(self, step: Step) -> None:
        """Export it. Raises ``ConnectionError`` where it is not taken."""
        for name, value in {"step": step.number, **step.figures}.items():
            called = "callwright." + _NO_NAME.sub("_", name.replace("/", "."))
            gauge = self._gauges.get(called) or self._gauges.setdefault(called, self._meter.create_gauge(called))
            gauge.set(value)
        with self._tracer.start_as_current_span("callwright.step", attributes={"step": step.number, **step.figures}):
            for rollout in step.rollouts:
                known = {name: cell for name, cell in rollout.items() if cell is not None}
                self._tracer.start_span("callwright.rollout", attributes=known).end()
        ended = self._ended.get_finished_spans()
        self._ended.clear()
        self._out.export(self._reader.get_metrics_data(), ended)

    def close(self, completed: bool) -> None:
        """Let go of the connections, or of the file."""
        self._out.close()
