"""Log-probabilities (and a critic's values) of completions, with the prompt computed once for its whole group.

The keys and values of the prompts are one forward pass; every micro-batch attends to them and sends its gradient back
into them; :meth:`Prefix.backward` then sends the sum through the prompts once. This equals the full sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from attrs import frozen
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from callwright_plugins.local_trainer.forward.batches import Ids, pad_left, pad_right, positions
from callwright_plugins.local_trainer.forward.generation import last_logits_only
from callwright_plugins.local_trainer.models.policy import Policy

#: Whether entropies are computed: without gradient, for a bonus with it, or not at all.
Entropy = Literal["plain", "trained", "none"]


@frozen(eq=False)
class Likelihood:
    """Of ``n`` completions of up to ``L`` tokens, all ``[n, L]``: log-probabilities, mask, entropies if asked for."""

    logprobs: Tensor
    mask: Tensor
    entropy: Tensor | None = None


class Prefix:
    """Keys and values of all prompt tokens but the last, which yields the first logits of completions."""

    def __init__(self, policy: Policy, prompts: Sequence[Ids]) -> None:
        self._policy = policy
        self._prompts = prompts
        ids, self._mask = pad_left([prompt[:-1] for prompt in prompts], policy.pad, policy.device)
        cache = DynamicCache(config=policy.model.config)
        with policy.arithmetic():
            policy.model(
                input_ids=ids,
                attention_mask=self._mask,
                position_ids=positions(self._mask),
                past_key_values=cache,
                use_cache=True,
                **last_logits_only(policy.model, 1),
            )
        self._made = [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
        self._leaves = [tensor.detach().requires_grad_(tensor.requires_grad) for tensor in self._made]

    def likelihood(
        self, owners: Sequence[int], completions: Sequence[Ids], temperature: float, entropy: Entropy = "plain"
    ) -> Likelihood:
        """Of completions whose prompts have the indices ``owners``."""
        logits, targets, mask = self.logits(owners, completions)
        return of_targets(logits, targets, mask, temperature, entropy)

    def logits(self, owners: Sequence[int], completions: Sequence[Ids]) -> tuple[Tensor, Tensor, Tensor]:
        """What the model says before each token of the completions, ``[n, L, V]``; the tokens, and where they are."""
        policy, device = self._policy, self._policy.device
        index = torch.tensor(list(owners), device=device)
        cache = DynamicCache(config=policy.model.config)
        for layer in range(len(self._leaves) // 2):
            keys, values = self._leaves[2 * layer : 2 * layer + 2]
            filled = cache.layers[layer]
            filled.lazy_initialization(keys, values)
            filled.keys, filled.values = keys.index_select(0, index), values.index_select(0, index)
        targets, mask = pad_right(completions, policy.pad, device)
        last = torch.tensor([[self._prompts[owner][-1]] for owner in owners], device=device)
        inputs = torch.cat([last, targets[:, :-1]], 1)
        before = self._mask.index_select(0, index)
        with policy.arithmetic():
            logits = policy.model(
                input_ids=inputs,
                attention_mask=torch.cat([before, torch.ones_like(mask)], 1),
                position_ids=before.sum(1, keepdim=True) + torch.arange(inputs.shape[1], device=device),
                past_key_values=cache,
                use_cache=True,
            ).logits
        return logits, targets, mask

    def backward(self) -> None:
        """Send what the micro-batches left in the keys and values through the prompts."""
        pairs = [
            (made, leaf.grad) for made, leaf in zip(self._made, self._leaves, strict=True) if leaf.grad is not None
        ]
        if pairs:
            torch.autograd.backward([made for made, _ in pairs], [gradient for _, gradient in pairs])


class FullSequences:
    """The same without sharing, for models whose cache cannot be split over a group."""

    def __init__(self, policy: Policy, prompts: Sequence[Ids]) -> None:
        self._policy = policy
        self._prompts = prompts

    def likelihood(
        self, owners: Sequence[int], completions: Sequence[Ids], temperature: float, entropy: Entropy = "plain"
    ) -> Likelihood:
        """Of completions whose prompts have the indices ``owners``."""
        logits, targets, mask = self.logits(owners, completions)
        return of_targets(logits, targets, mask, temperature, entropy)

    def logits(self, owners: Sequence[int], completions: Sequence[Ids]) -> tuple[Tensor, Tensor, Tensor]:
        """What the model says before each token of the completions, ``[n, L, V]``; the tokens, and where they are."""
        policy, device = self._policy, self._policy.device
        prompts, before = pad_left([self._prompts[owner] for owner in owners], policy.pad, device)
        targets, mask = pad_right(completions, policy.pad, device)
        seen = torch.cat([before, torch.ones_like(mask)], 1)[:, :-1]
        with policy.arithmetic():
            logits = policy.model(
                input_ids=torch.cat([prompts, targets[:, :-1]], 1),
                attention_mask=seen,
                position_ids=positions(seen),
                use_cache=False,
                **last_logits_only(policy.model, targets.shape[1]),
            ).logits[:, -targets.shape[1] :]
        return logits, targets, mask

    def backward(self) -> None:
        """Nothing is left to do."""


def prefix_of(policy: Policy, prompts: Sequence[Ids], shared: bool = True) -> Prefix | FullSequences:
    """What computes log-probabilities of completions of ``prompts``: shared where asked for and the model allows it."""
    return Prefix(policy, prompts) if shared and can_share(policy, prompts) else FullSequences(policy, prompts)


def can_share(policy: Policy, prompts: Sequence[Ids]) -> bool:
    """Whether the model keeps plain keys and values of every position, and every prompt has at least two tokens."""
    layers = DynamicCache(config=policy.model.config).layers
    return all(type(layer) is DynamicLayer for layer in layers) and all(len(prompt) > 1 for prompt in prompts)


def of_targets(logits: Tensor, targets: Tensor, mask: Tensor, temperature: float, entropy: Entropy) -> Likelihood:
    """Log-probabilities of ``targets`` ``[n, L]`` under ``logits`` ``[n, L, V]``, and entropies as they are wanted."""
    scaled = logits.float() / temperature if temperature != 1 else logits.float()
    normaliser = scaled.logsumexp(-1)
    logprobs = scaled.gather(2, targets.unsqueeze(2)).squeeze(2) - normaliser
    if entropy == "none":
        return Likelihood(logprobs, mask)
    if entropy == "trained":
        shifted = scaled - normaliser.unsqueeze(2)
        return Likelihood(logprobs, mask, -(shifted.exp() * shifted).sum(-1))
    with torch.no_grad():
        shifted = scaled.detach() - normaliser.detach().unsqueeze(2)
        return Likelihood(logprobs, mask, shifted.exp().mul_(shifted).sum(-1).neg_())
