"""The options of the trainer ``openrlhf``, and of the model table that belongs to it.

Names are those of the trainer ``local`` wherever they mean the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from pydantic import Field, create_model, model_validator

from callwright.options import OptionTable
from callwright.registration import Reach

#: Flags of OpenRLHF that this trainer reads by: other values of theirs are refused.
OURS: Final = ("--logger.tensorboard_dir", "--logger.logging_steps")
#: Options of the trainer ``local`` that OpenRLHF has no counterpart for, and why nothing is lost or what is. They are
#: accepted, so that ``--set trainer.name=openrlhf`` works on a recipe for it, and listed as unsupported.
LOCAL_ONLY: Final[Mapping[str, str]] = {
    "curriculum": "OpenRLHF shuffles the prompts, so no part of a run can have depths of its own",
    "warm_start": "OpenRLHF's trainer only does reinforcement learning; name a model that was warmed up elsewhere",
    "resampling_rounds": "OpenRLHF draws other prompts until its data is used up",
    "micro_batches": "micro_batch says how many completions a GPU holds at a time",
    "tokens_per_micro_batch": "micro_batch says how many completions a GPU holds at a time",
    "sampling_rows": "vLLM batches by itself; results do not depend on it",
    "shared_prefix": "vLLM's prefix cache does this (prefix_caching); results do not depend on it",
    "turn_cache_gib": "vLLM's prefix cache does this (prefix_caching); results do not depend on it",
    "evaluation_batch": "OpenRLHF evaluates as many prompts at a time as it trains on; results do not depend on it",
    "alarm_window": "there is no alarm about safe calls; metrics.jsonl has what it looks at",
    "agent": "agents train through the local trainer, or by the ids that a gateway records",
    "agents_at_once": "it starts no agents",
    "agent_time_limit": "it starts no agents",
    "whole_step_every": "rewards are found rollout by rollout: a step is not in one place; raise rollouts_per_step",
    "rollout_values": "its rows keep no values of calls",
    "rollout_logprobs": "OpenRLHF's executor does not hand them to rewards",
    "staleness": "see asynchronous: its queue",
    "correction": "see asynchronous: it corrects there",
    "correction_max": "see asynchronous: its correction_range",
    "best": "the checkpoint that is kept is the last",
    "patience": "OpenRLHF trains as many steps as it is told",
    "weights": "they are bfloat16 with float32 masters, by DeepSpeed",
    "threads": "nothing is computed on the CPU; results do not depend on it",
    "device": "OpenRLHF runs on CUDA",
    "executor": "tools and rewards run in threads of the engines' processes",
    "workers": "tools and rewards run in threads of the engines' processes",
    "stuck_after": "an episode ends by the recipe's time_limit; results do not depend on workers",
}


class Lora(OptionTable):
    """A low-rank adapter, by peft. The model's own weights stay as they are; vLLM is sent both, merged."""

    rank: int = Field(default=16, ge=1, description="Rank of the update of each matrix.")
    alpha: int = Field(default=32, ge=1, description="The update is multiplied by alpha / rank.")
    targets: list[str] | Literal["all-linear"] = Field(
        default="all-linear", description="Names of the layers that get one; all-linear: all but the output layer."
    )


class ReferenceOptions(OptionTable):
    """Where the reference of a KL term lies, if it is not on the policy's GPUs (``colocate = false``)."""

    nodes: int | None = Field(default=None, ge=1, description="Its machines; as many as the policy's if left out.")
    gpus_per_node: int | None = Field(
        default=None, ge=1, description="GPUs of each of them; as many as the policy's if left out."
    )
    with_policy: bool = Field(default=False, description="On the policy's GPUs after all; vLLM still has its own.")
    offload: bool = Field(default=False, description="Its weights wait in the machine's main memory.")


class CriticOptions(OptionTable):
    """The critic of an algorithm that has one (``ppo``): the policy's model with a value head."""

    learning_rate: float = Field(default=1e-5, gt=0, le=1, description="Of AdamW, after the warm-up; stays constant.")
    warm_up: int = Field(default=0, ge=0, description="Steps in which the learning rate rises from 0.")
    head_start: int = Field(default=0, ge=0, description="First steps in which the critic alone is trained.")
    weight_decay: float = Field(default=0.0, ge=0, description="Of AdamW.")
    nodes: int | None = Field(
        default=None, ge=1, description="Its machines (`colocate = false`); as many as the policy's if left out."
    )
    gpus_per_node: int | None = Field(
        default=None, ge=1, description="GPUs of each of them; as many as the policy's if left out."
    )


