"""The state machine of a conversation: five groups of states, one table of transitions (Prove, section 3.2, step 3).

    state = BEGIN
    while state not in FINAL:
        state = following(state, event_of(state))     # whoever converses says what happened

The table is all there is: the docs are drawn from it, and an event that it does not have is a bug.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from callwright.errors import ComponentError

QUERY: Final = "word the query"
DRAFT: Final = "draft the turn"
REGENERATE: Final = "regenerate the turn"
EXECUTE: Final = "execute the calls"
RECOVER: Final = "recover"
ASK: Final = "ask the user"
ANSWER: Final = "answer"
EXPLAIN: Final = "explain the failure"
REFUSE: Final = "refuse"
HEAR: Final = "hear the user"
CONTINUE: Final = "continue or end"
END: Final = "end"
REJECTED: Final = "rejected"
BEGIN: Final = QUERY
FINAL: Final = frozenset({END, REJECTED})

#: The paper's five groups, and the states of each.
GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "query": (QUERY,),
        "turn": (DRAFT, REGENERATE),
        "tool execution": (EXECUTE, RECOVER),
        "response": (ASK, ANSWER, EXPLAIN, REFUSE),
        "continuation": (HEAR, CONTINUE, END, REJECTED),
    }
)

#: What follows a state, by what happened in it.
TRANSITIONS: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        (QUERY, "worded"): DRAFT,
        (QUERY, "no words"): REJECTED,
        (DRAFT, "calls"): EXECUTE,
        (DRAFT, "something is missing"): ASK,
        (DRAFT, "all is done"): ANSWER,
        (DRAFT, "it cannot be done"): EXPLAIN,
        (DRAFT, "no tool fits"): REFUSE,
        (DRAFT, "invalid"): REGENERATE,
        (REGENERATE, "another draft"): DRAFT,
        (REGENERATE, "used up"): REJECTED,
        (EXECUTE, "success"): DRAFT,
        (EXECUTE, "partial"): DRAFT,
        (EXECUTE, "failure"): RECOVER,
        (EXECUTE, "not as planned"): REJECTED,
        (RECOVER, "parameters"): DRAFT,
        (RECOVER, "tool"): DRAFT,
        (RECOVER, "give up"): DRAFT,
        (ASK, "said"): HEAR,
        (HEAR, "told"): DRAFT,
        (ANSWER, "said"): CONTINUE,
        (EXPLAIN, "said"): CONTINUE,
        (REFUSE, "said"): CONTINUE,
        (CONTINUE, "follow-up"): QUERY,
        (CONTINUE, "nothing is left"): END,
    }
)


def following(state: str, event: str) -> str:
    """The next state. Raises :class:`callwright.errors.ComponentError` for an event that the table does not have."""
    found = TRANSITIONS.get((state, event))
    if found is None:
        raise ComponentError(f"in the state {state!r} of a conversation {event!r} cannot happen")
    return found


def table() -> str:
    """The table in Markdown, group by group, as the docs have it."""
    group = {state: name for name, states in GROUPS.items() for state in states}
    lines = ["| group | state | what happens | next state |", "|---|---|---|---|"]
    lines += [f"| {group[state]} | {state} | {event} | {then} |" for (state, event), then in TRANSITIONS.items()]
    return "\n".join(lines)
