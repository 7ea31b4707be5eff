"""NL_ASSERTION: a judge says which sentences are true of a dialogue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Protocol, runtime_checkable

from callwright.errors import InfrastructureFailure
from callwright.language.messages import Message
from callwright.training.teaching.teacher import Teacher, TeacherFailure, TeacherRequest


@runtime_checkable
class AssertionJudge(Protocol):
    """Says which sentences are true of a dialogue."""

    @property
    def name(self) -> str:
        """What results say of it."""

    def holds(self, lines: Sequence[tuple[str, str]], sentences: Sequence[str]) -> list[bool]:
        """A verdict for each sentence. ``lines`` are who said what (``assistant`` or ``user``).

        Raises :class:`callwright.InfrastructureFailure` where there is none.
        """


_TOLD: Final = (
    "You read a dialogue of a service agent (assistant) with a customer (user), and a numbered list of sentences on "
    "what the agent should have done or said. Decide of each sentence by itself whether the agent did so. Reply with "
    'one object of JSON: "verdicts", a list with an object for each sentence in their order, which has the "number" of '
    'the sentence, a short "reason", and "holds" (true or false).'
)
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "verdicts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "number": {"type": "integer"},
                    "reason": {"type": "string"},
                    "holds": {"type": "boolean"},
                },
                "required": ["number", "reason", "holds"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["verdicts"],
    "additionalProperties": False,
}
_TOKENS: Final = 2048


class AskedJudge:
    """A language model, asked at temperature 0 as the official program asks its own, in other words."""

    def __init__(self, teacher: Teacher) -> None:
        self.teacher = teacher
        self.name = str(teacher.settings("judge").get("model") or teacher.name)

    def holds(self, lines: Sequence[tuple[str, str]], sentences: Sequence[str]) -> list[bool]:
        """What the model says of each. Raises :class:`callwright.InfrastructureFailure` where one is missing."""
        shown = {
            "dialogue": [{"role": who, "text": words} for who, words in lines],
            "sentences": [{"number": number, "sentence": one} for number, one in enumerate(sentences, 1)],
        }
        messages = (Message.system(_TOLD), Message.user(json.dumps(shown, ensure_ascii=False)))
        request = TeacherRequest("judge", messages, schema=_SCHEMA, temperature=0.0, max_tokens=_TOKENS)
        (reply,) = self.teacher.ask([request])
        if isinstance(reply, TeacherFailure):
            raise InfrastructureFailure(f"the judge gave no verdict: {reply.reason}")
        found = None if reply.truncated else read_verdicts(reply.text, len(sentences))
        if found is None:
            raise InfrastructureFailure(f"the judge gave no verdict: {reply.text!r:.100}")
        return found


def read_verdicts(text: str, count: int) -> list[bool] | None:
    """The verdicts of a reply, one for each number from 1 to ``count``; ``None`` where one is missing."""
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end:
        return None
    try:
        read = json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        return None
    listed = read.get("verdicts") if isinstance(read, dict) else None
    if not isinstance(listed, list):
        return None
    told = {
        one.get("number"): one.get("holds")
        for one in listed
        if isinstance(one, dict) and type(one.get("number")) is int and type(one.get("holds")) is bool
    }
    found = [told.get(number) for number in range(1, count + 1)]
    return [bool(one) for one in found] if None not in found else None
