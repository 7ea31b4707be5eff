"""What training will take of a device's memory: arithmetic on a model's sizes, before anything is loaded.

A trainer says which parts it holds and by what formula; here are the sizes of models, the sum, and what it is held
against. All of it is an estimate: it knows nothing of a CUDA context, an allocator's gaps, or what a kernel sets aside.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import field, frozen

from callwright.errors import CallwrightError

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline

GIB: Final = 1 << 30
#: What a GPU has that nothing here can look at: most of those that train models today have it, or more.
ASSUMED: Final = 80.0
#: Of a prompt whose task cannot be looked at.
_PROMPT_TOKENS: Final = 4096
#: Characters a token of JSON schemas and English, at the least; tokenizers of large vocabularies have more.
_CHARACTERS: Final = 3
_LOOKED_AT: Final = 50


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
    #: Whether logits are more than one linear layer of the hidden states: multiplied, divided or bent.
    scaled: bool = False

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

    def activations(self, checkpointing: bool) -> int:
        """Numbers that the backward pass keeps of one token; attention is taken to keep no scores.

        With gradient ``checkpointing`` the input of each layer, and all of the one that is computed again.
        """
        each = 8 * self.width + 3 * self.ffn + 2 * (self.heads + self.kv_heads) * self.head_width
        return self.layers * self.width + each if checkpointing else self.layers * each

    @property
    def cached(self) -> int:
        """Numbers that keys and values of one token are."""
        return 2 * self.layers * self.kv_heads * self.head_width


#: Of models that shipped recipes name, from the ``config.json`` that each was published with, by the end of the name.
KNOWN: Final[Mapping[str, Shape]] = {
    "Qwen3-0.6B": Shape(28, 1024, 3072, 16, 8, 128, 151936, True),
    "Qwen3-1.7B": Shape(28, 2048, 6144, 16, 8, 128, 151936, True),
    "Qwen3-4B-Instruct-2507": Shape(36, 2560, 9728, 32, 8, 128, 151936, True),
    "Qwen3-8B": Shape(36, 4096, 12288, 32, 8, 128, 151936, False),
    "Qwen2.5-0.5B-Instruct": Shape(24, 896, 4864, 14, 2, 64, 151936, True),
    "Qwen2.5-1.5B-Instruct": Shape(28, 1536, 8960, 12, 2, 128, 151936, True),
    "Qwen2.5-3B-Instruct": Shape(36, 2048, 11008, 16, 2, 128, 151936, True),
    "Qwen2.5-7B-Instruct": Shape(28, 3584, 18944, 28, 4, 128, 152064, False),
    "Llama-3.2-3B-Instruct": Shape(28, 3072, 8192, 24, 8, 128, 128256, True),
    "granite-4.1-8b-instruct": Shape(40, 4096, 12800, 32, 8, 128, 100352, True, scaled=True),
}
#: What the ``config.json`` of a model names that does more to its logits than a linear layer.
_SCALES: Final = ("logits_scaling", "logit_scale", "final_logit_softcapping")


def shape_of(path: str | Path) -> Shape | None:
    """The sizes of a model in a directory, or of one that recipes name; ``None`` where nothing says them."""
    try:
        config = json.loads((Path(path) / "config.json").read_bytes())
    except (OSError, ValueError):
        return KNOWN.get(Path(path).name)
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
            scaled=any(config.get(name) is not None for name in _SCALES),
        )
    except (KeyError, TypeError, ValueError):
        return None


def prompt_tokens(pipeline: Pipeline) -> int:
    """How long a prompt may be: the longest of some tasks to train on, at three characters a token."""
    try:
        tasks = pipeline.tasks(pipeline.train)
        some = [tasks[place] for place in range(0, len(tasks), max(1, len(tasks) // _LOOKED_AT))]
        sizes = [sum(len(message.text) for message in pipeline.messages(task)) for task in some]
    except CallwrightError:
        return _PROMPT_TOKENS
    return max(sizes, default=_CHARACTERS * _PROMPT_TOKENS) // _CHARACTERS


@frozen
class Room:
    """The memory that a plan is held against, in GiB, and whose it is."""

    size: float
    whose: str


def room_here(device: str) -> Room:
    """The memory of this machine that training on ``device`` (``cpu``, ``cuda`` or ``auto``) has. Without torch."""
    gpu = None if device == "cpu" else _smallest_gpu()
    if gpu is not None:
        return Room(gpu, "the smallest GPU of this machine, as nvidia-smi says")
    if device == "cpu":
        try:
            whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (ValueError, OSError, AttributeError):
            return Room(ASSUMED, "taken for it: this system does not say how much memory it has")
        return Room(whole / GIB, "the memory of this machine")
    return Room(ASSUMED, "one GPU, taken for it: nvidia-smi shows none here")


@cache
def _smallest_gpu() -> float | None:
    """The memory of the smallest GPU here, in GiB; ``None`` without one."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    asked = [program, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True).stdout
        return min((float(line) / 1024 for line in said.split()), default=None)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


