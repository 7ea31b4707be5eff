"""A user that says the same lines, whatever the agent says: a recording, or the later queries of a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from attrs import frozen

from callwright.errors import UsageError
from callwright.language.messages import Message
from callwright.walk.tasks import Task
from callwright.walk.users.said import Said
from callwright.walk.users.user import Looks
from callwright_plugins.users.calls import read_calls


class Replayed:
    """One line each time that the agent ends its turn; done when none is left.

    ``says`` is a list of lines: texts, or objects with ``say`` and the ``calls`` of the user's own tools that go with
    it, ``{"tool": name, "arguments": {…}}`` each. Raises :class:`callwright.UsageError` for anything else.
    """

    name: ClassVar[str] = "replayed"

    def __init__(self, says: Sequence[str | Mapping[str, Any]] = ()) -> None:
        if not isinstance(says, list | tuple):
            raise UsageError(f"the option 'says' of the user 'replayed' is a list of lines, not {says!r:.80}")
        self.lines = tuple(_line(line, f"says[{number}]") for number, line in enumerate(says))

    def begin(self, task: Task, seed: int) -> _Recording:
        """From the first line on. Nothing is drawn."""
        return _Recording(self.lines)


def _line(line: Any, where: str) -> Said:
    if isinstance(line, str) and line:
        return Said(line)
    if (
        isinstance(line, Mapping)
        and {"say"} <= line.keys() <= {"say", "calls"}
        and isinstance(line["say"], str)
        and line["say"]
    ):
        return Said(line["say"], read_calls(line.get("calls", ()), f"{where}.calls"))
    raise UsageError(f"{where} is a text or an object with 'say' and 'calls', not {line!r:.80}")


@frozen
class _Recording:
    """What is said depends on how often the agent spoke, so that it holds no state."""

    lines: tuple[Said, ...]

    def reply(self, messages: Sequence[Message], session: Looks) -> Said:
        """The next line."""
        spoken = sum(message.role == "assistant" for message in messages)
        return self.lines[spoken - 1] if spoken <= len(self.lines) else Said(done=True)
