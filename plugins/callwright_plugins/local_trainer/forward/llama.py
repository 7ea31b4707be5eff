"""Small Llamas and Qwens in few operators: the same function of the same weights as transformers' forward.

For a small model on a CPU most of a step is not arithmetic but calls of operators and passes over memory. Here tokens
stand in one row without padding, the products of queries, keys and values are one, so are those of gate and values, the
weights of norms and the scale of attention are multiplied into them, and rotary positions are one complex product.
Weights are put together anew for each use, through autograd where there are gradients, so that nothing grows old.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Protocol, cast

import torch
from attrs import frozen
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from transformers import LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM

from callwright_plugins.local_trainer.forward.operators import gated, gated_back, turn, unit, unit_back
from callwright_plugins.local_trainer.models.policy import Policy

_UNDERSTOOD: Final = (LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM)
#: Weights are put together in copies, which a large model would not gain from.
_MOST_PARAMETERS: Final = 1 << 26

#: What attention keeps for the way back, by block.
ForBack = list[list[Tensor]]
#: What a layer, or its attention, makes of its states, or nothing if no more than keys and values are wanted; and a
#: table of these if they are.
Told = tuple[Tensor | None, Tensor | None]


class Attends(Protocol):
    """Attention of all layers."""

    def __call__(self, number: int, states: Tensor, kept: ForBack | None = None) -> Told:
        """What the layer of a number makes of queries, keys and values ``[T, (H + 2 K) W]``: ``[T, H W]``."""


class Trained(Attends, Protocol):
    """The same with a way back."""

    #: Keys and values that are attended to and that gradients come back to, by layer.
    prefix: Sequence[Tensor] | None

    def back(
        self, number: int, gradient: Tensor | None, of_table: Tensor | None, kept: ForBack
    ) -> tuple[Tensor, Tensor | None]:
        """Of the gradients of what was told those of the states, and of the prefix if there is one."""


def understood(policy: Policy) -> bool:
    """Whether the model is one whose forward this module knows exactly, and small, of float32 and on the CPU.

    Anything out of the ordinary (adapters, hooks, sliding windows, scaled positions, other activations, biases where a
    Llama has none) is left to transformers.
    """
    model = policy.model
    if type(model) not in _UNDERSTOOD or policy.dtype != torch.float32 or policy.device.type != "cpu":
        return False
    config, trunk = model.config, model.model
    kinds = getattr(config, "layer_types", None) or []
    return bool(
        not model.training
        and config.hidden_act == "silu"
        and getattr(trunk.rotary_emb, "rope_type", "") == "default"
        and all(kind == "full_attention" for kind in kinds)
        and all(_plain(layer) for layer in trunk.layers)
        and _all_small(model)
    )


def _all_small(model: Any) -> bool:
    """Whether all weights are of float32 and not too many, and no module has hooks; in one pass, made for each use."""
    count, seen, ahead = 0, set[int](), [model]
    while ahead:
        module = ahead.pop()
        if module._forward_hooks or module._forward_pre_hooks:
            return False
        for parameter in module._parameters.values():
            if parameter is None or id(parameter) in seen:  # tied ones count once
                continue
            if parameter.dtype != torch.float32:
                return False
            seen.add(id(parameter))
            count += parameter.numel()
        ahead.extend(one for one in module._modules.values() if one is not None)
    return count <= _MOST_PARAMETERS


def _plain(layer: Any) -> bool:
    attention, feed = layer.self_attn, layer.mlp
    entering = [attention.q_proj, attention.k_proj, attention.v_proj]
    others = [attention.o_proj, feed.gate_proj, feed.up_proj, feed.down_proj]
    return (
        all(type(linear) is nn.Linear for linear in (*entering, *others))
        and all(linear.bias is None for linear in others)
        and len({linear.bias is None for linear in entering}) == 1
        and "forward" not in vars(layer)
    )


@frozen(eq=False)
class Layer:
    """The weights of a layer. Those of queries and keys have the two numbers that a position turns side by side."""

    entering: Tensor  # [(H + 2 K) W, D]
    bias: Tensor | None
    scales: Tensor | None  # [H + K, W], of a Qwen3's norms of queries and keys
    leaving: Tensor  # [D, H W]
    wide: Tensor  # [2 F, D], gate and values
    narrow: Tensor  # [D, F]


class Llama:
    """The trunk of a model that is :func:`understood`, as its weights are now."""

    def __init__(self, policy: Policy) -> None:
        model = policy.model
        config, trunk = model.config, model.model
        self.heads, self.shared = config.num_attention_heads, config.num_key_value_heads
        self.width = trunk.layers[0].self_attn.head_dim
        #: Heads of what enters attention.
        self.everything = range(self.heads + 2 * self.shared)
        self.queries, self.keys_and_values = self.everything[: self.heads], self.everything[self.heads :]
        self._recompute = policy.recompute
        self._eps = config.rms_norm_eps
        self._frequencies = trunk.rotary_emb.inv_freq
        self._embeddings, self._norm = trunk.embed_tokens.weight, trunk.norm.weight
        #: A sampled token that is also the padding teaches its embedding nothing, as in transformers.
        self._padding = trunk.embed_tokens.padding_idx
        self.layers = [self._layer(layer) for layer in trunk.layers]

    def _layer(self, layer: Any) -> Layer:
        attention, feed = layer.self_attn, layer.mlp
        heads, shared, width = self.heads, self.shared, self.width
        both = heads + shared
        # transformers turns number i of a head with number i + W/2; here they are neighbours.
        pairs = torch.arange(width).view(2, -1).t().flatten()
        scale = torch.ones(both + shared, 1)
        normed = getattr(attention, "q_norm", None) is not None
        scale[:heads] = 1.0 if normed else width**-0.5

        def together(parts: Sequence[Tensor]) -> Tensor:
            """Of queries, keys and values ``[heads W, X]``, in the order of this module and scaled."""
            whole = torch.cat(list(parts)).view(both + shared, width, -1)
            whole = torch.cat([whole[:both].index_select(1, pairs), whole[both:]])
            return (whole * scale.unsqueeze(2)).flatten(0, 1)

        linears = (attention.q_proj, attention.k_proj, attention.v_proj)
        scales = None
        if normed:
            norms = attention.q_norm.weight * width**-0.5, attention.k_norm.weight
            scales = torch.cat([norms[0].expand(heads, -1), norms[1].expand(shared, -1)]).index_select(1, pairs)
        return Layer(
            entering=together([linear.weight for linear in linears]) * layer.input_layernorm.weight,
            bias=None if linears[0].bias is None else together([one.bias.unsqueeze(1) for one in linears]).squeeze(1),
            scales=scales,
            leaving=attention.o_proj.weight,
            wide=torch.cat([feed.gate_proj.weight, feed.up_proj.weight]) * layer.post_attention_layernorm.weight,
            narrow=feed.down_proj.weight,
        )

    @torch.no_grad()
    def turns(self, positions: Tensor) -> Tensor:
        """By what queries and keys of tokens at ``positions`` ``[T]`` are turned."""
        angles = positions.unsqueeze(1).float() * self._frequencies
        return torch.polar(torch.ones_like(angles), angles).repeat(1, self.heads + self.shared)

    def hidden(
        self,
        ids: Tensor,
        turns: Tensor,
        attend: Attends,
        needed: Tensor | None = None,
        tables: list[Tensor] | None = None,
    ) -> Tensor | None:
        """Last hidden states of tokens ``[T]``, ``[T, D]``, or of the ``needed`` ones of them alone.

        Nothing where the last attention wants nothing but keys and values. The tables of these that attention tells are
        put into ``tables``, layer by layer.
        """
        states = F.embedding(ids, self._embeddings, self._padding)
        trained = torch.is_grad_enabled()
        back = turns.conj().resolve_conj() if trained else None
        for number in range(len(self.layers)):
            some = needed if number == len(self.layers) - 1 else None
            if back is None:
                passed, table = self.forward(number, states, turns, attend, some)
            else:
                given = self, number, states, turns, back, attend, some
                again: Any = partial(checkpoint, _trained, use_reentrant=False, preserve_rng_state=False)
                passed, table = (again if self._recompute else _trained)(*given)
            if tables is not None and table is not None:
                tables.append(table)
            if passed is None:
                return None
            states = passed
        if trained:
            states = _Unit.apply(states, self._eps)  # type: ignore[no-untyped-call]
        else:
            states, _ = unit(states, self._eps)
        normed: Tensor = states * self._norm
        return normed

    def forward(
        self,
        number: int,
        states: Tensor,
        turns: Tensor,
        attend: Attends,
        needed: Tensor | None,
        kept: tuple[list[Tensor], ForBack] | None = None,
    ) -> Told:
        """States after a layer, and a table of keys and values if attention tells one.

        What the way back needs is put into ``kept``: the layer's tensors, and those of attention.
        """
        layer = self.layers[number]
        entered, by = unit(states, self._eps)
        own = [entered, by]
        made = F.linear(entered, layer.entering, layer.bias)
        if layer.scales is not None:
            heads = made.view(len(made), -1, self.width)
            normed, by = unit(heads[:, : len(layer.scales)], self._eps)
            own += [normed, by]
            made = torch.cat([normed * layer.scales, heads[:, len(layer.scales) :]], 1).flatten(1)
        told, table = attend(number, turn(made, turns), None if kept is None else kept[1])
        if told is not None:
            if needed is not None:
                states, told = states.index_select(0, needed), told.index_select(0, needed)
            states = torch.addmm(states, told, layer.leaving.t())
            entered, by = unit(states, self._eps)
            both = entered @ layer.wide.t()
            fed, opened = gated(both)
            own += [told, entered, by, both, opened]
            told = torch.addmm(states, fed, layer.narrow.t())
        if kept is not None:
            kept[0].extend(own)
        return told, table

    def backward(
        self,
        number: int,
        gradient: Tensor | None,
        of_table: Tensor | None,
        back: Tensor,
        attend: Trained,
        needed: Tensor | None,
        kept: tuple[Sequence[Tensor], ForBack],
    ) -> tuple[Tensor | None, ...]:
        """The gradients of a layer's states and of the prefix that it attends to, then those of its weights."""
        layer = self.layers[number]
        entered, by, *rest = kept[0]
        of_leaving = of_wide = of_narrow = of_bias = of_scales = of_told = None
        if gradient is not None:
            told, fed_in, fed_by, both, opened = rest[-5:]
            of_narrow = gradient.t() @ (opened * both[:, opened.shape[1] :])
            of_both = gated_back(gradient @ layer.narrow, both, opened)
            of_wide = of_both.t() @ fed_in
            gradient = unit_back(of_both @ layer.wide, fed_in, fed_by).add_(gradient)
            of_leaving, of_told = gradient.t() @ told, gradient @ layer.leaving
            if needed is not None:
                gradient, of_told = (
                    one.new_zeros(len(entered), one.shape[1]).index_copy_(0, needed, one) for one in (gradient, of_told)
                )
        of_made, of_prefix = attend.back(number, of_told, of_table, kept[1])
        turn(of_made, back)
        if layer.scales is not None:
            heads, count = of_made.view(len(of_made), -1, self.width), len(layer.scales)
            normed = heads[:, :count]
            of_scales = (normed * rest[0]).sum(0)
            heads = torch.cat([unit_back(normed * layer.scales, rest[0], rest[1]), heads[:, count:]], 1)
            of_made = heads.flatten(1)
        if layer.bias is not None:
            of_bias = of_made.sum(0)
        of_entering = of_made.t() @ entered
        of_states = unit_back(of_made @ layer.entering, entered, by)
        if gradient is not None:
            of_states.add_(gradient)
        return of_states, of_prefix, of_entering, of_bias, of_scales, of_leaving, of_wide, of_narrow


