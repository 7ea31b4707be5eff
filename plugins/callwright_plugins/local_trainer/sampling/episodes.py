"""Episodes of several turns: limits, sampling them in batches, and demonstrations of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from attrs import evolve, frozen

from callwright.episodes.token_episode import Generated, Rollout, describe_rollouts, run_batch, score_rollout
from callwright.errors import UsageError
from callwright.language.program import Program
from callwright.training.evaluation import judge
from callwright.walk.attempt import Progress
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Task
from callwright_plugins.local_trainer.forward.generation import Sampled, continue_contexts
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.randomness import torch_generator
from callwright_plugins.local_trainer.sampling import rollouts

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline


def turn_limits(pipeline: Pipeline, policy: Policy, options: Options) -> TurnLimits | None:
    """The recipe's limits, ``max_new_tokens`` being those of a turn and the model's positions those of the context
    where the recipe leaves them open; ``None`` for a single turn."""
    limits = pipeline.limits
    if limits is None:
        return None
    context = [bound for bound in (limits.context_tokens, policy.positions) if bound is not None]
    return evolve(
        limits,
        turn_tokens=limits.turn_tokens or options.max_new_tokens,
        context_tokens=min(context, default=None),
    )


def longest(limits: TurnLimits | None, options: Options) -> int:
    """The most tokens that a response may have, as far as the limits say: what lengths are shaped against."""
    if limits is None:
        return options.max_new_tokens
    return limits.total_tokens or limits.assistant_turns * (limits.turn_tokens or options.max_new_tokens)


@frozen(eq=False)
class Engine:
    """The policy as what :func:`callwright.episodes.token_episode.run_batch` asks: a continuation of each context, in
    batches.
    """

    policy: Policy
    temperature: float
    generator: torch.Generator | None
    rows_at_once: int
    max_new_tokens: int

    def __call__(self, contexts: Sequence[tuple[int, ...]], rooms: Sequence[int | None]) -> list[Generated]:
        """One continuation of each context, of no more tokens than there is room for here and in the model."""
        positions = self.policy.positions
        bounds = [
            min(
                self.max_new_tokens if room is None else min(room, self.max_new_tokens),
                self.max_new_tokens if positions is None else positions - len(context),
            )
            for context, room in zip(contexts, rooms, strict=True)
        ]
        sampled = continue_contexts(
            self.policy,
            contexts,
            bounds,
            temperature=self.temperature,
            generator=self.generator,
            rows_at_once=self.rows_at_once,
        )
        return [Generated(one.ids, one.logprobs, not one.truncated) for one in sampled]


def sample_episodes(
    pipeline: Pipeline,
    policy: Policy,
    tasks: Sequence[Task],
    options: Options,
    limits: TurnLimits,
    purpose: tuple[int | str, ...],
    progress: Progress,
    lap: Callable[[str], object],
) -> list[rollouts.Group]:
    """For each task ``options.group`` episodes, driven to their end turn by turn and scored.

    An episode whose machinery failed is begun again ``options.retries`` times, then masked. ``lap`` hears when sampling
    is over. Raises :class:`callwright.episodes.token_episode.PromptTooLong`.
    """
    codec = policy.codec()
    started = []
    for task in tasks:
        messages = pipeline.messages(task)
        started.append(
            [
                pipeline.rollout(task, codec, messages=messages, limits=limits, progress=progress)
                for _ in range(options.group)
            ]
        )
    engine = Engine(
        policy,
        options.temperature,
        torch_generator(*purpose, device=policy.device),
        options.sampling_rows,
        limits.turn_tokens or options.max_new_tokens,
    )
    run_batch([one for group in started for one in group], engine, retries=options.retries)
    lap("sampling")
    groups = []
    for task, group in zip(tasks, started, strict=True):
        scored = tuple(
            rollouts.Rollout(
                Sampled(one.response_ids, one.logprobs, one.stop in ("tokens", "context"), one.mask),
                one.episode,
                score_rollout(pipeline.score, one),
                judge(one.episode),
                one,
            )
            for one in group
        )
        groups.append(rollouts.Group(task, group[0].prompt_ids, scored))
    return groups


def describe_turns(groups: Sequence[rollouts.Group]) -> dict[str, Any]:
    """The part of a metrics row that only episodes of several turns have; empty for a single turn."""
    episodes = [one.episode for group in groups for one in group.rollouts if one.episode is not None]
    if not episodes:
        return {}
    known = describe_rollouts(episodes)
    return {name: known[name] for name in ("turns", "stops", "environment_tokens", "observations_cut", "retried")}


def demonstrate(rollout: Rollout, policy: Policy, program: Program) -> None:
    """Drive a rollout as a demonstration: the program first, then the answer without calls, as often as it goes on.

    Raises :class:`callwright.UsageError` if the tokenizer does not give back what is to be shown, or if it is longer
    than the limits allow.
    """
    following = rollout.parser.render(program)
    while not rollout.over:
        ids = policy.completion_ids(following)
        if policy.text(ids) != following:
            raise UsageError(
                f"the tokenizer does not give back the demonstration of task {rollout.task.id!r}: {following!r} became "
                f"{policy.text(ids)!r}"
            )
        room = rollout.room
        if room is not None and len(ids) > room:
            raise UsageError(
                f"the demonstration of task {rollout.task.id!r} has {len(ids)} tokens where the limits of turns leave "
                f"{room}"
            )
        rollout.advance(Generated(ids))
        following = rollout.parser.render(Program())
