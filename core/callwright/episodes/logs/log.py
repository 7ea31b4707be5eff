"""Logs: a live session whose calls are recorded in the order in which they ran, for agents of other stacks.

    log = cw.Log(task)                              # opens the task's world
    tools = log.tools("langchain")                  # or log.call(name, arguments) from your own loop
    ...                                             # the agent works
    reward = cw.reward("tier").score_attempt(log.episode(messages))

What a reward sees are the outcomes as they were: nothing is executed a second time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from callwright.environments.protocol import Environment, Outcome, Session
from callwright.episodes.logs.line import PATIENCE, Line, Ticket
from callwright.episodes.logs.logged import Logged
from callwright.episodes.logs.matching import Unread
from callwright.episodes.logs.unstated import UNSTATED_ANSWER
from callwright.errors import UsageError
from callwright.language.messages import Message
from callwright.language.native import NATIVE_FORM
from callwright.language.parser import DEFAULT_LIMITS, Parser
from callwright.language.program import Call, Program
from callwright.language.strict_json import decode, kind
from callwright.walk.attempt import Attempt
from callwright.walk.completion import Completion
from callwright.walk.conditions import DEFAULT_CONDITIONS, Conditions
from callwright.walk.replaying import Replay, replay
from callwright.walk.tasks import Task
from callwright.walk.turn import last_words
from callwright.walk.users.world import GOAL, UNASKED, goal_after

if TYPE_CHECKING:
    from callwright.episodes.logs.kinds import Framework
    from callwright.episodes.logs.matching import Matched
    from callwright.plugins import Registry


_SILENT: Final = "the log holds no message of the assistant: nothing was said or called, so there is no attempt"


class Log:
    """The calls of one agent in one session of a task's world, recorded as they run.

    ``task`` may be an environment, for an agent that has no task: the log then makes one without an answer. ``session``
    is one that is open already; it is used as it is, and stays open. Without it the task's own world is opened with the
    first call, and given back by :meth:`close` (a log is a context manager).

    Calls may come from any thread or coroutine: they run one at a time, in the order in which they came, and in the
    order in which their message has them where the framework tells it (``after`` of :meth:`call`). ``patience`` is how
    long, in seconds, a call waits for those before it. ``registry`` is where frameworks and forms come from.

    Raises :class:`callwright.UsageError` for what is neither a task nor an environment.
    """

    def __init__(
        self,
        task: Task | Environment,
        session: Session | None = None,
        *,
        scenario: str = "",
        seed: int = 0,
        conditions: Conditions = DEFAULT_CONDITIONS,
        patience: float = PATIENCE,
        registry: Registry | None = None,
    ) -> None:
        self.task = _task_of(task, scenario, seed)
        self.conditions = conditions
        self.registry = registry
        #: The conversation of a log that was read from a file; empty for a live one, whose agent has it.
        self.messages: tuple[Message, ...] = ()
        #: Whether a limit cut the last of these messages.
        self.truncated = False
        #: Whether an agent was there even if it said and called nothing.
        self.attempted = True
        self._calls: list[Logged] = []
        self._unread: list[Unread] = []
        self._findings: list[str] = []
        self._line = Line(patience)
        self._execution = None if self.task.environment is None else conditions.execution(self.task, session=session)
        self._framework: Framework | None = None
        self._turn: str | None = None
        self._goal: Any = UNASKED
        self._closed = False

    @classmethod
    def recorded(
        cls,
        task: Task,
        calls: Iterable[Logged] = (),
        messages: Iterable[Message] = (),
        *,
        findings: Iterable[str] = (),
        truncated: bool = False,
        attempted: bool = False,
        registry: Registry | None = None,
    ) -> Log:
        """A log of what happened elsewhere. It has no session: :meth:`call` refuses.

        ``findings`` are what its reader could not know or had to leave out, in words; ``truncated`` says that a limit
        cut the last message. ``attempted``: an agent was there although it holds neither calls nor messages.
        """
        made = cls(task, registry=registry)
        made._calls, made.messages, made._closed = list(calls), tuple(messages), True
        made.truncated, made.attempted = truncated, attempted
        made._findings = list(findings)
        return made

    # Live --------------------------------------------------------------------------------------------------------

    def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | str,
        *,
        call_id: str = "",
        turn: str = "",
        after: Iterable[str] = (),
    ) -> Outcome:
        """Execute a call in the session and record it. Whatever the model did wrong is an outcome, never an exception.

        ``arguments`` may be the text of an object, as OpenAI's clients hand it on; an empty text is none. What
        is no object, such as the list or the null that a model wrote, or a text that cannot be read as one, never
        reaches the world: the outcome says so, and a finding. Without messages such a call is a turn that could not be
        read.

        ``call_id`` is the id of the call in the model's message, ``after`` those of the calls before it in the same
        message that come here, too, and ``turn`` anything that tells one message of the model from another; without it
        calls that overlap are of one turn. Raises :class:`callwright.UsageError` for a closed log, and
        :class:`callwright.errors.SessionInUse` inside of a tool of this session: a tool cannot call a tool.
        """
        goes_on, ticket = self._come(turn, after)
        return self._run(ticket, tool, arguments, call_id, goes_on)

    async def acall(
        self,
        tool: str,
        arguments: Mapping[str, Any] | str,
        *,
        call_id: str = "",
        turn: str = "",
        after: Iterable[str] = (),
    ) -> Outcome:
        """As :meth:`call`, in a thread: the event loop goes on. The place in the line is taken at once."""
        import asyncio  # whoever awaits has it; for a command that only reads logs it is a twentieth of its start

        goes_on, ticket = self._come(turn, after)
        try:
            return await asyncio.to_thread(self._run, ticket, tool, arguments, call_id, goes_on)
        finally:
            self._line.leave(ticket)  # of a call that was cancelled before it ran

    def user_turn(self) -> None:
        """The model has answered without a call, and its user speaks: time passes in worlds in which it does."""
        if self._execution is not None and not self._closed:
            self._execution.run(Program())
        self._turn = None

    def tools(self, framework: str, **options: Any) -> Any:
        """The task's tools as objects of a framework, whose calls come here: ``"langchain"``, ``"pydantic-ai"``, …

        Raises :class:`callwright.errors.UnknownName` for a framework without an adapter, and
        :class:`callwright.errors.MissingExtra` where its package is not installed.
        """
        from callwright.episodes.logs.kinds import framework_of

        self._framework = framework_of(framework, self.registry, options)
        return self._framework.tools(self)

    def close(self) -> None:
        """Give the session back, unless it was given; what the task's goal came to is asked before."""
        if self._closed:
            return
        if self._execution is not None and GOAL in self.task.facts and self._calls:
            self._goal = goal_after(self._execution.look, self.task, None)  # what was said is not known yet
        self._closed = True
        if self._execution is not None:
            self._execution.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _come(self, turn: str, after: Iterable[str]) -> tuple[bool, Ticket]:
        if self._closed or self._execution is None:
            what = "was recorded elsewhere and has no session" if self.messages else "is closed"
            raise UsageError(f"the log of task {self.task.id!r} {what}; no call can follow")
        goes_on = self._turn == turn if turn else self._line.busy
        self._turn = turn or None
        return goes_on, self._line.join(after)

    def _run(self, ticket: Ticket, tool: str, given: Mapping[str, Any] | str, call_id: str, goes_on: bool) -> Outcome:
        with self._line.inside(ticket, call_id) as stands:
            if not stands:  # its coroutine was cancelled: nobody waits for the outcome
                return Outcome("unknown", None, "cancelled", "the call was cancelled before it ran")
            if ticket.missed:
                waited = ", ".join(sorted(ticket.missed))
                self._findings.append(
                    f"{tool} ran before {waited}, which was written before it and did not come in time"
                )
            arguments = _read(given)
            if not isinstance(arguments, Mapping):
                written = kind(arguments)
                self._findings.append(f"{tool} was asked with {written} in place of an object, and did not run")
                message = f"the arguments of {tool!r} are {written}, not an object"
                text = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
                self._unread.append(Unread(len(self._calls), tool, text, message))
                return Outcome("schema_error", None, "arguments_not_object", message)
            assert self._execution is not None
            trace = self._execution.run(Program((Call(0, tool, dict(arguments)),)), goes_on=goes_on)
            record = trace.records[0]
            self._calls.append(
                Logged(len(self._calls), tool, dict(arguments), record.outcome, call_id, trace.state, record.state)
            )
            return record.outcome

    # What is known -----------------------------------------------------------------------------------------------

    @property
    def calls(self) -> tuple[Logged, ...]:
        """The calls so far, in the order in which they ran."""
        return tuple(self._calls)

    @property
    def noted(self) -> tuple[str, ...]:
        """What was noted while calls ran, or by the reader of a file; :meth:`findings` has the conversation's, too."""
        return tuple(self._findings)

    @property
    def is_live(self) -> bool:
        """Whether calls can follow."""
        return not self._closed

    def episode(self, messages: Any = None, parser: Parser | str = NATIVE_FORM, *, truncated: bool = False) -> Attempt:
        """What the agent did, as an attempt that every reward scores and none executes.

        ``messages`` is the conversation: :class:`callwright.Message`, rows of OpenAI's format, completions of which the
        sampled text is known, or what the framework of :meth:`tools` returns from a run. Each message of the
        assistant is a turn; its calls get the outcomes that the log recorded, by their ids, else by name and
        arguments, and the order in which they ran. Without messages (and for a log without its own) every recorded
        call is a turn. ``truncated`` says that a limit cut the last message.

        A call of which the log knows nothing has the outcome ``unknown``, so that rewards that need it abstain. A call
        that ran although no message asks for it masks the attempt: something else than the model changed the world.
        So does a conversation in which no assistant speaks: what an agent that never answered would have done, nobody
        knows.
        Raises :class:`callwright.errors.DataError` for messages that cannot be read.
        """
        form = self._form(parser)
        matched = self._matched(messages, form, truncated or (messages is None and self.truncated))
        masked = matched.unasked or self._silent(messages, matched)
        if GOAL in self.task.facts and not self._closed and self._execution is not None and self._calls:
            last = last_words(matched.turns[-1].completion, matched.turns[-1].parsed) if matched.turns else ""
            self._goal = goal_after(self._execution.look, self.task, last)
        return Attempt.told(self.task, form, matched.turns, self.conditions, masked=masked, goal=self._goal)

    def findings(self, messages: Any = None, parser: Parser | str = NATIVE_FORM) -> tuple[str, ...]:
        """What a person should know of this log, a sentence each: calls that no message asks for, repaired arguments,
        calls that ran in another order than they were written in, and what a reader had to leave out.
        """
        matched = self._matched(messages, self._form(parser), False)
        silent = None if matched.unasked else self._silent(messages, matched)
        return (*self._findings, *matched.findings, *([silent] if silent else []))

    def write(self, path: str | Path, messages: Any = None, *, append: bool = False) -> None:
        """Write this log to a file of our own format, from which :func:`callwright.read_log` reads it as it is.

        ``messages`` are as for :meth:`episode`; ``append`` adds it to the logs that the file holds. Raises
        :class:`callwright.UsageError` for values that are no JSON, and :class:`callwright.errors.RunError` for a file
        that cannot be written.
        """
        from callwright.episodes.logs.writing import write_logs

        said = [_message(one) for one in self._said(messages)]
        if self._unread and not said:  # which only messages tell
            said = [_message(turn.completion) for turn in self._matched((), self._form(NATIVE_FORM), False).turns]
        findings = self._findings
        read = Log.recorded(self.task, self._calls, said, findings=findings, truncated=self.truncated)
        write_logs(path, [read], append=append)

    def replay(self) -> Replay:
        """Run the recorded calls again, in a fresh session of the task, and compare each with what was seen.

        Opt in: in a world that is not thrown away, everything happens a second time.
        """
        form = self._form(NATIVE_FORM)
        return replay(Attempt.told(self.task, form, self._matched((), form, False).turns, self.conditions))

    def _matched(self, messages: Any, form: Parser, truncated: bool) -> Matched:
        from callwright.episodes.logs.matching import match

        return match(self.task, form, self._said(messages), self._calls, truncated, self._unread)

    def _silent(self, messages: Any, matched: Matched) -> str | None:
        """That no agent was there, in words. One that was there and called nothing did abstain."""
        return None if matched.turns or (self.attempted and not self._said(messages)) else _SILENT

    def _said(self, messages: Any) -> list[Message | Completion]:
        if messages is None:
            messages = self.messages
        elif self._framework is not None and not _is_wire(messages):
            messages = self._framework.messages(messages)
        return [one if isinstance(one, Completion) else Message.from_openai(one) for one in messages]

    def _form(self, parser: Parser | str) -> Parser:
        if not isinstance(parser, str):
            return parser
        from callwright.plugins import default_registry

        made: Parser = (self.registry or default_registry()).create("parser", parser)
        return made


def _message(one: Message | Completion) -> Message:
    if isinstance(one, Message):
        return one
    return one.message if one.message is not None else Message.assistant(one.text)


def _is_wire(messages: Any) -> bool:
    """Whether these are messages that need no framework to be read."""
    return isinstance(messages, list | tuple) and all(
        isinstance(one, Message | Completion | Mapping) for one in messages
    )


def _task_of(given: Any, scenario: str, seed: int) -> Task:
    if isinstance(given, Task):
        if scenario or seed:
            raise UsageError("a task fixes its world; 'scenario' and 'seed' are for a log of an environment")
        return given
    if not isinstance(given, Environment):
        raise UsageError(f"a log is of a task or an environment, not of {given!r:.60}")
    return Task("log", "", given.tools, UNSTATED_ANSWER, given, scenario=scenario, seed=seed)


def _read(arguments: Mapping[str, Any] | str) -> Mapping[str, Any] | str:
    """The arguments of a call; a text stays one where no object is written in it."""
    if not isinstance(arguments, str):
        return arguments
    read = decode(arguments, 0, DEFAULT_LIMITS.nesting) if arguments.strip() else {}
    return read if isinstance(read, Mapping) else arguments
