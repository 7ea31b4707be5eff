"""Worlds of Agent World Model (Snowflake), for whoever has its files: a generated FastAPI server over SQLite each.

The format is that of the files ``gen_envs.jsonl``, ``gen_db.jsonl``, ``gen_sample.jsonl``, ``gen_tasks.jsonl`` and
``gen_verifier.pure_code.jsonl`` as the repository Snowflake-Labs/agent-world-model reads them (arXiv 2602.10090).
Nothing of them is shipped.
"""

from __future__ import annotations

from collections.abc import Iterator

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.awm"


@hookimpl
def callwright_environments() -> Iterator[Lazy]:
    """A world of a folder of files."""
    yield Lazy(
        "awm",
        f"{_HERE}.environment:open_world",
        "a world of Agent World Model from a folder of its files (data=DIR, world=NAME)",
        extra="awm",
        reaches=f"{_HERE}.options:reaches",
        takes=f"{_HERE}.options:WorldOptions",
    )


@hookimpl
def callwright_corpora() -> Iterator[Lazy]:
    """The tasks of the worlds in a folder of files."""
    yield Lazy(
        "awm",
        f"{_HERE}.corpus:WorldTasks",
        "tasks of Agent World Model from a folder of its files (data=DIR, worlds=[…])",
        extra="awm",
        reaches=f"{_HERE}.options:reached_by_tasks",
        takes=f"{_HERE}.options:TaskOptions",
    )


@hookimpl
def callwright_reward_components() -> Iterator[Lazy]:
    """The task's own verifier."""
    yield Lazy("awm", f"{_HERE}.rewards:Complete", "AWM's own verifier of the task, in code: complete or not")


@hookimpl
def callwright_reward_recipes() -> Iterator[Lazy]:
    """That alone."""
    yield Lazy("awm", f"{_HERE}.rewards:complete", "AWM's own reward: 1 if the task's verifier says complete")
