"""The state machine of a conversation: one table, of which the documentation is drawn.

Prove's orchestrator "tracks five groups of states - query, turn, tool-execution, response, and continuation"
(section 3.2, step 3). An event that the table does not know in a state is a bug, and raises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal, get_args

from attrs import define, field

from callwright.errors import ComponentError

Group = Literal["query", "turn", "tool execution", "response", "continuation"]
GROUPS: Final[tuple[Group, ...]] = get_args(Group)
State = Literal[
    "word the query",
    "take a turn",
    "validate",
    "fall back",
    "execute",
    "recover",
    "ask",
    "hear",
    "answer",
    "give up",
    "refuse",
    "go on",
    "end",
    "reject",
]
Event = Literal[
    "worded",
    "unsayable",
    "something is missing",
    "calls are due",
    "nothing is left",
    "nothing fits",
    "well formed",
    "malformed",
    "another wording",
    "spent",
    "success",
    "partial success",
    "failure",
    "otherwise than planned",
    "other parameters",
    "another tool",
    "no way around",
    "asked",
    "told",
    "said",
    "another request",
    "no more requests",
]

#: Which group a state belongs to.
GROUP_OF: Final[Mapping[State, Group]] = MappingProxyType(
    {
        "word the query": "query",
        "take a turn": "turn",
        "validate": "turn",
        "fall back": "turn",
        "execute": "tool execution",
        "recover": "tool execution",
        "ask": "response",
        "hear": "response",
        "answer": "response",
        "give up": "response",
        "refuse": "response",
        "go on": "continuation",
        "end": "continuation",
        "reject": "continuation",
    }
)
#: What comes after a state at an event.
TRANSITIONS: Final[Mapping[tuple[State, Event], State]] = MappingProxyType(
    {
        ("word the query", "worded"): "take a turn",
        ("word the query", "unsayable"): "reject",
        ("take a turn", "something is missing"): "ask",
        ("take a turn", "calls are due"): "validate",
        ("take a turn", "nothing is left"): "answer",
        ("take a turn", "nothing fits"): "refuse",
        ("validate", "well formed"): "execute",
        ("validate", "malformed"): "fall back",
        ("fall back", "another wording"): "validate",
        ("fall back", "spent"): "reject",
        ("execute", "success"): "take a turn",
        ("execute", "partial success"): "take a turn",
        ("execute", "failure"): "recover",
        ("execute", "otherwise than planned"): "reject",
        ("recover", "other parameters"): "take a turn",
        ("recover", "another tool"): "take a turn",
        ("recover", "no way around"): "give up",
        ("ask", "asked"): "hear",
        ("hear", "told"): "take a turn",
        ("answer", "said"): "go on",
        ("give up", "said"): "go on",
        ("refuse", "said"): "go on",
        ("go on", "another request"): "word the query",
        ("go on", "no more requests"): "end",
    }
)
START: Final[State] = "word the query"
#: States after which nothing comes.
FINAL: Final = frozenset({"end", "reject"})


@define
class Machine:
    """Where a conversation is, and the states that it has been in."""

    state: State = START
    path: list[State] = field(factory=lambda: [START])

    def on(self, event: Event) -> State:
        """Go on. Raises :class:`callwright.errors.ComponentError` for an event that the table does not have there."""
        following = TRANSITIONS.get((self.state, event))
        if following is None:
            raise ComponentError(f"the state machine of conversations has no {event!r} in {self.state!r}")
        self.state = following
        self.path.append(following)
        return following

    @property
    def over(self) -> bool:
        """Whether it has come to an end."""
        return self.state in FINAL


def rows() -> Iterator[tuple[Group, State, Event, State]]:
    """The table, in the order of the groups."""
    for group in GROUPS:
        for (state, event), following in TRANSITIONS.items():
            if GROUP_OF[state] == group:
                yield group, state, event, following


def as_markdown() -> str:
    """The table as it stands in the documentation."""
    lines = ["| group | state | event | next |", "|---|---|---|---|"]
    lines += [f"| {group} | {state} | {event} | {following} |" for group, state, event, following in rows()]
    return "\n".join(lines)
