"""Machines: where work runs and who answers requests: executors, and the client of model servers.

May import: errors.
"""

from __future__ import annotations

from callwright._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
