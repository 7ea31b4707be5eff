"""A whole recipe as OpenRLHF's command line: the algorithm, sizes, optimiser, layout, data and checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import evolve, frozen

from callwright.walk.limits import TurnLimits
from callwright_plugins.openrlhf_trainer.options import LOCAL_ONLY, Model, Options
from callwright_plugins.openrlhf_trainer.translation.algorithms import (
    response_limit,
    translate_algorithm,
    warm_up_ratio,
)
from callwright_plugins.openrlhf_trainer.translation.arguments import Difference, Translation, argument, translation

_DTYPES: Final = {"bfloat16": "bf16", "float16": "fp16", "float32": "bf16"}
#: Seeds that OpenRLHF can go on with: numpy takes 32 bits, and an engine's is this one plus its number.
_SEEDS: Final = 2**31
_SCHEDULES: Final = {"constant": "constant_with_warmup", "linear": "linear", "cosine": "cosine_with_min_lr"}


@frozen
class Files:
    """Where everything of a run lies; ``folder`` is that of this trainer inside of the run's."""

    run: Path

    @property
    def folder(self) -> Path:
        """What is written for OpenRLHF, and what it says."""
        return self.run / "openrlhf"

    @property
    def train(self) -> Path:
        """The prompts to train on."""
        return self.folder / "train.jsonl"

    @property
    def evaluation(self) -> Path:
        """The prompts to evaluate on."""
        return self.folder / "evaluation.jsonl"

    @property
    def entry(self) -> Path:
        """The module that OpenRLHF loads: the only one that imports it."""
        return self.folder / "entry.py"

    @property
    def config(self) -> Path:
        """What the entry module reads."""
        return self.folder / "config.json"

    @property
    def prompts(self) -> Path:
        """What was exported, and how."""
        return self.folder / "prompts.json"

    @property
    def argv(self) -> Path:
        """The arguments of the last start."""
        return self.folder / "argv.json"

    @property
    def script(self) -> Path:
        """The same as a shell script."""
        return self.folder / "train.sh"

    @property
    def requirements(self) -> Path:
        """The packages of OpenRLHF's environment."""
        return self.folder / "requirements.txt"

    @property
    def log(self) -> Path:
        """Everything that OpenRLHF printed."""
        return self.folder / "log.txt"

    @property
    def events(self) -> Path:
        """The figures that OpenRLHF's logger keeps for TensorBoard: those of every step and evaluation."""
        return self.folder / "events"

    @property
    def failure(self) -> Path:
        """Why an episode ended the run."""
        return self.folder / "failure.json"

    @property
    def progress(self) -> Path:
        """The last finished step, for rewards with a schedule, and which start this is."""
        return self.folder / "progress.json"

    @property
    def spool(self) -> Path:
        """Rollouts that the engines' processes wrote and that no step has claimed yet."""
        return self.folder / "spool"

    @property
    def checkpoints(self) -> Path:
        """OpenRLHF's checkpoints, from which it goes on."""
        return self.run / "checkpoints" / "openrlhf"

    @property
    def model(self) -> Path:
        """The trained model while it is written."""
        return self.run / "checkpoints" / "openrlhf-model"

    @property
    def final(self) -> Path:
        """The trained model of a finished run."""
        return self.run / "checkpoints" / "final"

    def described(self, options: Options) -> list[dict[str, Any]]:
        """Every file with what it holds, as a dry run lists them."""
        held = {
            self.config: "what the rollouts need to know: the recipe, plugins, limits",
            self.train: f"{options.steps * options.prompts} prompts to train on, rendered, with a label each",
            self.evaluation: "the prompts of the evaluation split, likewise",
            self.prompts: "what was exported, and how many prompts were too long",
            self.entry: "the module that OpenRLHF loads: "
            + ("its AgentExecutor" if options.rewards == "agent" else "its reward_func"),
            self.argv: "the arguments of the last start",
            self.script: "the same as a shell script",
            self.requirements: "the packages of OpenRLHF's environment",
            self.log: "everything that OpenRLHF printed",
            self.events: "the figures of its steps, for TensorBoard and for metrics.jsonl",
            self.run / "metrics.jsonl": "one row a step",
            self.run / "rollouts.jsonl": f"about {options.rollouts_per_step} rollouts a step",
            self.run / "evaluation.json": "evaluations",
            self.checkpoints: "OpenRLHF's checkpoints",
            self.final: "the trained model",
        }
        return [{"path": str(path), "holds": what} for path, what in held.items()]


def episode_limits(limits: TurnLimits, options: Options) -> TurnLimits:
    """The limits of one episode with every bound on tokens that the options add."""
    return evolve(
        limits,
        turn_tokens=limits.turn_tokens or options.max_new_tokens,
        context_tokens=limits.context_tokens or options.max_prompt_tokens + response_limit(limits, options),
    )


