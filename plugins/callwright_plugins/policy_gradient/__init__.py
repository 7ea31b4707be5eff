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
        takes=f"{package}.option_tables:GRPOOptions",
        extra="train",
    )
    yield Lazy(
        "bn-grpo",
        f"{package}.bn_grpo:BatchNormalisedGRPO",
        summary="Batch-normalised GRPO: token sum over the batch's active tokens, k3 KL 0.04 (TIER eq. 2.3)",
        takes=f"{package}.option_tables:BatchNormalisedGRPOOptions",
        extra="train",
    )
    yield Lazy(
        "dapo",
        f"{package}.dapo:DAPO",
        summary="DAPO: clip-higher, dynamic sampling, token-level loss, overlong shaping, no KL (Yu et al. 2025)",
        takes=f"{package}.option_tables:DAPOOptions",
        extra="train",
    )
    yield Lazy(
        "dr-grpo",
        f"{package}.dr_grpo:DrGRPO",
        summary="Dr. GRPO: no division by deviation or length, token sum over a constant, no KL (Liu et al. 2025)",
        takes=f"{package}.option_tables:DrGRPOOptions",
        extra="train",
    )
    yield Lazy(
        "gspo",
        f"{package}.gspo:GSPO",
        summary="GSPO: the ratio of a whole response, length taken out, clipped as one (Zheng et al. 2025)",
        takes=f"{package}.option_tables:GSPOOptions",
        extra="train",
    )
    yield Lazy(
        "cispo",
        f"{package}.cispo:CISPO",
        summary="CISPO: the weight of a token is clipped and not its gradient, token-level loss (MiniMax-M1, 2025)",
        takes=f"{package}.option_tables:CISPOOptions",
        extra="train",
    )
    yield Lazy(
        "rloo",
        f"{package}.rloo:RLOO",
        summary="RLOO: leave-one-out baseline, whole completions as actions, KL in the reward (Ahmadian et al. 2024)",
        takes=f"{package}.option_tables:RLOOOptions",
        extra="train",
    )
    yield Lazy(
        "reinforce++",
        f"{package}.reinforce_plus_plus:ReinforcePlusPlus",
        summary="REINFORCE++: returns normalised over the batch's tokens, k1 KL in the reward (Hu et al. 2025)",
        takes=f"{package}.option_tables:ReinforcePlusPlusOptions",
        extra="train",
    )
    yield Lazy(
        "reinforce++-baseline",
        f"{package}.reinforce_plus_plus:ReinforcePlusPlusBaseline",
        summary="REINFORCE++-baseline: group mean off, then normalised over the batch, k2 KL loss (Hu et al. 2025)",
        takes=f"{package}.option_tables:ReinforcePlusPlusBaselineOptions",
        extra="train",
    )
    yield Lazy(
        "ppo",
        f"{package}.ppo:PPO",
        summary="PPO: a critic, GAE, clipped policy and value losses, k1 KL in the reward (Schulman et al. 2017)",
        takes=f"{package}.option_tables:PPOOptions",
        extra="train",
    )
