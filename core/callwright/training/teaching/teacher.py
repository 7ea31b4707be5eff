"""Teachers: language models, or scripts, that plan, speak as users, answer as assistants and judge.

    reply, = teacher.ask([TeacherRequest("user", (Message.user("Ask for a table for two."),), seed=3)])
    if isinstance(reply, TeacherFailure): ...   # nothing is known: count it, mask it, ask again later

One seam for whatever asks a model for something other than a rollout. Synthesis asks ``planner`` for blueprints, and
``user`` and ``assistant`` for the words of a conversation, a batch of requests for every stage over all units, with the
tools of the environment beside the messages. A simulated user of an episode is one request of the role ``user`` a turn.
The reward component ``judge`` asks for verdicts in the role ``judge``, with a schema. All of them take any teacher, and
:func:`callwright.training.cached` wraps any of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Literal, Protocol, get_args, runtime_checkable

from attrs import field, frozen

from callwright.digests import digest_of
from callwright.errors import UnknownName, UsageError
from callwright.language.messages import Message, ToolCall
from callwright.machines.event_loop import called
from callwright.tools.spec import ToolSpec

Role = Literal["planner", "user", "assistant", "judge"]
#: What a teacher may be asked to be.
ROLES: Final[tuple[str, ...]] = get_args(Role)
Finish = Literal["stop", "calls", "length"]
FINISHES: Final[tuple[str, ...]] = get_args(Finish)
#: Characters of the last message that name a request in an error.
_FIRST: Final = 60


def _messages(given: Iterable[Message]) -> tuple[Message, ...]:
    return tuple(given)


def _tools(given: Iterable[ToolSpec]) -> tuple[ToolSpec, ...]:
    return tuple(given)


def _calls(given: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    return tuple(given)


def _role(instance: object, attribute: object, value: str) -> None:
    if value not in ROLES:
        raise UnknownName("role of a teacher", str(value), ROLES)


@frozen
class TeacherRequest:
    """What a teacher is asked.

    ``messages`` are the whole conversation so far, ``tools`` what the reply may call (native calls; empty: none).
    ``schema`` is the JSON schema of a reply that is one JSON value: a server that can is held to it, any other is only
    asked, so whoever reads the reply checks it. ``seed`` tells apart draws of one conversation. ``temperature``,
    ``max_tokens`` (tokens of the reply, 1 or more): ``None`` leaves them to the teacher's settings for the role.

    Raises :class:`callwright.UsageError` for an unknown role, no messages, or a number out of range.
    """

    role: Role = field(validator=_role)
    messages: tuple[Message, ...] = field(converter=_messages)
    tools: tuple[ToolSpec, ...] = field(default=(), converter=_tools, kw_only=True)
    schema: Mapping[str, Any] | None = field(default=None, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    temperature: float | None = field(default=None, kw_only=True)
    max_tokens: int | None = field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if not self.messages:
            raise UsageError("a request to a teacher needs at least one message")
        if self.temperature is not None and not self.temperature >= 0:
            raise UsageError(f"the temperature of a request is 0 or more, not {self.temperature!r}")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise UsageError(f"'max_tokens' of a request is 1 or more, not {self.max_tokens!r}")

    def to_json(self) -> dict[str, Any]:
        """Everything that is asked, as a JSON value; requests that ask the same have equal ones."""
        return {
            "role": self.role,
            "messages": [message.to_openai() for message in self.messages],
            "tools": [tool.to_openai() for tool in self.tools],
            "schema": self.schema,
            "seed": self.seed,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }

    @property
    def digest(self) -> str:
        """SHA-256 of :meth:`to_json`, the same in every process."""
        return digest_of(self.to_json())

    @property
    def first_words(self) -> str:
        """The beginning of the last message, by which people know a request."""
        said = " ".join(self.messages[-1].text.split())
        return said if len(said) <= _FIRST else f"{said[: _FIRST - 1]}…"


@frozen
class TeacherReply:
    """What a teacher replied.

    ``calls`` are tool calls as they were sampled, ``thought`` what stood beside the text. ``finish``: ``stop``,
    ``calls`` (it waits for their results) or ``length`` (cut off by a limit of tokens: the rest is missing).
    ``usage`` is what the reply cost when it was asked: ``prompt_tokens``, ``completion_tokens``, ``cached_tokens``,
    ``reasoning_tokens``, ``cost``, as far as they are known. ``cached``: it comes from a cache, so nothing was spent.
    """

    text: str
    calls: tuple[ToolCall, ...] = field(default=(), converter=_calls)
    thought: str = ""
    finish: Finish = "stop"
    usage: Mapping[str, float] = field(factory=dict, hash=False)
    cached: bool = field(default=False, eq=False)

    @property
    def truncated(self) -> bool:
        """Whether a limit of tokens cut it off."""
        return self.finish == "length"

    def to_json(self) -> dict[str, Any]:
        """The reply as a JSON value."""
        return {
            "text": self.text,
            "calls": [call.to_openai() for call in self.calls],
            "thought": self.thought,
            "finish": self.finish,
            "usage": dict(self.usage),
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any], *, cached: bool = False) -> TeacherReply:
        """What :meth:`to_json` wrote. Raises :class:`callwright.errors.DataError` or :class:`KeyError` for others."""
        said = Message.from_openai({"role": "assistant", "content": "", "tool_calls": given["calls"]})
        return cls(given["text"], said.tool_calls, given["thought"], given["finish"], given["usage"], cached)


@frozen
class TeacherFailure:
    """In place of a reply: nothing is known of what the teacher would have said, and ``reason`` says why.

    ``refused``: the server refuses this one request (a content filter, a context that is too small), so that repeating
    it is no use. A failure is never an empty reply: an empty reply is something that a model said.
    """

    reason: str
    refused: bool = False


@runtime_checkable
class Teacher(Protocol):
    """A language model, or a script, that replies to requests. Registered by ``callwright_teachers``.

    It can be pickled, and holds no conversation: all that a reply hangs on stands in its request and in the settings.
    """

    @property
    def name(self) -> str:
        """The registered name."""

    def settings(self, role: Role) -> Mapping[str, Any]:
        """Whatever else decides its replies in a role, as a JSON object without secrets: ``model``, its options …

        A cache asks again where these differ. ``model`` is there for every teacher that has one.
        """

    def ask(self, requests: Sequence[TeacherRequest]) -> list[TeacherReply | TeacherFailure]:
        """One answer for each request, in their order; reproducibly for a seed where the model allows it.

        A request that fails fails alone, as a value. Raises :class:`callwright.UsageError` for what asking again cannot
        mend (key, model, a parameter).
        """


class Asker(Protocol):
    """An open way to a teacher; belongs to one event loop."""

    async def ask_one(self, request: TeacherRequest) -> TeacherReply | TeacherFailure:
        """The answer to one request; raises as :meth:`Teacher.ask` does."""


@runtime_checkable
class AsksConcurrently(Protocol):
    """A capability of teachers: requests one at a time from an event loop, many of them under way.

    At most ``concurrency`` are; the teacher sees to that itself, so nobody needs to count.
    """

    @property
    def concurrency(self) -> int:
        """How many requests are under way at most."""

    def connected(self) -> AbstractAsyncContextManager[Asker]:
        """A connection for the running event loop, closed at the end of the block."""


def connected(teacher: Teacher) -> AbstractAsyncContextManager[Asker]:
    """A way to ask a teacher from an event loop: its own, or :meth:`Teacher.ask` in threads where it has none."""
    return teacher.connected() if isinstance(teacher, AsksConcurrently) else _in_threads(teacher)


@asynccontextmanager
async def _in_threads(teacher: Teacher) -> AsyncIterator[Asker]:
    yield _Threads(teacher)


class _Threads:
    def __init__(self, teacher: Teacher) -> None:
        self._teacher = teacher

    async def ask_one(self, request: TeacherRequest) -> TeacherReply | TeacherFailure:
        (answer,) = await asyncio.to_thread(called, self._teacher.ask, [request])
        return answer
