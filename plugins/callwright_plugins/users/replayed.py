"""A user that says the same lines, whatever the agent says: a recording, or the later queries of a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from attrs import frozen

from callwright.errors import DataError, UsageError
from callwright.language.messages import Message
from callwright.walk.openings.opening import begins_with_user, told
from callwright.walk.tasks import Task
from callwright.walk.users.said import Said
from callwright.walk.users.user import Looks
from callwright_plugins.users.calls import read_calls
from callwright_plugins.users.signs import read_signs, without_sign


class Replayed:
    """One line each time that the agent ends its turn; done when none is left.

    ``says`` is a list of lines: texts, or objects with ``say`` and the ``calls`` of the user's own tools that go with
    it, ``{"tool": name, "arguments": {…}}`` each. A line is empty where the user says nothing because tools appear
    (``Task.appear``). A line that holds one of the signs ``stop`` is the last: the user is done, and what is read of
    the line is what stands beside the sign.

    Raises :class:`callwright.UsageError` for anything else, and :class:`callwright.errors.DataError` for a task in
    which an empty line meets a turn at which no tool appears.
    """

    name: ClassVar[str] = "replayed"

    def __init__(self, says: Sequence[str | Mapping[str, Any]] = (), stop: str | Sequence[str] = ()) -> None:
        if not isinstance(says, list | tuple):
            raise UsageError(f"the option 'says' of the user 'replayed' is a list of lines, not {says!r:.80}")
        self.signs = read_signs(stop, self.name)
        self.lines = tuple(_line(line, f"says[{number}]", self.signs) for number, line in enumerate(says))

    def begin(self, task: Task, seed: int) -> _Recording:
        """From the first line on. Nothing is drawn."""
        begins = begins_with_user(task)
        for number, line in enumerate(self.lines):
            turn = number + (not begins)
            if not (line.text or line.done or task.appearing(turn)):
                raise DataError(f"says[{number}] is empty, and no tool appears in turn {turn} of the user")
        before = told(task.opening.history) if task.opening is not None else ()
        return _Recording(self.lines, sum(message.role == "assistant" for message in before) - begins)


def _line(line: Any, where: str, signs: Sequence[str]) -> Said:
    stated = {"say": line} if isinstance(line, str) else line
    if (
        not isinstance(stated, Mapping)
        or not {"say"} <= stated.keys() <= {"say", "calls"}
        or not isinstance(stated["say"], str)
    ):
        raise UsageError(f"{where} is a text or an object with 'say' and 'calls', not {line!r:.80}")
    calls = read_calls(stated.get("calls", ()), f"{where}.calls")
    text, sign = without_sign(stated["say"], signs)
    return Said(text, calls, done=bool(sign), sign=sign)


@frozen
class _Recording:
    """What is said depends on how often the agent spoke, so that it holds no state."""

    lines: tuple[Said, ...]
    #: How often the agent spoke before the episode began.
    before: int = 0

    def reply(self, messages: Sequence[Message], session: Looks) -> Said:
        spoken = sum(message.role == "assistant" for message in messages) - self.before
        return self.lines[spoken - 1] if spoken <= len(self.lines) else Said(done=True)
