"""Samplers without a model: they prove a yardstick before a model is measured with it."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.scripted_samplers.samplers"
_OPTIONS = "callwright_plugins.scripted_samplers.options"


@hookimpl
def callwright_samplers() -> Iterable[Lazy]:
    """Register the scripted samplers."""
    yield Lazy(
        "gold", f"{_HERE}:Gold", "the reference program of each task: right everywhere", takes=f"{_OPTIONS}:FormOptions"
    )
    yield Lazy(
        "no-call",
        f"{_HERE}:NoCall",
        "calls nothing: right only where nothing is to be called",
        takes=f"{_OPTIONS}:FormOptions",
    )
    yield Lazy(
        "noisy-gold",
        f"{_HERE}:NoisyGold",
        "the reference with each call right with probability p",
        takes=f"{_OPTIONS}:NoisyGoldOptions",
    )
    yield Lazy(
        "random-valid",
        f"{_HERE}:RandomValid",
        "random offered tools with arguments that fit their schemas",
        takes=f"{_OPTIONS}:RandomValidOptions",
    )
