"""Prompts through transformers' forward, of which the beginnings of some may be known from an earlier turn.

All rows end at the same place, with padding before them and none in between, so that a model that counts places in
place of positions is told the same as without.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from attrs import frozen
from torch import Tensor
from torch.nn import functional as F
from transformers import DynamicCache

from callwright_plugins.local_trainer.forward.batches import Ids, pad_left, positions
from callwright_plugins.local_trainer.forward.turn_cache import Kept
from callwright_plugins.local_trainer.models.policy import Policy


@frozen(eq=False)
class Prefilled:
    """A filled cache, what of it is not padding ``[P, L]``, the logits after each prompt ``[P, V]``, and how many
    tokens were computed."""

    cache: DynamicCache
    mask: Tensor
    logits: Tensor
    computed: int


def last_logits_only(model: Any, count: int) -> dict[str, int]:
    """The argument that spares a model the logits of all but the last ``count`` positions, where it has one."""
    return {"logits_to_keep": count} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}


def prefill(policy: Policy, prompts: Sequence[Ids]) -> Prefilled:
    """All prompts in full."""
    ids, mask = pad_left(prompts, policy.pad, policy.device)
    return _forward(policy, DynamicCache(config=policy.model.config), ids, mask, sum(map(len, prompts)))


def prefill_after(policy: Policy, prompts: Sequence[Ids], known: Sequence[Kept | None]) -> Prefilled:
    """The same where keys and values of some prompts' beginnings are known.

    One that is known by less than half is computed with those of which nothing is, by themselves.
    """
    some = {
        number: one for number, one in enumerate(known) if one is not None and 2 * len(one.ids) >= len(prompts[number])
    }
    if not some:
        return prefill(policy, prompts)
    fresh = [number for number in range(len(prompts)) if number not in some]
    made = _continued(policy, [prompts[number] for number in some], list(some.values()))
    if not fresh:
        return made
    return _together(policy, prefill(policy, [prompts[number] for number in fresh]), made, [*fresh, *some])


def _continued(policy: Policy, prompts: Sequence[Ids], known: Sequence[Kept]) -> Prefilled:
    """As many new tokens of each prompt, those of the row that has the most of them: the others' are known, too."""
    new = max(len(prompt) - len(one.ids) for prompt, one in zip(prompts, known, strict=True))
    before = [one.first(max(0, len(prompt) - new)) for prompt, one in zip(prompts, known, strict=True)]
    longest = max(len(one.ids) for one in before)
    cache = DynamicCache(config=policy.model.config)
    for number, layer in enumerate(cache.layers):
        tables = []
        for part in (2 * number, 2 * number + 1):
            heads, _, width = known[0].tables[part].shape
            table = known[0].tables[part].new_zeros(len(prompts), heads, longest, width)
            for row, one in enumerate(before):
                table[row, :, longest - len(one.ids) :] = one.tables[part]
            tables.append(table)
        layer.lazy_initialization(*tables)
        layer.keys, layer.values = tables
    added = [prompt[len(one.ids) :] for prompt, one in zip(prompts, before, strict=True)]
    ids, mask = pad_left(added, policy.pad, policy.device)
    _, seen = pad_left([one.ids for one in before], policy.pad, policy.device)
    return _forward(policy, cache, ids, torch.cat([seen, mask], 1), sum(map(len, added)))


def token_size(cache: DynamicCache) -> int:
    """Bytes that keys and values of one token of one row are."""
    tables = [table for layer in cache.layers for table in (layer.keys, layer.values)]
    return sum(table.shape[1] * table.shape[3] * table.element_size() for table in tables)


def states_of(cache: DynamicCache, row: int, end: int, tokens: int) -> list[Tensor]:
    """Keys and values of the ``tokens`` that a row has before ``end``, by layer, ``[heads, tokens, width]`` each, with
    memory of their own."""
    tables = [table for layer in cache.layers for table in (layer.keys, layer.values)]
    return [table[row, :, end - tokens : end].clone() for table in tables]


def _forward(policy: Policy, cache: DynamicCache, ids: Tensor, mask: Tensor, computed: int) -> Prefilled:
    with policy.arithmetic():
        output = policy.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions(mask)[:, -ids.shape[1] :],
            past_key_values=cache,
            use_cache=True,
            **last_logits_only(policy.model, 1),
        )
    return Prefilled(cache, mask, output.logits[:, -1], computed)


def _together(policy: Policy, one: Prefilled, other: Prefilled, numbers: Sequence[int]) -> Prefilled:
    """The rows of both, put in the order of their ``numbers``."""
    length = max(one.mask.shape[1], other.mask.shape[1])
    order = torch.tensor(numbers, device=policy.device).argsort()

    def joined(first: Tensor, second: Tensor) -> Tensor:
        parts = [F.pad(part, (0, 0, length - part.shape[-2], 0)) for part in (first, second)]
        return torch.cat(parts).index_select(0, order)

    cache = DynamicCache(config=policy.model.config)
    for layer, first, second in zip(cache.layers, one.cache.layers, other.cache.layers, strict=True):
        tables = joined(first.keys, second.keys), joined(first.values, second.values)
        layer.lazy_initialization(*tables)
        layer.keys, layer.values = tables
    mask = joined(one.mask.unsqueeze(2), other.mask.unsqueeze(2)).squeeze(2)
    logits = torch.cat([one.logits, other.logits]).index_select(0, order)
    return Prefilled(cache, mask, logits, one.computed + other.computed)
