"""Tasks whose answer can be argued with: a sensible program exists where the right answer is to call nothing.

They stay as they are, so that numbers on ``depthbench-v1`` can be compared; a task says so in its facts (``arguable``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_ALL_UNITS: Final = "a length in other units may be converted to every unit that the tool offers"
_ANY_CURRENCY: Final = "any other currency is, literally, some other currency"
_EVERY_SIZE: Final = "the tool lists the four sizes, so that the code of each can be looked up"
_EVERY_MODE: Final = "the tool lists the four ways to travel, so that the time of each can be worked out"

#: By the id of the task: what a model could do with good reason.
ARGUABLE: Final[Mapping[str, str]] = {
    "train-0001": _ANY_CURRENCY,
    "train-0015": _EVERY_SIZE,
    "train-0022": _EVERY_SIZE,
    "train-0037": _ANY_CURRENCY,
    "validation-0003": "the message can be read first, and then answered",
    "validation-0012": _ALL_UNITS,
    "validation-0023": _EVERY_MODE,
    "validation-0039": _EVERY_MODE,
}
