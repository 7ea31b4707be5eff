"""Episodes of the policy: limits, sampling them in batches, and demonstrations of them. A single turn is one, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import torch
from attrs import evolve, field, frozen

from callwright.episodes.driving import drive
from callwright.episodes.rewards import asked_again
from callwright.episodes.token_episode import EngineOutput, TokenEpisode, describe_episodes
from callwright.errors import UsageError
from callwright.language.program import Program
from callwright.training.evaluation import judge
from callwright.walk.attempt import Attempt
from callwright.walk.conditions import Conditions, Progress
from callwright.walk.limits import TurnLimits
from callwright.walk.reward import Reward
from callwright.walk.tasks import Task
from callwright_plugins.local_trainer.forward.generation import Sampled, continue_contexts
from callwright_plugins.local_trainer.forward.turn_cache import TurnCache
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import Options, SupervisedOptions
from callwright_plugins.local_trainer.randomness import seed_of, torch_generator
from callwright_plugins.local_trainer.sampling.rollouts import Group, ScoredSample

if TYPE_CHECKING:
    from callwright.episodes.pool import EpisodePool
    from callwright.pipeline import Pipeline


GIB: Final = 1 << 30


class DemonstrationTooLong(UsageError):
    """A demonstration has more tokens than an option allows."""


def turn_limits(pipeline: Pipeline, policy: Policy, options: Options | SupervisedOptions) -> TurnLimits:
    """The pipeline's limits, ``max_new_tokens`` being those of a turn and the model's positions those of the context
    where it leaves them open."""
    limits = pipeline.conditions.limits
    context = [bound for bound in (limits.context_tokens, policy.positions) if bound is not None]
    return evolve(
        limits,
        turn_tokens=limits.turn_tokens or options.max_new_tokens,
        context_tokens=min(context, default=None),
    )


def longest(limits: TurnLimits, options: Options) -> int:
    """The most tokens that a response may have, as far as the limits say: what lengths are shaped against."""
    return limits.total_tokens or limits.assistant_turns * (limits.turn_tokens or options.max_new_tokens)


@frozen(eq=False)
class Engine:
    """The policy as what :func:`callwright.episodes.drive` asks: a continuation of each episode, in batches.

    Samples come from ``generator`` in the order of the episodes; without it, each from the seed of its own episode.

    With a ``cache`` a turn computes what is new in it alone. The keys and values of an episode are there from one turn
    to the next. Those of episodes that are over are dropped when a turn begins, not earlier: what is kept, and with it
    the last bits of what is sampled, must not hang on how long somebody takes to execute calls.
    """

    policy: Policy
    temperature: float
    generator: torch.Generator | None
    rows_at_once: int
    max_new_tokens: int
    cache: TurnCache | None = None
    _asked: set[TokenEpisode] = field(factory=set, init=False)

    def __call__(self, live: Sequence[TokenEpisode]) -> list[EngineOutput]:
        """One continuation of each episode, of no more tokens than there is room for here and in the model."""
        positions = self.policy.positions
        contexts = [episode.context for episode in live]
        asked = [self.max_new_tokens if one.room is None else min(one.room, self.max_new_tokens) for one in live]
        bounds = [
            most if positions is None else min(most, positions - len(context))
            for context, most in zip(contexts, asked, strict=True)
        ]
        seeds = None
        if self.generator is None:
            seeds = [seed_of(episode.conditions.seed, "turn", len(episode.history)) for episode in live]
        kept: dict[str, Any] = {}
        if self.cache is not None:
            self._turn_begins(live, self.cache)
            going = [_may_go_on(episode) for episode in live]
            if len(self.cache) or any(going):
                kept = {"kept": self.cache, "owners": live, "goes_on": going}
        sampled = continue_contexts(
            self.policy,
            contexts,
            bounds,
            temperature=self.temperature,
            generator=self.generator,
            seeds=seeds,
            rows_at_once=self.rows_at_once,
            **kept,
        )
        return [
            EngineOutput(one.ids, one.logprobs, not one.truncated, filled=one.truncated and bound < most)
            for one, bound, most in zip(sampled, bounds, asked, strict=True)
        ]

    def _turn_begins(self, live: Sequence[TokenEpisode], cache: TurnCache) -> None:
        """Drop what is kept of episodes that are over, if this is the first batch of a turn.

        It is if it has episodes that were asked for since the last one began: all answers have been taken then.
        """
        if not self._asked.isdisjoint(live):
            cache.release(one for one in self._asked if one.over)
            self._asked.clear()
        self._asked.update(live)


def _may_go_on(episode: TokenEpisode) -> bool:
    return len(episode.history) + 1 < episode.conditions.limits.assistant_turns


def turn_cache(gib: float) -> TurnCache | None:
    """A cache of so many GiB; none for 0."""
    return TurnCache(gib * GIB) if gib else None


def _of_copy(conditions: Conditions, task: Task, copy: int, purpose: tuple[int | str, ...]) -> Conditions:
    """The conditions of one of the task's episodes: its user draws from their seed."""
    return conditions if task.user is None else evolve(conditions, seed=seed_of(*purpose, "user", task.id, copy))


