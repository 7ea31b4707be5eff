"""The options of the algorithms: types, rules, defaults and what each means. Nothing here imports torch."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from callwright.options import OptionTable
from callwright_plugins.policy_gradient.options import SWITCH, count, number, one_of


class GRPOOptions(OptionTable):
    """Options of ``algorithm = "grpo"``."""

    epsilon: Annotated[float, number(above=0, below=1)] = Field(
        default=0.2, description="How far the ratio may fall below 1."
    )
    epsilon_high: Annotated[float | None, number(above=0, optional=True)] = Field(
        default=None, description="How far the ratio may rise above 1; epsilon if left out."
    )
    ratio: Annotated[Literal["token", "response"], one_of("token", "response")] = Field(
        default="token", description="Of each token, or of the whole response."
    )
    kl_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.04, description="Weight of the divergence from the reference; 0: no reference is needed."
    )
    kl_in: Annotated[Literal["loss", "reward"], one_of("loss", "reward")] = Field(
        default="loss", description="Where the divergence from the reference stands."
    )
    kl_estimator: Annotated[Literal["k1", "k2", "k3"] | None, one_of("k1", "k2", "k3", optional=True)] = Field(
        default=None, description="Of the divergence; k3 in the loss and k1 in the reward if left out."
    )
    unbiased_kl: Annotated[bool, SWITCH] = Field(default=False, description="Correct the gradient of k3 by the ratio.")
    std: Annotated[Literal["group", "population", "batch", "none"], one_of("group", "population", "batch", "none")] = (
        Field(default="group", description="By which deviation advantages are divided.")
    )
    std_epsilon: Annotated[float, number(at_least=0)] = Field(default=1e-4, description="Added to the deviation.")
    entropy_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.0, description="Weight of the bonus for entropy."
    )
    credit_share: Annotated[float, number(at_least=0, at_most=1)] = Field(
        default=0.0, description="Share of a penalty that lands on the tokens that its evidence is about."
    )


class BatchNormalisedGRPOOptions(OptionTable):
    """Options of ``algorithm = "bn-grpo"``."""

    epsilon: Annotated[float, number(above=0, below=1)] = Field(
        default=0.2, description="How far the ratio may fall below 1."
    )
    epsilon_high: Annotated[float | None, number(above=0, optional=True)] = Field(
        default=None, description="How far the ratio may rise above 1; epsilon if left out."
    )
    kl_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.04, description="Weight of the divergence from the reference; 0: no reference is needed."
    )
    kl_in: Annotated[Literal["loss", "reward"], one_of("loss", "reward")] = Field(
        default="loss", description="Where the divergence from the reference stands."
    )
    kl_estimator: Annotated[Literal["k1", "k2", "k3"] | None, one_of("k1", "k2", "k3", optional=True)] = Field(
        default=None, description="Of the divergence; k3 in the loss and k1 in the reward if left out."
    )
    unbiased_kl: Annotated[bool, SWITCH] = Field(default=False, description="Correct the gradient of k3 by the ratio.")
    std: Annotated[Literal["group", "population", "batch", "none"], one_of("group", "population", "batch", "none")] = (
        Field(default="group", description="By which deviation advantages are divided.")
    )
    std_epsilon: Annotated[float, number(at_least=0)] = Field(default=1e-4, description="Added to the deviation.")
    entropy_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.0, description="Weight of the bonus for entropy."
    )
    credit_share: Annotated[float, number(at_least=0, at_most=1)] = Field(
        default=0.0, description="Share of a penalty that lands on the tokens that its evidence is about."
    )


class DAPOOptions(OptionTable):
    """Options of ``algorithm = "dapo"``."""

    epsilon_low: Annotated[float, number(above=0, below=1)] = Field(
        default=0.2, description="How far the ratio may fall below 1."
    )
    epsilon_high: Annotated[float, number(above=0)] = Field(
        default=0.28, description="How far the ratio may rise above 1."
    )
    kl_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.0, description="Weight of the divergence from the reference; 0: no reference is needed."
    )
    kl_in: Annotated[Literal["loss", "reward"], one_of("loss", "reward")] = Field(
        default="loss", description="Where the divergence from the reference stands."
    )
    kl_estimator: Annotated[Literal["k1", "k2", "k3"] | None, one_of("k1", "k2", "k3", optional=True)] = Field(
        default=None, description="Of the divergence; k3 in the loss and k1 in the reward if left out."
    )
    unbiased_kl: Annotated[bool, SWITCH] = Field(default=False, description="Correct the gradient of k3 by the ratio.")
    std: Annotated[Literal["group", "population", "batch", "none"], one_of("group", "population", "batch", "none")] = (
        Field(default="group", description="By which deviation advantages are divided.")
    )
    std_epsilon: Annotated[float, number(at_least=0)] = Field(default=1e-4, description="Added to the deviation.")
    entropy_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.0, description="Weight of the bonus for entropy."
    )
    dynamic_sampling: Annotated[bool, SWITCH] = Field(
        default=True, description="Leave groups of equal rewards out and draw others."
    )
    overlong_buffer: Annotated[int | None, count(optional=True)] = Field(
        default=None,
        description="Tokens before the longest completion over which the penalty grows; no penalty if left out.",
    )
    overlong_penalty: Annotated[float, number(at_least=0)] = Field(
        default=1.0, description="The largest penalty of length."
    )


class DrGRPOOptions(OptionTable):
    """Options of ``algorithm = "dr-grpo"``."""

    max_length: Annotated[int | None, count(1, optional=True)] = Field(
        default=None,
        description="The constant that token sums are divided by; the longest completion allowed if left out.",
    )
    epsilon: Annotated[float, number(above=0, below=1)] = Field(
        default=0.2, description="How far the ratio may fall below 1."
    )
    epsilon_high: Annotated[float | None, number(above=0, optional=True)] = Field(
        default=None, description="How far the ratio may rise above 1; epsilon if left out."
    )
    kl_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.0, description="Weight of the divergence from the reference; 0: no reference is needed."
    )
    kl_in: Annotated[Literal["loss", "reward"], one_of("loss", "reward")] = Field(
        default="loss", description="Where the divergence from the reference stands."
    )
    kl_estimator: Annotated[Literal["k1", "k2", "k3"] | None, one_of("k1", "k2", "k3", optional=True)] = Field(
        default=None, description="Of the divergence; k3 in the loss and k1 in the reward if left out."
    )
    entropy_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.0, description="Weight of the bonus for entropy."
    )


class GSPOOptions(OptionTable):
    """Options of ``algorithm = "gspo"``."""

    epsilon: Annotated[float, number(above=0, below=1)] = Field(
        default=3e-4, description="How far the ratio of a response may fall below 1."
    )
    epsilon_high: Annotated[float, number(above=0)] = Field(
        default=4e-4, description="How far the ratio of a response may rise above 1."
    )
    kl_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.0, description="Weight of the divergence from the reference; 0: no reference is needed."
    )
    kl_in: Annotated[Literal["loss", "reward"], one_of("loss", "reward")] = Field(
        default="loss", description="Where the divergence from the reference stands."
    )
    kl_estimator: Annotated[Literal["k1", "k2", "k3"] | None, one_of("k1", "k2", "k3", optional=True)] = Field(
        default=None, description="Of the divergence; k3 in the loss and k1 in the reward if left out."
    )
    std: Annotated[Literal["group", "population", "batch", "none"], one_of("group", "population", "batch", "none")] = (
        Field(default="group", description="By which deviation advantages are divided.")
    )
    std_epsilon: Annotated[float, number(at_least=0)] = Field(default=1e-4, description="Added to the deviation.")
    entropy_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.0, description="Weight of the bonus for entropy."
    )


class CISPOOptions(OptionTable):
    """Options of ``algorithm = "cispo"``."""

    epsilon_low: Annotated[float | None, number(above=0, below=1, optional=True)] = Field(
        default=None, description="How far the weight of a token may fall below 1; as far as it likes if left out."
    )
    epsilon_high: Annotated[float, number(above=0)] = Field(
        default=4.0, description="How far the weight of a token may rise above 1."
    )
    kl_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.0, description="Weight of the divergence from the reference; 0: no reference is needed."
    )
    kl_in: Annotated[Literal["loss", "reward"], one_of("loss", "reward")] = Field(
        default="loss", description="Where the divergence from the reference stands."
    )
    kl_estimator: Annotated[Literal["k1", "k2", "k3"] | None, one_of("k1", "k2", "k3", optional=True)] = Field(
        default=None, description="Of the divergence; k3 in the loss and k1 in the reward if left out."
    )
    std: Annotated[Literal["group", "population", "batch", "none"], one_of("group", "population", "batch", "none")] = (
        Field(default="group", description="By which deviation advantages are divided.")
    )
    std_epsilon: Annotated[float, number(at_least=0)] = Field(default=1e-4, description="Added to the deviation.")
    entropy_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.0, description="Weight of the bonus for entropy."
    )


class RLOOOptions(OptionTable):
    """Options of ``algorithm = "rloo"``."""

    kl_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.05, description="Weight of the divergence from the reference; 0: no reference is needed."
    )
    ratio: Annotated[Literal["sequence", "token"], one_of("sequence", "token")] = Field(
        default="sequence", description="Of whole completions, or of each token."
    )
    epsilon: Annotated[float, number(above=0, below=1)] = Field(
        default=0.2, description="How far the ratio may fall below 1."
    )
    epsilon_high: Annotated[float | None, number(above=0, optional=True)] = Field(
        default=None, description="How far the ratio may rise above 1; epsilon if left out."
    )
    entropy_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.0, description="Weight of the bonus for entropy."
    )


class ReinforcePlusPlusOptions(OptionTable):
    """Options of ``algorithm = "reinforce++"``."""

    kl_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.01, description="Weight of the divergence from the reference; 0: no reference is needed."
    )
    kl_estimator: Annotated[Literal["k1", "k2", "k3"], one_of("k1", "k2", "k3")] = Field(
        default="k1", description="Of the divergence."
    )
    kl_in: Annotated[Literal["reward", "loss"], one_of("reward", "loss")] = Field(
        default="reward", description="Where the divergence from the reference stands."
    )
    gamma: Annotated[float, number(above=0, at_most=1)] = Field(
        default=1.0, description="Discount of a token's return."
    )
    unbiased_std: Annotated[bool, SWITCH] = Field(
        default=False, description="Divide by n - 1 in the deviation of advantages."
    )
    epsilon: Annotated[float, number(above=0, below=1)] = Field(
        default=0.2, description="How far the ratio may fall below 1."
    )
    epsilon_high: Annotated[float | None, number(above=0, optional=True)] = Field(
        default=None, description="How far the ratio may rise above 1; epsilon if left out."
    )
    entropy_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.0, description="Weight of the bonus for entropy."
    )


class ReinforcePlusPlusBaselineOptions(ReinforcePlusPlusOptions):
    """Options of ``algorithm = "reinforce++-baseline"``."""

    kl_estimator: Annotated[Literal["k1", "k2", "k3"], one_of("k1", "k2", "k3")] = Field(
        default="k2", description="Of the divergence."
    )
    kl_in: Annotated[Literal["reward", "loss"], one_of("reward", "loss")] = Field(
        default="loss", description="Where the divergence from the reference stands."
    )


class PPOOptions(OptionTable):
    """Options of ``algorithm = "ppo"``."""

    gamma: Annotated[float, number(at_least=0, at_most=1)] = Field(
        default=1.0, description="Discount of a token's return."
    )
    lam: Annotated[float, number(at_least=0, at_most=1)] = Field(
        default=1.0, description="Lambda of generalised advantage estimation."
    )
    epsilon: Annotated[float, number(above=0, below=1)] = Field(
        default=0.2, description="How far the ratio may fall below 1."
    )
    epsilon_high: Annotated[float | None, number(above=0, optional=True)] = Field(
        default=None, description="How far the ratio may rise above 1; epsilon if left out."
    )
    value_clip: Annotated[float | None, number(above=0, optional=True)] = Field(
        default=0.5, description="How far a value may move from the old one; not clipped if none."
    )
    kl_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.001, description="Weight of the divergence from the reference; 0: no reference is needed."
    )
    kl_estimator: Annotated[Literal["k1", "k2", "k3"], one_of("k1", "k2", "k3")] = Field(
        default="k1", description="Of the divergence."
    )
    kl_target: Annotated[float | None, number(above=0, optional=True)] = Field(
        default=None, description="Divergence in nats that the weight follows; the weight is fixed if left out."
    )
    kl_horizon: Annotated[float, number(above=0)] = Field(
        default=10000.0, description="Sequences over which the weight follows kl_target."
    )
    entropy_weight: Annotated[float, number(at_least=0)] = Field(
        default=0.0, description="Weight of the bonus for entropy."
    )
    whiten: Annotated[bool, SWITCH] = Field(default=True, description="Normalise advantages over the batch's tokens.")
    unbiased_std: Annotated[bool, SWITCH] = Field(
        default=True, description="Divide by n - 1 in the deviation of advantages."
    )
