"""Gradient checkpointing: a layer keeps its input alone, and its activations are computed again on the way back.

Transformers has this of its own, but only in training mode, where there is dropout, and without caches, which would
mean a prompt's computation for each completion of its group.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from callwright_plugins.local_trainer.models.policy import Policy


def layers_of(model: Any) -> list[Any]:
    """The layers of a model whose activations can be computed again."""
    return [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]


@contextmanager
def recomputed(policy: Policy) -> Iterator[None]:
    """In this block the layers of a policy that asks for it keep nothing for the way back but what they were given."""
    layers = layers_of(policy.model) if policy.recompute and torch.is_grad_enabled() else []
    for layer in layers:
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False, preserve_rng_state=False)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward
