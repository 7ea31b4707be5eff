"""Tasks of general-agent (Prime Intellect), for whoever has their files: a world, tools, gold calls and a check each.

The format is that of ``general_agent_v1`` in verifiers (commit 7696f86, June 2026), which reads the 4,417 tasks of
research-environments. Nothing of them is shipped.
"""

from __future__ import annotations

from collections.abc import Iterator

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.general_agent"


@hookimpl
def callwright_corpora() -> Iterator[Lazy]:
    """A folder of tasks."""
    yield Lazy(
        "general-agent",
        f"{_HERE}.corpus:GeneralAgentTasks",
        "tasks of general-agent from a folder of their files (data=DIR, min_tier=…, max_tier=…)",
        reaches=f"{_HERE}.options:reaches",
        takes=f"{_HERE}.options:FolderOptions",
    )


@hookimpl
def callwright_reward_components() -> Iterator[Lazy]:
    """The task's own check."""
    yield Lazy("general-agent", f"{_HERE}.rewards:Solved", "general-agent's own check: the gold state, or verify(db)")


@hookimpl
def callwright_reward_recipes() -> Iterator[Lazy]:
    """That alone."""
    yield Lazy("general-agent", f"{_HERE}.rewards:solved", "general-agent's own reward: 1 if the task is solved")
