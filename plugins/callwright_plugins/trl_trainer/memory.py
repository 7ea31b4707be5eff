"""A plan of memory, part by part, with the formula of each: an estimate, made before anything is loaded."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from callwright.errors import CallwrightError
from callwright.walk.limits import TurnLimits
from callwright_plugins.trl_trainer.options import Model, Options
from callwright_plugins.trl_trainer.settings import longest

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline

_GIB: Final = 1 << 30
#: Of a prompt whose task cannot be looked at.
_PROMPT_TOKENS: Final = 4096
#: Characters a token of JSON schemas and English, at the least; tokenizers of large vocabularies have more.
_CHARACTERS: Final = 3
_LOOKED_AT: Final = 50
#: TRL computes log-probabilities in tiles of so many tokens and entries of the vocabulary (its ``kernels``).
_TILE: Final = (4096, 32768)
#: Bytes a weight of frozen weights by their form; 4-bit ones have their scales.
_BYTES: Final[Mapping[str, float]] = {"float32": 4.0, "bfloat16": 2.0, "8bit": 1.05, "4bit": 0.55}
#: Bytes that an optimiser keeps for each trained weight; transformers' other names are taken for AdamW.
_OPTIMISER: Final[Mapping[str, float]] = {"paged_adamw_8bit": 2.0, "adamw_8bit": 2.0, "adamw_bnb_8bit": 2.0, "sgd": 0.0}


@frozen
class Shape:
    """The sizes of a decoder, as its ``config.json`` has them."""

    layers: int
    width: int
    ffn: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int
    tied: bool

    @property
    def block(self) -> int:
        """Weights of one layer: attention, a gated feed-forward, two norms."""
        attention = self.width * self.head_width * (2 * self.heads + 2 * self.kv_heads)
        return attention + 3 * self.width * self.ffn + 2 * self.width

    @property
    def parameters(self) -> int:
        """Weights of the model."""
        tables = 1 if self.tied else 2
        return self.layers * self.block + tables * self.vocabulary * self.width + self.width

    def adapter(self, rank: int) -> int:
        """Weights of an adapter of this rank on every linear layer of the blocks."""
        wide, key = self.heads * self.head_width, self.kv_heads * self.head_width
        pairs = [(self.width, wide), (self.width, key), (self.width, key), (wide, self.width)]
        pairs += [(self.width, self.ffn), (self.width, self.ffn), (self.ffn, self.width)]
        return self.layers * rank * sum(one + other for one, other in pairs)


#: Of models that recipes name, from the ``config.json`` that each was published with.
KNOWN: Final[Mapping[str, Shape]] = {
    "Qwen/Qwen3-0.6B": Shape(28, 1024, 3072, 16, 8, 128, 151936, True),
    "Qwen/Qwen3-1.7B": Shape(28, 2048, 6144, 16, 8, 128, 151936, True),
    "Qwen/Qwen2.5-1.5B-Instruct": Shape(28, 1536, 8960, 12, 2, 128, 151936, True),
}


def prompt_tokens(pipeline: Pipeline) -> int:
    """How long a prompt may be: the longest of some tasks to train on, at three characters a token."""
    try:
        tasks = pipeline.tasks(pipeline.train)
        some = [tasks[place] for place in range(0, len(tasks), max(1, len(tasks) // _LOOKED_AT))]
        sizes = [sum(len(message.text) for message in pipeline.messages(task)) for task in some]
    except CallwrightError:
        return _PROMPT_TOKENS
    return max(sizes, default=_CHARACTERS * _PROMPT_TOKENS) // _CHARACTERS


def plan(options: Options, model: Model, limits: TurnLimits, *, prompt: int, kl: bool) -> list[dict[str, Any]]:
    """An estimate of one process's memory in GiB, a row for each part with its formula, and their peak.

    ``prompt`` is how many tokens a prompt has at most, ``kl`` whether there is a reference.

    Of a model whose sizes nothing here says, there is only a word about it.
    """
    shape = shape_of(model)
    if shape is None:
        named = model.path or "a tiny model"
        return [{"key": "unknown", "why": f"the sizes of {named} are not known before its config.json is there"}]
    trained = shape.parameters if options.lora is None else shape.adapter(options.lora.rank)
    held_rows = options.part // options.micro_batches
    new = longest(options, limits)
    tokens = held_rows * (prompt + new)
    own = options.quantization if options.quantization != "none" else options.weights
    arithmetic = 2 if options.dtype == "bfloat16" else 4
    trained_bytes = 4.0 if options.lora is not None else _BYTES[options.weights]
    per_token = (shape.width if options.gradient_checkpointing else _activations(shape)) * arithmetic
    last = _activations(shape) // shape.layers * arithmetic if options.gradient_checkpointing else 0
    cache = 2 * shape.layers * shape.kv_heads * shape.head_width * arithmetic
    sampled = min(options.sampling_rows, options.prompts * options.group // options.processes)
    parts = {
        "weights": (shape.parameters * _BYTES[own], f"{shape.parameters:,} weights in {own}"),
        "adapter": (trained * 4.0 if options.lora else 0.0, f"{trained if options.lora else 0:,} weights in float32"),
        "reference": (
            shape.parameters * _BYTES[options.weights] if kl and options.lora is None else 0.0,
            "a second copy of the weights where there is a KL term; with an adapter it is the model without it",
        ),
        "gradients": (trained * trained_bytes, f"{trained:,} trained weights"),
        "optimizer": (
            trained * _OPTIMISER.get(options.optimizer, 2 * trained_bytes),
            f"two moments of {trained:,} trained weights",
        ),
        "activations": (
            float(tokens * (per_token * (shape.layers if options.gradient_checkpointing else 1) + last)),
            f"{held_rows} rows of {prompt} + {new} tokens"
            + (", the input of each layer and one layer whole" if options.gradient_checkpointing else ", every layer"),
        ),
        "logits": (
            float(min(held_rows * new, _TILE[0]) * min(shape.vocabulary, _TILE[1]) * 4 * 2),
            f"a tile of {min(held_rows * new, _TILE[0]):,} tokens x {min(shape.vocabulary, _TILE[1]):,} entries in "
            "float32, and its gradient; TRL never holds all of them",
        ),
        "sampling": (
            float(sampled * (prompt + new) * cache),
            f"keys and values of {sampled} rows at once; while sampling, when there are no activations",
        ),
    }
    held = sum(parts[name][0] for name in ("weights", "adapter", "reference", "gradients", "optimizer"))
    training = parts["activations"][0] + parts["logits"][0]
    peak = held + max(training, parts["sampling"][0])
    rows = [{"key": name, "GiB": round(size / _GIB, 2), "formula": why} for name, (size, why) in parts.items()]
    whose = "an estimate, nothing was run: of one process, before FSDP or ZeRO take anything off and vLLM takes its own"
    return [*rows, {"key": "peak", "GiB": round(peak / _GIB, 2), "formula": whose}]


def too_much(planned: Sequence[Mapping[str, Any]], room: int) -> str | None:
    """What to say where the peak of a plan is more than a device's ``room`` (bytes); ``None`` where it is not."""
    for row in planned:
        if row["key"] == "peak" and row["GiB"] * _GIB > room:
            largest = max((one for one in planned if one["key"] != "peak"), key=lambda one: float(one["GiB"]))
            return (
                f"the plan of memory is {row['GiB']:.1f} GiB at its peak, an estimate, and this GPU has "
                f"{room / _GIB:.1f}; the largest part is {largest['key']} ({largest['GiB']:.1f} GiB)"
            )
    return None


def _activations(shape: Shape) -> int:
    """Numbers that the backward pass keeps of one token in all layers; attention is taken to keep no scores."""
    each = 8 * shape.width + 3 * shape.ffn + 2 * (shape.heads + shape.kv_heads) * shape.head_width
    return shape.layers * each


def shape_of(model: Model) -> Shape | None:
    """The sizes of a model in a directory, or of one that recipes name; ``None`` where nothing says them."""
    if model.path is None:
        return None
    try:
        config = json.loads((Path(model.path) / "config.json").read_bytes())
    except (OSError, ValueError):
        return KNOWN.get(re.sub(r"^models/", "Qwen/", model.path))
    try:
        heads = int(config["num_attention_heads"])
        return Shape(
            layers=int(config["num_hidden_layers"]),
            width=int(config["hidden_size"]),
            ffn=int(config["intermediate_size"]),
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_width=int(config.get("head_dim") or config["hidden_size"] // heads),
            vocabulary=int(config["vocab_size"]),
            tied=bool(config.get("tie_word_embeddings", False)),
        )
    except (KeyError, TypeError, ValueError):
        return None
