"""Readers of what agents of other stacks recorded, one module a format; each reads a file as :class:`callwright.Log`.

``transcripts`` puts together what tracers keep apart: requests, answers and runs of tools; ``outputs`` writes what
scored logs become elsewhere, for ``callwright import``.
"""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.log_formats"


@hookimpl
def callwright_log_formats() -> Iterable[Lazy]:
    """Register the formats."""
    yield Lazy("callwright", "callwright.episodes.logs.own_format:OwnLogs", "our own: all of a log, as it was")
    yield Lazy(
        "openai",
        f"{_HERE}.openai_chat:OpenAIChat",
        "rows of OpenAI's chat completions",
        takes=f"{_HERE}.options:FailedOptions",
    )
    yield Lazy(
        "responses",
        f"{_HERE}.openai_responses:OpenAIResponses",
        "rows of OpenAI's Responses API",
        takes=f"{_HERE}.options:FailedOptions",
    )
    yield Lazy("otel", f"{_HERE}.otel:OpenTelemetry", "OpenTelemetry's GenAI spans in OTLP JSON")
    yield Lazy(
        "atif",
        f"{_HERE}.atif:Trajectories",
        "Harbor's Agent Trajectory Interchange Format",
        takes=f"{_HERE}.options:FailedOptions",
    )
    yield Lazy("langchain", f"{_HERE}.langchain:LangChainMessages", "messages of LangChain, written as JSON")
    yield Lazy("langsmith", f"{_HERE}.langsmith:LangSmithRuns", "runs that LangSmith exports")
    yield Lazy("langfuse", f"{_HERE}.langfuse:LangfuseTraces", "traces and observations that Langfuse exports")
    yield Lazy("inspect", f"{_HERE}.inspect_logs:InspectLogs", "logs of Inspect, .json and .eval")


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """``callwright import``."""
    yield Lazy("import", f"{_HERE}.command:import_", "logs of other stacks, in our own format or for training")
