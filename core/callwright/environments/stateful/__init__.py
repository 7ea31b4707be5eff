"""Stateful environments: typed functions over rows, in sessions that open, fork and reset in microseconds.

``environment`` states one, ``tools`` makes its tools ready for calls, ``session`` is one world of it.
"""

from __future__ import annotations

from callwright._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