def _trained(
    model: Llama, number: int, states: Tensor, turns: Tensor, back: Tensor, attend: Attends, needed: Tensor | None
) -> Told:
    """What :meth:`Llama.forward` makes, with a way back."""
    prefix, layer = cast("Trained", attend).prefix, model.layers[number]
    weights = layer.entering, layer.bias, layer.scales, layer.leaving, layer.wide, layer.narrow
    before = None if prefix is None else prefix[number]
    found: Told = _Passed.apply(  # type: ignore[no-untyped-call]
        (model, number, attend, needed), turns, back, states, before, *weights
    )
    return found


class _Passed(torch.autograd.Function):
    """A layer, back by hand."""

    @staticmethod
    def forward(
        ctx: Any, given: Any, turns: Tensor, back: Tensor, states: Tensor, prefix: Tensor | None, *weights: Any
    ) -> Told:
        model, number, attend, needed = given
        own: list[Tensor] = []
        attention: ForBack = []
        told: Told = model.forward(number, states, turns, attend, needed, (own, attention))
        ctx.save_for_backward(back, *own, *(one for some in attention for one in some))
        ctx.set_materialize_grads(False)
        ctx.given, ctx.counts = given, [len(own), *map(len, attention)]
        return told

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor | None, of_table: Tensor | None) -> tuple[Tensor | None, ...]:
        model, number, attend, needed = ctx.given
        back, *saved = ctx.saved_tensors
        parts = []
        for count in ctx.counts:
            parts.append(saved[:count])
            del saved[:count]
        kept = parts[0], parts[1:]
        return None, None, None, *model.backward(number, gradient, of_table, back, attend, needed, kept)


class _Unit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, eps: float) -> Tensor:
        made, by = unit(states, eps)
        ctx.save_for_backward(made, by)
        return made

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return unit_back(gradient, *ctx.saved_tensors), None
