"""The options of the trainer ``trl``, and of the model table that belongs to it.

Names are those of the trainer ``local`` wherever they mean the same, and so are their defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from callwright.options import OptionTable, WrongOption
from callwright.registration import Reach
from callwright.training.rollouts.written import Keeping

#: Options of the trainer ``local`` that mean something which TRL's trainer has no place for, and why.
REFUSED: Final[Mapping[str, str]] = {
    "tokens_per_micro_batch": "TRL has micro-batches of equally many completions: set 'micro_batches'",
    "max_prompt_tokens": "TRL's trainer gets every task that is drawn; leave the long ones out of the corpus",
    "agent": "an agent's conversations may branch, and TRL's trainer takes one line each; use the trainer 'local'",
    "agents_at_once": "it starts no agents",
    "agent_time_limit": "it starts no agents",
    "staleness": "each step is sampled by the weights that the step before it made",
    "correction": "it corrects for vLLM's log-probabilities: set 'correction' in [trainer.vllm]",
    "correction_max": "it corrects for vLLM's log-probabilities: set 'correction_max' in [trainer.vllm]",
    "best": "the checkpoint that is kept is the last",
    "patience": "TRL's trainer takes as many steps as it is told",
    "critic": "TRL's GRPO has no critic; an algorithm with one (ppo) runs by the trainers 'local' and 'openrlhf'",
}


def refuse(given: Mapping[str, Any]) -> None:
    """Raises :class:`callwright.UsageError` naming an option of the trainer ``local`` that cannot be kept here."""
    for key, why in REFUSED.items():
        if key in given:
            raise WrongOption(f"the trainer 'trl' has no {key!r}: {why}", (key,))


class Lora(OptionTable):
    """A low-rank adapter, by peft. The model's own weights stay as they are."""

    rank: int = Field(default=16, ge=1, description="Rank of the update of each matrix.")
    alpha: float = Field(default=32.0, gt=0, description="The update is multiplied by alpha / rank.")
    targets: list[str] | Literal["all-linear"] = Field(
        default="all-linear", description="Names of the layers that get one; all-linear: all but the output layer."
    )
    rslora: bool = Field(default=False, description="Multiply by alpha / sqrt(rank) in place of alpha / rank.")
    dora: bool = Field(default=False, description="Learn the norm of each column apart (DoRA).")


class Vllm(OptionTable):
    """Sampling by vLLM, in the trainer's processes or by a server that ``trl vllm-serve`` runs."""

    mode: Literal["colocate", "server"] = Field(default="colocate", description="On the same GPUs, or by a server.")
    gpu_memory: float = Field(default=0.3, gt=0, lt=1, description="Share of a GPU's memory that it takes (colocate).")
    tensor_parallel: int = Field(default=1, ge=1, description="GPUs of one engine (colocate).")
    max_model_length: int | None = Field(default=None, ge=1, description="Longest context; the model's if left out.")
    sleep: bool = Field(default=False, description="Give its memory back while the model is trained (colocate).")
    server_url: str | None = Field(default=None, description="Where the server is (server).")
    server_timeout: float = Field(default=240.0, gt=0, description="Seconds to wait for the server.")
    correction: Literal["none", "sequence_mask", "sequence_truncate", "token_mask", "token_truncate"] = Field(
        default="token_truncate",
        description="How the loss weighs what vLLM sampled by other log-probabilities than the trained model's.",
    )
    correction_max: float = Field(default=3.0, gt=1, description="Largest weight (truncate), or kept at all (mask).")


class Stage(OptionTable):
    """A stage of a curriculum."""

    until: int | float = Field(
        description="Where the stage ends: a whole number of steps, or (0.3) a share of all of them."
    )
    depths: list[int] = Field(min_length=1, description="Depths to draw tasks from, each as often as it is listed.")

    @model_validator(mode="after")
    def _in_range(self) -> Self:
        if isinstance(self.until, float) and not 0 < self.until <= 1:
            raise ValueError(f"until is {self.until}; give a whole number of steps, or a share above 0 and up to 1.0")
        if isinstance(self.until, int) and self.until < 1:
            raise ValueError(f"until is {self.until}; a stage has at least one step")
        return self

    def last(self, steps: int) -> int:
        """How many of ``steps`` are done when the stage ends."""
        return self.until if isinstance(self.until, int) else round(self.until * steps)