class Asynchronous(OptionTable):
    """Sampling and training at the same time, on GPUs of their own: what is trained on is some updates old."""

    queue: int = Field(default=1, ge=1, description="Rollout batches that sampling may be ahead of training.")
    partial_rollouts: bool = Field(
        default=False, description="New weights reach completions that are being sampled; their tokens are of several."
    )
    correction: Literal["none", "token-clip", "token-mask", "sequence-mask"] = Field(
        default="token-clip",
        description="How the loss weighs tokens whose log-probabilities have changed since: ratios of the two clipped "
        "to `correction_range`, or tokens, or whole sequences, outside of it left out.",
    )
    correction_range: tuple[float, float] = Field(default=(0.5, 5.0), description="Least and largest ratio.")

    @model_validator(mode="after")
    def _range(self) -> Asynchronous:
        low, high = self.correction_range
        if not 0 <= low < high:
            raise ValueError(f"correction_range is {[low, high]}; give a least ratio and a larger one")
        return self


class Options(OptionTable):
    """Options of ``trainer = "openrlhf"``."""

    steps: int = Field(default=100, ge=1, description="Steps of reinforcement learning, one rollout batch each.")
    prompts: int = Field(default=8, ge=1, description="Prompts a step (P).")
    group: int = Field(default=8, ge=1, description="Completions a prompt (G).")
    mini_batches: int = Field(default=1, ge=1, description="Parts of a rollout batch with an optimiser step each.")
    iterations: int = Field(default=1, ge=1, description="Passes over one batch of rollouts (mu).")
    micro_batch: int = Field(default=1, ge=1, description="Completions at a time on one GPU.")
    depths: list[int] | None = Field(
        default=None, description="Depths to export tasks of, each as often as it is listed; all alike if left out."
    )
    temperature: float = Field(
        default=1.0, ge=0.01, le=100, description="Of sampling, and of the trained distribution."
    )
    top_p: float = Field(default=1.0, gt=0, le=1, description="Of sampling.")
    max_prompt_tokens: int = Field(
        default=4096, ge=1, description="Tasks with longer prompts are left out; a prompt is never cut."
    )
    max_new_tokens: int = Field(
        default=1024, ge=1, description="Longest completion; without an end by then it is truncated."
    )
    not_finite_limit: int = Field(
        default=3, ge=1, description="Steps in a row that are not finite, after which the run stops."
    )
    learning_rate: float = Field(default=1e-6, gt=0, le=1, description="Of AdamW, after the warm-up.")
    warm_up: int = Field(default=0, ge=0, description="Steps in which the learning rate rises from 0.")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        default="constant", description="After the warm-up: constant, linear or cosine, down to schedule_floor."
    )
    schedule_floor: float = Field(
        default=0.1, ge=0, le=1, description="What a falling schedule ends at, as a share of the learning rate."
    )
    betas: tuple[float, float] = Field(default=(0.9, 0.95), description="Of AdamW, of the critic's too.")
    weight_decay: float = Field(default=0.0, ge=0, description="Of AdamW.")
    clip_norm: float = Field(default=1.0, gt=0, description="Largest norm of the gradient, of the critic's too.")
    retries: int = Field(default=1, ge=0, description="How often an episode that the machinery failed begins again.")
    evaluate_before: bool = Field(
        default=True, description="Evaluate before the first step, too: by vLLM, before training takes the GPUs."
    )
    evaluate_every: int = Field(default=0, ge=0, description="Steps between evaluations; 0: only after the last one.")
    evaluation_tasks: int | None = Field(default=None, ge=1, description="Tasks per depth; all if left out.")
    checkpoint_every: int = Field(default=25, ge=1, description="Steps between checkpoints.")
    keep_checkpoints: int = Field(default=2, ge=1, description="How many checkpoints are kept, beside the final one.")
    rollouts_per_step: int = Field(default=4, ge=0, description="Rollouts a step that are written to rollouts.jsonl.")
    dtype: Literal["bfloat16", "float16", "float32"] = Field(default="bfloat16", description="Of the arithmetic.")
    nodes: int = Field(default=1, ge=1, description="Machines of the policy (and of reference and critic).")
    gpus_per_node: int = Field(default=1, ge=1, description="GPUs of each of them.")
    colocate: bool = Field(default=True, description="Everything on the same GPUs, vLLM asleep while training.")
    engines: int | None = Field(
        default=None, ge=1, description="vLLM engines; left out: as many as the policy's GPUs make."
    )
    tensor_parallel: int = Field(default=1, ge=1, description="GPUs of one engine.")
    gpu_memory: float = Field(default=0.6, gt=0, lt=1, description="Share of a GPU's memory that an engine takes.")
    gpu_gib: float = Field(
        default=80.0, gt=0, description="Memory of one GPU, for the plan of a dry run, which may know no GPU."
    )
    prefix_caching: bool = Field(default=True, description="vLLM computes what prompts share once.")
    zero_stage: Literal[0, 1, 2, 3] = Field(default=3, description="DeepSpeed's ZeRO stage.")
    optimizer_offload: bool = Field(
        default=False, description="The optimiser and its states in the machine's main memory: 12 bytes a weight less."
    )
    packing: bool = Field(default=False, description="No padding between sequences (flash-attention).")
    context_parallel: int = Field(
        default=1, ge=1, description="GPUs that share each sequence (ring attention); above 1 with `packing`."
    )
    context_parallel_stride: int = Field(
        default=1, ge=1, description="Heads of attention that go around the ring together; divides those of a GPU."
    )
    lora: Lora | None = Field(default=None, description="A low-rank adapter; all weights are trained if left out.")
    asynchronous: Asynchronous | None = Field(
        default=None, description="Sample and train at the same time; one after the other if left out."
    )
    reference: ReferenceOptions = Field(
        default_factory=ReferenceOptions, description="GPUs of its own for the reference."
    )
    gradient_checkpointing: bool = Field(default=False, description="Less memory, more time.")
    attention: str = Field(default="flash_attention_2", description="Attention implementation of the trained models.")
    rewards: Literal["agent", "function"] = Field(
        default="agent",
        description="agent: our executor drives the episodes. function: a reward function for OpenRLHF's own "
        "executor of single turns.",
    )
    flags: list[str] = Field(
        default_factory=list, description="Further words of OpenRLHF's command line, which win over ours."
    )
    python: str | None = Field(
        default=None,
        description="Interpreter of an environment with OpenRLHF; else $CALLWRIGHT_OPENRLHF_PYTHON, else this one.",
    )
    ray_address: str | None = Field(default=None, description="A running Ray cluster (RAY_ADDRESS); else a local one.")
    job_address: str | None = Field(
        default=None,
        description="Of a cluster's dashboard (http://HEAD:8265), to which training is submitted as a job.",
    )
    silent_after: float = Field(
        default=30.0, gt=0, description="Minutes without a step or an evaluation, after which that is said."
    )
    environment: dict[str, str] = Field(default_factory=dict, description="Further environment variables.")
    strict: bool = Field(default=False, description="Refuse what OpenRLHF cannot do exactly as the recipe says.")
    strict_except: list[str] = Field(default_factory=list, description="Keys that strict lets pass all the same.")
    critic: CriticOptions = Field(default_factory=CriticOptions, description="For algorithms that have one.")

    @model_validator(mode="after")
    def _sizes(self) -> Options:
        rows, workers = self.prompts * self.group, self.training_gpus
        if rows % self.mini_batches:
            raise ValueError(f"mini_batches is {self.mini_batches}, which does not divide {rows} completions a step")
        if workers % self.context_parallel:
            raise ValueError(f"context_parallel is {self.context_parallel}, which does not divide {workers} GPUs")
        workers //= self.context_parallel
        if (rows // self.mini_batches) % (self.micro_batch * workers):
            raise ValueError(
                f"an update has {rows // self.mini_batches} completions, which {workers} GPUs cannot share in micro "
                f"batches of {self.micro_batch}; change prompts, group, mini_batches, micro_batch or the GPUs"
            )
        if self.hybrid and self.engine_count * self.tensor_parallel != self.training_gpus:
            raise ValueError(
                f"colocate needs engines times tensor_parallel to be the {self.training_gpus} GPUs of the policy, not "
                f"{self.engine_count} times {self.tensor_parallel}"
            )
        return self

    @model_validator(mode="after")
    def _ours(self) -> Options:
        for word in self.flags:
            if word.partition("=")[0] in OURS:
                raise ValueError(
                    f"flags has {word}, but metrics.jsonl is made of what OpenRLHF logs there, every step; leave it "
                    "out: RUN/openrlhf/events has the files for TensorBoard"
                )
        return self

    @model_validator(mode="after")
    def _places(self) -> Options:
        for name, given in (("reference", self.reference), ("critic", self.critic)):
            if self.colocate and (given.nodes or given.gpus_per_node):
                raise ValueError(f"GPUs of its own for the {name} need colocate = false")
        if self.reference.with_policy and (self.reference.nodes or self.reference.gpus_per_node):
            raise ValueError("the reference is either with_policy or on nodes and gpus_per_node of its own")
        if self.job_address is not None and self.ray_address is not None:
            raise ValueError("job_address names a cluster already; leave ray_address out")
        return self

    @model_validator(mode="after")
    def _together(self) -> Options:
        if self.context_parallel > 1 and not self.packing:
            raise ValueError("context_parallel shares packed sequences; add packing = true")
        if self.context_parallel > 1 and "flash_attention" not in self.attention:
            raise ValueError(f"context_parallel needs flash-attention, not attention = {self.attention!r}")
        if self.lora is not None and self.zero_stage == 3:
            raise ValueError(
                "lora with zero_stage = 3: an adapter is merged for vLLM on one GPU, which then has a part of each "
                "weight only; give zero_stage = 2: frozen weights have no gradients and no optimiser to divide"
            )
        return self

    @property
    def training_gpus(self) -> int:
        """The policy's GPUs."""
        return self.nodes * self.gpus_per_node

    @property
    def hybrid(self) -> bool:
        """Whether vLLM is on the policy's GPUs, asleep while it is trained."""
        return self.colocate and self.asynchronous is None

    @property
    def engine_count(self) -> int:
        """The vLLM engines."""
        return self.engines or max(1, self.training_gpus // self.tensor_parallel)

    @property
    def updates(self) -> int:
        """Optimiser steps of a whole run."""
        return self.steps * self.mini_batches * self.iterations


class Model(OptionTable):
    """The ``[model]`` table."""

    path: str | None = Field(
        default=None, description="A Hugging Face directory, or a name that OpenRLHF's environment resolves."
    )
    tiny: dict[str, Any] | None = Field(default=None, description="Only for the trainer local.")
    prompt: Literal["auto", "chat", "compact"] = Field(
        default="auto", description="compact: the corpus's short prompt; chat: messages."
    )
    chat_template_options: dict[str, Any] = Field(default_factory=dict, description="Passed to the chat template.")

    @model_validator(mode="after")
    def _one(self) -> Model:
        if (self.path is None) == (self.tiny is None):
            raise ValueError('give path = "DIRECTORY", or a name that the trainer\'s environment resolves')
        return self


_WITHOUT_EFFECT: Final[dict[str, Any]] = {
    name: (Any, Field(default=None, description=f"Of the trainer local, and without effect: {why}."))
    for name, why in LOCAL_ONLY.items()
}
#: The options with those of the trainer ``local``, which are taken and listed as unsupported.
Accepted: Final[type[Options]] = create_model("Accepted", __base__=Options, **_WITHOUT_EFFECT)


def split_local(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options that this trainer knows (or that are mistakes), and those that only the trainer ``local`` has."""
    local = {key: value for key, value in given.items() if key in LOCAL_ONLY}
    return {key: value for key, value in given.items() if key not in local}, local


def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    """What the trainer starts with these options; a dry run starts the interpreter too, to check the arguments."""
    python = options.get("python") or "the interpreter of OpenRLHF"
    what = f"starts: {python} -m openrlhf.cli.train_ppo_ray (which also runs code that a model folder holds)"
    if options.get("flags"):
        what += f"; with the flags {options['flags']}"
    if options.get("environment"):
        what += f"; with the variables {options['environment']}"
    for key in ("ray_address", "job_address"):
        if options.get(key):
            what += f"; on the cluster {options[key]}"
    keys = ("name", "python", "flags", "environment", "ray_address", "job_address")
    yield Reach("process", what, keys, dry_run=True)
