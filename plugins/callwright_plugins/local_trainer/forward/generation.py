"""Sampling: one prefill a prompt, a key-value cache that is spread over the group, rows dropped when they end."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch
from attrs import frozen
from torch import Tensor

from callwright.errors import UsageError
from callwright_plugins.local_trainer.forward.batches import Ids
from callwright_plugins.local_trainer.forward.decoding import Decoder
from callwright_plugins.local_trainer.forward.llama import Llama, understood
from callwright_plugins.local_trainer.forward.prefilling import last_logits_only as last_logits_only
from callwright_plugins.local_trainer.forward.prefilling import prefill, prefill_after, states_of, token_size
from callwright_plugins.local_trainer.forward.roomy_cache import make_room
from callwright_plugins.local_trainer.forward.turn_cache import Turn, TurnCache
from callwright_plugins.local_trainer.models.policy import Policy


@frozen
class Sampled:
    """One completion: ids with the end token if it ended, and their log-probabilities as they were sampled (nats).

    Of several turns it is everything after the prompt; ``mask`` is then 1 for what was sampled and 0 for what the
    environment said, whose log-probabilities are 0.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    truncated: bool
    mask: tuple[int, ...] | None = None

    @property
    def length(self) -> int:
        """How many tokens were sampled."""
        return len(self.ids) if self.mask is None else sum(self.mask)


