"""Conversations: an episode with its messages, kept turn by turn until it is over. Tokens are none of its business.

    conversation = Conversation(task, parser, messages, limits=TurnLimits())
    while not conversation.over:
        following = conversation.take(completion)       # parse, validate, execute; what the model is to read next
        conversation.hear(following)

:class:`callwright.episodes.token_episode.Rollout` drives one of these with token ids,
:func:`callwright.episodes.driving.converse` with texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from attrs import evolve

from callwright.episodes.episode import Episode
from callwright.episodes.results import as_user_message, observation_messages
from callwright.errors import DataError, UsageError
from callwright.language.parser import ParseFailure, Parser
from callwright.walk.attempt import Progress
from callwright.walk.execution import Caller
from callwright.walk.limits import StopReason, TurnLimits
from callwright.walk.sampling import Completion, Message
from callwright.walk.tasks import Task


class ConversedEpisode(Episode):
    """An episode that also knows of failures outside its session: of the engine that was to write the next turn.

    Its last completion then says that it was ``lost``.
    """

    @property
    def masked(self) -> str | None:
        """How the machinery failed in any turn or between two; ``None`` if it did not."""
        return self.completion.lost or super().masked


class Conversation:
    """One episode of a task and the messages that a model has seen and written in it.

    A task's ``facts["follow_ups"]`` are later messages of the user, one each time that the model answers without calls.
    The session is given back when the episode is over. Raises :class:`callwright.errors.DataError` for follow-ups that
    are not a list of texts.

    Results of calls are messages of the role ``observation_role``; ``user`` is for models that know no role ``tool``.
    """

    def __init__(
        self,
        task: Task,
        parser: Parser,
        messages: Sequence[Message],
        *,
        limits: TurnLimits | None = None,
        seed: int = 0,
        progress: Progress | None = None,
        caller: Caller | None = None,
        time_limit: float | None = None,
        observation_role: Literal["tool", "user"] = "tool",
    ) -> None:
        self.task, self.parser, self.limits = task, parser, limits or TurnLimits()
        self._first = tuple(messages)
        self._observation_role = observation_role
        self._follow_ups = follow_ups(task)
        self._episode_options = (seed, progress, caller, time_limit)
        self._past: list[tuple[tuple[Message, ...], Completion]] = []
        #: How often the episode was begun again after a failure of the machinery.
        self.retried = 0
        self._begin()

    def _begin(self) -> None:
        seed, progress, caller, time_limit = self._episode_options
        self._episode = ConversedEpisode(
            self.task, self.parser, seed=seed, progress=progress, caller=caller, time_limit=time_limit
        )
        self._messages = list(self._first)
        self._user_turns = 1
        self._stop: StopReason | None = None

    def begin_again(self) -> None:
        """Forget every turn: a fresh session, the first messages."""
        self._episode.close()
        self._past = []
        self.retried += 1
        self._begin()

    def retry(self) -> None:
        """Begin again and replay the same completions, as long as the messages before each come out the same."""
        past = self._past
        self.begin_again()
        for messages, completion in past:
            if self.over or messages != self.messages:
                break
            self.hear(self.take(completion))

    @property
    def episode(self) -> ConversedEpisode:
        """The episode, which every reward recipe scores."""
        return self._episode

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was said so far, from the system message on. A completion is there as the text that was parsed."""
        return tuple(self._messages)

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
        return self._episode.masked

    def take(self, completion: Completion, cut_by: StopReason = "tokens") -> tuple[Message, ...]:
        """Take the next completion: parse it, execute it, and return the messages that follow; none if it was the last.

        Of a completion that was cut (``truncated``) the end is not known, so it is the last one, with the reason
        ``cut_by``; one that was ``lost`` ends the episode, masked. Raises :class:`callwright.UsageError` if the episode
        is over.
        """
        if self._stop is not None:
            raise UsageError(f"the episode of task {self.task.id!r} is over ({self._stop}); no completion follows")
        if completion.lost is not None:
            self.lose(completion.lost)
            return ()
        self._past.append((self.messages, completion))
        turn = self._episode.step(completion)
        self._messages.append(Message(role="assistant", content=turn.completion.text))
        last = len(self._episode.turns) >= self.limits.assistant_turns
        if self._episode.masked is not None:
            self.end("machinery")
        elif turn.completion.truncated:
            self.end(cut_by)
        elif isinstance(turn.parsed, ParseFailure):
            self.end("unparsed")
        elif turn.calls:
            if not last:
                observed = observation_messages(self.parser, turn)
                return observed if self._observation_role == "tool" else as_user_message(observed)
            self.end("assistant_turns")
        elif self._user_turns > len(self._follow_ups):
            self.end("answered")
        elif self._user_turns >= self.limits.user_turns:
            self.end("user_turns")
        elif last:
            self.end("assistant_turns")
        else:
            return (Message(role="user", content=self._follow_ups[self._user_turns - 1]),)
        return ()

    @property
    def awaits_results(self) -> bool:
        """Whether what follows the last turn are results of its calls, and not a message of the user."""
        turns = self._episode.turns
        return bool(turns) and bool(turns[-1].calls)

    def hear(self, messages: Sequence[Message]) -> None:
        """Add the messages that the model reads next: what :meth:`take` returned, cut to size perhaps."""
        self._messages += messages
        if messages and not self.awaits_results:
            self._user_turns += 1

    def end(self, reason: StopReason) -> None:
        """Let no completion follow."""
        self._stop = reason
        self._episode.close()

    def lose(self, reason: str) -> None:
        """The machinery outside the session failed: the episode is over and masked."""
        self._episode.completion = evolve(self._episode.completion, lost=reason or "the machinery failed")
        self.end("machinery")


def follow_ups(task: Task) -> tuple[str, ...]:
    """The later messages of a task's user.

    Raises :class:`callwright.errors.DataError` if they are not a list of texts.
    """
    stated = task.facts.get("follow_ups", ())
    if not isinstance(stated, list | tuple) or not all(isinstance(text, str) for text in stated):
        raise DataError(f"task {task.id!r}: facts['follow_ups'] must be a list of texts, not {stated!r:.80}")
    return tuple(stated)
