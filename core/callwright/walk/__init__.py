"""The walk of one task: prompt, completion, program, validation, trace, attempt, reward.

Each step is a module. May import: plugins, hookspecs, environments, tools, language, and what is below them.
"""

from __future__ import annotations

from callwright._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
