"""The policy update: log-probabilities of the sampled ids, advantages of tokens, losses, and optimiser steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import torch
from attrs import evolve, field, frozen
from torch import Tensor

from callwright.capability import has
from callwright.training.alarms import not_finite
from callwright.training.algorithm import (
    ActorCritic,
    AdaptiveKL,
    Algorithm,
    EntropyBonus,
    Experience,
    LossOutput,
    PlacesCredit,
    TokenBatch,
    TokenLevel,
    ValueBatch,
)
from callwright_plugins.local_trainer.forward.likelihood import Entropy, FullSequences, Likelihood, Prefix, prefix_of
from callwright_plugins.local_trainer.learning.batch import Batch as Batch
from callwright_plugins.local_trainer.learning.batch import make_batch as make_batch
from callwright_plugins.local_trainer.learning.batch import mini_batches, some_rows
from callwright_plugins.local_trainer.learning.critic import Critic
from callwright_plugins.local_trainer.learning.importance import Importance, engine_table
from callwright_plugins.local_trainer.learning.micro_batches import blocks_by_tokens, by_count
from callwright_plugins.local_trainer.learning.steps import clipped_step
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import Options


def micro_batches(batch: Batch, count: int) -> list[list[int]]:
    """Row indices in ``count`` parts, sorted by length."""
    return by_count([len(completion) for completion in batch.completions], count)


def _parts(batch: Batch, options: Options) -> list[Part]:
    """The parts in which a batch is computed: as many as are asked for, or of as many tokens."""
    if options.tokens_per_micro_batch is None:
        everything = tuple(range(len(batch.prompts)))
        return [Part(rows, everything) for rows in micro_batches(batch, options.micro_batches)]
    prompts, lengths = [len(prompt) for prompt in batch.prompts], [len(one) for one in batch.completions]
    blocks = blocks_by_tokens(prompts, batch.owners, lengths, options.tokens_per_micro_batch)
    return [Part(rows, together) for together, parts in blocks for rows in parts]


@frozen(eq=False)
class Part:
    """A micro-batch: its rows in their mini-batch, and what is known of them before the first step, ``[n, L]`` each.

    ``prompts`` are indices of those that are computed at once, for this part and its neighbours.
    """

    rows: list[int]
    prompts: tuple[int, ...] = ()
    old: Tensor | None = None
    reference: Tensor | None = None
    values: Tensor | None = None
    advantages: Tensor | None = None
    returns: Tensor | None = None


@frozen(eq=False)
class MiniBatch:
    """What one optimiser step is taken on: a batch in parts, and the divisor of its loss."""

    batch: Batch
    parts: list[Part]
    normaliser: float


@frozen(eq=False)
class Prepared:
    """A batch before the first step. ``advantages`` ``[N]``: the mean over each sequence's tokens.

    ``kl_weight`` is that of the next step, of an algorithm that moves it; ``figures`` are for the row of metrics.
    """

    minis: list[MiniBatch]
    advantages: Tensor
    kl_weight: float | None = None
    figures: dict[str, float] = field(factory=dict)


def prepare(
    policy: Policy,
    reference: Policy | None,
    algorithm: Algorithm,
    batch: Batch,
    options: Options,
    critic: Critic | None = None,
    kl_weight: float | None = None,
) -> Prepared:
    """Everything that stays fixed while a batch is trained on.

    Old log-probabilities, those of the reference and values are computed once, by the arithmetic and in the parts of
    the new ones: the ratio begins at exactly 1. Token-level advantages are made of the whole batch at once. A
    correction for the engine's log-probabilities weighs the advantages of tokens last (:mod:`.importance`).
    """
    token_level = isinstance(algorithm, TokenLevel)
    whole = mini_batches(batch, options.mini_batches)
    fixed = options.iterations * len(whole) > 1 or token_level or options.correction != "none"
    minis = []
    for rows in whole:
        mini = batch if len(whole) == 1 else some_rows(batch, rows)
        parts = _parts(mini, options)
        if reference is not None and algorithm.kl_weight > 0:
            found = _frozen(reference, mini, parts, options)
            parts = [evolve(part, reference=tensor) for part, tensor in zip(parts, found, strict=True)]
        if fixed:
            found = _frozen(policy, mini, parts, options)
            parts = [evolve(part, old=tensor) for part, tensor in zip(parts, found, strict=True)]
        if critic is not None:
            parts = [evolve(part, values=tensor) for part, tensor in _values(critic, mini, parts, options)]
        minis.append(MiniBatch(mini, parts, algorithm.normaliser(mini.mask)))
    prepared = Prepared(minis, batch.advantages)
    if isinstance(algorithm, TokenLevel):
        prepared = _token_level(algorithm, batch, whole, minis, policy.device, kl_weight)
    if batch.blame is not None and has(algorithm, PlacesCredit) and algorithm.credit_share > 0:
        prepared = _placed(algorithm, prepared, policy.device)
    return prepared if options.correction == "none" else _corrected(prepared, options)


def _placed(algorithm: PlacesCredit, prepared: Prepared, device: torch.device) -> Prepared:
    """The same with the penalties where the algorithm wants them; the share of sequences that have theirs moved."""
    minis, moved, rows = [], 0, 0
    for mini in prepared.minis:
        parts = []
        assert mini.batch.blame is not None
        for part in mini.parts:
            width = max(len(mini.batch.completions[row]) for row in part.rows)
            padded = [[*mini.batch.blame[row], *[0] * (width - len(mini.batch.blame[row]))] for row in part.rows]
            mask = mini.batch.mask[part.rows, :width].to(device)
            before = _token_advantages(mini, part, device)
            placed = algorithm.placed(before, torch.tensor(padded, device=device), mask)
            moved += int(((placed != before) & (mask != 0)).any(1).sum())
            rows += len(part.rows)
            parts.append(evolve(part, advantages=placed))
        minis.append(evolve(mini, parts=parts))
    return evolve(prepared, minis=minis, figures={**prepared.figures, "penalties_placed": moved / max(rows, 1)})


def _corrected(prepared: Prepared, options: Options) -> Prepared:
    """The same with the advantages of tokens weighed by what the trainer's probability is of the engine's."""
    importance = Importance(options.correction, options.correction_max)
    minis = []
    for mini in prepared.minis:
        mask, parts = mini.batch.mask, []
        engine = mini.batch.engine or [()] * len(mini.batch.completions)
        for part in mini.parts:
            assert part.old is not None
            width, device = part.old.shape[1], part.old.device
            known = engine_table([engine[row] for row in part.rows], width, device)
            weights = importance.weights(part.old, known, mask[part.rows, :width].to(device))
            parts.append(evolve(part, advantages=_token_advantages(mini, part, device) * weights))
        minis.append(evolve(mini, parts=parts))
    return evolve(prepared, minis=minis, figures={**prepared.figures, **importance.figures})


def _token_advantages(mini: MiniBatch, part: Part, device: torch.device) -> Tensor:
    """``[n, 1]`` where they are of sequences, else ``[n, L]``."""
    if part.advantages is not None:
        return part.advantages
    return mini.batch.advantages[part.rows].to(device).unsqueeze(1)


def _token_level(
    algorithm: TokenLevel,
    batch: Batch,
    whole: Sequence[Sequence[int]],
    minis: list[MiniBatch],
    device: torch.device,
    kl_weight: float | None,
) -> Prepared:
    """The same with advantages of tokens, and what the next KL weight is."""
    longest = max(len(completion) for completion in batch.completions)
    mask = batch.mask[:, :longest].to(device)
    places = [
        (part, [rows[row] for row in part.rows]) for rows, mini in zip(whole, minis, strict=True) for part in mini.parts
    ]

    def gathered(name: str) -> Tensor | None:
        if any(getattr(part, name) is None for part, _ in places):
            return None
        table = torch.zeros(mask.shape, device=device)
        for part, rows in places:
            values = getattr(part, name)
            table[rows, : values.shape[1]] = values
        return table

    logprobs = gathered("old")
    assert logprobs is not None
    experience = Experience(
        scores=batch.advantages.to(device),
        groups=torch.tensor(batch.owners, device=device),
        mask=mask,
        logprobs=logprobs,
        ref_logprobs=gathered("reference"),
        values=gathered("values"),
        kl_weight=kl_weight,
    )
    advantages, returns = algorithm.token_advantages(experience)
    told = []
    for rows, mini in zip(whole, minis, strict=True):
        parts = []
        for part in mini.parts:
            assert part.old is not None
            index, width = [rows[row] for row in part.rows], part.old.shape[1]
            parts.append(evolve(part, advantages=advantages[index, :width], returns=returns[index, :width]))
        told.append(evolve(mini, parts=parts))
    figures = {}
    following = None
    if isinstance(algorithm, AdaptiveKL):
        figures["kl_weight"] = algorithm.kl_weight if kl_weight is None else kl_weight
        following = algorithm.next_kl_weight(experience)
    means = (advantages.sum(1) / mask.sum(1).clamp(min=1)).cpu()
    return Prepared(told, means, following, figures)


def descend(
    policy: Policy,
    algorithm: Algorithm,
    optimiser: torch.optim.Optimizer,
    prepared: Prepared,
    options: Options,
    rate: float,
    critic: Critic | None = None,
    critic_rate: float = 0.0,
    critic_alone: bool = False,
) -> dict[str, Any]:
    """``options.iterations`` times a step on each mini-batch; returns diagnostics, averaged over tokens and iterations.

    The loss of each micro-batch is divided by the normaliser of its mini-batch, so that the accumulated gradient is
    that of the whole. ``critic_alone`` leaves the policy as it is. A step that is not finite is left out, and told of
    under ``not_finite``; the other mini-batches have theirs.
    """
    figures = _Figures(sum(mini.batch.tokens(part.rows) for mini in prepared.minis for part in mini.parts), options)
    steps = options.iterations * len(prepared.minis)
    bonus = has(algorithm, EntropyBonus) and algorithm.entropy_weight > 0
    for _ in range(options.iterations):
        for mini in prepared.minis:
            if not critic_alone:
                loss, sound = 0.0, True
                for prompts, parts in _blocks(policy, mini.batch, mini.parts, options):
                    for part in parts:
                        likelihood = prompts.likelihood(part.rows, options, "trained" if bonus else "plain")
                        batch = _token_batch(mini, part, likelihood, policy.device)
                        sound = _sound(batch.mask, batch.logprobs, batch.old_logprobs, batch.ref_logprobs) and sound
                        result = algorithm.loss(batch)
                        result.loss.backward()  # type: ignore[no-untyped-call]
                        loss += figures.add(result, mini.batch.tokens(part.rows))
                    prompts.prefix.backward()
                norm, fault = clipped_step(optimiser, policy.model, rate, options.clip_norm, loss, sound)
                figures.step("", loss, norm, steps, fault)
            if critic is not None and isinstance(algorithm, ActorCritic):
                _critic_step(critic, algorithm, mini, figures, options, critic_rate, steps)
    faults = figures.faults
    left_out = {"not_finite": not_finite(len(faults), figures.steps, [], faults)} if faults else {}
    return {**figures.totals, **prepared.figures, **left_out}


def update(
    policy: Policy,
    reference: Policy | None,
    algorithm: Algorithm,
    optimiser: torch.optim.Optimizer,
    batch: Batch,
    options: Options,
    rate: float,
    critic: Critic | None = None,
    critic_rate: float = 0.0,
) -> dict[str, Any]:
    """Prepare a batch and descend on it."""
    prepared = prepare(policy, reference, algorithm, batch, options, critic)
    return descend(policy, algorithm, optimiser, prepared, options, rate, critic, critic_rate)


class _Figures:
    """Diagnostics of micro-batches, combined by their share of all tokens; largest values by the maximum."""

    def __init__(self, tokens: int, options: Options) -> None:
        self.totals: dict[str, float] = {}
        #: How many optimiser steps there were, and what was not finite in those that were left out, in words.
        self.steps = 0
        self.faults: list[str] = []
        self._tokens, self._options = tokens, options

    def add(self, result: LossOutput, tokens: int) -> float:
        """Take a micro-batch's diagnostics; gives its loss back."""
        share = tokens / self._tokens / self._options.iterations
        for name, value in result.diagnostics.items():
            if name.endswith("_max"):
                self.totals[name] = max(self.totals.get(name, value), value)
            elif name != "active_tokens":
                self.totals[name] = self.totals.get(name, 0.0) + share * value
        return float(result.loss.detach())

    def step(self, whose: str, loss: float, norm: float, steps: int, fault: str | None) -> None:
        """Take an optimiser step's loss and gradient norm, of the policy or of the critic, and why it was left out."""
        self.steps += 1
        if fault is not None:
            self.faults.append(f"{'the critic: ' if whose else ''}{fault}")
        for name, value in ((f"{whose}loss", loss), (f"{whose}gradient_norm", norm)):
            self.totals[name] = self.totals.get(name, 0.0) + (value if fault is None else math.nan) / steps


