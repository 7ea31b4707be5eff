"""The options of the local trainer, and of the model table that belongs to it."""

from __future__ import annotations

from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from callwright.options import OptionTable
from callwright.training.rollouts.written import Keeping

Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["float32", "bfloat16"]
_TOKENS_PER_MICRO_BATCH: Final = (
    "Most tokens of a part, prompts and padding included, in place of `micro_batches`; a longer row is one alone."
)
_WEIGHTS: Final = "Of the model; bfloat16 (with dtype = bfloat16) has float32 masters, which the optimiser steps."
#: GiB that are kept by default.
TURN_CACHE_GIB: Final = 1.0
_TURN_CACHE: Final = (
    "GiB of keys and values that are kept between the turns of episodes; 0: each turn computes all anew."
)
_GRADIENT_CHECKPOINTING: Final = (
    "Keep no activations of a layer for the way back but compute them again: less memory, a third more time."
)


def _check_adamw(learning_rate: float, weight_decay: float, betas: tuple[float, float] | None = None) -> None:
    """Raises :class:`ValueError` for numbers that AdamW takes to no good end."""
    if learning_rate * weight_decay >= 1:
        raise ValueError(
            f"'learning_rate' {learning_rate:g} times 'weight_decay' {weight_decay:g} is 1 or more, which turns "
            "the sign of every weight at every step"
        )
    if betas is not None and not all(0 <= beta < 1 for beta in betas):
        raise ValueError(f"'betas' are {list(betas)}; each is at least 0 and below 1")


def _check_weights(weights: Precision, dtype: Precision) -> None:
    """Raises :class:`ValueError` for an arithmetic that is finer than the weights."""
    if weights == "bfloat16" and dtype == "float32":
        raise ValueError("weights = 'bfloat16' are computed with in bfloat16; set dtype = 'bfloat16', too")


class Workers(OptionTable):
    """Who executes and scores: what every trainer of this plugin has."""

    executor: Literal["serial", "thread", "process", "ray"] = Field(
        default="serial",
        description="Where calls are executed and rewards found: in this thread, threads, processes or Ray actors.",
    )
    workers: int = Field(default=1, ge=1, description="How many of them; 1 where the executor is serial.")
    stuck_after: float = Field(
        default=600.0, gt=0, description="Seconds after which a worker without a result is replaced."
    )

    @model_validator(mode="after")
    def _has_workers(self) -> Self:
        if self.executor == "serial" and self.workers > 1:
            raise ValueError(
                f"'workers' is {self.workers}, but the executor is serial, which is this thread alone; set "
                'executor = "process" for environments that compute, or "thread" for those that wait'
            )
        return self


class WarmStart(OptionTable):
    """Supervised training on rendered programs before the reinforcement learning. 0 steps for none."""

    steps: int = Field(default=0, ge=0, description="Optimiser steps.")
    batch: int = Field(default=24, ge=1, description="Demonstrations a step.")
    micro_batches: int = Field(default=1, ge=1, description="Parts in which a batch is trained on.")
    learning_rate: float = Field(default=3e-3, gt=0, le=1, description="Peak learning rate; falls linearly to a tenth.")
    warm_up: int = Field(default=50, ge=0, description="Steps in which the learning rate rises from 0.")
    weight_decay: float = Field(default=0.0, ge=0, description="Of AdamW.")
    clip_norm: float = Field(default=1.0, gt=0, description="Largest norm of the gradient.")
    count: int = Field(default=6000, ge=1, description="How many demonstrations are asked of the corpus.")
    demonstrations: dict[str, Any] = Field(
        default_factory=dict, description="Options of the corpus's demonstrations, such as how sloppy they are."
    )
    max_tokens: int = Field(
        default=4096, ge=2, description="Longest demonstration, prompt included; others are an error."
    )

    @model_validator(mode="after")
    def _decays(self) -> WarmStart:
        _check_adamw(self.learning_rate, self.weight_decay)
        return self