def translate(
    files: Files,
    options: Options,
    model: Model,
    algorithm: Any,
    limits: TurnLimits,
    *,
    seed: int = 0,
    scheduled: bool = False,
    local: Mapping[str, Any] | None = None,
) -> Translation:
    """The command line of a recipe. ``local`` are its options that only the trainer ``local`` has.

    ``scheduled``: the reward depends on how far training is. Raises :class:`callwright.UsageError` for an algorithm
    without counterpart.
    """
    parts = [
        _model(model),
        _data(files, options, limits),
        translate_algorithm(algorithm, options, limits),
        _sizes(options),
        _optimiser(options),
        _evaluation(files, options),
        _layout(options),
        _adapter(options),
        _asynchronous(options),
        _checkpoints(files, options),
        translation(argument("--train.seed", seed % _SEEDS)),
        translation(unsupported=[Difference(f"trainer.{key}", value, None, LOCAL_ONLY[key])
                                 for key, value in (local or {}).items()]),
    ]  # fmt: skip
    if scheduled:
        late = "OpenRLHF does not say which step it is at; episodes read it from a file that its follower writes"
        parts.append(translation(approximated=[Difference("reward", "the step", "the step, perhaps one late", late)]))
    whole = Translation()
    for part in parts:
        whole += part
    return whole.extended(options.flags)


def _model(model: Model) -> Translation:
    if model.path is None:
        why = "OpenRLHF loads Hugging Face models; --set model=DIRECTORY names one"
        return translation(unsupported=[Difference("model.tiny", model.tiny, None, why, refused=True)])
    path = Path(model.path)
    return translation(argument("--actor.model_name_or_path", str(path.resolve()) if path.is_dir() else model.path))


def _data(files: Files, options: Options, limits: TurnLimits) -> Translation:
    approximated = []
    if options.depths is not None:
        approximated.append(
            Difference(
                "trainer.depths",
                "each step has its share of the depths",
                "the whole run has",
                "OpenRLHF shuffles the prompts that it is given",
            )
        )
    entry = "--train.agent_func_path" if options.rewards == "agent" else "--reward.remote_url"
    return translation(
        argument("--data.prompt_dataset", str(files.train)),
        argument("--data.input_key", "prompt"),
        argument("--data.label_key", "label"),
        argument("--data.max_len", episode_limits(limits, options).context_tokens or 0),
        argument(entry, str(files.entry)),
        argument("--rollout.max_new_tokens", response_limit(limits, options)),
        argument("--rollout.temperature", options.temperature),
        argument("--rollout.top_p", options.top_p),
        approximated=approximated,
    )


