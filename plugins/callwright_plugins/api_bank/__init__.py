"""The benchmark ``api-bank``: API-Bank's three levels (Li et al. 2023), prepared and scored as ToolRL does it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

NAME: Final = "api-bank"


@hookimpl
def callwright_benchmarks() -> Iterable[Lazy]:
    """Register the benchmark."""
    yield Lazy(
        NAME,
        "callwright_plugins.api_bank.benchmark:ApiBank",
        "API-Bank's three levels as ToolRL scores them (data=DIR)",
        takes="callwright_plugins.api_bank.options:ApiBankOptions",
    )
