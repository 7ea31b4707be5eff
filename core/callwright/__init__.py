"""Callwright: a plugin SDK for teaching language models to use tools by reinforcement learning.

Score one string::

    import callwright as cw
    task = cw.corpus("toolworld-mini-v1")["evaluation"][42]
    reward = cw.reward("tier").score(task, completion_text, ir="json")
    print(reward.total, reward.explain())

The names that people type stand here, in ``__init__.pyi``, and are loaded when they are first used; the others are one
level down, in the rooms: ``callwright.environments``, ``callwright.training``, ``callwright.errors`` and so on.
"""

from __future__ import annotations

from callwright._lazy import attach

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach(__name__, "__version__")
