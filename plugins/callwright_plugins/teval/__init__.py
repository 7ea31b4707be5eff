"""The benchmark ``t-eval``: tool use taken apart into six abilities (Chen et al. 2023), as Prove's Table 4 has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

NAME: Final = "t-eval"


@hookimpl
def callwright_benchmarks() -> Iterable[Lazy]:
    """Register the benchmark."""
    yield Lazy(
        NAME,
        "callwright_plugins.teval.benchmark:TEval",
        "T-Eval: instruct, plan, reason, retrieve, understand, review (data=DIR)",
        takes="callwright_plugins.teval.options:TEvalOptions",
    )
