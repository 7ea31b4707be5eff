"""Formats of recorded conversations: what others have logged, as logs that every reward scores."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.log_formats"


@hookimpl
def callwright_log_formats() -> Iterable[Lazy]:
    """Register the formats."""
    yield Lazy("callwright", f"{_HERE}.own:Callwright", "logs that callwright import and write_logs wrote")
    yield Lazy("openai", f"{_HERE}.openai_chat:OpenAIChat", "rows of OpenAI's chat messages, with their tools")
    yield Lazy("responses", f"{_HERE}.responses:Responses", "items of OpenAI's Responses API")
    yield Lazy("otel", f"{_HERE}.otel:OTel", "OpenTelemetry spans of generative AI, as OTLP JSON")
    yield Lazy("atif", f"{_HERE}.atif:ATIF", "trajectories of Harbor's interchange format")
    yield Lazy("langchain", f"{_HERE}.langchain:LangChain", "LangChain's stored messages, and exports of LangSmith")
    yield Lazy("langfuse", f"{_HERE}.langfuse:Langfuse", "traces and observations that Langfuse exports")
    yield Lazy("inspect", f"{_HERE}.inspect_logs:Inspect", "logs of inspect_ai (.json, .eval)")
    yield Lazy("mcp-record", f"{_HERE}.mcp_record:MCPRecord", "what callwright env serve --record wrote")


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """``callwright import``."""
    yield Lazy("import", f"{_HERE}.command:import_logs", "read logs of other stacks, score them, make training rows")
