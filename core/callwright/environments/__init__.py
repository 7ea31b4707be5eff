"""Environments: where calls are executed.

The protocol of environments and sessions, environments of plain functions, worlds of rows, pages. May import: tools,
language, digests, errors.
"""

from __future__ import annotations

from callwright._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
