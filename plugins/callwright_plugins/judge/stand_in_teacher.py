"""A teacher whose verdicts are drawn, not thought: it stands in for a live one where the conformance kit checks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from callwright.digests import digest_of
from callwright.training.teaching.teacher import Role, TeacherFailure, TeacherReply, TeacherRequest


class StandInTeacher:
    """A verdict for every request, drawn from its text: always the same one, and no server."""

    name = "stand-in"

    def settings(self, role: Role) -> Mapping[str, Any]:
        return {"model": "stand-in"}

    def ask(self, requests: Sequence[TeacherRequest]) -> list[TeacherReply | TeacherFailure]:
        """One verdict each; a failure for a request that asks for none."""
        return [self._one(request) for request in requests]

    def _one(self, request: TeacherRequest) -> TeacherReply | TeacherFailure:
        try:
            wanted = dict(request.schema or {})["properties"]
            (word,) = wanted["word"]["enum"]
            criteria = {
                name: {"reason": "It was drawn.", "score": _drawn(request, name, one["properties"]["score"]["enum"])}
                for name, one in wanted["criteria"]["properties"].items()
            }
        except (KeyError, ValueError, TypeError):
            return TeacherFailure("this teacher stands in for a judge, and gives verdicts only")
        return TeacherReply(json.dumps({"word": word, "criteria": criteria}))


def _drawn(request: TeacherRequest, name: str, points: Sequence[int]) -> int:
    return points[int(digest_of([request.messages[-1].text, name])[:8], 16) % len(points)]
