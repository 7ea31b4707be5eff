"""Conversations: an attempt in the making, with its messages and its session, turn by turn until it is over.

    conversation = Conversation(task, parser, messages, conditions)
    while not conversation.over:
        following = conversation.take(completion)       # parse, validate, execute; what the model is to read next
        conversation.hear(following)
    reward = recipe.score_attempt(conversation.attempt)

Tokens are not known here: :class:`callwright.episodes.TokenEpisode` drives one of these with token ids,
:func:`callwright.episodes.converse` with texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from attrs import evolve

from callwright.episodes.results import as_user_message, observation_messages
from callwright.errors import DataError, InfrastructureFailure, UsageError
from callwright.language.messages import Message
from callwright.language.parser import ParseFailure, Parser
from callwright.language.program import Call, Program
from callwright.language.speech import spoken
from callwright.tools.spec import ToolSpec
from callwright.walk.attempt import Attempt
from callwright.walk.calls.handles import room_of, shows_handles, with_handles
from callwright.walk.calls.parsing import parsed
from callwright.walk.completion import Completion
from callwright.walk.conditions import Conditions
from callwright.walk.limits import StopReason, limits_for
from callwright.walk.openings.opening import begins_with_user, heard_before
from callwright.walk.prompt import described
from callwright.walk.tasks import Task
from callwright.walk.trace import Trace
from callwright.walk.turn import Turn, last_words
from callwright.walk.users.world import GOAL, UNASKED, goal_after

if TYPE_CHECKING:
    from callwright.walk.users.talking import Talk


#: What a user who says nothing is taken to say where tools appear.
MORE_TOOLS: Final = "There are more tools now. Please go on."


class TurnsElsewhere(Protocol):
    """The turns of one episode where another thread, process or machine parses and executes them."""

    def take(self, text: str, *, last: bool) -> tuple[Program | ParseFailure, Trace | None]:
        """What the parser makes of the next completion, and what came of it. No turn follows the ``last`` one.

        Raises :class:`callwright.InfrastructureFailure` if that cannot be known.
        """

    def look(self, question: str, *given: Any) -> Any:
        """What the user asks of the session (:meth:`callwright.walk.Execution.look`). Raises as ``take`` does."""

    def act(self, calls: Sequence[Call]) -> Trace:
        """Run calls of the user in it (:meth:`callwright.walk.Execution.act`). Raises as ``take`` does."""

    def close(self) -> None:
        """Give the session back, if it is open."""


class Conversation:
    """One episode of a task and the messages that a model has seen and written in it.

    The episode ends by ``conditions.limits``, that of a task of one turn (:data:`callwright.walk.limits.ONE_TURN`) with
    its first completion. The task's user, if it has one, is asked each time that the model answers
    without calls; it hears the text of the answer, the thought taken out. It lives here, wherever the session does.
    The session is given back when the episode is over. Raises :class:`callwright.errors.DataError` for a user that does
    not exist or cannot talk about the task.

    Results of calls are messages of the role ``observation_role``; ``user`` is for models that know no role ``tool``.
    ``native`` says that somebody hands the tools to the model as functions (:class:`callwright.walk.OffersTools`), so
    that a message need not list those that appear.
    """

    def __init__(
        self,
        task: Task,
        parser: Parser,
        messages: Sequence[Message],
        conditions: Conditions,
        *,
        observation_role: Literal["tool", "user"] = "tool",
        native: bool = False,
    ) -> None:
        limits = limits_for(task.facts, conditions.limits)
        conditions = conditions if limits is conditions.limits else evolve(conditions, limits=limits)
        self.task, self.parser, self.conditions = task, parser, conditions
        self._stated = task
        self._first = tuple(messages) if observation_role == "tool" else as_user_message(messages)
        self._observation_role, self._native = observation_role, native
        self._elsewhere: Callable[[Task, Parser, Conditions], TurnsElsewhere] | None = None
        self._there: TurnsElsewhere | None = None
        #: How often the episode was begun again after a failure of the machinery.
        self.retried = 0
        self._begin()

    def _begin(self) -> None:
        task, conditions = self._stated, self.conditions
        if self._elsewhere is not None:
            self._there = self._elsewhere(task, self.parser, conditions)
        self._execution = conditions.execution(task)
        self._history: list[tuple[tuple[Message, ...], Completion]] = []
        self._turns: list[Turn] = []
        self._attempt: Attempt | None = None
        self._masked: str | None = None
        #: What the task's goal came to in the end.
        self._goal: Any = UNASKED
        #: What was paid for the answer that is masked.
        self._usage: Mapping[str, float] | None = None
        self._messages = list(self._first)
        self._user_turns = 1
        #: Completions with calls since the user spoke.
        self._steps = 0
        self._stop: StopReason | None = None
        self._call_user()
        if begins_with_user(task):
            self._let_the_user_begin()

    def _let_the_user_begin(self) -> None:
        """Have the user say what it wants: the query of this episode's task, and the last message of the prompt."""
        if self._talk is None:
            raise UsageError(f"task {self.task.id!r} begins with its user, for whom 'user_turns' = 1 leaves no turn")
        try:
            query = self._talk.begin()
        except InfrastructureFailure as error:
            self.fail(str(error))
            return
        self.task = evolve(self._stated, query=query)
        self._messages.append(Message.user(query))

    def _call_user(self) -> None:
        task, conditions = self._stated, self.conditions
        user = None if conditions.limits.user_turns == 1 else conditions.user(task)
        self._talk: Talk | None = None
        if user is not None:
            from callwright.walk.users.talking import Talk  # here, as a scorer has no use for what it costs to import

            assert task.user is not None
            self._talk = Talk(user, task.user.name, heard_before(task), self._look, self._act)

    def reseed(self, seed: int) -> None:
        """Draw what its user draws from another seed: for engines that know the step of a training with their first
        answer.

        Raises :class:`callwright.UsageError` once a completion was taken.
        """
        if self._turns:
            raise UsageError(f"the episode of task {self.task.id!r} has begun; its user cannot be another one")
        self.conditions = evolve(self.conditions, seed=seed)
        self._attempt = None
        if not begins_with_user(self._stated):  # whose words were answered already
            self._call_user()

    def begin_again(self) -> None:
        """Forget every turn: a fresh session, the first messages."""
        self.close()
        self.retried += 1
        self._begin()

    def move(self, elsewhere: Callable[[Task, Parser, Conditions], TurnsElsewhere]) -> None:
        """Have turns parsed and executed by what this gives, from the first one on; a retry asks it again."""
        self._elsewhere = elsewhere
        self._there = elsewhere(self.task, self.parser, self.conditions)

    # What is known ---------------------------------------------------------------------------------------------------

    @property
    def attempt(self) -> Attempt:
        """What was made so far, as a value that every reward scores. A later turn makes another one."""
        if self._attempt is None:
            self._attempt = Attempt.of(
                self.task,
                self.parser,
                self._turns,
                self.conditions,
                stop=self._stop,
                masked=self._masked,
                usage=self._usage,
                goal=self._goal,
            )
        return self._attempt

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns so far."""
        return tuple(self._turns)

    @property
    def history(self) -> Sequence[tuple[tuple[Message, ...], Completion]]:
        """Every completion with the messages that it answered."""
        return tuple(self._history)

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was said so far, from the system message on. A completion is there as the text that was parsed."""
        return tuple(self._messages)

    #: What an engine of texts answers next.
    context = messages

    @property
    def stop(self) -> StopReason | None:
        """Why the episode is over; ``None`` while it goes on."""
        return self._stop

    @property
    def over(self) -> bool:
        """Whether no completion follows."""
        return self._stop is not None

    @property
    def masked(self) -> str | None:
        """Why this sample must not become a number; ``None`` if nothing failed but the model."""
        return self.attempt.masked

    @property
    def offered(self) -> Mapping[str, ToolSpec]:
        """The tools that the model is shown by now."""
        return self.task.offered_at(self._user_turns - 1)

    @property
    def waits(self) -> bool:
        """Whether the user waits for a server when it is asked, so that others may be asked meanwhile."""
        return self._talk is not None and self._talk.waits

    @property
    def awaits_results(self) -> bool:
        """Whether what follows the last turn are results of its calls, and not a message of the user."""
        return bool(self._turns) and bool(self._turns[-1].calls)

    # What happens ----------------------------------------------------------------------------------------------------

    def accept(self, completion: Completion) -> None:
        """Take the next completion and hear what follows it."""
        self.hear(self.take(completion))

    def take(self, completion: Completion, cut_by: StopReason = "tokens") -> tuple[Message, ...]:
        """Take the next completion: parse it, execute it, and return the messages that follow; none if it was the last.

        A completion that was cut (``truncated``) is the last one, with the reason ``cut_by``: how it would have ended
        is not known. One that is ``masked`` ends the episode. Raises :class:`callwright.UsageError` if the
        episode is over.
        """
        if self._stop is not None:
            raise UsageError(f"the episode of task {self.task.id!r} is over ({self._stop}); no completion follows")
        if completion.masked is not None:
            self._usage = completion.usage
            self.fail(completion.masked)
            return ()
        self._history.append((self.messages, completion))
        if self._there is None:
            read = parsed(self.parser, completion, self.task)
            part = with_handles(read, self.task, self.parser, self._execution.earlier.count)
            trace = self._execution.run(part) if isinstance(part, Program) else None
            if trace is None and self._unparsed_goes_on:
                self._execution.run(Program())  # the user's turn is over
        else:
            try:
                last = completion.truncated or (self._is_last and self._talk is None)
                last = last and GOAL not in self.task.facts  # the session is asked before it is closed
                part, trace = self._there.take(completion.text, last=last)
            except InfrastructureFailure as error:
                self._turns.append(Turn(completion, ParseFailure("envelope", "not_parsed", str(error), (0, 0))))
                self.fail(str(error))
                return ()
        self._turns.append(Turn(completion, part, trace))
        self._attempt = None
        self._messages.append(Message(role="assistant", content=completion.text))
        if trace is not None and trace.infrastructure is not None:
            self.finish("machinery")
        elif completion.truncated:
            self.finish(cut_by)
        elif isinstance(part, ParseFailure):
            if self._unparsed_goes_on:
                return self._after_answer(None, completion)
            self.finish("unparsed")
        elif part.calls:
            return self._after_calls()
        else:
            return self._after_answer(part, completion)
        return ()

    @property
    def _unparsed_goes_on(self) -> bool:
        """Whether a text that is no program is an answer, which somebody is there to hear."""
        return self._talk is not None and self.conditions.limits.unparsed == "turn"

    @property
    def _is_last(self) -> bool:
        """Whether the limits allow no turn after the one at hand."""
        return len(self._turns) + 1 >= self.conditions.limits.assistant_turns

    def _after_calls(self) -> tuple[Message, ...]:
        limits = self.conditions.limits
        self._steps += 1
        if limits.steps is not None and self._steps > limits.steps:
            self.finish("steps")
            return ()
        if len(self._turns) >= limits.assistant_turns:
            self.finish("assistant_turns")
            return ()
        first = None
        if shows_handles(self.task, self.parser):
            first = sum(room_of(turn.parsed) for turn in self._turns[:-1])
        observed = observation_messages(self.parser, self._turns[-1], first)
        return observed if self._observation_role == "tool" else as_user_message(observed)

    def _after_answer(self, answer: Program | None, completion: Completion) -> tuple[Message, ...]:
        limits = self.conditions.limits
        self._steps = 0
        if self._talk is None:
            self.finish("answered" if self.task.user is None else "user_turns")
            return ()
        try:
            user = self._talk.answer(spoken(answer, completion), silent=bool(self._appearing))
        except InfrastructureFailure as error:
            self.fail(str(error))
            return ()
        except DataError as error:
            raise DataError(f"task {self.task.id!r}: {error}") from error
        self._turns[-1] = evolve(self._turns[-1], user=user)
        self._attempt = None
        if user.trace is not None and user.trace.infrastructure is not None:
            self.finish("machinery")
        elif user.said.done:
            self.finish("answered")
        elif self._user_turns >= limits.user_turns:
            self.finish("user_turns")
        elif len(self._turns) >= limits.assistant_turns:
            self.finish("assistant_turns")
        else:
            return (Message.user(self._with_tools(user.said.text)),)
        return ()

    @property
    def _appearing(self) -> Mapping[str, ToolSpec]:
        """The tools that appear with the user's next turn."""
        return self.task.appearing(self._user_turns)

    def _with_tools(self, text: str) -> str:
        """What the user says, below the tools that appear. A model that gets them as functions is only told of it."""
        appearing = self._appearing
        if not appearing:
            return text
        if self._native:
            return text or MORE_TOOLS
        return f"# More tools\n{described(appearing.values())}" + (f"\n\n{text}" if text else "")

    def _look(self, question: str, *given: Any) -> Any:
        return (self._there or self._execution).look(question, *given)

    def _act(self, calls: Sequence[Call]) -> Trace:
        return (self._there or self._execution).act(calls)

    def hear(self, messages: Sequence[Message]) -> None:
        """Add the messages that the model reads next: what :meth:`take` returned, cut to size perhaps."""
        self._messages += messages
        if messages and not self.awaits_results:
            self._user_turns += 1

    def finish(self, reason: StopReason) -> None:
        """End the episode: no completion follows."""
        if reason != "machinery" and GOAL in self.task.facts:
            last = last_words(self._turns[-1].completion, self._turns[-1].parsed) if self._turns else ""
            self._goal = goal_after(self._look, self.task, last)
        self._stop = reason
        self._attempt = None
        self.close()

    def fail(self, reason: str) -> None:
        """The machinery outside the session failed: the episode is over and masked."""
        self._masked = reason or "the machinery failed"
        self.finish("machinery")

    def close(self) -> None:
        """Give the session back early; it is given back by itself when the episode is over."""
        self._execution.close()
        if self._there is not None:
            self._there.close()
