"""What the agent of a task has heard and seen before a call: from its user, and from results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from callwright.environments.knowledge.asking import knowledge_of
from callwright.environments.sessions import open_session
from callwright.errors import CallwrightError
from callwright.language.program import Call
from callwright_plugins.synthesis.dialogue.shown import members_of
from callwright_plugins.synthesis.gates.case import Case

_WORD: Final = re.compile(r"[\w@.+-]*\w", re.UNICODE)


@frozen
class Heard:
    """Before a call: what the user has said or would say when asked (``said``), scalars of results, and outcomes."""

    said: str
    words: frozenset[str]
    shown: frozenset[str]

    def has(self, value: Any) -> bool:
        """Whether a scalar was told or shown: whole, not as a part of something longer."""
        text = str(value)
        if text in self.shown or text in self.words:
            return True
        return len(text) >= 3 and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", self.said, re.IGNORECASE) is not None


def hearings(case: Case) -> Sequence[tuple[int, Call, Heard]]:
    """Each call of the reference with its turn, and what was heard before it: found once.

    What the user knows counts from the first turn on in which the agent has spoken, since the user tells it when asked.
    """
    found: list[tuple[int, Call, Heard]] = case.once(_hearings)
    return found


def _hearings(case: Case) -> list[tuple[int, Call, Heard]]:
    found: list[tuple[int, Call, Heard]] = []
    said = case.task.query
    heard = Heard(said, frozenset(_WORD.findall(said)), frozenset())
    for at, turn in enumerate(case.turns):
        if not turn.calls and heard.said is case.task.query:
            said = "\n".join([said, *told_when_asked(case)])
            heard = Heard(said, frozenset(_WORD.findall(said)), heard.shown)
        for call, record in zip(turn.calls, case.gold.turns[at], strict=False):
            found.append((at, call, heard))
            told = {str(value) for _, value, _ in members_of(record.outcome.value)}
            told.update(_WORD.findall(record.outcome.message))
            heard = Heard(heard.said, heard.words, heard.shown | told)
    return found


def requests(options: Mapping[str, Any]) -> list[str]:
    """The words of the later requests of a scripted user, by its options: texts, or objects with ``say``."""
    then = options.get("then")
    listed = then if isinstance(then, list | tuple) else ()
    return [str(one.get("say", "")) if isinstance(one, Mapping) else str(one) for one in listed]


def told_when_asked(case: Case) -> list[str]:
    """What the user of a task tells later: what it knows, and what it wants next."""
    user = case.task.user
    if user is None:
        return []
    found: list[str] = []
    for key in ("then", "says", "tells"):
        found += [str(value) for _, value, _ in members_of(user.options.get(key))]
    knows = user.options.get("knows")
    if isinstance(knows, Mapping):
        found += [str(value) for stated in knows.values() for value in _known(case, stated)]
    return found


def _known(case: Case, stated: Any) -> list[Any]:
    if not isinstance(stated, Mapping) or "knowledge" not in stated:
        return [value for _, value, _ in members_of(stated)]
    task = case.task
    try:
        session = open_session(task.environment, task.scenario, task.seed)
        try:
            known = knowledge_of(session, str(stated.get("of", "me")))
        finally:
            session.close()
    except CallwrightError:
        return []
    return [value for _, value, _ in members_of(known.get(stated["knowledge"]))]
