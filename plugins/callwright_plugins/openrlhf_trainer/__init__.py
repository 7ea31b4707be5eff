"""A trainer that hands a recipe to OpenRLHF (Ray, vLLM, DeepSpeed) and runs it in an environment of its own."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_trainers() -> Iterable[Lazy]:
    """Register the trainer; OpenRLHF is never imported here, but started as another program."""
    yield Lazy(
        "openrlhf",
        "callwright_plugins.openrlhf_trainer.trainer:OpenRLHFTrainer",
        summary="OpenRLHF (Ray, vLLM, DeepSpeed) in its own environment: many GPUs and nodes, exact token ids",
        reaches="callwright_plugins.openrlhf_trainer.options:reaches",
        takes="callwright_plugins.openrlhf_trainer.options:Accepted",
    )
