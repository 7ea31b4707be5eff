"""The local trainers: reinforcement and supervised learning of a Hugging Face model, on the CPU or one GPU."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_trainers() -> Iterable[Lazy]:
    """Register the trainers; torch is imported when they train."""
    yield Lazy(
        "local",
        "callwright_plugins.local_trainer.trainer:LocalTrainer",
        summary="warm start, group sampling and policy gradient in one process, on CPU or one GPU; resumes bit for bit",
        takes="callwright_plugins.local_trainer.options:Options",
        reaches="callwright_plugins.local_trainer.reaching:reaches",
        extra="train",
    )
    yield Lazy(
        "sft",
        "callwright_plugins.local_trainer.supervised.trainer:SupervisedTrainer",
        summary="supervised fine-tuning on gold programs, texts or conversations, CPU or one GPU; resumes bit for bit",
        takes="callwright_plugins.local_trainer.options:SupervisedOptions",
        extra="train",
    )


@hookimpl
def callwright_samplers() -> Iterable[Lazy]:
    """Register the sampler."""
    yield Lazy(
        "local-model",
        "callwright_plugins.local_trainer.sampling.local_model:LocalModelSampler",
        summary="completions of a Hugging Face causal language model directory, or of a run's final checkpoint",
        extra="train",
        takes="callwright_plugins.local_trainer.options:LocalModelOptions",
    )
