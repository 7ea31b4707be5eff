"""Log-probabilities of given tokens over a large vocabulary, a slice of the tokens at a time.

A table of logits is the largest tensor of a step: 600 MB in float32 for 1,024 tokens and 151,936 entries, of which
plain autograd holds five at once. Here a slice is turned into log-probabilities and let go; going back, it is made
again. A table of one slice is kept instead, so that a small model pays for nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from callwright_plugins.local_trainer.models.policy import Policy

#: Entries of a slice, by device: 32 MB of float32 on the CPU, where caches are small, 256 MB on a GPU.
ENTRIES: Final = {"cpu": 1 << 23, "cuda": 1 << 26}

_HEADS: WeakKeyDictionary[nn.Module, nn.Linear | None] = WeakKeyDictionary()


def head_of(policy: Policy) -> nn.Linear | None:
    """The last layer of a model whose logits are that layer of its last hidden states, and nothing else.

    ``None`` for models that scale or bend their logits. Found out by two tokens, once for each model.
    """
    model = policy.model
    if model not in _HEADS:
        _HEADS[model] = _plain_head(policy)
    return _HEADS[model]


@torch.no_grad()
def _plain_head(policy: Policy) -> nn.Linear | None:
    model = policy.model
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if type(head) is not nn.Linear or model.base_model is model:
        return None
    ids = torch.tensor([[policy.pad, 0]], device=policy.device)
    with policy.arithmetic():
        # The base of a model with adapters is a wrapper that gives logits itself.
        hidden = getattr(model.base_model(input_ids=ids, use_cache=False), "last_hidden_state", None)
        if hidden is None:
            return None
        logits = model(input_ids=ids, use_cache=False).logits
        return head if torch.equal(logits, head(hidden)) else None


def of_hidden(
    hidden: Tensor, head: nn.Linear, targets: Tensor, temperature: float, entropy: bool, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Log-probabilities ``[M]`` (nats) of ``targets`` ``[M]`` after hidden states ``[M, D]``, and entropies ``[M]``.

    Products are of ``dtype``, everything after them of float32. Entropies are 0 unless asked for.
    """
    found: tuple[Tensor, Tensor] = _OfHidden.apply(  # type: ignore[no-untyped-call]
        hidden, head.weight, head.bias, targets, temperature, entropy, dtype
    )
    return found


def of_logits(logits: Tensor, targets: Tensor, temperature: float, entropy: bool) -> tuple[Tensor, Tensor]:
    """The same of logits ``[M, V]`` that are there already. Going back, their gradient takes their place."""
    found: tuple[Tensor, Tensor] = _OfLogits.apply(logits, targets, temperature, entropy)  # type: ignore[no-untyped-call]
    return found


class _OfHidden(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        temperature: float,
        entropy: bool,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor]:
        tables = _tables(len(targets), hidden.device)
        slices = list(_slices(len(targets), len(weight), hidden.device))
        with torch.autocast(hidden.device.type, enabled=False):
            head = weight.to(dtype).t(), None if bias is None else bias.to(dtype)
            for part in slices:
                shifted = _shifted(_product(hidden[part].to(dtype), *head), temperature)
                _tell(shifted, targets[part], entropy, tables, part)
        ctx.set_materialize_grads(False)
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(hidden, weight, bias, targets, tables[1])
            ctx.temperature, ctx.dtype, ctx.slices = temperature, dtype, slices
            ctx.kept = shifted if len(slices) == 1 else None
        return tables

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_logprobs: Tensor | None, of_entropy: Tensor | None) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, targets, entropy = ctx.saved_tensors
        to_hidden, to_weight, to_bias = ctx.needs_input_grad[:3]
        into_hidden = torch.empty_like(hidden) if to_hidden else None
        into_weight = torch.zeros(weight.shape, device=weight.device) if to_weight else None
        into_bias = torch.zeros(bias.shape, device=bias.device) if bias is not None and to_bias else None
        turned = weight.to(ctx.dtype)
        head = turned.t(), None if bias is None else bias.to(ctx.dtype)
        kept, ctx.kept = ctx.kept, None
        for part in ctx.slices:
            some = hidden[part].to(ctx.dtype)
            shifted = _shifted(_product(some, *head), ctx.temperature) if kept is None else kept
            told = _part(of_logprobs, part), _part(of_entropy, part)
            gradient = _gradient(shifted, targets[part], *told, entropy[part])
            gradient = gradient.div_(ctx.temperature) if ctx.temperature != 1 else gradient
            if into_bias is not None:
                into_bias += gradient.sum(0)
            gradient = gradient.to(ctx.dtype)
            if into_hidden is not None:
                into_hidden[part] = gradient @ turned
            if into_weight is not None and ctx.dtype == torch.float32:
                into_weight.addmm_(gradient.t(), some)
            elif into_weight is not None:
                into_weight += gradient.t() @ some
        made = None if into_weight is None else into_weight.to(weight.dtype)
        return into_hidden, made, None if into_bias is None else into_bias.to(bias.dtype), None, None, None, None


