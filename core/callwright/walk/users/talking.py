"""One user in one episode: it hears the agent, looks at the world, calls its tools, and says something."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from attrs import evolve

from callwright.capability import has
from callwright.environments.telling import printable, tell
from callwright.errors import ComponentError
from callwright.language.messages import Message, ToolCall
from callwright.language.program import Call, plain
from callwright.walk.trace import CallRecord, Trace
from callwright.walk.users.said import UserTurn
from callwright.walk.users.user import MOST_ROUNDS, User, Waits, reply_of
from callwright.walk.users.world import WorldView


class Talk:
    """A conversation as its user has it, which ends with its query.

    ``look(question, *given)`` asks the world, and ``act(calls)`` runs calls of the user there, which lets its turn pass
    also where it calls nothing.
    """

    def __init__(
        self,
        user: User,
        name: str,
        heard: Sequence[Message],
        look: Callable[..., Any],
        act: Callable[[Sequence[Call]], Trace],
    ) -> None:
        self._user, self._name, self._act = user, name, act
        self._world = WorldView(look)
        self._messages = list(heard)

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was said so far, as the user heard it."""
        return tuple(self._messages)

    @property
    def waits(self) -> bool:
        """Whether the user says that it waits for a server when it is asked (``waits``)."""
        return has(self._user, Waits) and self._user.waits is True

    def begin(self) -> str:
        """What the user wants, in its words. Raises as :meth:`answer` does, also for a user that calls tools already or
        is done: its query is part of the prompt.
        """
        said = reply_of(self._user, self._name, self.messages, self._world)
        text = printable(said.text)
        if said.calls or said.done or not text:
            raise ComponentError(f"the user {self._name!r} begins the conversation, and says nothing; this is its bug")
        self._messages.append(Message.user(text))
        return text

    def answer(self, text: str, *, silent: bool = False) -> UserTurn:
        """What the user says and does when the agent has said something. It may be ``silent`` where tools appear.

        Raises :class:`callwright.InfrastructureFailure` where it or the world has no answer, and
        :class:`callwright.errors.ComponentError` for a user that calls tools again and again and says nothing.
        """
        self._messages.append(Message.assistant(text))
        calls: tuple[Call, ...] = ()
        traces: list[Trace] = []
        usage: dict[str, float] = {}
        for _ in range(MOST_ROUNDS):
            said = reply_of(self._user, self._name, self.messages, self._world, silent=silent)
            numbered = tuple(evolve(call, id=len(calls) + place) for place, call in enumerate(said.calls))
            for figure, value in (said.usage or {}).items():
                usage[figure] = usage.get(figure, 0) + value
            acted = self._act(numbered)
            calls += numbered
            traces.append(acted)
            if acted.infrastructure is not None:
                return UserTurn(evolve(said, calls=calls, usage=usage or None), _joined(traces))
            self._messages += _told(numbered, acted.records)
            if said.text or said.done or (silent and not said.calls):
                text = printable(said.text)
                if text:
                    self._messages.append(Message.user(text))
                return UserTurn(evolve(said, text=text, calls=calls, usage=usage or None), _joined(traces))
        raise ComponentError(
            f"the user {self._name!r} called tools {MOST_ROUNDS} times in one turn and said nothing; this is its bug"
        )


def _told(calls: Sequence[Call], records: Sequence[CallRecord]) -> list[Message]:
    """The calls of a user and what came of them, as it reads them."""
    if not calls:
        return []
    asked = [
        ToolCall(str(call.id), call.tool, json.dumps(plain(call.arguments), ensure_ascii=False, default=str))
        for call in calls
    ]
    results = [
        Message.tool(tell(record.outcome, id=record.call, name=record.tool), str(record.call), name=record.tool)
        for record in records
    ]
    return [Message("user", tool_calls=asked), *results]


def _joined(traces: Sequence[Trace]) -> Trace:
    """What the calls of all rounds came to; without any the digest of the world."""
    records = tuple(record for trace in traces for record in trace.records)
    return Trace(records, "all", traces[0].state, ended=traces[-1].final_state)
