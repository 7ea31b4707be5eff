"""The benchmark ``bamboogle``: questions of two hops (Press et al. 2022), answered with a search, as ToolRL has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

NAME: Final = "bamboogle"


@hookimpl
def callwright_benchmarks() -> Iterable[Lazy]:
    """Register the benchmark."""
    yield Lazy(
        NAME,
        "callwright_plugins.bamboogle.benchmark:Bamboogle",
        "questions of two hops with a search, at most four rounds (data=DIR, search=NAME, judge=NAME)",
        takes="callwright_plugins.bamboogle.options:BamboogleOptions",
    )
