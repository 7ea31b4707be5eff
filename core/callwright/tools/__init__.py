"""Tools: what a function is called with and what it gives.

Specs, the JSON Schema that they state, and checking arguments against it. May import: language, errors.
"""

from __future__ import annotations

from callwright._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