def sample_groups(
    pipeline: Pipeline,
    policy: Policy,
    tasks: Sequence[Task],
    options: Options,
    limits: TurnLimits,
    purpose: tuple[int | str, ...],
    progress: Progress,
    lap: Callable[[str], object],
    pool: EpisodePool | None = None,
) -> list[Group]:
    """For each task ``options.group`` episodes, driven to their end turn by turn, scored and judged.

    A ``pool`` executes and scores them; without one this thread does.

    An episode whose machinery failed is retried ``options.retries`` times, then masked. ``lap`` hears when sampling
    is over. Raises :class:`callwright.episodes.PromptTooLong`.
    """
    codec = policy.codec()
    pool = pool or pipeline.pool()
    conditions = evolve(pipeline.conditions, limits=limits, progress=progress)
    started: list[list[TokenEpisode]] = []
    for task in tasks:
        messages = () if policy.form == "compact" else pipeline.messages(task)  # a short prompt is made of the task
        group: list[TokenEpisode] = []
        for copy in range(options.group):
            known = group[0].prompt_ids if group else None
            drawn = _of_copy(conditions, task, copy, purpose)
            group.append(pipeline.token_episode(task, codec, messages=messages, conditions=drawn, prompt_ids=known))
        started.append(group)
    rows = options.sampling_rows
    if limits.single:  # whole groups: each has one prompt, which is then computed once
        rows = max(1, rows // options.group) * options.group
    engine = Engine(
        policy,
        options.temperature,
        torch_generator(*purpose, device=policy.device),
        rows,
        limits.turn_tokens or options.max_new_tokens,
        turn_cache(options.turn_cache_gib),
    )
    episodes = [one for group in started for one in group]
    with _Scoring(pipeline, pool, episodes) as scoring:
        # What takes time is begun while others are sampled.
        at_once = rows if pool.parallel or (limits.single and pipeline.reward.waits) else None
        drive(episodes, engine, retries=options.retries, pool=pool, at_once=at_once, ended=scoring.ended)
        del engine  # with what it kept
        lap("sampling")
        scored = iter(scoring.results(options.retries))
    groups = []
    for task, group in zip(tasks, started, strict=True):
        samples = []
        for one in group:
            attempt, reward = next(scored)
            sampled = Sampled(one.response_ids, one.logprobs, attempt.truncated, one.mask)
            samples.append(ScoredSample(sampled, one, attempt, reward, judge(attempt)))
        groups.append(Group(task, group[0].prompt_ids, tuple(samples)))
    return groups


class _Scoring:
    """The rewards of episodes. Those that wait or that a pool finds out are begun as soon as an episode has ended."""

    def __init__(self, pipeline: Pipeline, pool: EpisodePool, episodes: Sequence[TokenEpisode]) -> None:
        self._pipeline, self._pool, self._episodes = pipeline, pool, episodes
        self._begun: dict[int, tuple[Attempt, Future[Reward]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for begun in list(self._begun.values()):  # those that are done stay as they are
            begun[1].cancel()

    def ended(self, episode: TokenEpisode) -> None:
        """An episode is over. In a pool this is called by whoever has executed it."""
        attempt = episode.attempt
        if self._pipeline.reward.waits:
            self._begun[id(episode)] = attempt, self._pipeline.begin(attempt)
        elif self._pool.scores:
            scored = Future[Reward]()
            scored.set_result(self._pool.score(attempt))
            self._begun[id(episode)] = attempt, scored

    def results(self, retries: int) -> list[tuple[Attempt, Reward]]:
        """The rewards, each with the attempt that it is of.

        Where a component could not find out, because a session of its own failed say, it is asked again.
        """
        pipeline = self._pipeline
        if self._begun:
            known = (self._begun[id(one)] for one in self._episodes)
            found = [(attempt, pipeline.tell(attempt, future.result())) for attempt, future in known]
        else:
            found = list(pipeline.scoring(one.attempt for one in self._episodes))
        return asked_again(found, retries, partial(scored_by, pipeline, self._pool))


def scored_by(pipeline: Pipeline, pool: EpisodePool, attempts: Iterable[Attempt]) -> Iterator[tuple[Attempt, Reward]]:
    """Attempts with their rewards, in their order, by the workers of a pool where these score. Hooks hear of them."""
    if not pool.scores:
        yield from pipeline.scoring(attempts)
        return
    asked = list(attempts)
    for one, reward in zip(asked, pool.score_all(asked), strict=True):
        yield one, pipeline.tell(one, reward)


def describe_turns(groups: Sequence[Group]) -> dict[str, Any]:
    """The part of a metrics row that only episodes of several turns have; empty for a single turn."""
    episodes = [one.episode for group in groups for one in group.rollouts]
    if not episodes or episodes[0].conditions.limits.single:
        return {}
    known = describe_episodes(episodes)
    return {name: known[name] for name in ("turns", "stops", "environment_tokens", "observations_cut", "retried")}


def demonstrate(rollout: TokenEpisode, policy: Policy, program: Program) -> None:
    """Drive a rollout as a demonstration: the program first, then the answer without calls, as often as it goes on.

    Raises :class:`callwright.UsageError` if the tokenizer does not give back what is to be shown, and
    :class:`DemonstrationTooLong` if it is longer than the limits allow.
    """
    following = rollout.parser.render(program)
    while not rollout.over:
        ids = shown_ids(policy, rollout.task, following)
        room = rollout.room
        if room is not None and len(ids) > room:
            raise DemonstrationTooLong(
                f"the demonstration of task {rollout.task.id!r} has {len(ids)} tokens where the limits of turns leave "
                f"{room}"
            )
        rollout.accept(EngineOutput(ids))
        following = rollout.parser.render(Program())


def shown_ids(policy: Policy, task: Task, text: str) -> tuple[int, ...]:
    """The ids of a completion that is to be shown.

    Raises :class:`callwright.UsageError` if the tokenizer does not give the text back.
    """
    ids = tuple(policy.completion_ids(text))
    back = policy.text(ids)
    if back != text:
        raise UsageError(
            f"the tokenizer does not give back the demonstration of task {task.id!r}: {text!r} became {back!r}"
        )
    return ids