def _token_batch(mini: MiniBatch, part: Part, likelihood: Likelihood, device: torch.device) -> TokenBatch:
    advantages = mini.batch.advantages[part.rows].to(device) if part.advantages is None else part.advantages
    return TokenBatch(
        logprobs=likelihood.logprobs,
        old_logprobs=likelihood.logprobs.detach() if part.old is None else part.old,
        mask=_mask(mini.batch, part.rows, likelihood.mask),
        advantages=advantages,
        ref_logprobs=part.reference,
        entropy=likelihood.entropy,
        normaliser=mini.normaliser,
    )


def _mask(batch: Batch, rows: Sequence[int], padding: Tensor) -> Tensor:
    """Where the policy wrote, ``[n, L]``: not the padding, nor what the environment said."""
    if batch.sampled is None:
        return padding
    width = padding.shape[1]
    written = torch.tensor([[*batch.sampled[row], *[0] * (width - len(batch.sampled[row]))] for row in rows])
    return padding * written.to(padding)


def _critic_step(
    critic: Critic,
    algorithm: ActorCritic,
    mini: MiniBatch,
    figures: _Figures,
    options: Options,
    rate: float,
    steps: int,
) -> None:
    """One step of the critic towards the returns of a mini-batch, accumulated as the policy's is."""
    loss, sound = 0.0, True
    for prompts, parts in _blocks(critic.policy, mini.batch, mini.parts, options):
        for part in parts:
            values, padding = prompts.values(part.rows)
            assert part.values is not None
            assert part.returns is not None
            mask = _mask(mini.batch, part.rows, padding)
            sound = _sound(mask, values, part.values, part.returns) and sound
            result = algorithm.value_loss(ValueBatch(values, part.values, part.returns, mask, mini.normaliser))
            result.loss.backward()  # type: ignore[no-untyped-call]
            loss += figures.add(result, mini.batch.tokens(part.rows))
        prompts.prefix.backward()
    norm, fault = clipped_step(critic.optimiser, critic.model, rate, options.clip_norm, loss, sound)
    figures.step("value_", loss, norm, steps, fault)


