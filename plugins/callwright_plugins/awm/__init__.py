"""Worlds of Agent World Model (Snowflake), for whoever has its files: a generated FastAPI server over SQLite each.

The format is that of the files ``gen_envs.jsonl``, ``gen_db.jsonl`` and ``gen_sample.jsonl`` as the repository
Snowflake-Labs/agent-world-model reads them (arXiv 2602.10090). Nothing of them is shipped.
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