class Stage(OptionTable):
    """A stage of a curriculum."""

    until: int | float = Field(
        description="Where the stage ends: a whole number of steps, or (0.3) a share of all of them."
    )
    depths: list[int] = Field(min_length=1, description="Depths to draw tasks from, each as often as it is listed.")

    @model_validator(mode="after")
    def _in_range(self) -> Stage:
        if isinstance(self.until, float) and not 0 < self.until <= 1:
            raise ValueError(f"until is {self.until}; give a whole number of steps, or a share above 0 and up to 1.0")
        if isinstance(self.until, int) and self.until < 1:
            raise ValueError(f"until is {self.until}; a stage has at least one step")
        return self

    def last(self, steps: int) -> int:
        """How many of ``steps`` are done when the stage ends."""
        return self.until if isinstance(self.until, int) else round(self.until * steps)


class CriticOptions(OptionTable):
    """The critic of an algorithm that has one (``ppo``): a copy of the policy before its first step."""

    learning_rate: float = Field(default=1e-3, gt=0, le=1, description="Of AdamW, after the warm-up; stays constant.")
    warm_up: int = Field(default=10, ge=0, description="Steps in which the learning rate rises from 0.")
    head_start: int = Field(default=0, ge=0, description="First steps in which the critic alone is trained.")
    weight_decay: float = Field(default=0.0, ge=0, description="Of AdamW.")

    @model_validator(mode="after")
    def _decays(self) -> CriticOptions:
        _check_adamw(self.learning_rate, self.weight_decay)
        return self


