"""One call of a log: what was asked, in which order it ran, what came of it, and the state around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen

from callwright.environments.protocol import Outcome

#: The fact of a task that a reader of logs made: where its log came from (``format``, ``task``, ``trace``, ``span`` …).
ORIGIN: Final = "log"


@frozen
class Logged:
    """A call that ran, ``number`` being its place in the order in which the calls of a log ran, from 0.

    ``call_id`` is the id that the model's message gave it; empty where the framework does not hand it on. ``before``
    and ``state`` are digests of the session before and after it; empty where nobody took them.
    """

    number: int
    tool: str
    arguments: Mapping[str, Any] = field(repr=False)
    outcome: Outcome
    call_id: str = ""
    before: str = field(default="", repr=False)
    state: str = field(default="", repr=False)
