"""verl's agent loop over Callwright's rollouts: episodes in any form, exact in every id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, Final, Literal
from uuid import uuid4

from attrs import asdict, evolve
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register

from callwright.episodes.codec import ChatCodec
from callwright.episodes.driving import drive_one
from callwright.episodes.rewards import asked_until_known
from callwright.episodes.sampling import of_copy
from callwright.episodes.token_episode import EngineOutput, TokenEpisode
from callwright.errors import DataError, InfrastructureFailure, UsageError
from callwright.language.messages import Message
from callwright.pipeline import Pipeline
from callwright.walk.conditions import Progress
from callwright.walk.limits import TruncationPolicy, TurnLimits
from callwright_plugins.verl_bridge.scoring import open_named, scores

#: How many episodes of a task were begun in this process, for callers that do not number their samples.
_begun: Final[Counter[str]] = Counter()


@register("callwright")
class CallwrightAgentLoop(AgentLoopBase):  # type: ignore[misc]
    """An episode for each row that :func:`callwright_plugins.verl_bridge.export` wrote, sampled by verl's own server.

    Options are those of the file for ``agent_loop_config_path``: ``recipe``, ``corpus``, ``ir`` and ``seed`` as
    everywhere; ``limits`` with the keys of :class:`callwright.TurnLimits`; ``retries``; ``score`` (whether the episode
    is scored here or by verl's reward manager); ``on_lost``: ``stop`` the run for an episode whose machinery failed
    again and again, or ``mask`` its tokens and let its 0 enter the mean of its group; ``truncated`` and ``floor``, what
    an episode earns that was cut off (under ``mask`` its tokens carry no loss, and its 0 enters that mean); ``ends``,
    the ids that end a completion besides the tokenizer's own (a generation config may have more).

    Where ``limits`` say nothing: turns of the pipeline recipe, else as in ``rollout.multi_turn``, whose
    ``max_user_turns`` counts messages of the user here, not results of tools; ``total_tokens`` is ``response_length``.
    A prompt of more than ``prompt_length`` tokens raises: verl would cut the list of tools.
    """

    def __init__(
        self,
        *args: Any,
        recipe: str = "tier",
        corpus: str | None = None,
        ir: str = "json",
        seed: int = 0,
        limits: Mapping[str, int | None] | None = None,
        retries: int = 1,
        score: bool = True,
        on_lost: Literal["stop", "mask"] = "stop",
        truncated: TruncationPolicy | None = None,
        floor: float | None = None,
        ends: Sequence[int] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if on_lost not in ("stop", "mask"):
            raise UsageError(f"on_lost is 'stop' or 'mask', not {on_lost!r}")
        self._recipe, self._corpus = recipe, corpus
        self._conditions = (ir, seed, truncated, floor)
        self._limits = dict(limits or {})
        self._retries, self._score, self._on_lost, self._ends = retries, score, on_lost, tuple(ends)

    async def run(self, sampling_params: dict[str, Any], priority: int | None = None, **kwargs: Any) -> Any:
        """One episode of the row's task. ``priority`` is the number of the sample in its batch, as verl counts them.

        The task's user draws from the seed, the task, this number, and the training step that the server names: a run
        that goes on has the same users.
        """
        pipeline = open_named(self._recipe, self._corpus, kwargs.get("data_source"), *self._conditions)
        task = pipeline.task(_task_id(kwargs))
        options = dict(self.apply_chat_template_kwargs or {})
        codec = ChatCodec(self.tokenizer, template_options=options, ends=self._ends)
        messages = [Message.from_openai(one) for one in kwargs["raw_prompt"]]
        usual = evolve(pipeline.conditions, limits=self._turn_limits(_stated(pipeline)))
        copy = priority
        if copy is None:
            copy = _begun[task.id]
            _begun[task.id] += 1
        rollout = pipeline.token_episode(task, codec, messages=messages, conditions=of_copy(usual, task, copy))
        longest = self.rollout_config.prompt_length
        if len(rollout.prompt_ids) > longest:
            raise DataError(
                f"the prompt of task {task.id!r} has {len(rollout.prompt_ids)} tokens, more than the {longest} of "
                "prompt_length; raise it, offer fewer tools or leave the task out"
            )
        server = _Server(self, dict(sampling_params), int(priority or 0), codec.ends)

        async def ask(context: tuple[int, ...], room: int | None) -> EngineOutput:
            answer = await server.generate(context, room)
            if task.user is not None and not rollout.history:  # now the step is known
                rollout.reseed(of_copy(usual, task, int(copy), server.step).seed)
            return answer

        await drive_one(rollout, ask, retries=self._retries, threads=True)
        if rollout.masked is not None and self._on_lost == "stop":
            raise InfrastructureFailure(
                f"the episode of task {task.id!r} failed {rollout.retried + 1} times: {rollout.masked}. verl cannot "
                "leave a sample out of its group; with on_lost: mask its tokens carry no loss, and it counts as 0"
            )
        return await self._output(pipeline, rollout, server)

    async def _output(self, pipeline: Any, rollout: TokenEpisode, server: _Server) -> Any:
        # verl hands extra fields on to a reward function that scores later: it hears of the cut by this one.
        cut = rollout.attempt.truncated
        extra: dict[str, Any] = {**server.extra, "turn_scores": [], "tool_rewards": [], "truncated": cut}
        total, masked = None, rollout.masked is not None
        if self._score:
            attempt = rollout.attempt.at(self._progress(server.extra))
            _, reward = await asked_until_known(attempt, self._retries, pipeline.ascore)
            if reward.total is None and not reward.masked_cut and self._on_lost == "stop":
                raise InfrastructureFailure(
                    f"the episode of task {rollout.task.id!r} has no reward: {reward.masked}. verl cannot leave a "
                    "sample out of its group; with on_lost: mask its tokens carry no loss, and it counts as 0"
                )
            total = 0.0 if reward.total is None else float(reward.total)
            masked = masked or reward.total is None  # a 0 that nobody earned is nothing to learn from
            extra["reward_extra_info"] = scores(pipeline, reward, total)
        mask = list(rollout.mask)
        if masked:
            mask = [0] * len(mask)
        response = list(rollout.response_ids)
        if not response:  # nothing was sampled before the machinery failed; verl wants a token
            response, mask = [next(iter(rollout.codec.ends), 0)], [0]
        logprobs = list(rollout.logprobs) or ([0.0] * len(response) if server.gave_logprobs else None)
        return AgentLoopOutput(
            prompt_ids=list(rollout.prompt_ids),
            response_ids=response,
            response_mask=mask,
            response_logprobs=logprobs,
            reward_score=total,
            num_turns=len(rollout.messages) - len([one for one in rollout.messages if one.role == "system"]),
            metrics=AgentLoopMetrics(generate_sequences=server.seconds, num_preempted=server.preempted),
            extra_fields=extra,
        )

    def _turn_limits(self, own: TurnLimits | None) -> TurnLimits:
        """The limits of the options, else of the pipeline recipe, else of verl's configuration."""
        turns = self.rollout_config.multi_turn
        given: dict[str, Any] = {
            "assistant_turns": turns.get("max_assistant_turns"),
            "user_turns": turns.get("max_user_turns"),
            "total_tokens": self.rollout_config.response_length,
        }
        given |= {} if own is None else {key: value for key, value in asdict(own).items() if value is not None}
        given = {key: value for key, value in given.items() if value is not None} | self._limits
        given["total_tokens"] = min(
            given["total_tokens"] or self.rollout_config.response_length, self.rollout_config.response_length
        )
        try:
            return TurnLimits(**given)
        except TypeError as error:
            raise UsageError(f"the limits of the agent loop: {error}") from error

    def _progress(self, extra: Mapping[str, Any]) -> Progress | None:
        step = extra.get("max_global_steps")
        total = self.config.get("trainer", {}).get("total_training_steps")
        if step is None or total is None:
            return None
        return Progress(int(step), max(int(total), int(step)))


class _Server:
    """verl's server as an engine of one rollout, and what it says beside the tokens."""

    def __init__(
        self, loop: CallwrightAgentLoop, sampling: dict[str, Any], priority: int, ends: frozenset[int]
    ) -> None:
        self._loop, self._sampling, self._priority, self._ends = loop, sampling, priority, ends
        fixed = bool(loop.rollout_config.get("full_determinism", False))
        self._request = f"det-{priority}" if fixed else uuid4().hex
        self.extra: dict[str, Any] = {}
        self.seconds = 0.0
        self.preempted = -1
        self.gave_logprobs = False

    @property
    def step(self) -> int:
        """The training step whose weights answered last; 0 where the server does not say."""
        return int(self.extra.get("max_global_steps") or 0)

    async def generate(self, context: tuple[int, ...], room: int | None) -> EngineOutput:
        """One completion. Whatever the server raises is a failure of the machinery."""
        began = perf_counter()
        sampling = dict(self._sampling)
        if room is not None:
            sampling["max_tokens"] = min(room, sampling.get("max_tokens", room))
        try:
            output = await self._loop.server_manager.generate(
                request_id=self._request, prompt_ids=list(context), sampling_params=sampling, priority=self._priority
            )
        except Exception as error:
            raise InfrastructureFailure(f"verl's server failed: {type(error).__name__}: {error}") from error
        finally:
            self.seconds += perf_counter() - began
        if output.num_preempted is not None:
            self.preempted = max(self.preempted, 0) + output.num_preempted
        self.extra = {**output.extra_fields, **self.extra, **_newest(output.extra_fields)}
        ids = tuple(output.token_ids)
        logprobs = tuple(output.log_probs or ())
        self.gave_logprobs = self.gave_logprobs or bool(logprobs)
        if room is not None:
            ids, logprobs = ids[:room], logprobs[:room]
        if not ids:
            raise InfrastructureFailure(f"verl's server gave no token ({output.stop_reason or 'no reason'})")
        return EngineOutput(ids, logprobs, finished=ids[-1] in self._ends)


def _newest(extra: Mapping[str, Any]) -> dict[str, Any]:
    return {key: extra[key] for key in ("max_global_steps",) if key in extra}


def _stated(pipeline: Pipeline) -> TurnLimits | None:
    """The limits that a pipeline recipe states; ``None`` without ``[turns]``, where verl's configuration says them."""
    source = pipeline.source
    return None if source is None or source.recipe.turns is None else pipeline.conditions.limits


def _task_id(row: Mapping[str, Any]) -> Any:
    model = row.get("reward_model")
    if isinstance(model, Mapping) and isinstance(model.get("ground_truth"), str):
        return model["ground_truth"]
    return (row.get("extra_info") or {}).get("task_id")