class Options(Workers):
    """Options of ``trainer = "local"``."""

    steps: int = Field(default=100, ge=0, description="Steps of reinforcement learning.")
    prompts: int = Field(default=6, ge=1, description="Prompts a step (P).")
    group: int = Field(default=16, ge=1, description="Completions a prompt (G).")
    depths: list[int] | None = Field(
        default=None,
        description="Depths to draw tasks from, each as often as it is listed; all tasks alike if left out.",
    )
    curriculum: list[Stage] = Field(
        default_factory=list, description="Stages {until, depths} before `depths` holds, in their order."
    )
    temperature: float = Field(
        default=1.0, ge=0.01, le=100, description="Of sampling, and of the trained distribution."
    )
    max_new_tokens: int = Field(
        default=256, ge=1, description="Longest completion; without an end by then it is truncated."
    )
    max_prompt_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Tasks with longer prompts are left out and counted; if left out, those that leave no room.",
    )
    agent: str | list[str] | None = Field(
        default=None,
        description="The command of an agent that does the tasks in a process of its own, with the policy behind the "
        "gateway.",
    )
    agents_at_once: int = Field(default=4, ge=1, description="How many agents run at a time.")
    agent_time_limit: float = Field(
        default=600.0, gt=0, description="Seconds after which an agent is killed, and its sample masked."
    )
    learning_rate: float = Field(default=3e-4, gt=0, le=1, description="Of AdamW, after the warm-up.")
    warm_up: int = Field(default=10, ge=0, description="Steps in which the learning rate rises from 0.")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        default="constant", description="After the warm-up: constant, linear or cosine, down to schedule_floor."
    )
    schedule_floor: float = Field(
        default=0.1, ge=0, le=1, description="What a falling schedule ends at, as a share of the learning rate."
    )
    betas: tuple[float, float] = Field(default=(0.9, 0.95), description="Of AdamW, in the warm start too.")
    weight_decay: float = Field(default=0.0, ge=0, description="Of AdamW.")
    clip_norm: float = Field(default=1.0, gt=0, description="Largest norm of the gradient.")
    not_finite_limit: int = Field(
        default=3, ge=1, description="Steps in a row that are not finite, each left out, after which the run stops."
    )
    iterations: int = Field(default=1, ge=1, description="Optimiser steps on one batch of rollouts (mu).")
    mini_batches: int = Field(
        default=1, ge=1, description="Parts of whole groups with an optimiser step each, in every iteration."
    )
    micro_batches: int = Field(
        default=2, ge=1, description="Parts, sorted by length, in which the gradient of a step is accumulated."
    )
    tokens_per_micro_batch: int | None = Field(default=None, ge=1, description=_TOKENS_PER_MICRO_BATCH)
    gradient_checkpointing: bool = Field(default=False, description=_GRADIENT_CHECKPOINTING)
    staleness: int = Field(
        default=0,
        ge=0,
        description="Updates that a step's samples may lack: they are sampled while earlier steps train. 0: in turn.",
    )
    correction: Literal["none", "sequence_mask", "sequence_truncate", "token_mask", "token_truncate"] = Field(
        default="none",
        description="How the loss weighs what was sampled by other log-probabilities than the trainer's.",
    )
    correction_max: float = Field(default=3.0, gt=1, description="Largest weight (truncate), or kept at all (mask).")
    sampling_rows: int = Field(default=256, ge=1, description="Completions sampled at a time.")
    turn_cache_gib: float = Field(default=TURN_CACHE_GIB, ge=0, description=_TURN_CACHE)
    shared_prefix: bool = Field(default=True, description="Compute a prompt once for its group where the model allows.")
    resampling_rounds: int = Field(
        default=4, ge=0, description="How often a step draws other prompts for groups that the algorithm does not keep."
    )
    retries: int = Field(
        default=1, ge=0, description="How often an attempt that the machinery failed is executed again."
    )
    evaluate_every: int = Field(default=0, ge=0, description="Steps between evaluations; 0: only before and after.")
    evaluation_tasks: int | None = Field(
        default=None, ge=1, description="Tasks per depth; all of the split if left out."
    )
    evaluation_batch: int = Field(default=128, ge=1, description="Tasks evaluated at a time.")
    best: Literal["none", "accuracy"] = Field(
        default="none", description="By what the best evaluation is chosen whose weights stay in checkpoints/best."
    )
    patience: int | None = Field(
        default=None, ge=1, description="Evaluations in a row without a better accuracy after which training ends."
    )
    checkpoint_every: int = Field(
        default=25, ge=1, description="Steps between checkpoints, of the warm start 4 times that."
    )
    keep_checkpoints: int = Field(default=2, ge=1, description="How many checkpoints are kept, beside the final one.")
    rollouts_per_step: int = Field(default=4, ge=0, description="Rollouts a step that are written to rollouts.jsonl.")
    whole_step_every: int = Field(
        default=0,
        ge=0,
        description="Steps between those whose rollouts are all written, step 1 among them; 0: none.",
    )
    rollout_values: int = Field(
        default=2000, ge=0, description="Characters of a value up to which rollouts.jsonl holds it, not its size."
    )
    rollout_logprobs: bool = Field(
        default=False, description="Write each token of a rollout with its log-probability to rollouts.jsonl."
    )
    alarm_window: int = Field(default=15, ge=2, description="Steps over which the alarm looks.")
    threads: int = Field(default=1, ge=1, le=1024, description="Torch threads on the CPU.")
    device: Device = Field(default="auto", description="cpu, cuda, or auto: cuda where there is one.")
    dtype: Precision = Field(default="float32", description="Of the arithmetic: float32 or bfloat16 (autocast).")
    weights: Precision = Field(default="float32", description=_WEIGHTS)
    warm_start: WarmStart = Field(default_factory=WarmStart, description="Supervised steps before the first one.")
    critic: CriticOptions = Field(default_factory=CriticOptions, description="For algorithms that have one.")

    @model_validator(mode="after")
    def _consistent(self) -> Options:
        _check_adamw(self.learning_rate, self.weight_decay, self.betas)
        _check_weights(self.weights, self.dtype)
        if self.depths == []:
            raise ValueError("'depths' is empty, so there would be no task to draw; leave it out for all of them")
        if self.staleness and self.agent is not None:
            raise ValueError(
                "'staleness' is above 0, but an 'agent' asks the policy that is trained, behind the gateway; set "
                "staleness = 0"
            )
        if self.patience is not None and not self.evaluate_every:
            raise ValueError(
                "'patience' counts evaluations during training, of which there are none; set 'evaluate_every'"
            )
        return self

    @model_validator(mode="after")
    def _stages_in_order(self) -> Options:
        ends = [stage.last(self.steps) for stage in self.curriculum]
        if ends != sorted(set(ends)):
            raise ValueError(f"the stages of 'curriculum' end at the steps {ends}; each must end after the one before")
        return self

    @model_validator(mode="before")
    @classmethod
    def _warm_start_shorthand(cls, value: Any) -> Any:
        if isinstance(value, dict) and type(value.get("warm_start")) is int:
            return {**value, "warm_start": {"steps": value["warm_start"]}}
        return value

    @property
    def keeping(self) -> Keeping:
        """What is written of each step."""
        return Keeping(self.rollouts_per_step, self.whole_step_every, self.rollout_values, self.rollout_logprobs)


