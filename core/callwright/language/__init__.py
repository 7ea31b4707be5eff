"""Programs, messages, and the textual forms that programs are written in.

The syntax tree of a program, the protocol of parsers, what forms share (the envelope, strict JSON, wording of prompts),
and the way between native tool calls and text. May import: errors.
"""

from __future__ import annotations

from callwright._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
