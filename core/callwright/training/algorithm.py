"""Algorithms: advantages and losses as pure functions of tensors.

Shapes: ``B`` prompts, ``G`` completions a prompt, ``L`` completion tokens, ``N = B*G`` sequences. This module never
imports torch; the implementations do, when they are first used.

Every algorithm is an :class:`Algorithm`. What only some of them need is a protocol of its own, which a trainer asks for
with ``isinstance``: :class:`TokenLevel` (advantages that differ from token to token), :class:`ActorCritic` (a critic),
:class:`AdaptiveKL` (a KL weight that moves), :class:`EntropyBonus`, :class:`GroupBaseline` (advantages that compare the
completions of one prompt, so that it takes several), :class:`PlacesCredit` (a penalty lands on the tokens that the
evidence is about) and :class:`ShapesOverlong` (it takes off for length
in ``shape_rewards``, so that a reward leaves cut-off completions to it).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from attrs import field, frozen

from callwright.walk.limits import ShapesOverlong as ShapesOverlong  # the walk asks for it, so it is defined there

if TYPE_CHECKING:
    from torch import Tensor


@frozen(eq=False)
class TokenBatch:
    """Everything a loss may read. Log-probabilities are in nats, masks are 1 for tokens that are trained on.

    ``normaliser`` replaces the number of active tokens (or of sequences) of this batch where the batch is one
    micro-batch of a larger one, so that accumulated gradients equal those of the whole. A trainer weighs a token, for
    how likely it was sampled, by multiplying its advantage with a number from 0: every loss takes advantages of tokens.
    """

    logprobs: Tensor  # [B*G, L], with gradient
    old_logprobs: Tensor  # [B*G, L], under the sampling policy
    mask: Tensor  # [B*G, L]
    advantages: Tensor  # [B*G], or [B*G, L]: from a TokenLevel algorithm, or where a trainer weighs tokens
    ref_logprobs: Tensor | None = None  # [B*G, L], under the frozen reference
    entropy: Tensor | None = None  # [B*G, L], of the next-token distribution; with gradient for an EntropyBonus
    normaliser: float | None = None


@frozen(eq=False)
class LossOutput:
    """The scalar to minimise and what a person wants to see of it (all plain floats)."""

    loss: Tensor
    diagnostics: Mapping[str, float] = field(factory=dict)


@runtime_checkable
class Algorithm(Protocol):
    """One policy-gradient algorithm."""

    @property
    def name(self) -> str:
        """The registered name."""

    @property
    def kl_weight(self) -> float:
        """Weight of the KL term, wherever it stands; 0 spares the trainer the reference model."""

    def shape_rewards(self, rewards: Tensor, lengths: Tensor, max_length: int) -> Tensor:
        """Rewards ``[B, G]`` after length shaping; most algorithms return them unchanged."""

    def advantages(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B, G]`` from rewards ``[B, G]``; ``valid`` ``[B, G]`` is False for masked samples, which get 0."""

    def keep_groups(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B]`` bool: groups worth training on. A trainer with dynamic sampling draws others for the rest."""

    def normaliser(self, mask: Tensor) -> float:
        """What the loss of a whole batch with this mask ``[B*G, L]`` divides by.

        A trainer gives a mask as wide as a completion may be long, so that ``L`` is that limit.
        """

    def loss(self, batch: TokenBatch) -> LossOutput:
        """The loss to minimise, and its diagnostics."""


@frozen(eq=False)
class Experience:
    """The sequences of a whole batch as they were sampled, before any optimiser step: what token advantages read.

    All tensors are without gradient. What stands where ``mask`` is 0 is never read, in the middle of a row (tokens of
    the environment) as little as at its end.
    """

    scores: Tensor  # [N], what Algorithm.advantages gave each sequence
    groups: Tensor  # [N], whole numbers: which prompt each sequence belongs to
    mask: Tensor  # [N, L]
    logprobs: Tensor  # [N, L], under the sampling policy
    ref_logprobs: Tensor | None = None  # [N, L], under the frozen reference
    values: Tensor | None = None  # [N, L], what the critic expects of the state before each token
    kl_weight: float | None = None  # in place of the algorithm's own, where a trainer moves it


@runtime_checkable
class TokenLevel(Algorithm, Protocol):
    """An algorithm whose advantages differ from token to token, or depend on the tokens of the whole batch.

    Its ``advantages`` are what a sequence as a whole deserves; ``token_advantages`` spreads that over its tokens, once
    for the whole batch, and ``loss`` takes the result as :attr:`TokenBatch.advantages`.
    """

    def token_advantages(self, experience: Experience) -> tuple[Tensor, Tensor]:
        """Advantages and returns, both ``[N, L]``, 0 in inactive positions, without gradient.

        Returns are what a critic learns to expect before each token; an algorithm without one gives what followed.
        """


@frozen(eq=False)
class ValueBatch:
    """Everything a value loss may read. ``normaliser`` is that of :class:`TokenBatch`."""

    values: Tensor  # [N, L], with gradient
    old_values: Tensor  # [N, L], before the first optimiser step
    returns: Tensor  # [N, L]
    mask: Tensor  # [N, L]
    normaliser: float | None = None


@runtime_checkable
class ActorCritic(TokenLevel, Protocol):
    """An algorithm with a critic: the trainer keeps a second model, whose values it learns by ``value_loss``."""

    def value_loss(self, batch: ValueBatch) -> LossOutput:
        """The loss of the critic to minimise, and its diagnostics."""


@runtime_checkable
class AdaptiveKL(Algorithm, Protocol):
    """An algorithm that moves its KL weight during training. The trainer keeps the weight, and its checkpoints do."""

    def next_kl_weight(self, experience: Experience) -> float:
        """The weight of the next step, from this step's experience and the weight ``experience.kl_weight`` in it."""


