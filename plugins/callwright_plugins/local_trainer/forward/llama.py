"""Small Llamas and Qwens in few operators: the same function of the same weights as transformers' forward.

For a small model on a CPU most of a step is not arithmetic but calls of operators and passes over memory. Here tokens
stand in one row without padding, the products of queries, keys and values are one, so are those of gate and values, the
weights of norms and the scale of attention are multiplied into them, and rotary positions are one complex product.
Weights are put together anew for each use, through autograd where there are gradients, so that nothing grows old.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from attrs import frozen
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from transformers import LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM

from callwright_plugins.local_trainer.forward.operators import gated, turned, unit
from callwright_plugins.local_trainer.models.policy import Policy

_UNDERSTOOD: Final = (LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM)
#: Weights are put together in copies, which a large model would not gain from.
_MOST_PARAMETERS: Final = 1 << 26

#: What a layer's attention makes of queries, keys and values ``[T, H + 2 K, W]``: ``[T, H W]``, or nothing if no more
#: than keys and values are wanted. The number is that of the layer.
Attend = Callable[[int, Tensor], Tensor | None]


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
        and not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
        and all(parameter.dtype == torch.float32 for parameter in model.parameters())
        and sum(parameter.numel() for parameter in model.parameters()) <= _MOST_PARAMETERS
    )


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
        """By what queries, keys and values of tokens at ``positions`` ``[T]`` are turned; values are not."""
        angles = positions.unsqueeze(1).float() * self._frequencies
        turn = torch.polar(torch.ones_like(angles), angles)
        still = turn.new_ones(len(turn), self.shared * self.width // 2)
        return torch.cat([turn.repeat(1, self.heads + self.shared), still], 1)

    def hidden(self, ids: Tensor, turns: Tensor, attend: Attend, needed: Tensor | None = None) -> Tensor | None:
        """Last hidden states of tokens ``[T]``, ``[T, D]``, or of the ``needed`` ones of them alone.

        Nothing where the last attention wants nothing but keys and values.
        """
        states = F.embedding(ids, self._embeddings, self._padding)
        again = self._recompute and torch.is_grad_enabled()
        for number in range(len(self.layers)):
            some = needed if number == len(self.layers) - 1 else None
            given = number, states, turns, attend, some
            if again:
                passed = checkpoint(self._passed, *given, use_reentrant=False, preserve_rng_state=False)
            else:
                passed = self._passed(*given)
            if passed is None:
                return None
            states = passed
        normed: Tensor = unit(states, self._eps) * self._norm
        return normed

    def _passed(
        self, number: int, states: Tensor, turns: Tensor, attend: Attend, needed: Tensor | None
    ) -> Tensor | None:
        """States after a layer."""
        layer = self.layers[number]
        told = attend(number, self._entering(layer, unit(states, self._eps), turns))
        if told is None:
            return None
        if needed is not None:
            states, told = states.index_select(0, needed), told.index_select(0, needed)
        states = torch.addmm(states, told, layer.leaving.t())
        fed = gated(unit(states, self._eps) @ layer.wide.t())
        return torch.addmm(states, fed, layer.narrow.t())

    def _entering(self, layer: Layer, states: Tensor, turns: Tensor) -> Tensor:
        made = F.linear(states, layer.entering, layer.bias)
        if layer.scales is not None:
            heads = made.view(len(made), -1, self.width)
            normed = unit(heads[:, : len(layer.scales)], self._eps) * layer.scales
            made = torch.cat([normed, heads[:, len(layer.scales) :]], 1).flatten(1)
        return turned(made, turns).view(len(made), -1, self.width)
