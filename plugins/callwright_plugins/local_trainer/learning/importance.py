"""Importance correction: tokens that were sampled by other probabilities than the trainer's are weighed by the ratio.

An engine computes in another arithmetic than the trainer, or by older weights. What it sampled is of its distribution
pi_engine, where the gradient wants the trainer's, pi_old (of the weights before the first optimiser step). The weight

    w_it = pi_old(o_it) / pi_engine(o_it)                                                (token)
    w_i  = prod_t w_it                          over the tokens that the policy wrote      (sequence)

makes up for it in the mean; truncated to min(w, C) a few tokens cannot outweigh all others ("truncated importance
sampling": Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy RL training"). ``mask`` leaves
out what is above C instead. Both distributions are those at the trainer's ``temperature``, which an engine's
log-probabilities are of, too.

A weight multiplies the surrogate of its token, not the KL term nor the entropy bonus, as in TRL. Surrogates are linear
in the advantage as long as its sign stays, so weighing a token's advantage is weighing its surrogate, whatever the
algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import torch
from torch import Tensor

#: How a weight is cut, and of what it is; the words are TRL's.
Correction = Literal["none", "sequence_mask", "sequence_truncate", "token_mask", "token_truncate"]
CORRECTIONS: Final[tuple[Correction, ...]] = (
    "none",
    "sequence_mask",
    "sequence_truncate",
    "token_mask",
    "token_truncate",
)


class Importance:
    """The weights of tokens, a micro-batch at a time, and what a person wants to see of all of them."""

    def __init__(self, correction: Correction, most: float) -> None:
        """``most`` above 1 is C: the largest weight (truncate), or the largest that is kept at all (mask)."""
        self._of, _, self._cut = correction.partition("_")
        self._most = most
        self._tokens = 0
        self._cut_tokens = 0
        self._sum = self._highest = self._divergence = 0.0

    def weights(self, old: Tensor, engine: Tensor, mask: Tensor) -> Tensor:
        """``[n, L]`` from log-probabilities (nats) of the trainer and of the engine and the mask of what the policy
        wrote, all ``[n, L]``.

        1 in inactive positions and where the engine's is NaN: it gave none. In the modes of sequences all tokens of a
        row have its weight.
        """
        active = mask != 0
        known = active & ~engine.isnan()
        difference = torch.where(known, old - engine, 0).double()  # log w_it
        whole = difference.sum(1, keepdim=True).expand_as(difference) if self._of == "sequence" else difference
        ratio = torch.exp(whole)
        above = ratio > self._most
        kept = torch.where(above, 0, ratio) if self._cut == "mask" else ratio.clamp(max=self._most)
        self._count(ratio, above, difference, known)
        return torch.where(active, kept, 1).to(old)

    def _count(self, ratio: Tensor, above: Tensor, difference: Tensor, known: Tensor) -> None:
        self._tokens += int(known.sum())
        self._cut_tokens += int((above & known).sum())
        ratios = torch.where(known, ratio, 0)
        self._sum += float(ratios.sum())
        self._highest = max(self._highest, float(ratios.amax())) if ratios.numel() else self._highest
        self._divergence += float((torch.expm1(difference) - difference).sum())  # k3; 0 where nothing is known

    @property
    def figures(self) -> dict[str, float]:
        """``importance_mean`` and ``importance_max``: of the weights before they are cut. ``importance_clipped``: the
        share of tokens whose weight was. ``engine_kl``: the divergence of the trainer's distribution from the engine's,
        in nats a token (k3). All over the tokens that the engine gave log-probabilities of; 0 where there is none."""
        tokens = max(self._tokens, 1)
        return {
            "importance_mean": self._sum / tokens,
            "importance_max": self._highest,
            "importance_clipped": self._cut_tokens / tokens,
            "engine_kl": self._divergence / tokens,
        }


def engine_table(rows: Sequence[Sequence[float]], width: int, device: torch.device) -> Tensor:
    """An engine's log-probabilities as ``[n, width]``, NaN after their end and in a row that has none."""
    padded = [[*row, *[float("nan")] * (width - len(row))] for row in rows]
    return torch.tensor(padded, dtype=torch.float32, device=device).reshape(len(rows), width)
