"""Episodes that an agent of somebody else makes: its own loop in its own process, the policy behind the gateway.

What is trained on are the ids that the gateway recorded: of each branch of a conversation those that the policy wrote
and that were read. All branches of an episode share its place in the group and its advantage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from callwright.episodes.gateway.session import GatewayTrajectory, TrainedBranch
from callwright.episodes.token_episode import Codec, EngineOutput, TokenEpisode
from callwright.errors import UsageError
from callwright.training.evaluation import judge
from callwright.walk.attempt import Attempt
from callwright.walk.conditions import Conditions, Progress
from callwright.walk.limits import TurnLimits
from callwright.walk.sampling import Sampler, SamplingRequest
from callwright.walk.tasks import Task
from callwright_plugins.local_trainer.forward.generation import Sampled
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.randomness import seed_of
from callwright_plugins.local_trainer.sampling.episodes import Engine
from callwright_plugins.local_trainer.sampling.rollouts import Group, ScoredSample

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline


@frozen(eq=False)
class _Behind:
    """The policy as what stands behind a gateway; each context is continued from the seed of its own conditions."""

    policy: Policy
    options: Options
    limits: TurnLimits

    def batch_engine(self, temperature: float) -> tuple[Codec, Callable[[Sequence[Any]], Sequence[EngineOutput]]]:
        """The codec and the engine."""
        most = self.limits.turn_tokens or self.options.max_new_tokens
        return self.policy.codec(), Engine(self.policy, temperature, None, self.options.sampling_rows, most)


@frozen(eq=False)
class AgentRollout:
    """An agent's episode as rows and metrics take one: the ids of all its branches, one after the other."""

    trajectory: GatewayTrajectory
    conditions: Conditions = field(repr=False)
    retried: int = 0
    observations_cut: int = 0

    @property
    def attempt(self) -> Attempt:
        """What every reward scores."""
        return self.trajectory.attempt

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """The prompt of the first branch."""
        return self.trajectory.branches[0].prompt_ids if self.trajectory.branches else ()

    @property
    def response_ids(self) -> tuple[int, ...]:
        """What followed."""
        return tuple(one for branch in self.trajectory.branches for one in branch.response_ids)

    @property
    def mask(self) -> tuple[int, ...]:
        """1 for what the policy wrote and what carries loss."""
        return tuple(one for branch in self.trajectory.branches for one in branch.mask)

    @property
    def logprobs(self) -> tuple[float, ...]:
        """Nats, as they were sampled; 0 for what was not."""
        return tuple(one for branch in self.trajectory.branches for one in _logprobs(branch))

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """Where each turn stands in the response; at its end for all of them where they cannot be told apart."""
        mask, turns = self.mask, len(self.attempt.turns)
        found, at = [], 0
        for sampled, run in groupby(mask):
            length = len(list(run))
            if sampled:
                found.append((at, at + length))
            at += length
        return found if len(found) == turns else [(len(mask), len(mask))] * turns

    @property
    def stop(self) -> str:
        """``machinery`` where the agent failed, else that it answered."""
        return "answered" if self.masked is None else "machinery"

    @property
    def masked(self) -> str | None:
        """Why this sample must not become a number."""
        return self.attempt.masked


def agents_of(pipeline: Pipeline, policy: Policy, options: Options, limits: TurnLimits) -> Sampler:
    """The sampler ``agent`` in front of the policy. Raises :class:`callwright.UsageError` for a model without a chat
    template: an agent sends messages."""
    if policy.form == "compact" or not getattr(policy.tokenizer, "chat_template", None):
        raise UsageError("'agent' needs a model with a chat template, since an agent sends messages; this one has none")
    made: Sampler = pipeline.registry.create(
        "sampler",
        "agent",
        command=options.agent,
        engine=_Behind(policy, options, limits),
        concurrency=options.agents_at_once,
        time_limit=options.agent_time_limit,
    )
    return made


def agent_groups(
    pipeline: Pipeline,
    policy: Policy,
    tasks: Sequence[Task],
    options: Options,
    limits: TurnLimits,
    purpose: tuple[int | str, ...],
    progress: Progress,
    lap: Callable[[str], object],
    agents: Sampler | None = None,
) -> list[Group]:
    """For each task ``options.group`` episodes of the agent, scored and judged: as
    :func:`.episodes.sample_groups` gives them. What the agent did is not executed again.
    """
    conditions = evolve(pipeline.conditions, limits=limits, progress=progress)

    def start(request: SamplingRequest, codec: Codec, copy: int) -> TokenEpisode:
        return pipeline.token_episode(request.task, codec, messages=(), conditions=conditions)

    requests = [SamplingRequest(tuple(pipeline.messages(task)), task) for task in tasks]
    sampler: Any = agents or agents_of(pipeline, policy, options, limits)
    made = sampler.converse(
        requests,
        start,
        n=options.group,
        seed=seed_of(*purpose),
        temperature=options.temperature,
        retries=options.retries,
    )
    episodes = [[AgentRollout(one.trajectory, conditions, one.retried) for one in group] for group in made]
    lap("sampling")
    known = iter(list(pipeline.scoring(one.attempt for group in episodes for one in group)))
    groups = []
    for task, group in zip(tasks, episodes, strict=True):
        samples = []
        for one in group:
            attempt, reward = next(known)
            whole = Sampled(one.response_ids, one.logprobs, attempt.truncated, one.mask)
            lines = tuple((branch.prompt_ids, _sampled(branch)) for branch in one.trajectory.branches)
            samples.append(ScoredSample(whole, one, attempt, reward, judge(attempt), lines))
        prompt = next((one.prompt_ids for one in group if one.prompt_ids), ())
        groups.append(Group(task, prompt, tuple(samples)))
    return groups


def _logprobs(branch: TrainedBranch) -> tuple[float, ...]:
    return branch.logprobs or (0.0,) * len(branch.response_ids)


def _sampled(branch: TrainedBranch) -> Sampled:
    return Sampled(branch.response_ids, branch.logprobs, False, branch.mask)
