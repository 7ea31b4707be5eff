"""The rollouts of a step: each process samples and scores its share of the groups, and all of them know all groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from attrs import evolve, field, frozen
from torch import Tensor

from callwright.episodes.codec import ChatCodec, PlainCodec
from callwright.episodes.pool import EpisodePool
from callwright.episodes.rewards import asked_again
from callwright.episodes.token_episode import TokenEpisode
from callwright.training.evaluation import Verdict, judge
from callwright.training.rollouts.description import Observed, observe
from callwright.training.rollouts.draws import python_generator, seed_of
from callwright.training.rollouts.task_stream import TaskStream
from callwright.walk.attempt import Attempt
from callwright.walk.conditions import Conditions, Progress
from callwright.walk.limits import TurnLimits
from callwright.walk.reward import Reward
from callwright.walk.tasks import Task
from callwright_plugins.trl_trainer.generating import TrainerEngine
from callwright_plugins.trl_trainer.options import Options
from callwright_plugins.trl_trainer.settings import longest

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline


@frozen(kw_only=True)
class Rollout:
    """One episode as numbers: what its process tells the others.

    ``ids`` are everything after the prompt, ``mask`` is 1 where the policy wrote, and ``logprobs`` are those of
    sampling. ``total`` is the reward, ``None`` where the episode is masked.
    """

    ids: tuple[int, ...]
    mask: tuple[int, ...]
    logprobs: tuple[float, ...] = field(repr=False)
    total: float | None
    observed: Observed
    turns: int = 1
    stop: str = ""
    observations_cut: int = 0
    retried: int = 0

    @property
    def written(self) -> int:
        """How many tokens the policy wrote."""
        return sum(self.mask)


@frozen(kw_only=True)
class Group:
    """The rollouts of one prompt. ``round`` and ``place`` say when its task was drawn, in this step."""

    task: str
    round: int
    place: int
    prompt: tuple[int, ...]
    rollouts: tuple[Rollout, ...]


@frozen(eq=False)
class Scored:
    """One episode as its own process knows it."""

    episode: TokenEpisode
    attempt: Attempt
    reward: Reward
    verdict: Verdict


@frozen(eq=False)
class Collected:
    """The groups to train on, with advantages ``[B, G]`` and which rollouts are valid; all that were sampled."""

    groups: list[Group]
    seen: list[Group]
    rounds: int
    advantages: Tensor
    valid: Tensor


class Rollouts:
    """Samples the groups of a step. Every process of a run has one, and all get the same :class:`Collected`."""

    def __init__(
        self,
        pipeline: Pipeline,
        options: Options,
        limits: TurnLimits,
        codec: ChatCodec | PlainCodec,
        *,
        compact: bool,
        accelerator: Any,
        pool: EpisodePool,
    ) -> None:
        assert pipeline.algorithm is not None
        self._pipeline, self._options, self._limits = pipeline, options, limits
        self._algorithm = pipeline.algorithm
        self._codec, self._compact = codec, compact
        self._accelerator, self._pool = accelerator, pool
        self._seed = pipeline.conditions.seed
        stages = [(stage.last(options.steps), stage.depths) for stage in options.curriculum]
        self._stream = TaskStream(pipeline.tasks(pipeline.train), options.depths, self._seed, stages)
        self._mine: dict[tuple[int, int, int], Scored] = {}

    def collect(self, engine: TrainerEngine, step: int) -> Collected:
        """The groups of ``step`` (from 0); others are drawn in place of those that the algorithm does not keep."""
        options = self._options
        self._mine = {}
        kept: list[Group] = []
        seen: list[Group] = []
        rounds = 0
        for round_ in range(options.resampling_rounds + 1):
            rounds = round_
            tasks = self._stream.draw(options.prompts, step, round_)
            groups = self._everyone(self._sample(engine, tasks, step, round_))
            rewards, valid, _ = self._rewards(groups)
            fit = self._algorithm.keep_groups(rewards, valid).tolist()
            kept += [group for group, good in zip(groups, fit, strict=True) if good]
            seen += groups
            if len(kept) >= options.prompts:
                break
        kept = kept[: options.prompts]
        rewards, valid, lengths = self._rewards(kept)
        advantages = torch.zeros_like(rewards)
        if kept and bool(valid.any()):
            shaped = self._algorithm.shape_rewards(rewards, lengths, longest(options, self._limits))
            advantages = self._algorithm.advantages(shaped, valid)
        return Collected(kept, seen, rounds, advantages, valid)

    def _everyone(self, mine: list[Group]) -> list[Group]:
        """The groups of all processes, in the order of their tasks."""
        if self._accelerator.num_processes == 1:
            return mine
        from accelerate.utils import gather_object

        found: list[Group] = gather_object(mine)
        return sorted(found, key=lambda group: group.place)

    def _sample(self, engine: TrainerEngine, tasks: Sequence[Task], step: int, round_: int) -> list[Group]:
        """The groups of this process's share of some tasks, sampled, executed and scored."""
        options, pipeline = self._options, self._pipeline
        share = len(tasks) // self._accelerator.num_processes
        first = share * self._accelerator.process_index
        conditions = evolve(pipeline.conditions, limits=self._limits, progress=Progress(step, options.steps))
        purpose = (self._seed, "sampling", step, round_)
        started: list[tuple[int, Task, list[TokenEpisode]]] = []
        seeds: list[int] = []
        for place in range(first, first + share):
            task = tasks[place]
            messages = () if self._compact else pipeline.messages(task)
            group = []
            for copy in range(options.group):
                own = self._of_copy(conditions, task, copy, purpose)
                group.append(pipeline.token_episode(task, self._codec, messages=messages, conditions=own))
                seeds.append(seed_of(*purpose, place, copy))
            started.append((place, task, group))
        episodes = [one for _, _, group in started for one in group]
        engine.drive(episodes, seeds, options.retries, self._pool)
        scored = iter(self._score(episodes))
        groups = []
        for place, task, group in started:
            rollouts = []
            for copy, episode in enumerate(group):
                known = next(scored)
                self._mine[round_, place, copy] = known
                rollouts.append(_rollout(episode, known))
            groups.append(
                Group(task=task.id, round=round_, place=place, prompt=group[0].prompt_ids, rollouts=tuple(rollouts))
            )
        return groups

    def _of_copy(self, conditions: Conditions, task: Task, copy: int, purpose: tuple[int | str, ...]) -> Conditions:
        """The conditions of one of the task's episodes: its user draws from their seed."""
        return conditions if task.user is None else evolve(conditions, seed=seed_of(*purpose, "user", task.id, copy))

    def _score(self, episodes: Sequence[TokenEpisode]) -> list[Scored]:
        """Rewards; where a component could not find out, because a session of its own failed say, it is asked again."""
        found = asked_again(self._scored([one.attempt for one in episodes]), self._options.retries, self._scored)
        return [
            Scored(episode, attempt, reward, judge(attempt))
            for episode, (attempt, reward) in zip(episodes, found, strict=True)
        ]

    def _scored(self, attempts: Sequence[Attempt]) -> list[tuple[Attempt, Reward]]:
        pipeline = self._pipeline
        if not self._pool.scores:
            return list(pipeline.scoring(attempts))
        totals = self._pool.score_all(list(attempts))
        return [(one, pipeline.tell(one, reward)) for one, reward in zip(attempts, totals, strict=True)]

    def _rewards(self, groups: Sequence[Group]) -> tuple[Tensor, Tensor, Tensor]:
        """``[B, G]`` rewards (0 where masked), whether they are valid, and lengths as limits count them."""
        whole = self._limits.total_tokens is not None
        totals = [[one.total for one in group.rollouts] for group in groups]
        rewards = torch.tensor([[total or 0.0 for total in row] for row in totals], dtype=torch.float32)
        valid = torch.tensor([[total is not None for total in row] for row in totals], dtype=torch.bool)
        lengths = [[len(one.ids) if whole else one.written for one in group.rollouts] for group in groups]
        shape = (len(groups), self._options.group)
        return rewards.reshape(shape), valid.reshape(shape), torch.tensor(lengths).reshape(shape)

    def rows(self, collected: Collected, step: int) -> list[dict[str, Any]]:
        """Rows of ``rollouts.jsonl`` of step number ``step`` (from 1), of those that this process sampled."""
        groups, keeping = collected.groups, self._options.keeping
        rng = python_generator(self._seed, "rollout sample", step)
        rows = []
        for row, column in keeping.places(step, [len(group.rollouts) for group in groups], rng):
            known = self._mine.get((groups[row].round, groups[row].place, column))
            if known is not None:
                rows.append(
                    keeping.row(
                        known.attempt,
                        known.episode,
                        known.reward,
                        known.verdict,
                        step=step,
                        place=(row, column),
                        advantage=float(collected.advantages[row, column]),
                        prompt=self._codec.text(known.episode.prompt_ids),
                        truncated=known.attempt.truncated,
                        text=self._written,
                    )
                )
        return rows

    def _written(self, ids: Sequence[int]) -> str:
        """The text of any ids, special tokens included."""
        decoded: str = self._codec.tokenizer.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return decoded


def _rollout(episode: TokenEpisode, known: Scored) -> Rollout:
    mask = tuple(episode.mask)
    return Rollout(
        ids=tuple(episode.response_ids),
        mask=mask,
        logprobs=tuple(episode.logprobs),
        total=known.reward.total,
        observed=observe(
            known.attempt, known.reward, known.verdict, length=sum(mask), truncated=known.attempt.truncated
        ),
        turns=len(episode.ranges),
        stop=episode.stop or "running",
        observations_cut=episode.observations_cut,
        retried=episode.retried,
    )


def turns_of(groups: Sequence[Group]) -> dict[str, Any]:
    """The part of a metrics row that only episodes of several turns have."""
    known = [one for group in groups for one in group.rollouts]
    if not known:
        return {}
    stops: dict[str, int] = {}
    for one in known:
        stops[one.stop] = stops.get(one.stop, 0) + 1
    return {
        "turns": sum(one.turns for one in known) / len(known),
        "stops": dict(sorted(stops.items())),
        "environment_tokens": sum(len(one.ids) - one.written for one in known),
        "observations_cut": sum(one.observations_cut for one in known),
        "retried": sum(one.retried for one in known),
    }
