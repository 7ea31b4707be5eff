"""Gates: what a task has to pass before anybody trains on it, each with its name, its reason and what shows it."""

from __future__ import annotations

from callwright_plugins.synthesis.gates.comparing import compare
from callwright_plugins.synthesis.gates.gate import GATES, Gate, Gated, gate

__all__ = ["GATES", "Gate", "Gated", "compare", "gate"]
