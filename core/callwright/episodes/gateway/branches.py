"""Branches: the lines of ids of one session, and to which of them a request belongs.

A client sends the whole conversation with every request, and rarely as it got it: thoughts are dropped, arguments
rewritten, messages compacted, the time in the system prompt moves on. What the model wrote is therefore recognised by
the ids of its calls, or by its text, and never written again from what the client says. Where a conversation parts from
what is known, it goes on in a branch of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from attrs import define, field

from callwright.episodes.gateway.chat_answer import ChatAnswer
from callwright.episodes.token_line import TokenLine
from callwright.language.messages import Message
from callwright.walk.completion import Completion


@define(eq=False)
class GatewayTurn:
    """One answer of the model in a branch. ``number`` counts the answers of the session in the order of requests.

    ``start`` and ``end`` are where its ids stand in the line's response. ``delivered``: the client was sent all of it;
    ``read``: a later request went on from it.
    """

    number: int
    completion: Completion
    answer: ChatAnswer
    start: int = 0
    end: int = 0
    has_ids: bool = True
    delivered: bool = False
    read: bool = False

    @property
    def message(self) -> Message:
        """The message as the client was given it."""
        return self.answer.message

    def is_echoed_by(self, message: Message) -> bool:
        """Whether a message of a request is this one, whatever the client did to it."""
        if message.role != "assistant":
            return False
        mine = {call.id for call in self.message.tool_calls}
        if mine:
            return mine == {call.id for call in message.tool_calls}
        return not message.tool_calls and message.text.strip() == self.message.text.strip()


@define(eq=False)
class Branch:
    """A line of ids, and the messages and answers that it is made of, in their order.

    ``role`` is who asked (``/a/ROLE/`` of the URL), ``tools_key`` tells its list of tools from others. ``parent`` is
    the branch that it was forked from, which it shares ``forked_at`` response ids with.
    """

    role: str
    tools_key: str = field(repr=False)
    line: TokenLine = field(repr=False)
    entries: list[Message | GatewayTurn] = field(repr=False, factory=list)
    parent: Branch | None = field(default=None, repr=False)
    forked_at: int | None = None

    @property
    def turns(self) -> list[GatewayTurn]:
        """The answers of this branch, those that it shares with its parent included."""
        return [entry for entry in self.entries if isinstance(entry, GatewayTurn)]

    @property
    def own_turns(self) -> list[GatewayTurn]:
        """The answers that were sampled in this branch."""
        shared = set() if self.parent is None else {id(turn) for turn in self.parent.turns}
        return [turn for turn in self.turns if id(turn) not in shared]

    def shared_with(self, messages: Sequence[Message]) -> int:
        """How many of the first entries a request says again."""
        count = 0
        for entry, message in zip(self.entries, messages, strict=False):
            same = entry.is_echoed_by(message) if isinstance(entry, GatewayTurn) else key_of(entry) == key_of(message)
            if not same:
                break
            count += 1
        return count

    def last_turn_within(self, count: int) -> int:
        """How many of the first ``count`` entries there are up to the last answer among them; 0 without one."""
        return next((at for at in range(count, 0, -1) if isinstance(self.entries[at - 1], GatewayTurn)), 0)


def key_of(message: Message) -> str:
    """What tells a message that the model did not write from another one."""
    return json.dumps(message.to_openai(), sort_keys=True, default=str)


def difference(one: Message, other: Message) -> str:
    """Where two messages part, in a few words of each."""
    first, second = one.text, other.text
    at = next((n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))
    start = max(at - 12, 0)
    return f"{first[start : start + 40]!r} became {second[start : start + 40]!r}"
