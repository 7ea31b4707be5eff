"""Judges of answers: a rule that is shipped, and a language model that is asked."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final, Protocol, runtime_checkable

from callwright.errors import InfrastructureFailure
from callwright.language.messages import Message
from callwright.training.teaching.teacher import Teacher, TeacherFailure, TeacherRequest

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTH: Final = rf"(?P<month>{'|'.join(_MONTHS)}|{'|'.join(one[:3] for one in _MONTHS)})"
_DAY, _YEAR = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?", r"(?P<year>[0-9]{3,4})"
#: Dates in a normalised text, which has neither commas nor points.
_DATES: Final = (
    re.compile(rf"\b{_DAY} (?:of )?{_MONTH} {_YEAR}\b"),
    re.compile(rf"\b{_MONTH} {_DAY} {_YEAR}\b"),
    re.compile(r"\b(?P<year>[0-9]{4}) (?P<month>[01][0-9]) (?P<day>[0-3][0-9])\b"),
)
_ARTICLES: Final = frozenset({"a", "an", "the"})


@runtime_checkable
class AnswerJudge(Protocol):
    """Says whether an answer to a question is right."""

    @property
    def name(self) -> str:
        """What results say of it."""

    def same(self, question: str, gold: str, answer: str) -> bool:
        """Whether the answer says what gold says. Raises :class:`callwright.InfrastructureFailure`."""


class Contains:
    """The shipped rule: the gold answer stands in the answer, both normalised; a date in whatever way it is written."""

    name = "contains"

    def same(self, question: str, gold: str, answer: str) -> bool:
        """Whether the words of gold stand in the answer, one after another."""
        wanted, found = normalised(gold), normalised(answer)
        dates = [*_dates(wanted)]
        if dates and any(pattern.fullmatch(wanted) for pattern in _DATES):
            return dates[0] in _dates(found)
        return bool(wanted) and f" {wanted} " in f" {found} "


def normalised(text: str) -> str:
    """Lower case without accents, articles and punctuation; points within numbers stay, their commas do not."""
    plain = "".join(one for one in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(one))
    plain = re.sub(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))", "", plain)
    plain = re.sub(r"(?<![0-9])\.|\.(?![0-9])|[^\w.]|_", " ", plain)
    return " ".join(word for word in plain.split() if word not in _ARTICLES)


def _dates(text: str) -> Iterator[tuple[int, int, int]]:
    for pattern in _DATES:
        for match in pattern.finditer(text):
            month = match["month"]
            number = int(month) if month.isdigit() else [one[:3] for one in _MONTHS].index(month[:3]) + 1
            yield int(match["year"]), number, int(match["day"])


# A model --------------------------------------------------------------------------------------------------------------

_TOLD: Final = (
    "You compare two answers to a question. The first is known to be right. Say whether the second one means the same, "
    "however it is worded and whatever else it tells. Reply with one object of JSON: a sentence of reasoning as "
    '"thought", and "Yes" or "No" as "judgment".'
)
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"thought": {"type": "string"}, "judgment": {"type": "string", "enum": ["Yes", "No"]}},
    "required": ["thought", "judgment"],
    "additionalProperties": False,
}
_TOKENS: Final = 1024


class Asked:
    """A language model that is asked for Yes or No, at temperature 0, as the release asks GPT-4o in other words."""

    def __init__(self, teacher: Teacher) -> None:
        self.teacher = teacher
        self.name = str(teacher.settings("judge").get("model") or teacher.name)

    def same(self, question: str, gold: str, answer: str) -> bool:
        """What the model says. Raises :class:`callwright.InfrastructureFailure` where it says neither."""
        shown = json.dumps({"question": question, "right answer": gold, "other answer": answer}, ensure_ascii=False)
        messages = (Message.system(_TOLD), Message.user(shown))
        request = TeacherRequest("judge", messages, schema=_SCHEMA, temperature=0.0, max_tokens=_TOKENS)
        (reply,) = self.teacher.ask([request])
        if isinstance(reply, TeacherFailure):
            raise InfrastructureFailure(f"the judge gave no verdict: {reply.reason}")
        found = None if reply.truncated else read_judgment(reply.text)
        if found is None:
            raise InfrastructureFailure(f"the judge gave no verdict: {reply.text!r:.100}")
        return found


def read_judgment(text: str) -> bool | None:
    """The verdict of a reply: an object with ``judgment``, or a last line ``Judgment: Yes``; ``None`` without one."""
    start, end = text.find("{"), text.rfind("}")
    if 0 <= start < end:
        try:
            read = json.loads(text[start : end + 1])
        except (ValueError, RecursionError):
            read = None
        said = read.get("judgment") if isinstance(read, dict) else None
        if said in ("Yes", "No"):
            return bool(said == "Yes")
    match = re.search(r"Judgment: *(Yes|No)\W*\Z", text)
    return None if match is None else match[1] == "Yes"
