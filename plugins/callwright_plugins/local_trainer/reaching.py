"""What the local trainer would reach for because a recipe says so; read without torch."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from callwright.registration import Reach


def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    """The agent that it would start."""
    command = options.get("agent")
    if command:
        words = command if isinstance(command, str) else shlex.join(map(str, command))
        yield Reach("process", f"starts for each rollout: {words}", ("agent",))
