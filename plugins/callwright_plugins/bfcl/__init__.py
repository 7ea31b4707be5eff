"""The Berkeley Function Calling Leaderboard (BFCL)."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.bfcl"


@hookimpl
def callwright_benchmarks() -> Iterable[Lazy]:
    """Register the benchmarks."""
    for version in ("v3", "v4"):
        yield Lazy(
            f"bfcl-{version}",
            f"{_HERE}.benchmark:Bfcl{version.upper()}",
            summary=f"BFCL {version}: calls in three languages, relevance, irrelevance, several turns (data=, …)",
            takes=f"{_HERE}.options:BfclOptions",
        )
    yield Lazy(
        "bfcl-multi-turn",
        f"{_HERE}.multi_turn.benchmark:BfclMultiTurn",
        summary="BFCL's four multi-turn categories, v3 and v4, by the classes of its wheel (data=DIR, package=)",
        takes=f"{_HERE}.options:BfclMultiTurnOptions",
    )
