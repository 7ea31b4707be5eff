"""The teacher ``replayed``: the replies of another teacher, from the file that its cache wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from callwright.errors import DataError, UsageError
from callwright.training.teaching.cache import ReplyFile
from callwright.training.teaching.teacher import Role, TeacherFailure, TeacherReply, TeacherRequest


class ReplayedTeacher:
    """Replies from ``file``, whichever teacher made it; of ``model`` where it holds replies of several.

    A request that is not there raises :class:`callwright.training.MissingReply`; nobody is ever asked.
    """

    name = "replayed"

    def __init__(self, file: str, *, model: str | None = None) -> None:
        if not Path(file).is_file():
            raise DataError(f"there is no file of teachers' replies {file}; a cache writes one")
        self._file, self._model = ReplyFile(file), model

    def settings(self, role: Role) -> Mapping[str, Any]:
        """The model whose replies these are; empty where the file says."""
        return {"model": self._model or "", "file": self._file.path.name}

    def ask(self, requests: Sequence[TeacherRequest]) -> list[TeacherReply | TeacherFailure]:
        """The kept replies, in order. Raises :class:`callwright.UsageError` where two models or settings replied."""
        return [self._one(request) for request in requests]

    def _one(self, request: TeacherRequest) -> TeacherReply:
        found = [one for one in self._file.of_request(request) if self._model in (None, one.model)]
        if not found:
            raise self._file.missing(request)
        if any(one.reply != found[0].reply for one in found[1:]):
            models = ", ".join(dict.fromkeys(repr(one.model) for one in found))
            raise UsageError(
                f"{self._file.path} holds several replies to the request {request.digest[:12]}, of {models}: name one "
                "with the option 'model', or use the teacher that asked, with its cache in a replay"
            )
        return found[0].reply
