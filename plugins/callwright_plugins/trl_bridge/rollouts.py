"""Episodes of several turns for TRL, with the trainer's own model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import evolve

from callwright.episodes.codec import ChatCodec, PlainCodec
from callwright.episodes.driving import drive_batch
from callwright.episodes.pool import EpisodePool
from callwright.episodes.sampling import of_copy
from callwright.episodes.token_episode import Codec, describe_episodes
from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.pipeline import Pipeline
from callwright.walk.conditions import Progress
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Task
from callwright_plugins.trl_bridge.generating import TrainerEngine, check_trainer
from callwright_plugins.trl_bridge.prompts import MARK, compact_prompt
from callwright_plugins.trl_bridge.rewards import ROLLOUT


class RolloutFunction:
    """``f(prompts, trainer) -> {"prompt_ids", "completion_ids", "logprobs", "env_mask", "rollout"}``.

    One episode for each prompt, in their order (TRL repeats prompts by itself). ``completion_ids`` are everything after
    the prompt; ``env_mask`` is 1 where the model sampled, and ``logprobs`` are those of sampling, 0.0 elsewhere. The
    column ``rollout`` holds the episodes, for :func:`callwright_plugins.trl_bridge.reward`.

    Raises :class:`callwright.UsageError` for a trainer that it cannot sample with, and
    :class:`callwright.errors.DataError` for a prompt of no task.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        limits: TurnLimits | None = None,
        retries: int = 1,
        codec: Callable[[Any], Codec] | None = None,
        compact: Callable[[Task], str] | None = None,
        pool: EpisodePool | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.limits = limits or pipeline.conditions.limits
        self.retries = retries
        #: Where calls are executed, if not in this thread. Its workers begin with the first call; ``close`` ends them.
        self.pool = pool or pipeline.pool()
        self._make_codec = codec
        self._compact = compact
        #: Counts of the last call: turns, why episodes stopped, tokens by origin.
        self.described: dict[str, Any] = {}

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        """Sample an episode for every prompt."""
        check_trainer(trainer)
        accelerator = trainer.accelerator
        conditions = evolve(self.pipeline.conditions, limits=self._bounded(trainer), progress=_progress(trainer))
        tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
        codecs: dict[bool, Codec] = {}
        rollouts = []
        copies: Counter[str] = Counter()
        for prompt in prompts:
            plain = isinstance(prompt, str)
            if plain not in codecs:
                codecs[plain] = self._codec(plain, tokenizer, trainer)
            task = self._tasks_by_text[prompt] if plain and prompt in self._tasks_by_text else self._task(prompt)
            messages = None if plain else [_message(one) for one in prompt]
            # A prompt's samples may be shared out over processes, none of which knows the others' numbers.
            copy = copies[task.id] * accelerator.num_processes + accelerator.process_index
            drawn = of_copy(conditions, task, copy, trainer.state.global_step) if task.user else conditions
            copies[task.id] += 1
            rollouts.append(self.pipeline.token_episode(task, codecs[plain], messages=messages, conditions=drawn))
        drive_batch(rollouts, TrainerEngine(trainer), retries=self.retries, pool=self.pool)
        self.described = describe_episodes(rollouts)
        filler = _filler(trainer, tokenizer)
        return {
            "prompt_ids": [list(rollout.prompt_ids) for rollout in rollouts],
            "completion_ids": [list(rollout.response_ids) or [filler] for rollout in rollouts],
            "env_mask": [list(rollout.mask) or [0] for rollout in rollouts],
            "logprobs": [list(rollout.logprobs) or [0.0] * max(1, len(rollout.response_ids)) for rollout in rollouts],
            ROLLOUT: rollouts,
        }

    def _bounded(self, trainer: Any) -> TurnLimits:
        """The limits, with TRL's bound on completions and the model's on positions where they say nothing."""
        limits = self.limits
        total = min(limits.total_tokens or trainer.max_completion_length, trainer.max_completion_length)
        config = trainer.accelerator.unwrap_model(trainer.model).config.get_text_config()
        positions = getattr(config, "max_position_embeddings", None)
        return evolve(limits, total_tokens=total, context_tokens=limits.context_tokens or positions)

    def _codec(self, plain: bool, tokenizer: Any, trainer: Any) -> Codec:
        if self._make_codec is not None:
            return self._make_codec(tokenizer)
        if plain:
            return PlainCodec(tokenizer, self._write, ends=trainer.eos_token_ids)
        return ChatCodec(tokenizer, template_options=trainer.chat_template_kwargs, ends=trainer.eos_token_ids)

    @cached_property
    def _write(self) -> Callable[[Task], str]:
        return self._compact or compact_prompt(self.pipeline.corpus)

    @cached_property
    def _tasks_by_text(self) -> Mapping[str, Task]:
        """Every task of the corpus by its compact prompt, less the prompts that more than one task has."""
        found: dict[str, list[Task]] = {}
        for split in self.pipeline.corpus.splits:
            for task in self.pipeline.tasks(split):
                found.setdefault(self._write(task), []).append(task)
        # Tasks that ask the same of the same scenario and want the same are one task to a reward.
        return {text: tasks[0] for text, tasks in found.items() if all(_alike(tasks[0], task) for task in tasks)}

    def _task(self, prompt: Any) -> Task:
        if isinstance(prompt, str):
            raise DataError(
                f"this prompt is of no task of {self.pipeline.corpus.name!r}, or of several that differ: "
                f"{prompt[:80]!r}; use dataset(…, form='chat'), whose prompts say which task they are of"
            )
        marked = prompt[-1].get(MARK)
        if marked is None:
            raise DataError(f"the last message of the prompt has no {MARK!r}; make the data with trl_bridge.dataset(…)")
        return self.pipeline.task(marked)


def _message(one: Mapping[str, Any]) -> Message:
    """A message of a prompt without the mark, which is no business of the chat template."""
    return Message.from_openai({key: value for key, value in one.items() if key != MARK})


def _alike(one: Task, other: Task) -> bool:
    return (one.query, one.scenario, one.seed, one.answer, one.program, one.user) == (
        other.query,
        other.scenario,
        other.seed,
        other.answer,
        other.program,
        other.user,
    )


def _progress(trainer: Any) -> Progress:
    state = trainer.state
    return Progress(state.global_step, max(state.max_steps, state.global_step))


def _filler(trainer: Any, tokenizer: Any) -> int:
    """What stands for a response that never began, with mask 0: TRL wants at least one token of each."""
    pad = tokenizer.pad_token_id
    return int(trainer.eos_token_ids[0] if pad is None else pad)
