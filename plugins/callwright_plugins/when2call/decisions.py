"""Which of four decisions an answer is: calling a tool, asking for information, declining, or answering by itself.

A call is known from the form. Words are told apart by rules in place of the released judge, a language model: an answer
that asks for something is a request, one that says that it cannot is a refusal, and any other a direct answer.
"""

from __future__ import annotations

import json
import re
from typing import Final, Literal, get_args

from callwright.language.program import Program
from callwright.language.speech import spoken
from callwright.walk.attempt import Attempt

#: The names that the release gives them.
Decision = Literal["direct", "tool_call", "request_for_info", "cannot_answer"]
DECISIONS: Final[tuple[str, ...]] = get_args(Decision)
#: What is none of them: calls that cannot be read.
UNREADABLE: Final = "unreadable"

_NOT: Final = r"(?:can(?:no|')?t|can not|couldn't|could not|unable|not able|not capable|incapable)"
_REFUSAL: Final = re.compile(
    rf"\b(?:{_NOT}|(?:do not|don't|doesn't|does not) (?:\w+ )?(?:have|support|possess)|lack(?:s|ing)?"
    r"|(?:i'm|i am|we're|we are|so|very|really|truly) (?:sorry|afraid)|sorry|apolog(?:ies|ise|ize|y)|regret"
    r"|not (?:possible|available|something i|equipped|designed)|impossible|outside (?:of )?my|beyond my"
    r"|no (?:\w+ )?(?:tool|function|access|way)\b)",
    re.IGNORECASE,
)
#: Questions at the end of an answer that offer something and ask for nothing.
_OFFER: Final = re.compile(
    r"\b(?:there (?:any|some)thing (?:else|more)|(?:any|some)thing else (?:i|we|you)"
    r"|(?:can|may|could|shall|should) (?:i|we) (?:\w+ )?(?:help|assist|try|offer|suggest)"
    r"|would you like (?:me to|help|some help)|do you want me to)\b",
    re.IGNORECASE,
)
#: Statements that ask for something.
_REQUEST: Final = re.compile(
    r"\b(?:(?:please|kindly|could you|can you|would you|need you to) (?:\w+ )?"
    r"(?:provide|specify|clarify|confirm|share|tell|let me know|give|state|indicate|enter|supply|mention|include)"
    r"|(?:i|we)(?:'ll| will|'d| would)?(?: also| still| just| first)? (?:need|require) (?:\w+ )?"
    r"(?:to (?:know|confirm|verify|understand|clarify|ask)|more|additional|further|some more)"
    r"|let me know (?:which|what|the|your|where|when|how|if you'd prefer))\b",
    re.IGNORECASE,
)


def decision_of_words(text: str) -> str:
    """The decision of an answer without calls, by its words."""
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    questions = [one for one in re.split(r"(?<=[.!?\n])", text) if one.rstrip().endswith("?")]
    if any(not _OFFER.search(one) for one in questions):
        return "request_for_info"
    if _REFUSAL.search(text):
        return "cannot_answer"
    return "request_for_info" if _REQUEST.search(text) else "direct"


def decision_of(attempt: Attempt) -> str:
    """The decision of an attempt: one of :data:`DECISIONS`, or :data:`UNREADABLE`.

    Calls of the form are ``tool_call``, of whatever tool. The form's own answer without calls, if it says nothing, is
    ``cannot_answer``. A text in which no calls are begun is words; one whose calls cannot be read is unreadable.
    """
    parsed = attempt.parsed
    if isinstance(parsed, Program):
        if parsed.calls:
            return "tool_call"
        words = spoken(parsed, attempt.completion)
        return decision_of_text(words) if words else "cannot_answer"
    words = spoken(None, attempt.completion)
    return UNREADABLE if not words or parsed.stage != "envelope" or "<tool_call" in words else decision_of_text(words)


def decision_of_text(text: str) -> str:
    """The decision of a text as the release writes answers: a call is one object of JSON with a ``name``."""
    if text.lstrip().startswith(("{", "[")):
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            read = None
        first = read[0] if isinstance(read, list) and read else read
        if isinstance(first, dict) and "name" in first:
            return "tool_call"
    return decision_of_words(text)
