"""The reward lab: score stored rollouts again, and see what a reward does before anything is trained on it."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """``callwright rescore`` and ``callwright lab``."""
    yield Lazy("rescore", "callwright_plugins.lab.rescore:rescore", "execute a run's rollouts again and score them")
    yield Lazy("lab", "callwright_plugins.lab.command:lab", "compare rewards on the same rollouts")