class SupervisedOptions(Workers):
    """Options of ``trainer = "sft"``. One of ``epochs`` and ``steps`` says how long it trains, not both."""

    epochs: float = Field(
        default=1.0, gt=0, description="Passes over all demonstrations, each in an order of its own; 1.5 is allowed."
    )
    steps: int | None = Field(default=None, ge=0, description="Optimiser steps, in place of `epochs`.")
    batch: int = Field(default=16, ge=1, description="Demonstrations a step.")
    micro_batches: int = Field(
        default=1, ge=1, description="Parts, sorted by length, in which the gradient of a step is accumulated."
    )
    tokens_per_micro_batch: int | None = Field(default=None, ge=1, description=_TOKENS_PER_MICRO_BATCH)
    gradient_checkpointing: bool = Field(default=False, description=_GRADIENT_CHECKPOINTING)
    source: Literal["auto", "demonstrations", "references"] = Field(
        default="auto",
        description="What is shown: the corpus's own demonstrations, the references of the train split, or (auto) the "
        "first where the corpus makes them, else the second.",
    )
    limit: int | None = Field(
        default=None,
        ge=1,
        description="How many demonstrations, drawn by the seed; all of them if left out. A corpus that makes its own "
        "needs the number.",
    )
    demonstrations: dict[str, Any] = Field(
        default_factory=dict, description="Options of the corpus's demonstrations, such as how sloppy they are."
    )
    max_tokens: int = Field(default=4096, ge=2, description="Longest demonstration, prompt included.")
    too_long: Literal["refuse", "leave_out"] = Field(
        default="refuse", description="What becomes of longer ones: an error, or left out and counted."
    )
    learning_rate: float = Field(default=1e-5, gt=0, le=1, description="Of AdamW, after the warm-up.")
    warm_up: int | float = Field(
        default=0, ge=0, description="Steps in which the learning rate rises from 0, or (0.1) a share of all of them."
    )
    schedule: Literal["constant", "linear", "cosine"] = Field(
        default="linear", description="After the warm-up: constant, linear or cosine, down to `schedule_floor`."
    )
    schedule_floor: float = Field(
        default=0.0, ge=0, le=1, description="Share of the peak learning rate at which the schedule ends."
    )
    betas: tuple[float, float] = Field(default=(0.9, 0.999), description="Of AdamW.")
    weight_decay: float = Field(default=0.0, ge=0, description="Of AdamW.")
    clip_norm: float = Field(default=1.0, gt=0, description="Largest norm of the gradient.")
    not_finite_limit: int = Field(
        default=3, ge=1, description="Steps in a row that are not finite, each left out, after which the run stops."
    )
    max_new_tokens: int = Field(default=256, ge=1, description="Longest completion of an evaluation.")
    evaluate_every: int = Field(default=0, ge=0, description="Steps between evaluations; 0: only before and after.")
    evaluation_tasks: int | None = Field(
        default=None, ge=1, description="Tasks per depth; all of the split if left out."
    )
    evaluation_batch: int = Field(default=128, ge=1, description="Tasks evaluated at a time.")
    turn_cache_gib: float = Field(default=TURN_CACHE_GIB, ge=0, description=_TURN_CACHE)
    retries: int = Field(
        default=1, ge=0, description="How often an evaluated attempt that the machinery failed is executed again."
    )
    rollouts_per_evaluation: int = Field(
        default=16, ge=0, description="Completions of each evaluation that are written to rollouts.jsonl."
    )
    best: Literal["none", "accuracy", "reward", "loss"] = Field(
        default="none", description="By what the best evaluation is chosen whose weights stay in checkpoints/best."
    )
    checkpoint_every: int = Field(default=100, ge=1, description="Steps between checkpoints.")
    keep_checkpoints: int = Field(default=1, ge=1, description="How many checkpoints are kept, beside the final one.")
    threads: int = Field(default=1, ge=1, le=1024, description="Torch threads on the CPU.")
    device: Device = Field(default="auto", description="cpu, cuda, or auto: cuda where there is one.")
    dtype: Precision = Field(default="float32", description="Of the arithmetic: float32 or bfloat16 (autocast).")
    weights: Precision = Field(default="float32", description=_WEIGHTS)

    @model_validator(mode="after")
    def _consistent(self) -> SupervisedOptions:
        if self.steps is not None and "epochs" in self.model_fields_set:
            raise ValueError("give either 'epochs' or 'steps', not both")
        if isinstance(self.warm_up, float) and self.warm_up >= 1:
            raise ValueError(f"'warm_up' is {self.warm_up}; give a whole number of steps, or a share below 1.0")
        _check_adamw(self.learning_rate, self.weight_decay, self.betas)
        _check_weights(self.weights, self.dtype)
        if self.demonstrations and self.source == "references":
            raise ValueError("'demonstrations' are options of the corpus's own, and source = 'references' shows none")
        return self


