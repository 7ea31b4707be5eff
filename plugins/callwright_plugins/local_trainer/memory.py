"""A plan of memory for the trainer ``local``, part by part: an estimate, made before torch is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from callwright.capability import has
from callwright.errors import UsageError
from callwright.options import read_options
from callwright.training.algorithm import ActorCritic
from callwright.training.dry_runs.memory_plan import (
    GIB,
    MemoryPlan,
    Part,
    Shape,
    prompt_tokens,
    room_here,
    shape_of,
    unknown_sizes,
)
from callwright.walk.limits import TurnLimits
from callwright_plugins.local_trainer.options import Model, Options

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline

#: Entries of the logits that are made at once, and how often they are there: :mod:`.forward.token_logprobs` has the
#: former (this plan is made without torch), and ``benchmarks/logprob_memory.py`` measures the latter.
_SLICE: Final = {"cpu": 1 << 23}
_SLICE_OF_A_GPU: Final = 1 << 26
_COPIES: Final = 3
#: Bytes of a number.
_BYTES: Final = {"float32": 4.0, "bfloat16": 2.0}


def plan(options: Options, pipeline: Pipeline) -> list[dict[str, Any]]:
    """An estimate in GiB, a row for each part with its formula, their peak, and what there is.

    No rows for a tiny model, which fits wherever Python does; of a model whose sizes nothing here says, only a word
    about it.
    """
    try:
        model = read_options(Model, pipeline.recipe.recipe.model, "the table [model]")
    except UsageError:
        return []
    algorithm = pipeline.algorithm
    if model.path is None or algorithm is None:
        return []
    shape = shape_of(model.path)
    if shape is None:
        return unknown_sizes(model.path)
    prompt, new = prompt_tokens(pipeline), _longest(options, pipeline.conditions.limits)
    arithmetic, own = _BYTES[options.dtype], _BYTES[options.weights]
    copies = 2 if has(algorithm, ActorCritic) else 1
    whose = "" if copies == 1 else ", of the policy and of the critic"
    counted = f"{shape.parameters:,}"
    weights = own * shape.parameters
    beside = {
        ("float32", "float32"): (0.0, ""),
        ("float32", "bfloat16"): (2.0, ", and x 2 of what they are in bfloat16 while they are computed with"),
        ("bfloat16", "bfloat16"): (4.0, ", and x 4 of their float32 masters"),
    }[options.weights, options.dtype]
    held: dict[str, Part] = {
        "weights": (
            (own + beside[0]) * shape.parameters * copies,
            f"{counted} x {own:g} bytes{beside[1]}{whose}",
        ),
        "reference": (
            weights if algorithm.kl_weight else 0.0,
            f"a second copy of them ({counted} x {own:g} bytes) where there is a KL term",
        ),
        **(
            {
                "rollouts": (
                    weights * (options.staleness + 1),
                    f"{options.staleness + 1} copies of the weights, which sample ahead of training",
                )
            }
            if options.staleness
            else {}
        ),
        "gradients": (4.0 * shape.parameters * copies, f"{counted} x 4 bytes{whose}"),
        "optimizer": (8.0 * shape.parameters * copies, f"two moments of each: {counted} x 4 bytes x 2{whose}"),
    }
    rollouts, a_token = options.prompts * options.group, shape.cached * arithmetic
    sampled = min(options.sampling_rows, rollouts)
    episodes = max(rollouts, options.evaluation_batch)
    kept = episodes * (prompt + new) * a_token
    made = MemoryPlan(
        held=held,
        training=_training(options, shape, prompt, new),
        sampling={
            "keys and values": (
                sampled * (prompt + new) * a_token,
                f"of {sampled} rows at once; while sampling, when there are no activations",
            ),
            **(
                {}
                if pipeline.conditions.limits.single or not options.turn_cache_gib
                else {
                    "kept between turns": (
                        min(kept, options.turn_cache_gib * GIB),
                        f"keys and values of {episodes} episodes at a time, {kept / GIB:.2f} GiB if all are kept, and "
                        f"at most the {options.turn_cache_gib:g} of turn_cache_gib",
                    )
                }
            ),
        },
    )
    return made.rows(room_here(options.device))


def _training(options: Options, shape: Shape, prompt: int, new: int) -> dict[str, Part]:
    """What a micro-batch takes, and the prompts of all of them, which are computed once for their groups."""
    rows = -(-options.prompts * options.group // (options.mini_batches * options.micro_batches))
    prompts = -(-options.prompts // options.mini_batches)
    most = options.tokens_per_micro_batch
    if most is not None:
        rows, prompts = min(rows, max(1, most // (prompt + new))), min(prompts, max(1, most // prompt))
    tokens = prompts * prompt + rows * new
    kept = "the input of each layer and one layer whole" if options.gradient_checkpointing else "every layer"
    arithmetic = _BYTES[options.dtype]
    table = rows * new * shape.vocabulary
    at_once = table if shape.scaled else min(table, _COPIES * _SLICE.get(options.device, _SLICE_OF_A_GPU))
    logits = (
        "once, as the model scales them; their gradient takes their place"
        if shape.scaled
        else f"{at_once:,} at a time with their gradients"
    )
    return {
        "activations": (
            tokens * shape.activations(options.gradient_checkpointing) * arithmetic,
            f"{rows} rows of {new} tokens after {prompts} prompts of {prompt} x {arithmetic:g} bytes, {kept}",
        ),
        "logits": (
            at_once * 4.0,
            f"{rows} x {new} tokens and {shape.vocabulary:,} entries in float32, {logits}",
        ),
    }


def _longest(options: Options, limits: TurnLimits) -> int:
    return limits.total_tokens or limits.assistant_turns * (limits.turn_tokens or options.max_new_tokens)
