"""The teacher ``scripted``: lines that were written beforehand, chosen by role and by words of the request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from callwright.errors import UnknownName, UsageError
from callwright.training.teaching.teacher import ROLES, Role, TeacherFailure, TeacherReply, TeacherRequest

#: What stands in for a model.
Says = Callable[[TeacherRequest], TeacherReply | TeacherFailure | str]
_OF_A_LINE: Final = ("role", "contains", "says")


@frozen
class Line:
    """``says`` is replied to a request of ``role`` (any if empty) whose last message contains ``contains``.

    Of several texts the request's seed picks one.
    """

    says: tuple[str, ...]
    role: str = ""
    contains: str = ""

    def fits(self, request: TeacherRequest) -> bool:
        """Whether the line is one for this request."""
        return self.role in ("", request.role) and self.contains in request.messages[-1].text


class ScriptedTeacher:
    """Replies with the first of ``lines`` that fits a request, without a model.

    A line is a table: ``says``, a text or several; ``role`` and ``contains``, which may be left out. In Python
    ``answer`` is a function from a request to a reply, a failure or a text, asked where no line fits. A request that
    nothing fits is a failure.
    """

    name = "scripted"

    def __init__(self, lines: Sequence[Mapping[str, Any]] = (), *, answer: Says | None = None) -> None:
        self._lines = tuple(_line(given, place) for place, given in enumerate(lines))
        self._answer = answer

    def settings(self, role: Role) -> Mapping[str, Any]:
        """The lines that can be said in a role, and the function."""
        said = [[line.contains, list(line.says)] for line in self._lines if line.role in ("", role)]
        answer = getattr(self._answer, "__qualname__", type(self._answer).__name__) if self._answer else ""
        return {"model": "", "lines": said, "answer": answer}

    def ask(self, requests: Sequence[TeacherRequest]) -> list[TeacherReply | TeacherFailure]:
        """The lines, in order."""
        return [self._one(request) for request in requests]

    def _one(self, request: TeacherRequest) -> TeacherReply | TeacherFailure:
        for line in self._lines:
            if line.fits(request):
                return TeacherReply(line.says[request.seed % len(line.says)])
        if self._answer is None:
            return TeacherFailure(f"no line of the script fits {request.role!r}: {request.first_words!r}")
        said = self._answer(request)
        return TeacherReply(said) if isinstance(said, str) else said


def _line(given: Mapping[str, Any], place: int) -> Line:
    where = f"line {place + 1} of the script"
    if not isinstance(given, Mapping):
        raise UsageError(f"{where} is a table with 'says', not {given!r:.60}")
    for key in given:
        if key not in _OF_A_LINE:
            raise UnknownName(f"key of {where}", str(key), _OF_A_LINE)
    says, role, contains = given.get("says"), given.get("role", ""), given.get("contains", "")
    texts = (says,) if isinstance(says, str) else tuple(says) if isinstance(says, list | tuple) else ()
    if not texts or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"{where} needs 'says', a text or a list of texts, not {says!r:.60}")
    if role and role not in ROLES:
        raise UnknownName("role of a teacher", str(role), ROLES)
    if not isinstance(contains, str):
        raise UsageError(f"'contains' of {where} is a text, not {contains!r:.60}")
    return Line(texts, role, contains)