class _OfLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, temperature: float, entropy: bool) -> tuple[Tensor, Tensor]:
        tables = _tables(len(targets), logits.device)
        for part in _slices(len(logits), logits.shape[1], logits.device):
            _tell(_shifted(logits[part], temperature), targets[part], entropy, tables, part)
        ctx.set_materialize_grads(False)
        ctx.logits, ctx.temperature = logits, temperature
        ctx.save_for_backward(targets, tables[1])
        return tables

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_logprobs: Tensor | None, of_entropy: Tensor | None) -> tuple[Tensor | None, ...]:
        if ctx.logits is None:
            raise RuntimeError("the logits of this loss have made way for their gradient; it can go back once")
        targets, entropy = ctx.saved_tensors
        logits, ctx.logits = ctx.logits, None
        for part in _slices(len(logits), logits.shape[1], logits.device):
            shifted = _shifted(logits[part], ctx.temperature)
            told = _part(of_logprobs, part), _part(of_entropy, part)
            gradient = _gradient(shifted, targets[part], *told, entropy[part])
            logits[part] = gradient.div_(ctx.temperature) if ctx.temperature != 1 else gradient
        return logits, None, None, None


def _slices(tokens: int, vocabulary: int, device: torch.device) -> Iterator[slice]:
    size = max(1, ENTRIES.get(device.type, ENTRIES["cuda"]) // vocabulary)
    for start in range(0, max(tokens, 1), size):
        yield slice(start, start + size)


def _tables(tokens: int, device: torch.device) -> tuple[Tensor, Tensor]:
    return torch.empty(tokens, device=device), torch.zeros(tokens, device=device)


def _product(hidden: Tensor, turned: Tensor, bias: Tensor | None) -> Tensor:
    return hidden @ turned if bias is None else torch.addmm(bias, hidden, turned)


def _shifted(logits: Tensor, temperature: float) -> Tensor:
    """Log-probabilities ``[m, V]`` of all entries, in a tensor of their own."""
    scaled = logits.float() / temperature if temperature != 1 else logits.float()
    return torch.log_softmax(scaled, -1)


def _tell(shifted: Tensor, targets: Tensor, entropy: bool, tables: tuple[Tensor, Tensor], part: slice) -> None:
    tables[0][part] = shifted.gather(1, targets.unsqueeze(1)).squeeze(1)
    if entropy:
        tables[1][part] = shifted.exp().mul_(shifted).sum(-1).neg_()


def _part(gradient: Tensor | None, part: slice) -> Tensor | None:
    return None if gradient is None else gradient[part].unsqueeze(1)


def _gradient(
    shifted: Tensor, targets: Tensor, of_logprobs: Tensor | None, of_entropy: Tensor | None, entropy: Tensor
) -> Tensor:
    """What the logits of a slice get, in the place of their log-probabilities ``shifted``."""
    if of_entropy is None:
        assert of_logprobs is not None
        gradient = shifted.exp_().mul_(-of_logprobs)
    else:
        bent = (shifted + entropy.unsqueeze(1)).mul_(of_entropy)
        if of_logprobs is not None:
            bent.add_(of_logprobs)
        gradient = shifted.exp_().mul_(bent).neg_()
    return gradient if of_logprobs is None else gradient.scatter_add_(1, targets.unsqueeze(1), of_logprobs)
