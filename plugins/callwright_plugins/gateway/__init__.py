"""Unchanged agents behind the gateway: a command that serves it, and a sampler that runs an agent for each task."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.gateway"


@hookimpl
def callwright_samplers() -> Iterable[Lazy]:
    """An agent as what makes attempts."""
    yield Lazy(
        "agent",
        f"{_HERE}.agent_sampler:AgentSampler",
        "a command of yours that does each task, its model behind the gateway",
        extra="gateway",
        reaches=f"{_HERE}.agent_sampler:reaches",
        takes=f"{_HERE}.options:AgentOptions",
    )


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """``callwright gateway``."""
    yield Lazy(
        "gateway", f"{_HERE}.command:gateway", "serve a model to agents and record what they do", extra="gateway"
    )
