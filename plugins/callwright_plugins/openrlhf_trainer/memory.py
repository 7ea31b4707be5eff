"""A plan of memory for OpenRLHF, of one of the policy's GPUs: an estimate, made before anything is loaded."""

from __future__ import annotations

from typing import Any

from callwright.training.dry_runs.memory_plan import GIB, MemoryPlan, Part, Room, Shape, shape_of, unknown_sizes
from callwright.walk.limits import TurnLimits
from callwright_plugins.openrlhf_trainer.options import Model, Options
from callwright_plugins.openrlhf_trainer.translation.algorithms import response_limit


def plan(options: Options, model: Model, limits: TurnLimits, *, reference: bool, critic: bool) -> list[dict[str, Any]]:
    """An estimate of one training GPU's memory in GiB, a row for each part with its formula.

    ``reference``: there is a KL term; ``critic``: the algorithm has one. DeepSpeed divides what its stage divides
    among the training GPUs. Of a model whose sizes nothing here says, there is only a word about it.
    """
    shape = None if model.path is None else shape_of(model.path)
    room = Room(options.gpu_gib, "one GPU, as trainer.gpu_gib says")
    if shape is None:
        return unknown_sizes(model.path)
    held = _weights(options, shape, "")
    if reference and (options.colocate or options.reference.with_policy) and not options.reference.offload:
        held["reference"] = (
            2.0 * shape.parameters / (options.training_gpus if options.zero_stage == 3 else 1),
            "a second copy of the weights in 2 bytes each, for the KL term",
        )
    if critic and options.colocate:
        held |= _weights(options, shape, "critic: ")
    sampling: dict[str, Part] = {}
    if options.hybrid:
        taken = options.gpu_memory * options.gpu_gib * GIB
        weights = min(taken, 2.0 * shape.parameters / options.tensor_parallel)
        sampling = {
            "vllm weights": (weights, f"2 bytes each over {options.tensor_parallel} GPUs of an engine, while sampling"),
            "keys and values": (
                taken - weights,
                f"what is left of gpu_memory = {options.gpu_memory:g} of a GPU: "
                f"{(taken - weights) * options.tensor_parallel / (2 * shape.cached):,.0f} tokens an engine",
            ),
        }
    about = "of one training GPU, without DeepSpeed's buffers"
    training: dict[str, Part] = {}
    if sampling:  # --ds.enable_sleep: of policy and critic one is awake, and none while vLLM is
        about += "; optimisers wait in the main memory while vLLM samples"
        training = {key: held.pop(key) for key in ("gradients", "optimizer")}
        for key in ("critic: gradients", "critic: optimizer"):
            if key in held:
                held[key] = (0.0, "as the policy's, whose turn it is not then")
    return MemoryPlan(held, {**training, **_passing(options, shape, limits)}, sampling, about).rows(room)


def _weights(options: Options, shape: Shape, whose: str) -> dict[str, Part]:
    """What training holds of a model: weights in 2 bytes, gradients in 2, and in 4 each the masters and two moments."""
    trained = shape.parameters if options.lora is None else shape.adapter(options.lora.rank)
    gpus, stage = options.training_gpus, options.zero_stage

    def shared(size: float, since: int) -> float:
        return size / gpus if stage >= since else size

    divided = f"over {gpus} GPUs from ZeRO {{}} on; this is ZeRO {stage}"
    parts: dict[str, Part] = {
        f"{whose}weights": (
            shared(2.0 * shape.parameters, 3),
            f"{shape.parameters:,} x 2 bytes, {divided.format(3)}",
        )
    }
    if options.lora is not None:
        parts[f"{whose}adapter"] = (shared(2.0 * trained, 3), f"{trained:,} x 2 bytes")
    parts[f"{whose}gradients"] = (shared(2.0 * trained, 2), f"{trained:,} x 2 bytes, {divided.format(2)}")
    parts[f"{whose}optimizer"] = (
        0.0 if options.optimizer_offload else shared(12.0 * trained, 1),
        "in the main memory of the machine (optimizer_offload)"
        if options.optimizer_offload
        else f"{trained:,} x 12 bytes: masters and two moments in float32, {divided.format(1)}",
    )
    return parts


def _passing(options: Options, shape: Shape, limits: TurnLimits) -> dict[str, Part]:
    """What one micro-batch keeps on its way through a model: of the policy, which takes turns with the critic."""
    prompt, new = options.max_prompt_tokens, response_limit(limits, options)
    longest = limits.context_tokens or prompt + new
    tokens = options.micro_batch * longest / options.context_parallel
    kept = "the input of each layer and one layer whole" if options.gradient_checkpointing else "every layer"
    over = f" over {options.context_parallel} GPUs" if options.context_parallel > 1 else ""
    of = f"{options.micro_batch} x up to {longest:,} tokens{over}"
    return {
        "activations": (
            tokens * shape.activations(options.gradient_checkpointing) * 2.0,
            f"{of} in 2 bytes a number, {kept}",
        ),
        "logits": (
            tokens * shape.vocabulary * 10.0,
            f"{of} x {shape.vocabulary:,} entries: 2 bytes, a copy in float32, and its gradient",
        ),
    }