@torch.no_grad()
def _sound(mask: Tensor, *tables: Tensor | None) -> bool:
    """Whether everything that a loss reads where ``mask`` is not 0 is finite. A loss may clip away what is not."""
    active = mask != 0
    return all(bool(table.isfinite()[active].all()) for table in tables if table is not None)


@frozen(eq=False)
class _Prompts:
    """Some prompts of a batch, computed, and where each of them is found."""

    batch: Batch
    prefix: Prefix | FullSequences
    places: Mapping[int, int]

    def likelihood(self, rows: Sequence[int], options: Options, entropy: Entropy) -> Likelihood:
        """Of the completions of some rows."""
        return self.prefix.likelihood(*self._rows(rows), options.temperature, entropy)

    def values(self, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
        """What a critic says of them, and where they are not padding, ``[n, L]`` each."""
        values, _, mask = self.prefix.logits(*self._rows(rows))
        return values.squeeze(2), mask

    def _rows(self, rows: Sequence[int]) -> tuple[list[int], list[tuple[int, ...]]]:
        return [self.places[self.batch.owners[row]] for row in rows], [self.batch.completions[row] for row in rows]


def _blocks(
    policy: Policy, batch: Batch, parts: Iterable[Part], options: Options
) -> Iterator[tuple[_Prompts, list[Part]]]:
    """Parts by the prompts that they share, which are computed when they are asked for."""
    for prompts, some in groupby(parts, key=lambda part: part.prompts):
        prefix = prefix_of(policy, [batch.prompts[prompt] for prompt in prompts], options.shared_prefix)
        yield _Prompts(batch, prefix, {prompt: place for place, prompt in enumerate(prompts)}), list(some)


@torch.no_grad()
def _frozen(policy: Policy, batch: Batch, parts: Sequence[Part], options: Options) -> list[Tensor]:
    blocks = _blocks(policy, batch, parts, options)
    return [prompts.likelihood(part.rows, options, "none").logprobs for prompts, some in blocks for part in some]


@torch.no_grad()
def _values(critic: Critic, batch: Batch, parts: Sequence[Part], options: Options) -> list[tuple[Part, Any]]:
    blocks = _blocks(critic.policy, batch, parts, options)
    return [(part, prompts.values(part.rows)[0]) for prompts, some in blocks for part in some]
