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
    prompt_tokens,
    room_here,
    shape_of,
    unknown_sizes,
)
from callwright.walk.limits import TurnLimits
from callwright_plugins.local_trainer.options import Model, Options

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline

#: Tables of logits in float32 that the way there and back holds at once.
_TABLES: Final = 5.0


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
    rows = -(-options.prompts * options.group // (options.mini_batches * options.micro_batches))
    arithmetic = 2.0 if options.dtype == "bfloat16" else 4.0
    weights = 4.0 * shape.parameters
    counted = f"{shape.parameters:,} x 4 bytes"
    copies = 2 if has(algorithm, ActorCritic) else 1
    trained = counted if copies == 1 else f"{counted}, of the policy and of the critic"
    held: dict[str, Part] = {
        "weights": (weights * copies, trained),
        "reference": (weights if algorithm.kl_weight else 0.0, "a second copy of them where there is a KL term"),
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
        "gradients": (weights * copies, trained),
        "optimizer": (2 * weights * copies, f"two moments of each: {trained} x 2"),
    }
    rollouts, a_token = options.prompts * options.group, shape.cached * arithmetic
    sampled = min(options.sampling_rows, rollouts)
    episodes = max(rollouts, options.evaluation_batch)
    kept = episodes * (prompt + new) * a_token
    made = MemoryPlan(
        held=held,
        training={
            "activations": (
                rows * (prompt + new) * shape.activations(False) * arithmetic,
                f"{rows} rows of {prompt} + {new} tokens x {arithmetic:g} bytes, every layer",
            ),
            "logits": (
                rows * new * shape.vocabulary * 4.0 * _TABLES,
                f"{_TABLES:g} tables of {rows} x {new} tokens and {shape.vocabulary:,} entries in float32",
            ),
        },
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


def _longest(options: Options, limits: TurnLimits) -> int:
    return limits.total_tokens or limits.assistant_turns * (limits.turn_tokens or options.max_new_tokens)
