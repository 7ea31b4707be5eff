"""What a look at a tokenizer gives."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from callwright.training.model_check import Severity


@frozen
class Seen:
    """A finding in words. ``values`` are filled into the advice; ``severity``: where it is another than usual."""

    found: str
    values: dict[str, Any] = field(factory=dict)
    severity: Severity | None = None
