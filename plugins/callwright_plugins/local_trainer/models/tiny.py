"""Tiny models made from scratch: a Llama small enough to learn on one core, and its initialisation."""

from __future__ import annotations

import math
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from callwright_plugins.local_trainer.options import Tiny


def build_tiny(options: Tiny, tokenizer: Any, generator: torch.Generator) -> Any:
    """A Llama with tied embeddings for a tokenizer, its weights drawn from ``generator``."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=options.width,
        intermediate_size=options.ffn,
        num_hidden_layers=options.layers,
        num_attention_heads=options.heads,
        num_key_value_heads=options.heads,
        max_position_embeddings=options.positions,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = LlamaForCausalLM(config)
    initialise(model, options, generator)
    return model


@torch.no_grad()
def initialise(model: Any, options: Tiny, generator: torch.Generator) -> None:
    """Embeddings with ``embedding_std``, linear layers with ``1/sqrt(fan_in)``, what writes to the residual stream
    divided by ``sqrt(2 * layers)``; norms stay 1.

    The usual 0.02 for everything leaves a model of this width at chance on copying words of the prompt.
    """
    for name, parameter in sorted(model.named_parameters()):
        if parameter.dim() < 2:
            continue
        if "embed_tokens" in name:
            std = options.embedding_std
        else:
            std = 1 / math.sqrt(parameter.shape[1])
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                std /= math.sqrt(2 * options.layers)
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * std)
    model.tie_weights()
