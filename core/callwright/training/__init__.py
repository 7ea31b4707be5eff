"""Training and evaluation: the protocols of algorithms and trainers, accuracy of a sampler, run folders.

May import: pipeline, episodes and everything below them.
"""

from __future__ import annotations

from callwright._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