@runtime_checkable
class EntropyBonus(Protocol):
    """An algorithm whose loss rewards entropy, which the trainer then computes with gradient."""

    @property
    def entropy_weight(self) -> float:
        """Weight of the entropy in the loss; 0 for none."""


@runtime_checkable
class SamplesDynamically(Protocol):
    """An algorithm that wants groups without signal replaced by others (DAPO)."""

    @property
    def dynamic_sampling(self) -> bool:
        """Whether it does, with its options."""


@runtime_checkable
class UnbiasedKL(Protocol):
    """An algorithm whose KL term in the loss has an unbiased gradient, by a weight of the ratio."""

    @property
    def unbiased_kl(self) -> bool:
        """Whether it has, with its options."""


@runtime_checkable
class ScalesByDeviation(Protocol):
    """An algorithm that divides advantages by a standard deviation, and says of what."""

    @property
    def std(self) -> str:
        """``group`` (the usual), ``batch`` or ``none``."""


@runtime_checkable
class GroupBaseline(Protocol):
    """An algorithm that compares each completion with the others of its prompt: of one alone nothing is learnt."""

    @property
    def smallest_group(self) -> int:
        """How many completions a prompt it needs; with fewer, all its advantages are 0."""


@runtime_checkable
class PlacesCredit(Protocol):
    """An algorithm that moves a sequence's penalty to the tokens that the evidence for it is about."""

    @property
    def credit_share(self) -> float:
        """How much of it, in [0, 1]; 0 spares the trainer to look for these tokens."""

    def placed(self, advantages: Tensor, blame: Tensor, mask: Tensor) -> Tensor:
        """Advantages of tokens ``[N, L]`` from those so far, ``[N, 1]`` or ``[N, L]``.

        ``blame`` ``[N, L]`` is not 0 for tokens that a piece of evidence is about
        (:func:`callwright.training.rollouts.credit.blamed`), ``mask`` ``[N, L]`` for those that are trained on. A
        sequence of which nothing is blamed keeps its advantages.
        """
