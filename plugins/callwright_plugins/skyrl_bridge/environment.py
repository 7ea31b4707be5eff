"""The environment of ``skyrl-gym``: one episode of a task, driven by SkyRL's generator with texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import evolve
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from callwright.episodes.conversation import Conversation
from callwright.episodes.rewards import asked_again
from callwright.errors import DataError, InfrastructureFailure, UsageError
from callwright.language.messages import Message
from callwright.walk.completion import Completion
from callwright.walk.reward import Reward
from callwright_plugins.skyrl_bridge.data import limits_of
from callwright_plugins.skyrl_bridge.naming import named


class CallwrightEnv(BaseTextEnv):  # type: ignore[misc]
    """An episode: ``init`` takes the row's prompt, ``step`` an answer, and gives results of its calls or the reward.

    The reward is that of the whole episode, given with its last step; the others earn 0. ``extras`` is the row that
    :func:`callwright_plugins.skyrl_bridge.export` wrote; ``max_turns`` in it is SkyRL's own bound. The options are
    those of :func:`callwright_plugins.skyrl_bridge.register`.

    Raises :class:`callwright.errors.DataError` for a row without a task's id.
    """

    def __init__(
        self,
        env_config: Any = None,
        extras: Mapping[str, Any] | None = None,
        *,
        recipe: str = "tier",
        corpus: str | None = None,
        ir: str = "json",
        seed: int = 0,
        observation_role: Literal["tool", "user"] = "tool",
        retries: int = 1,
        masked_score: float | None = None,
    ) -> None:
        super().__init__()
        row = extras or {}
        task_id = row.get("task_id") or (row.get("reward_spec") or {}).get("ground_truth")
        if not isinstance(task_id, str):
            raise DataError("the row has no 'task_id'; make the data with skyrl_bridge.export(…)")
        self._pipeline = named(recipe, corpus, ir, seed)
        self._task = self._pipeline.task(task_id)
        self._role: Literal["tool", "user"] = observation_role
        self._retries, self._masked_score = retries, masked_score
        self.max_turns = int(row.get("max_turns") or 1)
        self._first: tuple[Message, ...] = ()
        self._said: list[str] = []
        self._conversation: Conversation | None = None
        self._reward: Reward | None = None

    def init(self, prompt: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Begin the episode: a fresh session of the task's world. The prompt is handed back as it came."""
        self._first = tuple(Message.from_openai(one) for one in prompt)
        self._said, self._reward, self.turns = [], None, 0
        self.close()
        self._conversation = self._begun()
        return [dict(one) for one in prompt], {"task_id": self._task.id}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Take an answer of the model.

        Raises :class:`callwright.UsageError` before ``init`` and after the end, and
        :class:`callwright.InfrastructureFailure` for an episode whose machinery failed again and again, unless
        ``masked_score`` says what it earns.
        """
        conversation = self._conversation
        if conversation is None or conversation.over:
            raise UsageError(f"the episode of task {self._task.id!r} has not begun, or is over: call init(prompt)")
        self.turns += 1
        self._said.append(action)
        following = conversation.take(Completion(action))
        conversation.hear(following)
        if conversation.masked is not None:
            conversation, following = self._again(conversation)
        if not conversation.over:
            observations = [{"role": one.role, "content": one.text} for one in following]
            return self._output(observations, 0.0, done=False)
        scoring = self._pipeline.scoring
        ((_, self._reward),) = asked_again(scoring([conversation.attempt]), self._retries, scoring)
        return self._output([], self._total(self._reward), done=True)

    def _begun(self) -> Conversation:
        pipeline = self._pipeline
        conditions = evolve(pipeline.conditions, limits=limits_of(pipeline, self.max_turns))
        return pipeline.conversation(self._task, self._first, conditions, observation_role=self._role)

    def _again(self, lost: Conversation) -> tuple[Conversation, tuple[Message, ...]]:
        """The same answers in a fresh session, as long as it goes as it went until the machinery failed."""
        for _ in range(self._retries):
            again = self._begun()
            following: tuple[Message, ...] = ()
            for number, text in enumerate(self._said):
                following = again.take(Completion(text))
                again.hear(following)
                if again.over and number < len(self._said) - 1:
                    break
            if again.masked is None and len(again.turns) == len(self._said) and _begins_as(again, lost):
                self._conversation = again
                return again, following
            again.close()
        return lost, ()

    def _total(self, reward: Reward) -> float:
        if reward.total is not None:
            return float(reward.total)
        if self._masked_score is not None:
            return float(self._masked_score)
        raise InfrastructureFailure(
            f"the episode of task {self._task.id!r} has no reward: {reward.masked}. SkyRL cannot leave a sample out of "
            "its group; with register(…, masked_score=0.0) it earns that, and is counted in the metric 'masked'"
        )

    def _output(self, observations: list[dict[str, Any]], reward: float, *, done: bool) -> BaseTextEnvStepOutput:
        metadata: dict[str, Any] = {"task_id": self._task.id}
        if self._reward is not None:
            metadata["explanation"] = self._reward.explain()
        return BaseTextEnvStepOutput(observations=observations, reward=reward, done=done, metadata=metadata)

    def get_metrics(self) -> dict[str, Any]:
        """Numbers of the episode, which SkyRL averages: turns and, once it is over, the value of each component."""
        conversation = self._conversation
        found: dict[str, Any] = {"turns": self.turns, "finished": self._reward is not None}
        if conversation is not None:
            records = conversation.attempt.whole_trace.records
            found["calls"] = len(records)
            found["failed_calls"] = sum(record.outcome.failed for record in records)
        if self._reward is not None:
            found["masked"] = self._reward.total is None
            if self._reward.total is not None:
                found["reward"] = float(self._reward.total)
                found |= {name: float(one.score.value) for name, one in self._reward.scores.items()}
        return found

    def close(self) -> None:
        """Give the session back. Closing twice is allowed."""
        if self._conversation is not None:
            self._conversation.close()


def _begins_as(again: Conversation, lost: Conversation) -> bool:
    """Whether the model read the same until the last answer of the lost episode."""
    read = len(lost.history[-1][0]) if lost.history else 0
    return again.messages[:read] == lost.messages[:read]
