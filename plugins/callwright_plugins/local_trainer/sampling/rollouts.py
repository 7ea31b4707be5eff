"""Rollouts: the tasks of a step, their sampled groups, and what each completion was worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from attrs import frozen

from callwright.episodes.token_episode import Rollout as Episode
from callwright.errors import UsageError
from callwright.training.evaluation import Verdict, judge
from callwright.walk.attempt import Attempt, Progress
from callwright.walk.fingerprints import observations
from callwright.walk.reward import Reward
from callwright.walk.sampling import Completion
from callwright.walk.tasks import Task
from callwright_plugins.local_trainer.forward.generation import Sampled, generate
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.randomness import python_generator, torch_generator

if TYPE_CHECKING:
    from torch import Tensor

    from callwright.pipeline import Pipeline


@frozen(eq=False)
class Rollout:
    """One completion with its attempt, reward and verdict; of several turns also the episode as it was driven."""

    sampled: Sampled
    attempt: Attempt
    reward: Reward
    verdict: Verdict
    episode: Episode | None = None


@frozen(eq=False)
class Group:
    """The completions of one prompt."""

    task: Task
    prompt: tuple[int, ...]
    rollouts: tuple[Rollout, ...]


class TaskStream:
    """The tasks of each step, drawn without state: any step can be asked for at any time."""

    def __init__(
        self,
        tasks: Sequence[Task],
        depths: Sequence[int] | None,
        seed: int,
        stages: Sequence[tuple[int, Sequence[int]]] = (),
    ) -> None:
        """``stages`` are a curriculum: up to which step which depths hold, before ``depths`` do."""
        if not tasks:
            raise UsageError("the split to train on holds no tasks")
        self._seed = seed
        self._depths = list(depths) if depths else None
        self._stages = [(end, list(listed)) for end, listed in stages]
        self._everything = list(tasks)
        self._tasks: dict[int, list[Task]] = {}
        if self._depths or self._stages:
            for task in tasks:
                self._tasks.setdefault(task.depth, []).append(task)
        for option, listed in (("depths", self._depths or ()), *(("curriculum", listed) for _, listed in self._stages)):
            for depth in listed:
                if depth not in self._tasks:
                    known = ", ".join(map(str, sorted(self._tasks)))
                    raise UsageError(f"{option!r} asks for depth {depth}, but the split to train on only has {known}")

    def draw(self, count: int, step: int, round_: int = 0) -> list[Task]:
        """``count`` tasks for a round of a step. Listed depths come in turn, each step its share."""
        rng = python_generator(self._seed, "tasks", step, round_)
        begin, depths, stage = self._now(step)
        drawn = []
        for position in range((step - begin) * count, (step - begin + 1) * count):
            pool = self._everything if depths is None else self._tasks[self._depth(position, depths, stage)]
            drawn.append(pool[rng.randrange(len(pool))])
        return drawn

    def _now(self, step: int) -> tuple[int, list[int] | None, tuple[int, ...]]:
        """Where the stage of a step began, its depths, and its number; none after the curriculum."""
        begin = 0
        for number, (end, depths) in enumerate(self._stages):
            if step < end:
                return begin, depths, (number,)
            begin = end
        return begin, self._depths, ()

    def _depth(self, position: int, depths: list[int], stage: tuple[int, ...]) -> int:
        cycle, place = divmod(position, len(depths))
        order = list(depths)
        python_generator(self._seed, "depths", *stage, cycle).shuffle(order)
        return order[place]


def sample_groups(
    pipeline: Pipeline, policy: Policy, tasks: Sequence[Task], options: Options, purpose: tuple[int | str, ...]
) -> list[tuple[tuple[int, ...], list[Sampled]]]:
    """For each task the prompt's ids and ``options.group`` completions."""
    prompts = [policy.prompt_ids(task, () if policy.form == "compact" else pipeline.messages(task)) for task in tasks]
    sampled = generate(
        policy,
        prompts,
        copies=options.group,
        max_new_tokens=options.max_new_tokens,
        temperature=options.temperature,
        generator=torch_generator(*purpose, device=policy.device),
        rows_at_once=options.sampling_rows,
    )
    return list(zip(prompts, sampled, strict=True))


def score_group(
    pipeline: Pipeline,
    policy: Policy,
    task: Task,
    prompt: tuple[int, ...],
    sampled: Sequence[Sampled],
    progress: Progress,
    retries: int,
) -> Group:
    """Parse, execute, score, judge. What the machinery failed on is tried again, then masked."""
    rollouts = []
    for sample in sampled:
        completion = Completion(policy.text(sample.ids), sample.ids, sample.logprobs, sample.truncated)
        for left in range(retries, -1, -1):
            attempt = pipeline.attempt(task, completion, progress)
            reward = pipeline.score(attempt)
            if reward.total is not None or not left:
                break
        rollouts.append(Rollout(sample, attempt, reward, judge(attempt)))
    return Group(task, prompt, tuple(rollouts))