class Tiny(OptionTable):
    """A small Llama made from scratch. Defaults: 0.13 million parameters with a vocabulary of 250."""

    width: int = Field(default=64, ge=8, description="Of the residual stream.")
    layers: int = Field(default=3, ge=1, description="Blocks of attention and feed-forward.")
    heads: int = Field(default=4, ge=1, description="Attention heads; twice their number divides the width.")
    ffn: int = Field(default=128, ge=8, description="Width inside the feed-forward layers.")
    positions: int = Field(default=1024, ge=16, description="Longest prompt and completion together.")
    embedding_std: float = Field(default=0.3, gt=0, le=100, description="Deviation of the first embeddings.")

    @model_validator(mode="after")
    def _divisible(self) -> Tiny:
        if self.width % (2 * self.heads):
            raise ValueError(f"width {self.width} is not a multiple of twice the number of heads ({self.heads})")
        return self


class Model(OptionTable):
    """The ``[model]`` table: a directory, or a tiny model."""

    path: str | None = Field(default=None, description="A Hugging Face causal language model directory.")
    tiny: Tiny | None = Field(default=None, description="A small model made from scratch.")
    prompt: Literal["auto", "chat", "compact"] = Field(
        default="auto", description="compact: the corpus's short prompt, which tiny models get; chat: messages."
    )
    chat_template_options: dict[str, Any] = Field(default_factory=dict, description="Passed to the chat template.")

    @model_validator(mode="after")
    def _one(self) -> Model:
        if (self.path is None) == (self.tiny is None):
            raise ValueError('give either path = "DIRECTORY" or tiny = {}')
        return self


class LocalModelOptions(OptionTable):
    """Options of ``sampler = "local-model"``."""

    model: str = Field(description="A Hugging Face directory, or a run folder, whose final checkpoint is read.")
    max_new_tokens: int = Field(default=256, ge=1, description="Tokens of a completion at most.")
    device: Device = Field(default="auto", description="cpu, cuda, or auto: cuda where there is one.")
    dtype: Precision = Field(default="float32", description="Of the weights and the arithmetic.")
    threads: int = Field(default=1, ge=1, le=1024, description="Threads of torch.")
    prompt: Literal["auto", "chat", "compact"] = Field(
        default="auto", description="Messages, the corpus's short prompt, or what the model was trained with."
    )
    corpus: Any = Field(default=None, description="The corpus of the short prompt: its name or, in Python, itself.")
    chat_template_options: dict[str, Any] | None = Field(
        default=None, description="Passed to the chat template, such as { enable_thinking = false }."
    )
    rows: int = Field(default=256, ge=1, description="Completions that are sampled at a time.")
    turn_cache_gib: float = Field(default=TURN_CACHE_GIB, ge=0, description=_TURN_CACHE)
    yarn: Any = Field(
        default=None, description="Extends the context for this evaluation: a factor, or { factor, original }."
    )
