"""A reward recipe as TRL's reward function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from callwright.episodes.codec import ChatCodec
from callwright.episodes.token_episode import TokenEpisode
from callwright.errors import DataError, UsageError
from callwright.language.messages import Message
from callwright.language.native import turn_text
from callwright.pipeline import Pipeline
from callwright.walk.attempt import Attempt
from callwright.walk.completion import Completion
from callwright.walk.conditions import Progress
from callwright.walk.reward import Reward

#: The column in which a rollout function hands on its episodes.
ROLLOUT: Final = "rollout"


class RewardFunction:
    """``f(prompts, completions, completion_ids, **columns) -> [float | None]``, one value a completion.

    The means of the reward's components are logged as ``NAME/component`` (as values, before weights), the share of
    masked samples as ``NAME/masked``. Rewards with a schedule get the trainer's step.
    """

    def __init__(self, pipeline: Pipeline, tokenizer: Any = None) -> None:
        self.pipeline = pipeline
        #: TRL names its metrics after this.
        self.__name__ = pipeline.reward.name
        self._codec = None if tokenizer is None else ChatCodec(tokenizer)

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], completion_ids: Any = None, **columns: Any
    ) -> list[float | None]:
        """Score a batch. Raises :class:`callwright.UsageError` if the data does not say which tasks these are."""
        rewards = self.rewards(prompts, completions, completion_ids, **columns)
        log = columns.get("log_metric")
        if log is not None and rewards:
            for name, value in component_means(rewards).items():
                log(f"{self.__name__}/{name}", value)
        return [reward.total for reward in rewards]

    def rewards(
        self, prompts: Sequence[Any], completions: Sequence[Any], completion_ids: Any = None, **columns: Any
    ) -> list[Reward]:
        """The same with everything that made each total."""
        state = columns.get("trainer_state")
        progress = None if state is None else Progress(state.global_step, max(state.max_steps, state.global_step))
        environments = columns.get("environments") or [None] * len(completions)
        episodes = columns.get(ROLLOUT)
        if episodes is not None:
            return self.pipeline.score_many(self._of_rollout(episode, progress) for episode in episodes)
        ids = columns.get("task_id")
        if ids is None:
            raise UsageError(
                "the data has no column 'task_id', so nobody knows what was asked; make it with trl_bridge.dataset(…)"
            )
        tokens = completion_ids if self._codec is not None else [None] * len(completions)
        if tokens is None:
            raise UsageError("the reward was given a tokenizer, but TRL gave no completion_ids to read")
        for name, column in {"task_id": ids, "completion_ids": tokens, "environments": environments}.items():
            if len(column) != len(completions):
                raise UsageError(f"the column {name!r} has {len(column)} rows for {len(completions)} completions")
        return self.pipeline.score_many(
            self._attempt(task_id, completion, own, environment, progress)
            for task_id, completion, own, environment in zip(ids, completions, tokens, environments, strict=True)
        )

    def _of_rollout(self, rollout: Any, progress: Progress | None) -> Attempt:
        if not isinstance(rollout, TokenEpisode):
            raise DataError(f"the column {ROLLOUT!r} holds {type(rollout).__name__}, not an episode of rollout_func")
        return rollout.attempt.at(progress)

    def _attempt(self, task_id: Any, completion: Any, ids: Any, environment: Any, progress: Progress | None) -> Attempt:
        pipeline = self.pipeline
        task = pipeline.task(task_id)
        if not isinstance(completion, str | list | tuple):
            raise DataError(f"a completion is a text or a list of messages, not {completion!r:.60}")
        masked = getattr(environment, "_masked", None)
        if isinstance(completion, str) or _is_plain(completion):
            text = completion if isinstance(completion, str) else Message.from_openai(completion[0]).text
            return pipeline.attempt(task, self._completion(text, ids, masked), progress)
        if self._codec is not None and len(completion) == 1:
            return pipeline.attempt(task, self._completion("", ids, masked), progress)
        turns = [
            Completion(turn_text(Message.from_openai(message), pipeline.parser))
            for message in completion
            if message["role"] == "assistant"
        ]
        if turns:
            turns[-1] = evolve(turns[-1], truncated=not self._ended(ids), masked=masked)
        elif masked is not None:
            turns = [Completion("", masked=masked)]
        else:  # an agent that did nothing is no completion, and would earn what saying nothing earns
            raise DataError(
                f"task {task.id!r}: the completion holds no message of the assistant, so there is nothing to score: "
                f"{completion!r:.60}"
            )
        return pipeline.attempt(task, turns, progress)

    def _ended(self, ids: Any) -> bool:
        """Whether the ids end as a model ends; without a tokenizer, which knows how that is, they are taken to."""
        if self._codec is None or ids is None:
            return True
        return bool(ids) and ids[-1] in self._codec.ends

    def _completion(self, text: str, ids: Any, masked: str | None) -> Completion:
        if self._codec is None or ids is None:
            return Completion(text, masked=masked)
        tokens = tuple(ids)
        text = self._codec.prefix_text + self._codec.text(tokens)
        return Completion(text, tokens, truncated=not self._ended(tokens), masked=masked)


def _is_plain(completion: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a conversational completion is one message that holds the text as it was written."""
    if len(completion) != 1:
        return False
    message = Message.from_openai(completion[0])
    plain = message.role == "assistant" and message.is_text
    return plain and not message.tool_calls and not message.thought


def component_means(rewards: Sequence[Reward]) -> dict[str, float]:
    """The mean value of each component over the samples that are not masked, and the share of those that are.

    A sample that lacks a component (most have nothing to say of being cut off) counts as 0 there.
    """
    values: dict[str, list[float]] = defaultdict(list)
    for reward in rewards:
        if reward.total is not None:
            for name, weighted in reward.scores.items():
                values[name].append(weighted.score.value)
    known = sum(reward.total is not None for reward in rewards)
    means = {name: sum(found) / known for name, found in values.items()}
    return {**means, "masked": sum(reward.total is None for reward in rewards) / len(rewards)}
