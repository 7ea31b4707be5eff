"""Programs and the textual forms that they are written in.

The syntax tree of a program, the protocol of parsers, and what forms share: the envelope, strict JSON, wording of
prompts. May import: errors.
"""

from __future__ import annotations

from callwright._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
