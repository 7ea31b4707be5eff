"""The benchmark ``nestful``: nested sequences of calls, executed (Basu et al. 2025), as TIER's Table 4 has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

NAME: Final = "nestful"


@hookimpl
def callwright_benchmarks() -> Iterable[Lazy]:
    """Register the benchmark."""
    yield Lazy(
        NAME,
        "callwright_plugins.nestful.benchmark:Nestful",
        "NESTFUL: nested sequences of calls, executed (data=DIR, package=DIR)",
        takes="callwright_plugins.nestful.options:NestfulOptions",
    )
