"""Log-probabilities (and a critic's values) of completions, with the prompt computed once for its whole group.

The keys and values of the prompts are one forward pass; every micro-batch attends to them and sends its gradient back
into them; :meth:`Prefix.backward` then sends the sum through the prompts once. This equals the full sequences.

Both come in two forms: with transformers' forward of any model, and in few operators (:mod:`.llama`) where a model is
:func:`.llama.understood`. The tests hold them equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from attrs import frozen
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from callwright_plugins.local_trainer.forward.batches import Ids, pad_left, pad_right, positions
from callwright_plugins.local_trainer.forward.generation import last_logits_only
from callwright_plugins.local_trainer.forward.llama import Llama, understood
from callwright_plugins.local_trainer.forward.prompt_cache import GroupLayer, PromptLayer
from callwright_plugins.local_trainer.forward.ragged import Causal, Rows, following
from callwright_plugins.local_trainer.forward.recomputing import recomputed
from callwright_plugins.local_trainer.forward.token_logprobs import head_of, of_hidden, of_logits
from callwright_plugins.local_trainer.forward.trees import grown
from callwright_plugins.local_trainer.models.policy import Policy

#: Whether entropies are computed: without gradient, for a bonus with it, or not at all.
Entropy = Literal["plain", "trained", "none"]


@frozen(eq=False)
class Likelihood:
    """Of ``n`` completions of up to ``L`` tokens, all ``[n, L]``: log-probabilities, mask, entropies if asked for."""

    logprobs: Tensor
    mask: Tensor
    entropy: Tensor | None = None


@frozen(eq=False)
class Said:
    """Of tokens ``[E]`` what the head makes the logits before them of, ``[E, D]``; and which of them each token of the
    completions is, row after row, ``[M]``: ``None`` where each is its own."""

    hidden: Tensor
    tokens: Tensor
    entries: Tensor | None = None


class Prefix:
    """Keys and values of all prompt tokens but the last, which yields the first logits of completions."""

    def __init__(self, policy: Policy, prompts: Sequence[Ids]) -> None:
        self._policy = policy
        self._prompts = prompts
        self._few = in_few_operators(policy)
        self._made = self._packed_prompts() if self._few else self._padded_prompts()
        self._leaves = [tensor.detach().requires_grad_(tensor.requires_grad) for tensor in self._made]

    def _packed_prompts(self) -> list[Tensor]:
        """By layer ``[2 K, prompts, L, W]``: keys, then values."""
        model, before = Llama(self._policy), [prompt[:-1] for prompt in self._prompts]
        rows = Rows([len(prompt) for prompt in before])
        causal = Causal(model, rows, keep=True, keys_only=True)
        turns = model.turns(rows.packed([range(length) for length in rows.lengths]))
        tables: list[Tensor] = []
        model.hidden(rows.packed(before), turns, causal, tables=tables)
        return tables

    def _padded_prompts(self) -> list[Tensor]:
        """Keys and values of each layer ``[prompts, K, L, W]``, with padding before each prompt."""
        policy, prompts = self._policy, self._prompts
        ids, self._mask = pad_left([prompt[:-1] for prompt in prompts], policy.pad, policy.device)
        cache = DynamicCache(config=policy.model.config)
        cache.layers = [PromptLayer() for _ in cache.layers]
        with policy.arithmetic(), recomputed(policy):
            policy.model.base_model(
                input_ids=ids,
                attention_mask=self._mask,
                position_ids=positions(self._mask),
                past_key_values=cache,
                use_cache=True,
            )
        return [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]

    def likelihood(
        self, owners: Sequence[int], completions: Sequence[Ids], temperature: float, entropy: Entropy = "plain"
    ) -> Likelihood:
        """Of completions whose prompts have the indices ``owners``."""
        packed = self._hidden if self._few else None
        return _likelihood(self._policy, self._output, packed, owners, completions, temperature, entropy)

    def logits(self, owners: Sequence[int], completions: Sequence[Ids]) -> tuple[Tensor, Tensor, Tensor]:
        """What the model says before each token of the completions, ``[n, L, V]``; the tokens, and where they are."""
        if self._few:
            return _logits(self._policy, self._hidden(owners, completions), completions)
        output, targets, mask = self._output(self._policy.model, owners, completions)
        return output.logits, targets, mask

    def _hidden(self, owners: Sequence[int], completions: Sequence[Ids]) -> Said:
        """The different tokens after the different beginnings of the completions."""
        model = Llama(self._policy)
        lengths = [len(prompt) - 1 for prompt in self._prompts]
        trees, edges = grown(owners, completions, lengths, self._policy.model.config.hidden_size)
        rows, attend = following(model, trees, lengths, self._leaves)
        turns = model.turns(rows.packed([[lengths[tree.owner] + n for n in tree.written] for tree in trees]))
        inputs = rows.packed(
            [[self._prompts[tree.owner][-1] if one is None else one for one in tree.tokens] for tree in trees]
        )
        hidden = model.hidden(inputs, turns, attend)
        assert hidden is not None
        places = [rows.starts[tree] + node for tree, node in zip(edges.trees, edges.nodes, strict=True)]
        return Said(
            hidden.index_select(0, torch.tensor(places, dtype=torch.long)),
            torch.tensor(edges.tokens, dtype=torch.long),
            torch.tensor(edges.entries, dtype=torch.long),
        )

    def _output(self, model: Any, owners: Sequence[int], completions: Sequence[Ids]) -> tuple[Any, Tensor, Tensor]:
        policy, device = self._policy, self._policy.device
        index = torch.tensor(list(owners), device=device)
        cache = DynamicCache(config=policy.model.config)
        cache.layers = [
            GroupLayer(keys, values, index) for keys, values in zip(self._leaves[::2], self._leaves[1::2], strict=True)
        ]
        targets, mask = pad_right(completions, policy.pad, device)
        last = torch.tensor([[self._prompts[owner][-1]] for owner in owners], device=device)
        inputs = torch.cat([last, targets[:, :-1]], 1)
        before = self._mask.index_select(0, index)
        with policy.arithmetic(), recomputed(policy):
            output = model(
                input_ids=inputs,
                attention_mask=torch.cat([before, torch.ones_like(mask)], 1),
                position_ids=before.sum(1, keepdim=True) + torch.arange(inputs.shape[1], device=device),
                past_key_values=cache,
                use_cache=True,
            )
        return output, targets, mask

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
        self._few = in_few_operators(policy) and all(prompts)

    def likelihood(
        self, owners: Sequence[int], completions: Sequence[Ids], temperature: float, entropy: Entropy = "plain"
    ) -> Likelihood:
        """Of completions whose prompts have the indices ``owners``."""
        packed = self._hidden if self._few else None
        return _likelihood(self._policy, self._output, packed, owners, completions, temperature, entropy)

    def logits(self, owners: Sequence[int], completions: Sequence[Ids]) -> tuple[Tensor, Tensor, Tensor]:
        """What the model says before each token of the completions, ``[n, L, V]``; the tokens, and where they are."""
        if self._few:
            return _logits(self._policy, self._hidden(owners, completions), completions)
        output, targets, mask = self._output(self._policy.model, owners, completions)
        return output.logits[:, -targets.shape[1] :], targets, mask

    def _hidden(self, owners: Sequence[int], completions: Sequence[Ids]) -> Said:
        """The tokens of the completions, row after row."""
        model = Llama(self._policy)
        mine = [self._prompts[owner] for owner in owners]
        whole = [(*own, *one[:-1]) for own, one in zip(mine, completions, strict=True)]
        rows = Rows([len(one) for one in whole])
        turns = model.turns(rows.packed([range(length) for length in rows.lengths]))
        firsts = [len(own) - 1 if one else len(own) for own, one in zip(mine, completions, strict=True)]
        hidden = model.hidden(rows.packed(whole), turns, Causal(model, rows), rows.places(firsts))
        assert hidden is not None
        return Said(hidden, torch.tensor([one for row in completions for one in row], dtype=torch.long))

    def _output(self, model: Any, owners: Sequence[int], completions: Sequence[Ids]) -> tuple[Any, Tensor, Tensor]:
        policy, device = self._policy, self._policy.device
        prompts, before = pad_left([self._prompts[owner] for owner in owners], policy.pad, device)
        targets, mask = pad_right(completions, policy.pad, device)
        seen = torch.cat([before, torch.ones_like(mask)], 1)[:, :-1]
        with policy.arithmetic(), recomputed(policy):
            output = model(
                input_ids=torch.cat([prompts, targets[:, :-1]], 1),
                attention_mask=seen,
                position_ids=positions(seen),
                use_cache=False,
                **last_logits_only(model, targets.shape[1]),
            )
        return output, targets, mask

    def backward(self) -> None:
        """Nothing is left to do."""


def prefix_of(policy: Policy, prompts: Sequence[Ids], shared: bool = True) -> Prefix | FullSequences:
    """What computes log-probabilities of completions of ``prompts``: shared where asked for and the model allows it."""
    return Prefix(policy, prompts) if shared and can_share(policy, prompts) else FullSequences(policy, prompts)


def can_share(policy: Policy, prompts: Sequence[Ids]) -> bool:
    """Whether the model keeps plain keys and values of every position, and every prompt has at least two tokens."""
    layers = DynamicCache(config=policy.model.config).layers
    return all(type(layer) is DynamicLayer for layer in layers) and all(len(prompt) > 1 for prompt in prompts)


def in_few_operators(policy: Policy) -> bool:
    """Whether log-probabilities are computed by :mod:`.llama`."""
    return understood(policy) and head_of(policy) is not None


def _logits(policy: Policy, said: Said, completions: Sequence[Ids]) -> tuple[Tensor, Tensor, Tensor]:
    """A padded table of what the head says before each token, the tokens, and where they are."""
    targets, mask = pad_right(completions, policy.pad, policy.device)
    head = head_of(policy)
    assert head is not None
    logits = head(said.hidden)
    if said.entries is not None:
        logits = logits.index_select(0, said.entries)
    written = mask.flatten().nonzero().squeeze(1)
    table = logits.new_zeros(targets.numel(), logits.shape[1]).index_copy(0, written, logits)
    return table.view(*targets.shape, -1), targets, mask


def _likelihood(
    policy: Policy,
    output: Callable[[Any, Sequence[int], Sequence[Ids]], tuple[Any, Tensor, Tensor]],
    packed: Callable[[Sequence[int], Sequence[Ids]], Said] | None,
    owners: Sequence[int],
    completions: Sequence[Ids],
    temperature: float,
    entropy: Entropy,
) -> Likelihood:
    """From the trunk's hidden states where the model's head is plain, which are far smaller than logits."""
    head = head_of(policy)
    if head is None:
        made, targets, mask = output(policy.model, owners, completions)
        logits = made.logits[:, -targets.shape[1] :]
        told = of_logits(logits.reshape(-1, logits.shape[-1]), targets.flatten(), temperature, entropy != "none")
        logprobs, entropies = (table.view(targets.shape) for table in told)
    else:
        if packed is None:
            made, targets, mask = output(policy.model.base_model, owners, completions)
            written = mask.flatten().nonzero().squeeze(1)  # padding has no head computed for it
            hidden = made.last_hidden_state[:, -targets.shape[1] :].flatten(0, 1).index_select(0, written)
            said = Said(hidden, targets.flatten().index_select(0, written))
        else:
            _, mask = pad_right(completions, policy.pad, policy.device)
            written = mask.flatten().nonzero().squeeze(1)
            said = packed(owners, completions)
        told = of_hidden(said.hidden, head, said.tokens, temperature, entropy != "none", policy.dtype)
        if said.entries is not None:
            told = told[0].index_select(0, said.entries), told[1].index_select(0, said.entries)
        empty = torch.zeros(mask.numel(), device=policy.device)
        logprobs, entropies = (empty.index_copy(0, written, table).view(mask.shape) for table in told)
    if entropy == "none":
        return Likelihood(logprobs, mask)
    return Likelihood(logprobs, mask, entropies if entropy == "trained" else entropies.detach())