@torch.no_grad()
def generate(
    policy: Policy,
    prompts: Sequence[Ids],
    *,
    copies: int,
    max_new_tokens: int,
    temperature: float,
    generator: torch.Generator | None = None,
    seeds: Sequence[int] | None = None,
    rows_at_once: int = 256,
) -> list[list[Sampled]]:
    """``[B][copies]`` completions of ``prompts``. ``temperature`` 0 is greedy decoding, and needs no randomness.

    It comes from one ``generator`` for all rows, or from one of ``seeds`` (``[B * copies]``) for each row, whose draws
    then hang on nothing else in the batch.

    Log-probabilities are of the distribution that was sampled from: at ``temperature``, or at 1 if it is 0. Raises
    :class:`callwright.UsageError` where prompt and completion would not fit into the model.
    """
    room = policy.positions
    longest = max(map(len, prompts), default=0)
    if room is not None and longest + max_new_tokens > room:
        raise UsageError(
            f"the model has {room} positions, but a prompt has {longest} tokens and 'max_new_tokens' is "
            f"{max_new_tokens}"
        )
    at_once = max(1, rows_at_once // copies)
    sampled: list[list[Sampled]] = []
    for start in range(0, len(prompts), at_once):
        some = prompts[start : start + at_once]
        owners = [number for number in range(len(some)) for _ in range(copies)]
        rooms = [max_new_tokens] * len(owners)
        own = None if seeds is None else seeds[start * copies : (start + len(some)) * copies]
        rows = _generate(policy, some, owners, rooms, temperature, generator, own)
        sampled += [rows[first : first + copies] for first in range(0, len(rows), copies)]
    return sampled


@torch.no_grad()
def continue_contexts(
    policy: Policy,
    contexts: Sequence[Ids],
    rooms: Sequence[int],
    *,
    temperature: float,
    generator: torch.Generator | None = None,
    seeds: Sequence[int] | None = None,
    rows_at_once: int = 256,
    kept: TurnCache | None = None,
    owners: Sequence[Hashable] = (),
    goes_on: Sequence[bool] = (),
) -> list[Sampled]:
    """One continuation of each context, of at most as many tokens as its room. Equal contexts are computed once.

    Randomness is as in :func:`generate`. A context without room gets an empty continuation. With ``kept`` what is known
    of a context from an earlier turn is not computed again, and what may be wanted for a next one stays there:
    ``owners`` are whose the contexts are, and ``goes_on`` says which of them may have another turn.
    """
    if kept is not None:
        kept.begin(policy)
    sampled = [Sampled((), (), True)] * len(contexts)
    live = [row for row, room in enumerate(rooms) if room > 0]
    for start in range(0, len(live), rows_at_once):
        rows = live[start : start + rows_at_once]
        some: dict[tuple[int, ...], int] = {}
        prompts = [some.setdefault(tuple(contexts[row]), len(some)) for row in rows]
        own = None if seeds is None else [seeds[row] for row in rows]
        turn = None
        if kept is not None:
            turn = Turn(kept, policy, [owners[row] for row in rows], prompts, [goes_on[row] for row in rows])
        found = _generate(policy, list(some), prompts, [rooms[row] for row in rows], temperature, generator, own, turn)
        for row, one in zip(rows, found, strict=True):
            sampled[row] = one
    return sampled


def _generate(
    policy: Policy,
    prompts: Sequence[Ids],
    owners: Sequence[int],
    rooms: Sequence[int],
    temperature: float,
    generator: torch.Generator | None,
    seeds: Sequence[int] | None,
    turn: Turn | None = None,
) -> list[Sampled]:
    """A completion for each of ``owners``, which are indices of prompts, of at most ``rooms`` tokens each."""
    drawn = None
    if temperature and (seeds is not None or policy.device.type == "cpu"):
        drawn = _draws(seeds, generator, len(owners), max(rooms))
    if understood(policy) and all(prompts):
        return _in_few_operators(policy, prompts, owners, rooms, temperature, drawn, turn)
    model, device = policy.model, policy.device
    ends = torch.tensor(sorted(policy.ends), device=device)
    if turn is None:
        made = prefill(policy, prompts)
    else:
        made = prefill_after(policy, prompts, turn.known(prompts, few=False))
        turn.count(made.computed, prompts)
    cache, mask = made.cache, made.mask
    count, prefix, longest = len(owners), mask.shape[1], max(rooms)
    index, room = torch.tensor(owners, device=device), torch.tensor(rooms, device=device)
    uneven = len(set(rooms)) > 1
    cache.batch_select_indices(index)
    make_room(cache)
    logits = made.logits.index_select(0, index)  # [rows, V]
    position = mask.sum(1, keepdim=True).index_select(0, index)  # [rows, 1], of the next token
    seen = torch.ones(count, prefix + longest, dtype=mask.dtype, device=device)
    seen[:, :prefix] = mask.index_select(0, index)
    chosen_ids = torch.full((count, longest), policy.pad, dtype=torch.long, device=device)
    chosen_logprobs = torch.zeros(count, longest, device=device)
    lengths = room.clone()
    ended = torch.zeros(count, dtype=torch.bool, device=device)
    alive = torch.arange(count, device=device)
    drawn = None if drawn is None else drawn.to(device)
    states: dict[int, list[Tensor]] = {}
    for step in range(longest):
        own = None if drawn is None else drawn[alive, step]
        token, logprob = choose(logits, temperature, generator, own)
        chosen_ids[alive, step], chosen_logprobs[alive, step] = token, logprob
        done = torch.isin(token, ends)
        last = step + 1 == longest
        over = done | (room[alive] == step + 1) if uneven else done
        some_over = bool(over.any())
        if turn is not None and turn.able and (last or some_over):
            ending = torch.ones_like(over) if last else over
            for place, row in zip(ending.nonzero().squeeze(1).tolist(), alive[ending].tolist(), strict=True):
                tokens = len(prompts[owners[row]]) + step  # the token of this step is nobody's key yet
                if turn.claim(row, token_size(cache) * tokens):
                    states[row] = states_of(cache, place, prefix + step, tokens)
        if some_over:
            lengths[alive[done]], ended[alive[done]] = step + 1, True
            left = (~over).nonzero().squeeze(1)
            if not len(left):
                break
            cache.batch_select_indices(left)
            alive, token, position, seen = alive[left], token[left], position[left], seen[left]
        if last:
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
    sampled = [
        Sampled(tuple(row[:length]), tuple(logprobs[:length]), not done)
        for row, logprobs, length, done in zip(
            chosen_ids.tolist(), chosen_logprobs.tolist(), lengths.tolist(), ended.tolist(), strict=True
        )
    ]
    for row, tables in states.items():
        assert turn is not None
        turn.put(row, (*prompts[owners[row]], *sampled[row].ids[:-1]), tables)
    return sampled


@torch.inference_mode()
def _in_few_operators(
    policy: Policy,
    prompts: Sequence[Ids],
    owners: Sequence[int],
    rooms: Sequence[int],
    temperature: float,
    drawn: Tensor | None,
    turn: Turn | None = None,
) -> list[Sampled]:
    """The same by :mod:`.llama`. Rows that have ended are computed on until they are moved away; nobody reads them."""
    longest, head, ends = max(rooms), policy.model.lm_head, policy.ends
    decoder = Decoder(Llama(policy), prompts, owners, longest, turn)
    ids: list[list[int]] = [[] for _ in owners]
    logprobs: list[list[float]] = [[] for _ in owners]
    ended = [False] * len(owners)
    alive = list(range(len(owners)))
    places = {row: place for place, row in reversed(list(enumerate(decoder.grid.rows)))}
    numbers = None if drawn is None else drawn[decoder.grid.rows]
    hidden = decoder.first[[owners[row] for row in decoder.grid.rows]]
    over: list[int] = []  # rows that have ended, and whose keys and values are in the grid still

    def keep() -> None:
        if turn is None:
            return
        sizes = [decoder.token_size * (len(prompts[owners[row]]) + len(ids[row]) - 1) for row in over]
        some = [row for row, size in zip(over, sizes, strict=True) if turn.claim(row, size)]
        states = decoder.states(some, [len(ids[row]) - 1 for row in some])  # the last is nobody's key yet
        for row, table in zip(some, states, strict=True):
            turn.put(row, (*prompts[owners[row]], *ids[row][:-1]), [table])
        over.clear()

    for step in range(longest):
        token, logprob = choose(head(hidden), temperature, None, None if numbers is None else numbers[:, step])
        said, known = token.tolist(), logprob.tolist()
        left: list[int] = []
        for row in alive:
            place = places[row]
            ids[row].append(said[place])
            logprobs[row].append(known[place])
            ended[row] = said[place] in ends
            going = not ended[row] and len(ids[row]) < rooms[row]
            (left if going else over).append(row)
        if not left:
            break
        if len(left) < len(alive):
            smaller = decoder.smaller(left)
            if smaller is not None:
                keep()
                moved = decoder.move(smaller)
                token = token.index_select(0, moved)
                numbers = None if numbers is None else numbers.index_select(0, moved)
                places = {row: place for place, row in reversed(list(enumerate(decoder.grid.rows)))}
        alive = left
        hidden = decoder.follow(token)
    keep()
    return [Sampled(tuple(row), tuple(known), not done) for row, known, done in zip(ids, logprobs, ended, strict=True)]


def _draws(seeds: Sequence[int] | None, generator: torch.Generator | None, rows: int, count: int) -> Tensor:
    """``[rows, count]`` uniform numbers of the CPU, alike on every device: what a row draws hangs on no other's end.

    With ``seeds`` each row is from a generator of its own.
    """
    if seeds is None:
        return torch.rand(rows, count, dtype=torch.float64, generator=generator)
    table = [torch.rand(count, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    return torch.stack(table)


def choose(
    logits: Tensor, temperature: float, generator: torch.Generator | None, drawn: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """A token for each row of ``[N, V]`` logits, and its log-probability. Both ways of sampling are exact.

    Dividing exponential noise by the probabilities and taking the smallest is one pass, but draws a number for each
    entry of the vocabulary. On the CPU, where drawing is slow, one number a row is taken, and the first entry at which
    the sum of the probabilities exceeds it. So do rows that bring their number: ``drawn``, ``[N]``.
    """
    logits = logits.float()
    logprobs = torch.log_softmax(logits / temperature if temperature else logits, -1)
    if not temperature:
        token = logprobs.argmax(-1)
    elif drawn is not None or logits.device.type == "cpu":
        sums = logprobs.exp().cumsum(-1, dtype=torch.float64)
        if drawn is None:
            drawn = torch.rand(len(sums), dtype=torch.float64, generator=generator)
        found = torch.searchsorted(sums, drawn.unsqueeze(1) * sums[:, -1:], right=True).squeeze(1)
        token = found.clamp(max=sums.shape[1] - 1)
    else:
        noise = torch.empty_like(logprobs).exponential_(generator=generator)
        token = torch.sub(logprobs, noise.log_(), out=noise).argmax(-1)
    return token, logprobs.gather(1, token.unsqueeze(1)).squeeze(1)