#: Bytes of a part of the memory, and the formula that they come from.
Part = tuple[float, str]


@frozen
class MemoryPlan:
    """The parts of one device's memory: ``held`` throughout, and beside them those of ``training`` or ``sampling``."""

    held: Mapping[str, Part]
    training: Mapping[str, Part]
    sampling: Mapping[str, Part] = field(factory=dict)
    #: Whose memory it is, and what the plan leaves out.
    about: str = "of one process"

    @property
    def peak(self) -> float:
        """Bytes at the fullest moment: what is held throughout, and the larger of the two others."""
        return _sum(self.held) + max(_sum(self.training), _sum(self.sampling))

    def rows(self, room: Room) -> list[dict[str, Any]]:
        """A row of ``key``, ``GiB`` and ``formula`` for each part, for the ``peak``, and for the ``layout`` it is in.

        That last one says by ``fits`` whether the peak is no more than the room.
        """
        parts = {**self.held, **self.training, **self.sampling}
        rows: list[dict[str, Any]] = [
            {"key": name, "GiB": round(size / GIB, 2), "formula": formula} for name, (size, formula) in parts.items()
        ]
        peak = round(self.peak / GIB, 2)
        about = f"an estimate; nothing was run, so that no measured figure stands beside it: {self.about}"
        rows.append({"key": "peak", "GiB": peak, "formula": about})
        rows.append({"key": "layout", "GiB": round(room.size, 2), "formula": room.whose, "fits": peak <= room.size})
        return rows


def _sum(parts: Mapping[str, Part]) -> float:
    return sum(size for size, _ in parts.values())


def unknown_sizes(model: str | None) -> list[dict[str, Any]]:
    """The only row of a plan for a model of which nothing says the sizes; ``None`` is a tiny one, which a run makes."""
    if model is None:
        return [{"key": "unknown", "why": "a tiny model is made when the run begins, and needs no plan"}]
    return [{"key": "unknown", "why": f"the sizes of {model} are not known before its config.json is there"}]


def too_much(planned: Sequence[Mapping[str, Any]], room: float | None = None) -> str | None:
    """What to say where the peak of a plan is more than the device has; ``None`` where it is not.

    ``room`` is in bytes; left out, it is that of the plan's ``layout``.
    """
    rows = {str(row["key"]): row for row in planned}
    if "peak" not in rows:
        return None
    limit = float(rows["layout"]["GiB"]) if room is None else room / GIB
    peak = float(rows["peak"]["GiB"])
    if peak <= limit:
        return None
    parts = [row for key, row in rows.items() if key not in ("peak", "layout")]
    largest = max(parts, key=lambda row: float(row["GiB"]))
    return (
        f"the plan of memory is {peak:.1f} GiB at its peak, an estimate, and a device has {limit:.1f}; "
        f"the largest part is {largest['key']} ({largest['GiB']:.1f} GiB)"
    )
