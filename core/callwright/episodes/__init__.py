"""Episodes: an attempt made turn by turn, as messages or as token ids, by whatever engine.

May import: walk and everything below it.
"""

from __future__ import annotations

from callwright._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
