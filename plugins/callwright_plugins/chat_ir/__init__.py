"""Chat forms of tool calls: ToolRL's and that of Hermes and Qwen models."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_parsers() -> Iterable[Lazy]:
    """Register ``toolrl`` and ``hermes``."""
    yield Lazy(
        "toolrl",
        "callwright_plugins.chat_ir.toolrl:ToolRLParser",
        summary='one <tool_call> block with a line {"name": …, "parameters": {…}} for each call (ToolRL, figure 4)',
        takes="callwright.language.options:FormOptions",
    )
    yield Lazy(
        "hermes",
        "callwright_plugins.chat_ir.hermes:HermesParser",
        summary='a <tool_call> block with {"name": …, "arguments": {…}} for each call (Hermes and Qwen chat templates)',
        takes="callwright.language.options:FormOptions",
    )