def rewards_of(groups: Sequence[Group], *, with_environment: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """``[B, G]`` rewards (0 where masked), whether they are valid, and lengths.

    Lengths count sampled tokens; ``with_environment``: whole responses, where a limit counts these.
    """
    totals = [[rollout.reward.total for rollout in group.rollouts] for group in groups]
    rewards = torch.tensor([[0.0 if total is None else total for total in row] for row in totals], dtype=torch.float32)
    valid = torch.tensor([[total is not None for total in row] for row in totals], dtype=torch.bool)
    lengths = torch.tensor(
        [
            [len(one.sampled.ids) if with_environment else one.sampled.length for one in group.rollouts]
            for group in groups
        ]
    )
    return rewards, valid, lengths


def describe(groups: Sequence[Group]) -> dict[str, Any]:
    """The part of a metrics row that is about the rollouts. Masked ones are counted and left out of every mean."""
    everything = [(group, rollout) for group in groups for rollout in group.rollouts]
    known = [(group, rollout) for group, rollout in everything if rollout.reward.total is not None]
    totals = [rollout.reward.total or 0.0 for _, rollout in known]
    mean = _mean(totals)
    scores: dict[str, list[float]] = {}
    for _, rollout in known:
        for name, weighted in rollout.reward.scores.items():
            scores.setdefault(name, []).append(weighted.score.value)
    several = [(group, rollout) for group, rollout in known if group.task.depth > 1]
    return {
        "reward": mean,
        "reward_std": _mean([(total - mean) ** 2 for total in totals]) ** 0.5 if mean is not None else None,
        "scores": {name: _mean(values) for name, values in scores.items()},
        **_shares(known),
        "multi_call": _shares(several),
        "length": _mean([rollout.sampled.length for _, rollout in everything]),
        "truncated": _mean([float(rollout.sampled.truncated) for _, rollout in everything]),
        "tokens": sum(rollout.sampled.length for _, rollout in everything),
        "rollouts": len(everything),
        "masked": len(everything) - len(known),
    }


def _shares(rollouts: Sequence[tuple[Group, Rollout]]) -> dict[str, float | None]:
    programs = [rollout.attempt.program for _, rollout in rollouts]
    return {
        "parsed": _mean([float(program is not None) for program in programs]),
        "executed": _mean([float(_executed(rollout.attempt)) for _, rollout in rollouts]),
        "answered": _mean([float(rollout.verdict.answer) for _, rollout in rollouts]),
        "calls": _mean([float(len(program.calls)) for program in programs if program is not None]),
        "calls_due": _mean([float(group.task.depth) for group, _ in rollouts]),
    }


def _executed(attempt: Attempt) -> bool:
    return attempt.trace is not None and attempt.trace.executed


def _mean(values: Sequence[float]) -> Any:
    return sum(values) / len(values) if values else None


def rollout_rows(
    groups: Sequence[Group], advantages: Tensor, policy: Policy, step: int, seed: int, count: int
) -> list[Mapping[str, Any]]:
    """Rows of ``rollouts.jsonl``: ``count`` of the step's rollouts, drawn for this step."""
    places = [(row, column) for row, group in enumerate(groups) for column in range(len(group.rollouts))]
    rng = python_generator(seed, "rollout sample", step)
    rows: list[Mapping[str, Any]] = []
    for row, column in sorted(rng.sample(places, min(count, len(places)))):
        group, rollout = groups[row], groups[row].rollouts[column]
        rows.append(
            {
                "step": step,
                "task": group.task.id,
                "depth": group.task.depth,
                "structure": group.task.structure,
                "query": group.task.query,
                "prompt": policy.text(group.prompt),
                "completion": rollout.attempt.completion.text,
                "truncated": rollout.sampled.truncated,
                "advantage": round(float(advantages[row, column]), 6),
                "answered": rollout.verdict.answer,
                "failure": rollout.verdict.failure,
                **rollout.reward.to_json(),
                "observations": observations(rollout.attempt.trace),
                **({} if rollout.episode is None else _turns(policy, rollout.episode)),
            }
        )
    return rows


def _turns(policy: Policy, episode: Episode) -> dict[str, Any]:
    """What only an episode of several turns has: why it stopped, and each turn with what the model read next."""
    response, ranges = episode.response_ids, episode.ranges
    following = [*(start for start, _ in ranges[1:]), len(response)][: len(ranges)]  # none before the first completion
    turns = [
        {
            "completion": turn.completion.text,
            "calls": len(turn.calls),
            "tokens": end - start,
            "observation": policy.written(response[end:after]),
        }
        for turn, (start, end), after in zip(episode.episode.turns, ranges, following, strict=True)
    ]
    return {"stop": episode.stop, "turns": turns}
