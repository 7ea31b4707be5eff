"""The teacher ``zebra``: repeats the last message. A client of a model would stand here.

A teacher holds no conversation: all that a reply hangs on stands in its request and in the settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from callwright.training import TeacherReply
from callwright.training.teaching.teacher import Role, TeacherFailure, TeacherRequest


class Zebra:
    """Fails, as a value and by itself, where there is nothing to repeat."""

    name = "zebra"

    def settings(self, role: Role) -> Mapping[str, Any]:
        """Whatever else decides its replies, without secrets: a cache asks again where this differs."""
        return {"model": "zebra"}

    def ask(self, requests: Sequence[TeacherRequest]) -> list[TeacherReply | TeacherFailure]:
        """One answer for each request, in their order."""
        return [self._answer(request.messages[-1].text) for request in requests]

    def _answer(self, text: str) -> TeacherReply | TeacherFailure:
        return TeacherReply(text) if text else TeacherFailure("there is nothing to repeat")
