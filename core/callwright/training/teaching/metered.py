"""A teacher that counts what its replies took, for those who have to account for each piece of work."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from callwright.training.spending import total
from callwright.training.teaching.teacher import (
    Asker,
    AsksConcurrently,
    Role,
    Teacher,
    TeacherFailure,
    TeacherReply,
    TeacherRequest,
    connected,
)


class MeteredTeacher:
    """Asks another teacher. A reply counts with what it took when it was asked, from a cache, too: so equal work has
    equal figures, whoever paid for it.
    """

    def __init__(self, teacher: Teacher) -> None:
        self.teacher = teacher
        self._lock = threading.Lock()
        self._usages: list[Mapping[str, Any]] = []

    def __getstate__(self) -> dict[str, Any]:
        return {"teacher": self.teacher}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["teacher"])  # type: ignore[misc]

    @property
    def name(self) -> str:
        """The name of the teacher inside."""
        return self.teacher.name

    @property
    def usage(self) -> dict[str, float]:
        """The figures of all replies so far; empty if nothing was asked."""
        with self._lock:
            return total(self._usages) if self._usages else {}

    @property
    def concurrency(self) -> int:
        """How many requests the teacher inside has under way at most; 1 for one that is asked in threads."""
        return self.teacher.concurrency if isinstance(self.teacher, AsksConcurrently) else 1

    def settings(self, role: Role) -> Mapping[str, Any]:
        """Those of the teacher inside."""
        return self.teacher.settings(role)

    def ask(self, requests: Sequence[TeacherRequest]) -> list[TeacherReply | TeacherFailure]:
        """As the teacher inside."""
        return [self._counted(answer) for answer in self.teacher.ask(requests)]

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Asker]:
        """A way to ask from an event loop."""
        async with connected(self.teacher) as asker:
            yield _Counting(self, asker)

    def _counted(self, answer: TeacherReply | TeacherFailure) -> TeacherReply | TeacherFailure:
        usage = answer.usage if isinstance(answer, TeacherReply) else {}
        with self._lock:
            self._usages.append({"requests": 1, **usage})
        return answer


class _Counting:
    def __init__(self, teacher: MeteredTeacher, asker: Asker) -> None:
        self._teacher, self._asker = teacher, asker

    async def ask_one(self, request: TeacherRequest) -> TeacherReply | TeacherFailure:
        return self._teacher._counted(await self._asker.ask_one(request))
