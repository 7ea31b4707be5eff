"""The walk of one task: prompt, completion, program, validation, trace, scores, reward.

Each step is a module. May import: environments, tools, language, digests, errors.
"""

from __future__ import annotations

from callwright._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
