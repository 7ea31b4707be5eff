"""A plan of memory for TRL's trainer, part by part: an estimate, made before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from callwright.training.dry_runs.memory_plan import MemoryPlan, room_here, shape_of, unknown_sizes
from callwright.walk.limits import TurnLimits
from callwright_plugins.trl_trainer.options import Model, Options
from callwright_plugins.trl_trainer.settings import longest

#: TRL computes log-probabilities in tiles of so many tokens and entries of the vocabulary (its ``kernels``).
_TILE: Final = (4096, 32768)
#: Bytes a weight of frozen weights by their form; 4-bit ones have their scales.
_BYTES: Final[Mapping[str, float]] = {"float32": 4.0, "bfloat16": 2.0, "8bit": 1.05, "4bit": 0.55}
#: Bytes that an optimiser keeps for each trained weight; transformers' other names are taken for AdamW.
_OPTIMISER: Final[Mapping[str, float]] = {"paged_adamw_8bit": 2.0, "adamw_8bit": 2.0, "adamw_bnb_8bit": 2.0, "sgd": 0.0}


def plan(options: Options, model: Model, limits: TurnLimits, *, prompt: int, kl: bool) -> list[dict[str, Any]]:
    """An estimate of one process's memory in GiB, a row for each part with its formula, their peak, and what there is.

    ``prompt`` is how many tokens a prompt has at most, ``kl`` whether there is a reference.

    Of a model whose sizes nothing here says, there is only a word about it.
    """
    shape = None if model.path is None else shape_of(model.path)
    if shape is None:
        return unknown_sizes(model.path)
    trained = shape.parameters if options.lora is None else shape.adapter(options.lora.rank)
    held_rows = options.part // options.micro_batches
    new = longest(options, limits)
    tokens = held_rows * (prompt + new)
    own = options.quantization if options.quantization != "none" else options.weights
    arithmetic = 2 if options.dtype == "bfloat16" else 4
    trained_bytes = 4.0 if options.lora is not None else _BYTES[options.weights]
    sampled = min(options.sampling_rows, options.prompts * options.group // options.processes)
    kept = "the input of each layer and one layer whole" if options.gradient_checkpointing else "every layer"
    tile = min(held_rows * new, _TILE[0]), min(shape.vocabulary, _TILE[1])
    made = MemoryPlan(
        held={
            "weights": (shape.parameters * _BYTES[own], f"{shape.parameters:,} weights in {own}"),
            "adapter": (
                trained * 4.0 if options.lora else 0.0,
                f"{trained if options.lora else 0:,} weights in float32",
            ),
            "reference": (
                shape.parameters * _BYTES[options.weights] if kl and options.lora is None else 0.0,
                "a second copy of the weights where there is a KL term; with an adapter it is the model without it",
            ),
            "gradients": (trained * trained_bytes, f"{trained:,} trained weights"),
            "optimizer": (
                trained * _OPTIMISER.get(options.optimizer, 2 * trained_bytes),
                f"two moments of {trained:,} trained weights",
            ),
        },
        training={
            "activations": (
                float(tokens * shape.activations(options.gradient_checkpointing) * arithmetic),
                f"{held_rows} rows of {prompt} + {new} tokens, {kept}",
            ),
            "logits": (
                float(tile[0] * tile[1] * 4 * 2),
                f"a tile of {tile[0]:,} tokens x {tile[1]:,} entries in float32, and its gradient; TRL never holds all "
                "of them",
            ),
        },
        sampling={
            "keys and values": (
                float(sampled * (prompt + new) * shape.cached * arithmetic),
                f"of {sampled} rows at once; while sampling, when there are no activations",
            ),
        },
        about="of one process, before FSDP or ZeRO take anything off and vLLM takes its own",
    )
    return made.rows(room_here(options.device))
