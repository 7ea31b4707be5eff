"""What happened before an episode begins: calls that put its world into place, and a conversation that goes on.

    Opening(actions=(InitialCall("set_signal", {"bars": 0}, by="user"),), history=(Message.user("Hello?"), …))

All of it is done in every session of the task before the first call of the model, by whoever opens one. None of it is
an attempt of the model: it is not scored, not counted by any limit, carries no loss, meets no hazards, and no plugin
hears of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args

from attrs import evolve, field, frozen

from callwright.errors import DataError, UsageError
from callwright.language.messages import Message, ToolCall
from callwright.language.strict_json import kind

#: Whose tools a call is made with: those that the environment has for its agent, or those of the agent's user.
By = Literal["agent", "user"]


def _arguments(given: Any) -> dict[str, Any]:
    try:
        read = json.loads(json.dumps(given, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(f"the arguments of an initial call must be JSON: {error}") from error
    if not isinstance(read, dict):
        raise DataError(f"the arguments of an initial call are an object, not {given!r:.80}")
    return read


@frozen
class InitialCall:
    """A call that puts the world into place. One of a hidden tool is allowed: no model makes it.

    Raises :class:`callwright.errors.DataError` for arguments that are no JSON object, and for anybody else as ``by``.
    """

    tool: str
    arguments: Mapping[str, Any] = field(factory=dict, converter=_arguments)
    by: By = "agent"

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.tool, str) or not self.tool:
            raise DataError(f"the tool of an initial call is a name, not {self.tool!r:.80}")
        if self.by not in get_args(By):
            raise DataError(f"an initial call is made by 'agent' or 'user', not {self.by!r:.80}")

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {"tool": self.tool, "arguments": dict(self.arguments), **({} if self.by == "agent" else {"by": self.by})}


def _actions(given: Iterable[InitialCall]) -> tuple[InitialCall, ...]:
    return tuple(given)


def _messages(given: Iterable[Message]) -> tuple[Message, ...]:
    return tuple(given)


@frozen
class Opening:
    """What happens in a task's session before the model speaks.

    First ``actions`` run, in order; each must execute. Then the calls in ``history`` run. ``history`` is the
    conversation before the task's query: messages of the user, of the assistant, and of the role ``tool``. The model
    sees the results as ``history`` has them, whatever the calls return now; a call that fails counts against nobody.
    ``tool_calls`` in a message of the user run the user's own tools, and the model does not see them.

    A task whose query is empty goes on from the last message of its history. If that is the assistant's, the user
    speaks first (:func:`begins_with_user`), as in tau2-bench, where the agent greets it.

    Raises :class:`callwright.errors.DataError` for messages of other roles, and for calls in them that cannot be read.
    """

    actions: tuple[InitialCall, ...] = field(default=(), converter=_actions)
    history: tuple[Message, ...] = field(default=(), converter=_messages)

    def __attrs_post_init__(self) -> None:
        for place, message in enumerate(self.history):
            if message.role not in ("user", "assistant", "tool"):
                raise DataError(f"history[{place}] has the role {message.role!r}: expected user, assistant or tool")
        list(self.calls)

    @property
    def calls(self) -> Iterator[tuple[InitialCall, bool]]:
        """Every call in its order, and whether it has to execute."""
        for action in self.actions:
            yield action, True
        for place, message in enumerate(self.history):
            for call in message.tool_calls:
                by: By = "user" if message.role == "user" else "agent"
                yield InitialCall(call.name, _read(call, place), by), False

    @property
    def shown(self) -> tuple[Message, ...]:
        """What the model reads of the history: everything but what the user did by its own tools."""
        theirs = {call.id for message in self.history if message.role == "user" for call in message.tool_calls}
        return tuple(
            evolve(message, tool_calls=()) if message.role == "user" and message.tool_calls else message
            for message in self.history
            if not (message.role == "user" and message.tool_calls and not message.text)
            and not (message.role == "tool" and message.tool_call_id and message.tool_call_id in theirs)
        )

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON: what :meth:`from_json` reads."""
        return {
            "actions": [one.to_json() for one in self.actions],
            "history": [message.to_openai() for message in self.history],
        }

    @classmethod
    def from_json(cls, stated: Any) -> Opening | None:
        """What a file states: an object with ``actions`` and ``history`` (in the wire format); ``None`` for ``null``.

        Raises :class:`callwright.errors.DataError` for anything else.
        """
        if stated is None or isinstance(stated, Opening):
            return stated
        if not isinstance(stated, Mapping) or not stated.keys() <= {"actions", "history"}:
            raise DataError(f"an opening is an object with 'actions' and 'history', not {stated!r:.80}")
        actions, history = stated.get("actions", ()), stated.get("history", ())
        for name, given in (("actions", actions), ("history", history)):
            if not isinstance(given, list | tuple):
                raise DataError(f"{name!r} of an opening is a list, not {given!r:.80}")
        return cls(tuple(map(_action, actions)), tuple(map(Message.from_openai, history)))


def _action(stated: Any) -> InitialCall:
    if not isinstance(stated, Mapping) or not {"tool"} <= stated.keys() <= {"tool", "arguments", "by"}:
        raise DataError(f'an initial call is such as {{"tool": "…", "arguments": {{}}}}, not {stated!r:.80}')
    return InitialCall(stated["tool"], stated.get("arguments", {}), stated.get("by", "agent"))


def _read(call: ToolCall, place: int) -> dict[str, Any]:
    try:
        read = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise DataError(f"history[{place}] calls {call.name!r} with arguments that are no JSON: {error}") from error
    if not isinstance(read, dict):
        raise DataError(f"history[{place}] calls {call.name!r} with arguments that are {kind(read)}, not an object")
    return read


def told(messages: Iterable[Message]) -> tuple[Message, ...]:
    """A history as the user of the task has it: what was said, without the agent's calls and what came of them."""
    return tuple(
        Message(message.role, message.text)
        for message in messages
        if message.role in ("user", "assistant") and message.text
    )


def heard_before(task: Any) -> tuple[Message, ...]:
    """The conversation up to a task's query, as its user has it."""
    before = told(task.opening.history) if task.opening is not None else ()
    return (*before, Message.user(task.query)) if task.query or not before else before


def begins_with_user(task: Any) -> bool:
    """Whether the user of a task says in each episode what it wants: no query is stated, and the agent greeted it."""
    if task.query or task.user is None or task.opening is None:
        return False
    said = told(task.opening.history)
    return bool(said) and said[-1].role == "assistant"


def need_no_opening(task: Any, driver: str, instead: str) -> None:
    """Raise :class:`callwright.UsageError` for a task that begins in the middle, or whose tools appear later, where
    ``driver`` opens the session or leads the conversation and knows neither. ``instead`` says what does.
    """
    for stated, what in ((task.opening, "an opening"), (task.appear, "tools that appear later")):
        if stated:
            raise UsageError(f"task {task.id!r} has {what}, which {driver} does not know: {instead}")
