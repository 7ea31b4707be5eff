"""The benchmark ``when2call``: whether to call a tool, to ask, or to say that it cannot be done (Ross et al. 2025)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

NAME: Final = "when2call"


@hookimpl
def callwright_benchmarks() -> Iterable[Lazy]:
    """Register the benchmark."""
    yield Lazy(
        NAME,
        "callwright_plugins.when2call.benchmark:When2Call",
        "When2Call: call a tool, ask for what is missing, or say that it cannot be done (data=DIR)",
        takes="callwright_plugins.when2call.options:When2CallOptions",
    )
