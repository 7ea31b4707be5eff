"""Where the divergence from the reference stands in GRPO and its kin: in the loss, or in the reward.

In the loss it is a term of every token. In the reward it is taken off what a sequence earned, before the group is
looked at:

    R'_i = R_i - kl_weight sum_t KL_it,      KL_it = log pi_old(o_it) - log pi_ref(o_it)          (k1)
    A_i  = (R'_i - mean(R')) / (std(R') + eps)                    mean and std over the prompt's group

This is what verl does with ``use_kl_in_reward``, and what the released code of ToolRL does although its paper has no
KL term (section 3.4). Where a group earned the same throughout, nothing but the divergence is left to normalise: it
becomes an advantage of unit size, however small its weight. Groups are therefore found equal after the penalty.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from callwright.capability import has
from callwright.errors import UsageError
from callwright.training.algorithm import Experience, UnbiasedKL
from callwright_plugins.policy_gradient import loss_terms

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    from callwright_plugins.policy_gradient.lazy_torch import torch

KLIn = Literal["loss", "reward"]


class GroupRelative(Protocol):
    """What the placement reads of an algorithm."""

    @property
    def name(self) -> str:
        """The registered name."""

    @property
    def kl_weight(self) -> float:
        """Weight of the divergence, wherever it stands."""

    @property
    def kl_in(self) -> KLIn:
        """Where it stands."""

    @property
    def kl_estimator(self) -> loss_terms.KL | None:
        """How it is estimated; none for what is usual where it stands."""

    def normalised(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B, G]`` from rewards and ``valid`` ``[B, G]``; masked samples and groups of equal rewards get 0."""


def estimator(algorithm: GroupRelative) -> loss_terms.KL:
    """The estimator of an algorithm; left out, k3 in the loss and k1 in the reward."""
    return algorithm.kl_estimator or ("k3" if algorithm.kl_in == "loss" else "k1")


def weight_in_loss(algorithm: GroupRelative) -> float:
    """The weight of the KL term of the loss; 0 where the divergence stands in the reward."""
    return algorithm.kl_weight if algorithm.kl_in == "loss" else 0.0


#: An algorithm: what it is with ``kl_in = "reward"``.
_PENALISED: dict[type, type] = {}


class _SignatureOfInit:
    """The signature of a class by its ``__init__``: else ``__new__`` would hide which options there are."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        own = inspect.signature(owner.__init__)  # type: ignore[misc]
        return own.replace(parameters=list(own.parameters.values())[1:])


class PlacesKL:
    """An algorithm whose option ``kl_in`` decides its class, as the system decides what ``pathlib.Path()`` is.

    With ``"reward"`` it is a :class:`KLInReward`, whose advantages need the tokens of the batch; a trainer sees this by
    the class, and computes for the others no log-probabilities that nobody reads.
    """

    __slots__ = ()
    __signature__ = _SignatureOfInit()

    def __new__(cls, **options: Any) -> Self:
        """Of the class that ``kl_in`` asks for."""
        return object.__new__(_PENALISED.get(cls, cls) if options.get("kl_in") == "reward" else cls)

    def __attrs_post_init__(self: GroupRelative) -> None:
        chosen = estimator(self)
        if isinstance(self, KLInReward) != (self.kl_in == "reward"):
            raise UsageError(
                f"{type(self).__name__} cannot have kl_in = {self.kl_in!r}, which is decided by the class; make the "
                f"algorithm {self.name!r} with this option anew, or derive from the class that this gives"
            )
        if self.kl_in == "loss" and chosen == "k1":
            raise UsageError(
                f'{self.name}: kl_estimator = "k1" has no gradient on average in the loss; take "k2" or "k3" there, or '
                'kl_in = "reward"'
            )
        if has(self, UnbiasedKL) and self.unbiased_kl and (self.kl_in, chosen) != ("loss", "k3"):
            raise UsageError(
                f"{self.name}: unbiased_kl corrects the gradient of k3 in the loss; leave it out with "
                'kl_in = "reward" or another kl_estimator'
            )


class KLInReward:
    """What an algorithm is besides with ``kl_in = "reward"``: one with advantages of tokens.

    A trainer gives it the log-probabilities of the whole batch before the first step, which the penalty needs. A class
    that derives from this and from an algorithm is what that algorithm is with ``kl_in = "reward"``.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        _PENALISED[next(base for base in cls.__bases__ if base is not KLInReward)] = cls

    def advantages(self, rewards: Tensor, valid: Tensor) -> Tensor:
        """``[B, G]``: R_i, what each sequence earned; masked samples get 0. The group comes after the penalty."""
        rewards, valid = loss_terms.readable_rewards(rewards, valid)
        return torch.where(valid, rewards, 0)

    def token_advantages(self: GroupRelative, experience: Experience) -> tuple[Tensor, Tensor]:
        """``A_i`` for each token of its sequence ``[N, L]``; returns are the same.

        A sequence without active tokens is as if never sampled. Sums are made in double precision: what is left of a
        group of equal rewards is small beside the rewards.
        """
        active, scores = loss_terms.experienced(experience)
        weight = self.kl_weight if experience.kl_weight is None else experience.kl_weight
        penalty = loss_terms.kl_penalty(experience, active, estimator(self), self.name, weight)
        paid = scores.double() - penalty.double().sum(1)  # R'_i, [N]
        prompts, row = torch.unique(experience.groups, return_inverse=True)
        column = torch.arange(len(row), device=row.device)
        members = torch.zeros(len(prompts), len(row), dtype=torch.bool, device=row.device)  # [B, N]
        members[row, column] = active.any(1)
        advantages = self.normalised(torch.where(members, paid, 0), members)[row, column]
        spread = loss_terms.inside(advantages.to(penalty).unsqueeze(1).expand_as(active), active)
        return spread, spread
