"""Adapters to agent frameworks: tools of a :class:`callwright.Log` as theirs, their conversations and tools as ours."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.agent_frameworks"


@hookimpl
def callwright_frameworks() -> Iterable[Lazy]:
    """Register the frameworks."""
    yield Lazy("langchain", f"{_HERE}.langchain:LangChain", "LangChain's agents and LangGraph", extra="langchain")
    yield Lazy("pydantic-ai", f"{_HERE}.pydantic_ai:PydanticAI", "Pydantic AI's agents", extra="pydantic-ai")
    yield Lazy("openai-agents", f"{_HERE}.openai_agents:OpenAIAgents", "agents of OpenAI's SDK", extra="openai-agents")
    yield Lazy("smolagents", f"{_HERE}.smolagents:Smolagents", "agents of smolagents", extra="smolagents")