def _sizes(options: Options) -> Translation:
    approximated = []
    if options.mini_batches > 1:
        approximated.append(
            Difference(
                "trainer.mini_batches",
                "whole groups share an update",
                "random completions do",
                "OpenRLHF shuffles a batch before it is parted; advantages are those of whole groups all the same",
            )
        )
    return translation(
        argument("--rollout.batch_size", options.prompts),
        argument("--rollout.n_samples_per_prompt", options.group),
        argument("--rollout.micro_batch_size", options.micro_batch),
        argument("--train.batch_size", options.prompts * options.group // options.mini_batches),
        argument("--train.micro_batch_size", options.micro_batch),
        argument("--train.max_epochs", options.iterations),
        argument("--train.num_episodes", 1),
        approximated=approximated,
    )


def _optimiser(options: Options) -> Translation:
    approximated = []
    if options.weight_decay:
        approximated.append(
            Difference(
                "trainer.weight_decay",
                f"{options.weight_decay:g} for all weights",
                f"{options.weight_decay:g}, 0 for biases and norms",
                "OpenRLHF exempts them",
            )
        )
    if options.warm_up:
        approximated.append(
            Difference(
                "trainer.warm_up",
                f"the first update at 1/{options.warm_up} of the rate",
                "the first update at 0",
                "the schedules of transformers begin there; the rest is one update behind",
            )
        )
    if options.schedule == "linear" and options.schedule_floor:
        approximated.append(
            Difference("trainer.schedule_floor", options.schedule_floor, 0.0, "transformers' linear schedule ends at 0")
        )
    return translation(
        argument("--actor.adam.lr", options.learning_rate),
        argument("--actor.adam.betas", *options.betas),
        argument("--actor.adam.weight_decay", options.weight_decay),
        argument("--actor.max_norm", options.clip_norm),
        argument("--actor.lr_scheduler", _SCHEDULES[options.schedule]),
        argument("--actor.lr_warmup_ratio", warm_up_ratio(options.warm_up, options)),
        argument("--actor.min_lr_ratio", options.schedule_floor),
        approximated=approximated,
    )


def _evaluation(files: Files, options: Options) -> Translation:
    every = options.evaluate_every or options.steps
    approximated = []
    why = ""
    if options.asynchronous is not None:
        why = "what samples has come to its end before the last steps are trained; callwright evaluate measures the "
    elif options.steps % every:
        why = "OpenRLHF evaluates only at multiples; callwright evaluate measures the "
    if why:
        given = f"every {every}" + ("" if options.asynchronous is None else ", but for the last steps")
        wanted = "also after the last step"
        approximated.append(Difference("trainer.evaluate_every", wanted, given, f"{why}final model"))
    return translation(
        argument("--eval.dataset", str(files.evaluation)),
        argument("--eval.steps", every),
        argument("--eval.temperature", 0.0),
        argument("--eval.n_samples_per_prompt", 1),
        approximated=approximated,
    )


def _layout(options: Options) -> Translation:
    reference = options.reference
    arguments = [
        argument("--actor.num_nodes", options.nodes),
        argument("--actor.num_gpus_per_node", options.gpus_per_node),
        argument("--ref.num_nodes", reference.nodes or options.nodes),
        argument("--ref.num_gpus_per_node", reference.gpus_per_node or options.gpus_per_node),
        argument("--vllm.num_engines", options.engine_count),
        argument("--vllm.tensor_parallel_size", options.tensor_parallel),
        argument("--vllm.gpu_memory_utilization", options.gpu_memory),
        argument("--ds.zero_stage", options.zero_stage),
        argument("--ds.param_dtype", _DTYPES[options.dtype]),
        argument("--ds.attn_implementation", options.attention),
    ]
    for wanted, flags in (
        (options.colocate, ("--train.colocate_all", "--ds.enable_sleep")),
        (options.hybrid, ("--vllm.enable_sleep",)),
        (reference.with_policy, ("--train.colocate_actor_ref",)),
        (reference.offload, ("--ref.offload",)),
        (options.prefix_caching, ("--vllm.enable_prefix_caching",)),
        (options.optimizer_offload, ("--ds.adam_offload",)),
        (options.packing, ("--ds.packing_samples",)),
        (options.gradient_checkpointing, ("--actor.gradient_checkpointing_enable",)),
    ):
        arguments += [argument(flag) for flag in flags if wanted]
    if options.context_parallel > 1:
        arguments += [
            argument("--ds.ring_attn_size", options.context_parallel),
            argument("--ds.ring_attn_head_stride", options.context_parallel_stride),
        ]
    approximated = []
    if options.dtype == "float32":
        why = "OpenRLHF computes in bfloat16 or float16; the optimiser's copy of the weights is float32"
        approximated.append(Difference("trainer.dtype", "float32", "bfloat16", why))
    return translation(*arguments, approximated=approximated)


def _adapter(options: Options) -> Translation:
    lora = options.lora
    if lora is None:
        return Translation()
    targets = [lora.targets] if isinstance(lora.targets, str) else lora.targets
    return translation(
        argument("--ds.lora.rank", lora.rank),
        argument("--ds.lora.alpha", lora.alpha),
        *([] if lora.targets == "all-linear" else [argument("--ds.lora.target_modules", *targets)]),
    )


#: What OpenRLHF calls our corrections: level and mode.
_CORRECTIONS: Final = {
    "token-clip": ("token", "clip"),
    "token-mask": ("token", "mask"),
    "sequence-mask": ("seq", "mask"),
}


def _asynchronous(options: Options) -> Translation:
    chosen = options.asynchronous
    if chosen is None:
        return Translation()
    late = Difference(
        "trainer.asynchronous",
        "each step is sampled by the weights that the step before it made",
        f"up to {chosen.queue + 1} steps earlier" + (", and by several of them" if chosen.partial_rollouts else ""),
        "sampling goes on while training does",
    )
    arguments = [argument("--train.async_enable"), argument("--train.async_queue_size", chosen.queue)]
    if chosen.partial_rollouts:
        arguments.append(argument("--train.partial_rollout_enable"))
    if chosen.correction != "none":
        level, mode = _CORRECTIONS[chosen.correction]
        arguments += [
            argument("--algo.advantage.is_correction_level", level),
            argument("--algo.advantage.is_correction_mode", mode),
            argument("--algo.advantage.is_correction_threshold", *chosen.correction_range),
        ]
    return translation(*arguments, approximated=[late])


def _checkpoints(files: Files, options: Options) -> Translation:
    return translation(
        argument("--ckpt.path", str(files.checkpoints)),
        argument("--ckpt.output_dir", str(files.model)),
        argument("--ckpt.save_steps", options.checkpoint_every),
        argument("--ckpt.max_num", options.keep_checkpoints),
        argument("--ckpt.best_metric_key", "none"),
        argument("--logger.logging_steps", 1),
        argument("--logger.tensorboard_dir", str(files.events)),
    )
