"""Sampling: one prefill a prompt, a key-value cache that is spread over the group, rows dropped when they end."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from attrs import frozen
from torch import Tensor
from transformers import DynamicCache

from callwright.errors import UsageError
from callwright_plugins.local_trainer.batches import Ids, pad_left, positions
from callwright_plugins.local_trainer.policy import Policy


@frozen
class Sampled:
    """One completion: ids with the end token if it ended, and their log-probabilities as they were sampled (nats)."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    truncated: bool


def last_logits_only(model: Any, count: int) -> dict[str, int]:
    """The argument that spares a model the logits of all but the last ``count`` positions, where it has one."""
    return {"logits_to_keep": count} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}


@torch.no_grad()
def generate(
    policy: Policy,
    prompts: Sequence[Ids],
    *,
    copies: int,
    max_new_tokens: int,
    temperature: float,
    generator: torch.Generator | None = None,
    rows_at_once: int = 256,
) -> list[list[Sampled]]:
    """``[B][copies]`` completions of ``prompts``. ``temperature`` 0 is greedy decoding, and needs no generator.

    Log-probabilities are of the distribution that was sampled from: at ``temperature``, or at 1 if it is 0. Raises
    :class:`callwright.UsageError` where prompt and completion would not fit into the model.
    """
    room = getattr(policy.model.config.get_text_config(), "max_position_embeddings", None)
    longest = max(map(len, prompts), default=0)
    if room is not None and longest + max_new_tokens > room:
        raise UsageError(
            f"the model has {room} positions, but a prompt has {longest} tokens and 'max_new_tokens' is "
            f"{max_new_tokens}"
        )
    at_once = max(1, rows_at_once // copies)
    sampled: list[list[Sampled]] = []
    for start in range(0, len(prompts), at_once):
        sampled += _generate(policy, prompts[start : start + at_once], copies, max_new_tokens, temperature, generator)
    return sampled


def _generate(
    policy: Policy,
    prompts: Sequence[Ids],
    copies: int,
    max_new_tokens: int,
    temperature: float,
    generator: torch.Generator | None,
) -> list[list[Sampled]]:
    model, device = policy.model, policy.device
    ends = torch.tensor(sorted(policy.ends), device=device)
    ids, mask = pad_left(prompts, policy.pad, device)
    cache = DynamicCache(config=model.config)
    with policy.arithmetic():
        output = model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions(mask),
            past_key_values=cache,
            use_cache=True,
            **last_logits_only(model, 1),
        )
    cache.batch_repeat_interleave(copies)
    logits = output.logits[:, -1].repeat_interleave(copies, 0)  # [B*G, V]
    count, prefix = len(prompts) * copies, ids.shape[1]
    position = mask.sum(1, keepdim=True).repeat_interleave(copies, 0)  # [rows, 1], of the next token
    seen = torch.ones(count, prefix + max_new_tokens, dtype=mask.dtype, device=device)
    seen[:, :prefix] = mask.repeat_interleave(copies, 0)
    chosen_ids = torch.full((count, max_new_tokens), policy.pad, dtype=torch.long, device=device)
    chosen_logprobs = torch.zeros(count, max_new_tokens, device=device)
    lengths = torch.full((count,), max_new_tokens, dtype=torch.long, device=device)
    ended = torch.zeros(count, dtype=torch.bool, device=device)
    alive = torch.arange(count, device=device)
    for step in range(max_new_tokens):
        token, logprob = choose(logits, temperature, generator)
        chosen_ids[alive, step], chosen_logprobs[alive, step] = token, logprob
        over = torch.isin(token, ends)
        if bool(over.any()):
            lengths[alive[over]], ended[alive[over]] = step + 1, True
            left = (~over).nonzero().squeeze(1)
            if not len(left):
                break
            cache.batch_select_indices(left)
            alive, token, position, seen = alive[left], token[left], position[left], seen[left]
        if step + 1 == max_new_tokens:
            break
        with policy.arithmetic():
            output = model(
                input_ids=token.unsqueeze(1),
                attention_mask=seen[:, : prefix + step + 1],
                position_ids=position + step,
                past_key_values=cache,
                use_cache=True,
            )
        logits = output.logits[:, -1]
    rows = [
        Sampled(tuple(row[:length]), tuple(logprobs[:length]), not done)
        for row, logprobs, length, done in zip(
            chosen_ids.tolist(), chosen_logprobs.tolist(), lengths.tolist(), ended.tolist(), strict=True
        )
    ]
    return [rows[start : start + copies] for start in range(0, count, copies)]


def choose(logits: Tensor, temperature: float, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    """A token for each row of ``[N, V]`` logits, and its log-probability. Sampling divides exponential noise by the
    probabilities and takes the smallest, which is exact and one pass."""
    logits = logits.float()
    logprobs = torch.log_softmax(logits / temperature if temperature else logits, -1)
    if temperature:
        noise = torch.empty_like(logprobs).exponential_(generator=generator)
        token = (logprobs - noise.log()).argmax(-1)
    else:
        token = logprobs.argmax(-1)
    return token, logprobs.gather(1, token.unsqueeze(1)).squeeze(1)
