"""Numbers drawn without state: a random stream hangs on the recipe's seed, the purpose and the step.

A run that goes on from a checkpoint therefore needs to know only its step to draw what it would have drawn.
"""

from __future__ import annotations

import hashlib
import random


def seed_of(*purpose: int | str) -> int:
    """63 bits that depend on every part of the purpose, such as ``(seed, "sampling", step)``."""
    text = "\x1f".join(map(str, purpose)).encode("utf-8")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


def python_generator(*purpose: int | str) -> random.Random:
    """A generator of the standard library for one purpose."""
    return random.Random(seed_of(*purpose))
