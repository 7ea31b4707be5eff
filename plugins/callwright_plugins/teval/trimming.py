"""How the official program takes a model's output: up to the first sign of another turn, without a fence around it."""

from __future__ import annotations

from typing import Final

#: Where a model goes on with somebody else's turn, by the templates of the models of the time.
ENDS: Final = (
    "<eoa>",
    "<TOKENS_UNUSED_1>",
    "<|im_end|>",
    "\nuser",
    "\nassistant",
    "\nUSER",
    "[INST]",
    "<|user|>",
)
_FENCE: Final = "```json"


def trimmed(text: str) -> str:
    """The part of an output that is scored."""
    for end in ENDS:
        text = text.partition(end)[0]
    return text.strip().removeprefix(_FENCE).strip("`").strip()
