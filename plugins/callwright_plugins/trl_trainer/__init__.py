"""A trainer that runs a recipe through TRL: LoRA by peft, several GPUs by accelerate, sampling by vLLM if wanted."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_trainers() -> Iterable[Lazy]:
    """Register the trainer; TRL is imported when it trains."""
    yield Lazy(
        "trl",
        "callwright_plugins.trl_trainer.trainer:TRLTrainer",
        summary="TRL's GRPO with our episodes, rewards and advantages: LoRA, bf16, accelerate, vLLM; CPU to a node",
        extra="trl",
        takes="callwright_plugins.trl_trainer.options:Options",
        reaches="callwright_plugins.trl_trainer.options:reaches",
    )
