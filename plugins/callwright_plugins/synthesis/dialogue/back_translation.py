"""Back-translation: a teacher that has not seen the plan says which calls a text asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from callwright.errors import DataError, InfrastructureFailure
from callwright.language.messages import Message
from callwright.tools.spec import ToolSpec
from callwright.training.teaching.teacher import Teacher, TeacherFailure, TeacherRequest
from callwright_plugins.synthesis.language.plan import Plan


def translated_back(
    teacher: Teacher, text: str, tools: Mapping[str, ToolSpec], seed: int = 0, beside: Sequence[str] = ()
) -> Plan | None:
    """What a teacher reads a text as, by a request of the role ``judge``; ``None`` where that is no plan.

    ``beside`` is what the user has said before, or says when asked. Raises :class:`callwright.InfrastructureFailure`
    where the teacher does not reply.
    """
    specs = [spec.to_openai() for spec in tools.values()]
    said = "".join(f"\n- {one}" for one in beside)
    known = f"\n\nThe same person has also said, or says when asked:{said}" if said else ""
    asked = f"The tools:\n{json.dumps(specs, ensure_ascii=False)}{known}\n\nThe request:\n{text}"
    messages = (Message.system(_READER), Message.user(asked))
    (found,) = teacher.ask([TeacherRequest("judge", messages, seed=seed, schema=_SCHEMA)])
    if isinstance(found, TeacherFailure):
        raise InfrastructureFailure(f"the teacher {teacher.name!r} did not reply: {found.reason}")
    try:
        return Plan.from_json(json.loads(re.sub(r"^```(?:json)?|```$", "", found.text.strip())))
    except (ValueError, RecursionError, DataError):
        return None


_READER: Final = (
    "You are given tools and a request. Write the calls that the request asks for, as JSON: "
    '{"calls": [{"tool": NAME, "arguments": {…}}]}. Give only arguments that the request states. An argument that is '
    'taken from the result of call N (from 0) is the text "API_RESPONSE_N.path". Write the JSON and nothing else.'
)
_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "calls": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}},
                "required": ["tool", "arguments"],
            },
        }
    },
    "required": ["calls"],
}
