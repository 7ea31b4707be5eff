"""Policy-gradient algorithms: group-relative advantages and clipped losses, one readable file each."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_algorithms() -> Iterable[Lazy]:
    """Register the algorithms; torch is imported when one of them is first made."""
    package = "callwright_plugins.policy_gradient"
    yield Lazy(
        "grpo",
        f"{package}.grpo:GRPO",
        summary="GRPO: group-normalised advantages, mean over tokens then over sequences, k3 KL (Shao et al. 2024)",
        extra="train",
    )
    yield Lazy(
        "bn-grpo",
        f"{package}.bn_grpo:BatchNormalisedGRPO",
        summary="Batch-normalised GRPO: token sum over the batch's active tokens, k3 KL 0.04 (TIER eq. 2.3)",
        extra="train",
    )
    yield Lazy(
        "dapo",
        f"{package}.dapo:DAPO",
        summary="DAPO: clip-higher, dynamic sampling, token-level loss, overlong shaping, no KL (Yu et al. 2025)",
        extra="train",
    )