class Options(OptionTable):
    """Options of ``trainer = "trl"``."""

    @model_validator(mode="before")
    @classmethod
    def _of_the_other_trainer(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            refuse(given)
        return given

    steps: int = Field(default=100, ge=1, description="Steps of reinforcement learning, one batch of rollouts each.")
    prompts: int = Field(default=6, ge=1, description="Prompts a step (P), of all processes together.")
    group: int = Field(default=16, ge=2, description="Completions a prompt (G).")
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
    learning_rate: float = Field(default=3e-4, gt=0, le=1, description="Of the optimiser, after the warm-up.")
    warm_up: int = Field(default=10, ge=0, description="Steps in which the learning rate rises from 0.")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        default="constant", description="After the warm-up: constant, linear or cosine, down to schedule_floor."
    )
    schedule_floor: float = Field(
        default=0.1, ge=0, le=1, description="What a falling schedule ends at, as a share of the learning rate."
    )
    optimizer: str = Field(
        default="adamw_torch",
        description="A name of transformers' optimisers: adamw_torch, adamw_torch_fused, paged_adamw_8bit, ….",
    )
    betas: tuple[float, float] = Field(default=(0.9, 0.95), description="Of AdamW, in the warm start too.")
    weight_decay: float = Field(default=0.0, ge=0, description="Of AdamW, on every trained weight.")
    clip_norm: float = Field(default=1.0, gt=0, description="Largest norm of the gradient.")
    not_finite_limit: int = Field(
        default=3, ge=1, description="Steps in a row that are not finite, each left out, after which the run stops."
    )
    iterations: int = Field(default=1, ge=1, description="Optimiser steps on one batch of rollouts (mu).")
    mini_batches: int = Field(
        default=1, ge=1, description="Parts of whole groups with an optimiser step each, in every iteration."
    )
    micro_batches: int = Field(
        default=2, ge=1, description="Parts, sorted by length, in which each process accumulates a step's gradient."
    )
    sampling_rows: int = Field(default=256, ge=1, description="Completions that a process samples at a time.")
    shared_prefix: bool = Field(default=True, description="Accepted and without effect; results do not depend on it.")
    turn_cache_gib: float = Field(
        default=1.0, ge=0, description="Accepted and without effect; results do not depend on it."
    )
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
    evaluation_batch: int = Field(default=128, ge=1, description="Tasks that a process evaluates at a time.")
    checkpoint_every: int = Field(default=25, ge=1, description="Steps between checkpoints.")
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
    executor: Literal["serial", "thread", "process", "ray"] = Field(
        default="serial", description="Where each process executes calls and finds rewards."
    )
    workers: int = Field(default=1, ge=1, description="How many of them; 1 where the executor is serial.")
    stuck_after: float = Field(
        default=600.0, gt=0, description="Seconds after which a worker without a result is replaced."
    )
    threads: int = Field(default=1, ge=1, description="Torch threads of each process on the CPU.")
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", description="cpu, cuda, or auto: cuda where there is one."
    )
    dtype: Literal["float32", "bfloat16"] = Field(
        default="float32", description="Of the arithmetic: float32 or bfloat16 (autocast)."
    )
    weights: Literal["float32", "bfloat16"] = Field(
        default="float32", description="Of the model's own weights; an adapter's are float32 all the same."
    )
    quantization: Literal["none", "8bit", "4bit"] = Field(
        default="none", description="Of the weights under an adapter, by bitsandbytes (QLoRA with 4bit)."
    )
    lora: Lora | None = Field(default=None, description="A low-rank adapter; all weights are trained if left out.")
    gradient_checkpointing: bool = Field(default=False, description="Less memory, more time.")
    attention: str | None = Field(default=None, description="Implementation of attention; the model's if left out.")
    vllm: Vllm | None = Field(default=None, description="Sampling by vLLM; by transformers if left out.")
    processes: int = Field(default=1, ge=1, description="Processes, one for each GPU; started by accelerate.")
    launch: list[str] = Field(
        default_factory=list,
        description="Further words of `accelerate launch`, such as --config_file=fsdp.yaml.",
    )
    trackers: list[str] = Field(
        default_factory=list, description="Where transformers reports to as well: tensorboard, wandb, mlflow, …."
    )
    export: Literal["merged", "adapter"] = Field(
        default="merged", description="What checkpoints/final holds after LoRA: a whole model, or the adapter."
    )
    strict: bool = Field(default=False, description="Refuse what TRL does not do exactly as the recipe says.")
    strict_except: list[str] = Field(default_factory=list, description="Keys that strict lets pass all the same.")
    warm_start: dict[str, Any] = Field(
        default_factory=dict, description="The table of the trainer local, which does it: all weights, float32."
    )

    @model_validator(mode="before")
    @classmethod
    def _warm_start_shorthand(cls, value: Any) -> Any:
        if isinstance(value, dict) and type(value.get("warm_start")) is int:
            return {**value, "warm_start": {"steps": value["warm_start"]}}
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.learning_rate * self.weight_decay >= 1:
            raise ValueError(
                f"'learning_rate' {self.learning_rate:g} times 'weight_decay' {self.weight_decay:g} is 1 or more, "
                "which turns the sign of every weight at every step"
            )
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"'betas' are {list(self.betas)}; each is at least 0 and below 1")
        if self.depths == []:
            raise ValueError("'depths' is empty, so there would be no task to draw; leave it out for all of them")
        ends = [stage.last(self.steps) for stage in self.curriculum]
        if ends != sorted(set(ends)):
            raise ValueError(f"the stages of 'curriculum' end at the steps {ends}; each must end after the one before")
        if self.executor == "serial" and self.workers > 1:
            raise ValueError(f"'workers' is {self.workers}, but the executor is serial, which is this thread alone")
        return self

    @model_validator(mode="after")
    def _sizes(self) -> Self:
        if self.prompts % (self.mini_batches * self.processes):
            raise ValueError(
                f"'prompts' is {self.prompts}, which {self.processes} processes cannot share in {self.mini_batches} "
                "mini-batches of whole groups; change 'prompts', 'mini_batches' or 'processes'"
            )
        if self.part % self.micro_batches:
            raise ValueError(
                f"a process has {self.part} completions for each optimiser step, which {self.micro_batches} equal "
                "'micro_batches' cannot hold; change 'micro_batches', 'prompts' or 'group'"
            )
        return self

    @model_validator(mode="after")
    def _adapters(self) -> Self:
        if self.quantization != "none" and self.lora is None:
            raise ValueError("'quantization' is of the weights under an adapter; add the table 'lora'")
        if self.device == "cpu" and (self.vllm is not None or self.quantization == "4bit"):
            raise ValueError("device = 'cpu' has neither vLLM nor 4-bit weights; leave 'vllm' and 'quantization' out")
        return self

    @property
    def keeping(self) -> Keeping:
        """What is written of each step."""
        return Keeping(self.rollouts_per_step, self.whole_step_every, self.rollout_values, self.rollout_logprobs)

    @property
    def part(self) -> int:
        """Completions of one process for one optimiser step."""
        return self.prompts * self.group // (self.mini_batches * self.processes)

    @property
    def updates(self) -> int:
        """Optimiser steps on one batch of rollouts."""
        return self.iterations * self.mini_batches


class Model(OptionTable):
    """The ``[model]`` table."""

    path: str | None = Field(
        default=None, description="A Hugging Face directory, a run folder, or a name that transformers resolves."
    )
    tiny: dict[str, Any] | None = Field(default=None, description="A small model that the trainer local makes.")
    prompt: Literal["auto", "chat", "compact"] = Field(
        default="auto", description="compact: the corpus's short prompt; chat: messages."
    )
    chat_template_options: dict[str, Any] = Field(default_factory=dict, description="Passed to the chat template.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.path is None) == (self.tiny is None):
            raise ValueError('give either path = "DIRECTORY" or tiny = {}')
        return self


def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    """What the trainer starts or sends with these options."""
    if (options.get("processes") or 1) != 1 or options.get("launch"):
        what = f"starts: accelerate launch with the words {options.get('launch') or []}"
        yield Reach("process", what, ("name", "processes", "launch"))
    if options.get("trackers"):
        yield Reach("secret", f"reports, with the keys of this account, to {options['trackers']}", ("trackers",))
    vllm = options.get("vllm")
    if isinstance(vllm, Mapping) and vllm.get("mode") == "server":
        yield Reach("secret", f"sends weights and prompts to {vllm.get('server_url') or 'a local server'}", ("vllm",))
