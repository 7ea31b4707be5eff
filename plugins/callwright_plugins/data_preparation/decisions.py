"""Rows about whether to call at all: When2Call's three files, and xLAM-irrelevance.

- **When2Call**, supervised (``when2call_train_sft.jsonl``): ``tools`` and ``messages``, the last one the right answer.
- **When2Call**, preferences (``when2call_train_pref.jsonl``): ``tools``, ``messages`` and ``chosen_response``.
- **When2Call**, test: ``question``, ``tools`` as JSON texts, ``correct_answer`` and an answer of each kind.
- **xLAM-irrelevance**: rows of xLAM (``query``, ``tools``, ``answers``) whose ``answers`` are empty.

The training files do not say which decision an answer is. A call stands in ``<TOOLCALL>``; words are told apart here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from attrs import frozen

from callwright_plugins.data_preparation.conversations import BadRow, Called, Tool
from callwright_plugins.data_preparation.formats import decoded, read_tool, read_xlam

#: What is right: to call, to ask for what is missing, or to say that it cannot be done.
Kind = Literal["call", "clarification", "abstention"]

_SHAPE: Final = "keys that are not those of the format"
_TOOLS: Final = "tools that cannot be read"
_CALLS: Final = "calls that cannot be read"
_BEGIN, _END = "<TOOLCALL>", "</TOOLCALL>"
_KINDS: Final[Mapping[str, Kind]] = {
    "tool_call": "call", "request_for_info": "clarification", "cannot_answer": "abstention",
}  # fmt: skip

#: Questions that offer something and ask for nothing.
_OFFER: Final = re.compile(
    r"\b(?:(?:any|some)thing else|would you like me|do you want me|(?:can|may|could|shall|should) i (?:\w+ )?"
    r"(?:help|assist|try|offer|suggest))\b",
    re.IGNORECASE,
)
_REFUSAL: Final = re.compile(
    r"\b(?:sorry|apolog(?:y|ies|i[sz]e)|can(?:no|')t|unable|not able|(?:do|does)(?: not|n't) (?:\w+ )?"
    r"(?:have|support)|not (?:possible|available)|impossible|beyond my|outside (?:of )?my)\b",
    re.IGNORECASE,
)
_REQUEST: Final = re.compile(
    r"\b(?:(?:please|could you|can you|kindly) (?:\w+ )?"
    r"(?:provide|specify|clarify|confirm|share|tell|let me know|give|state|indicate|enter|supply)"
    r"|i(?:'ll| will|'d| would)? (?:also )?(?:need|require) (?:to know|the|your|more|some|additional|further))\b",
    re.IGNORECASE,
)


@frozen
class Decided:
    """A row: what is asked, over which tools (``definitions`` are these as published), and what is right to do.

    ``calls`` are those of a ``call``; ``words`` are what is said otherwise, empty where the row has none.
    """

    kind: Kind
    query: str
    tools: tuple[Tool, ...]
    definitions: tuple[Mapping[str, Any], ...]
    calls: tuple[Called, ...] = ()
    words: str = ""
    split: str = "train"


def read_when2call(row: Mapping[str, Any]) -> Decided:
    """A row of any of When2Call's files. Raises :class:`.conversations.BadRow`."""
    if "correct_answer" in row:
        return _tested(row)
    messages = row.get("messages")
    if not isinstance(messages, list) or not all(isinstance(one, Mapping) for one in messages):
        raise BadRow(_SHAPE)
    said = [*messages, row["chosen_response"]] if "chosen_response" in row else messages
    if not said or not isinstance(said[-1], Mapping):
        raise BadRow(_SHAPE)
    if [one.get("role") for one in said] != ["user", "assistant"]:
        raise BadRow("more than a request and an answer")
    query, answer = said[0].get("content"), said[1].get("content")
    if not isinstance(answer, str):
        raise BadRow(_SHAPE)
    definitions = _definitions(row.get("tools"))
    before, begun, rest = answer.partition(_BEGIN)
    if not begun:
        return _decided(kind_of_words(answer), query, definitions, words=answer)
    inner, end, after = rest.partition(_END)
    if not end or before.strip() or after.strip():
        raise BadRow(_CALLS)
    return _decided("call", query, definitions, calls=_calls(inner))


def read_irrelevance(row: Mapping[str, Any]) -> Decided:
    """A row of xLAM-irrelevance: nothing is to be called. Raises :class:`.conversations.BadRow`."""
    asked, answered = read_xlam(row).turns
    if answered.calls:
        raise BadRow("an answer with calls: a row of xLAM, not of xLAM-irrelevance")
    return _decided("abstention", asked.text, _definitions(decoded(row["tools"], _TOOLS)))


#: The reader of each data set.
DECISIONS: Final[Mapping[str, Callable[[Mapping[str, Any]], Decided]]] = {
    "when2call": read_when2call,
    "irrelevance": read_irrelevance,
}


def kind_of_words(text: str) -> Kind:
    """Whether words ask for what is missing, or say that it cannot be done.

    A question that is no offer asks. Where there is none, a statement asks that says what is needed and refuses
    nothing. Everything else declines.
    """
    text = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    sentences = re.split(r"(?<=[.!?\n])", text)
    if any(one.rstrip().endswith("?") and not _OFFER.search(one) for one in sentences):
        return "clarification"
    return "clarification" if _REQUEST.search(text) and not _REFUSAL.search(text) else "abstention"


def _tested(row: Mapping[str, Any]) -> Decided:
    right, answers = str(row["correct_answer"]), row.get("answers")
    if right == "direct":
        raise BadRow("answered without tools")
    if right not in _KINDS or not isinstance(answers, Mapping) or not isinstance(answers.get(right), str):
        raise BadRow(_SHAPE)
    definitions, kind = _definitions(row.get("tools")), _KINDS[right]
    if kind == "call":
        return _decided(kind, row.get("question"), definitions, calls=_calls(answers[right]), split="test")
    return _decided(kind, row.get("question"), definitions, words=answers[right], split="test")


def _decided(kind: Kind, query: Any, definitions: tuple[Mapping[str, Any], ...], **told: Any) -> Decided:
    if not isinstance(query, str) or not query.strip():
        raise BadRow("nothing asked")
    tools = tuple(map(read_tool, definitions))
    if len({tool.name for tool in tools}) < len(tools):
        raise BadRow("two tools of one name")
    words = str(told.pop("words", "")).strip()
    return Decided(kind, query.strip(), tools, definitions, words=words, **told)


def _definitions(given: Any) -> tuple[Mapping[str, Any], ...]:
    """The tools of a row: objects, or JSON texts."""
    if not isinstance(given, list):
        raise BadRow(_TOOLS)
    found = [_json(one, _TOOLS) if isinstance(one, str) else one for one in given]
    if not all(isinstance(one, Mapping) for one in found):
        raise BadRow(_TOOLS)
    if not found:
        raise BadRow("no tools")
    return tuple(found)


def _calls(text: str) -> tuple[Called, ...]:
    found = _json(text, _CALLS)
    calls = []
    for one in found if isinstance(found, list) else [found]:
        arguments = one.get("arguments", {}) if isinstance(one, Mapping) else None
        if not isinstance(arguments, Mapping) or not isinstance(one.get("name"), str):
            raise BadRow(_CALLS)
        calls.append(Called(one["name"], dict(arguments)))
    if not calls:
        raise BadRow(_CALLS)
    return tuple(calls)


def _json(text: str, reason: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRow(reason) from error
