"""The most memory that this process has held so far."""

from __future__ import annotations

import sys
from typing import Final

#: What ``ru_maxrss`` counts in: kibibytes, on macOS bytes.
_UNIT: Final = 1 if sys.platform == "darwin" else 1024


def peak_memory() -> int | None:
    """Bytes: of the GPU where torch computes on one, else of the process; ``None`` where the system does not tell."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        return int(torch.cuda.max_memory_allocated())
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
