"""tau2-bench (Barres et al. 2025): its dialogues and its verdicts, over the source and data that the user points at.

``scoring`` is what needs nothing of them: the actions, what was communicated, and the product over the basis.
``source`` asks tau2's own code, in its own interpreter, what a dialogue left in the databases. ``mock`` is a domain of
this project's own in the same shape.
"""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.tau2"


@hookimpl
def callwright_benchmarks() -> Iterable[Lazy]:
    """Register the benchmarks."""
    for domain in ("retail", "airline", "telecom"):
        yield Lazy(
            f"tau2-{domain}",
            f"{_HERE}.benchmark:Tau2{domain.title()}",
            summary=f"tau2-bench, {domain}: dialogues of agent and user over its source (data=DIR, package=DIR, …)",
            takes=f"{_HERE}.options:Tau2Options",
        )
    yield Lazy(
        "tau2-mock",
        f"{_HERE}.mock.benchmark:Tau2Mock",
        summary="a small domain in tau2-bench's shape with scripted users; needs nothing",
        takes=f"{_HERE}.options:Tau2MockOptions",
    )
