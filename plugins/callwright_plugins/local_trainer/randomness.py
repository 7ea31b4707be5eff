"""Randomness without state: random streams are derived from the recipe's seed, the purpose and the step.

A run that goes on from a checkpoint therefore needs to know only its step to draw what it would have drawn. The global
generators of Python, numpy and torch, which the trainer never uses but a plugin may, are seeded and checkpointed too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from callwright.training.rollouts.draws import python_generator as python_generator
from callwright.training.rollouts.draws import seed_of as seed_of


def torch_generator(*purpose: int | str, device: str | torch.device = "cpu") -> torch.Generator:
    """A torch generator for one purpose. Its numbers differ between kinds of device."""
    return torch.Generator(device=device).manual_seed(seed_of(*purpose))


def global_state() -> dict[str, Any]:
    """The states of the global generators, as values that torch saves and loads without running code."""
    name, keys, *rest = np.random.get_state()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "python": random.getstate(),
        "numpy": (name, np.asarray(keys).tolist(), *rest),
    }


def set_global_state(state: Mapping[str, Any]) -> None:
    """Put back what :func:`global_state` returned."""
    torch.set_rng_state(state["torch"])
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(list(state["cuda"]))
    random.setstate(state["python"])
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, np.asarray(keys, dtype=np.uint32), *rest))


@contextmanager
def steady(threads: int, seed: int) -> Iterator[None]:
    """Run with ``threads`` torch threads, deterministic kernels where there are any, and seeded global generators.

    What was set before is put back, so that an embedder's process is left as it was.
    """
    before = torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    states = global_state()
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    random.seed(seed_of(seed, "python"))
    np.random.seed(seed_of(seed, "numpy") % 2**32)
    torch.manual_seed(seed_of(seed, "torch"))
    try:
        yield
    finally:
        torch.set_num_threads(before)
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        set_global_state(states)
