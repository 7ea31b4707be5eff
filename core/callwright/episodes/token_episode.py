"""Episodes as token ids. Every engine drives this one state machine, so ids and masks are always the same.

    episode = TokenEpisode(task, parser, codec, messages, Conditions(limits=TurnLimits(total_tokens=16_384)))
    while not episode.over:
        episode.accept(engine(episode.context, episode.room))
    reward = recipe.score_attempt(episode.attempt)

Sampled ids are never tokenised again: the context of a completion is always the prompt and everything that followed it,
id for id. Environment tokens (results of calls, messages of the user, the template between two turns) have mask 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from attrs import field, frozen

from callwright.capability import has
from callwright.episodes.conversation import Conversation, TurnsElsewhere
from callwright.episodes.finished import FinishedEpisode
from callwright.episodes.results import fit_observation
from callwright.episodes.token_line import TokenLine
from callwright.errors import ComponentError, DataError, UsageError
from callwright.language.messages import Message
from callwright.language.parser import Parser
from callwright.tools.spec import ToolSpec
from callwright.walk.attempt import Attempt
from callwright.walk.completion import Completion
from callwright.walk.conditions import Conditions
from callwright.walk.limits import StopReason
from callwright.walk.openings.opening import begins_with_user
from callwright.walk.tasks import Task


class PromptTooLong(DataError):
    """A prompt leaves no room in ``context_tokens``. Prompts are never cut: the list of tools would go first."""


@frozen
class EngineOutput:
    """What an engine returned for one context.

    ``token_ids`` hold the end token if the completion ended itself with one. ``logprobs`` (nats, of the policy that
    sampled) are as many, or none. ``finished`` is False where a length limit cut the completion; ``filled`` says that
    it was the end of the model's context, which only the engine knows. ``usage`` is what the request took, as
    :class:`callwright.walk.Completion` has it.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...] = field(default=(), repr=False)
    finished: bool = True
    usage: Mapping[str, float] | None = field(default=None, eq=False, repr=False)
    filled: bool = False


@runtime_checkable
class OpensText(Protocol):
    """A codec whose generation prompt ends with what belongs to the completion's text, such as ``<think>``.

    It is put before the text for parsing where the context ends with it; ids are not touched by it.
    """

    @property
    def prefix_text(self) -> str:
        """That end, or ``""``."""


@runtime_checkable
class Codec(Protocol):
    """Between messages and token ids: a chat template with its tokenizer, or a plain form of text.

    One whose generation prompt opens the completion's text is :class:`OpensText`, too.
    """

    @property
    def ends(self) -> frozenset[int]:
        """The ids that end a completion."""

    def prompt_ids(self, messages: Sequence[Message], task: Task) -> tuple[int, ...]:
        """The prompt of a task, up to the first id of the first completion."""

    def observation_ids(
        self, messages: Sequence[Message], completion_ids: Sequence[int], observations: Sequence[Message]
    ) -> tuple[int, ...]:
        """The ids between the last sampled one and the first of the next completion.

        That is: what is left of the turn's end (all of it if the completion did not end itself), the new messages, and
        the generation prompt. ``messages`` are those before, the completion's text included.
        """

    def text(self, ids: Sequence[int]) -> str:
        """The text of sampled ids, without the final end token."""


class TokenEpisode:
    """One episode of a task as token ids: a conversation, and its line of ids.

    ``prompt_ids`` are those of the prompt where they are known, of another episode that begins with the same messages.
    Raises :class:`PromptTooLong` if the prompt leaves no room in ``context_tokens`` of the limits.
    """

    def __init__(
        self,
        task: Task,
        parser: Parser,
        codec: Codec,
        messages: Sequence[Message],
        conditions: Conditions,
        prompt_ids: tuple[int, ...] | None = None,
    ) -> None:
        self._conversation = Conversation(task, parser, messages, conditions)
        conditions = self._conversation.conditions
        self.task, self.parser, self.codec, self.conditions = task, parser, codec, conditions
        if prompt_ids is None or begins_with_user(task):  # who may say it in other words
            prompt_ids = tuple(codec.prompt_ids(self._conversation.messages, self._conversation.task))
        room = conditions.limits.context_tokens
        if room is not None and len(prompt_ids) >= room:
            raise PromptTooLong(
                f"the prompt of task {task.id!r} has {len(prompt_ids)} tokens, which leaves no room in the "
                f"{room} of 'context_tokens'; offer fewer tools, raise the limit or leave the task out"
            )
        self._begin(prompt_ids)

    def _begin(self, prompt_ids: tuple[int, ...]) -> None:
        #: The ids of the episode: prompt, response, mask, log-probabilities, where completions stand.
        self.line = TokenLine(prompt_ids)
        self._history: list[tuple[tuple[int, ...], EngineOutput]] = []
        #: How many observations were cut to ``observation_tokens``.
        self.observations_cut = 0

    def move(self, elsewhere: Callable[[Task, Parser, Conditions], TurnsElsewhere]) -> None:
        """Have turns parsed and executed elsewhere (:meth:`.conversation.Conversation.move`). Ids stay here."""
        self._conversation.move(elsewhere)

    def reseed(self, seed: int) -> None:
        """Draw what its user draws from another seed (:meth:`.conversation.Conversation.reseed`)."""
        self._conversation.reseed(seed)
        self.conditions = self._conversation.conditions

    def begin_again(self) -> None:
        """Forget every turn: a fresh session, the prompt alone."""
        self._conversation.begin_again()
        begun = self._conversation
        again = begins_with_user(self.task)  # who may say it in other words
        self._begin(tuple(self.codec.prompt_ids(begun.messages, begun.task)) if again else self.line.prompt_ids)

    # What is known ---------------------------------------------------------------------------------------------------

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """The prompt, up to the first id of the first completion."""
        return self.line.prompt_ids

    @property
    def response_ids(self) -> tuple[int, ...]:
        """Everything after the prompt. The last id is a sampled one once the episode is over."""
        return self.line.response_ids

    @property
    def mask(self) -> tuple[int, ...]:
        """For each response id: 1 if it was sampled, 0 if it is the environment's."""
        return self.line.mask

    @property
    def logprobs(self) -> tuple[float, ...]:
        """For each response id its log-probability in nats, 0.0 for the environment's; empty if engines gave none."""
        return self.line.logprobs

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Where each completion stands in the response, as half-open ranges."""
        return self.line.ranges

    @property
    def context(self) -> tuple[int, ...]:
        """What the engine is to continue: the prompt and the whole response so far."""
        return self.line.context

    @property
    def room(self) -> int | None:
        """The most new tokens that the next completion may have; ``None`` for no bound, 0 if the episode is over."""
        return 0 if self.over else self._room()[0]

    @property
    def history(self) -> Sequence[tuple[tuple[int, ...], EngineOutput]]:
        """Every completion with the context that it was sampled from."""
        return tuple(self._history)

    @property
    def over(self) -> bool:
        """Whether no completion follows."""
        return self._conversation.over

    @property
    def stop(self) -> StopReason | None:
        """Why the episode is over; ``None`` while it goes on."""
        return self._conversation.stop

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far, results of calls included, as the model read it."""
        return self._conversation.messages

    @property
    def attempt(self) -> Attempt:
        """What was made so far, as a value that every reward scores."""
        return self._conversation.attempt

    @property
    def retried(self) -> int:
        """How often the episode was begun again after a failure of the machinery."""
        return self._conversation.retried

    @property
    def offered(self) -> Mapping[str, ToolSpec]:
        """The tools that the model is shown by now."""
        return self._conversation.offered

    @property
    def waits(self) -> bool:
        """Whether its user waits for a server when it is asked."""
        return self._conversation.waits

    @property
    def masked(self) -> str | None:
        """Why this sample must not become a number; ``None`` if nothing failed but the model."""
        return self._conversation.masked

    # What happens ----------------------------------------------------------------------------------------------------

    def accept(self, output: EngineOutput) -> None:
        """Take the next completion: parse, execute, and add what the model reads next, or end the episode.

        Raises :class:`callwright.UsageError` if the episode is over, and :class:`callwright.errors.ComponentError` for
        an engine that gave more tokens than there was room for, or log-probabilities of another number.
        """
        ids = tuple(output.token_ids)
        if self.over:
            raise UsageError(f"the episode of task {self.task.id!r} is over ({self.stop}); no completion follows")
        room, bound = self._room()
        if room is not None and len(ids) > room:
            raise ComponentError(f"the engine gave {len(ids)} tokens where {room} had room; this is its bug")
        if output.logprobs and len(output.logprobs) != len(ids):
            raise ComponentError(
                f"the engine gave {len(output.logprobs)} log-probabilities for {len(ids)} tokens; this is its bug"
            )
        self._history.append((self.context, output))
        text = self._opened() + self.codec.text(ids)
        self.line.sampled(ids, output.logprobs)
        made = Completion(text, ids, output.logprobs, not output.finished, usage=output.usage)
        following = self._conversation.take(made, "context" if output.filled else bound)
        if following:
            self._listen(ids, following)

    def fail(self, reason: str) -> None:
        """The engine failed: the episode is over and masked."""
        self._conversation.fail(reason)

    def close(self) -> None:
        """Give the session back early; it is given back by itself when the episode is over."""
        self._conversation.close()

    def _room(self, more: int = 0) -> tuple[int | None, StopReason]:
        """The room for a completion after ``more`` ids from now, and the limit that bounds it."""
        return self.conditions.limits.room(len(self.prompt_ids), len(self.line) + more)

    def _opened(self) -> str:
        """The codec's ``prefix_text`` if the context ends with it: templates may leave it out after results."""
        prefix = self.codec.prefix_text if has(self.codec, OpensText) else ""
        if not prefix:
            return ""
        return prefix if self.codec.text(self.line.end[-4 * len(prefix) :]).endswith(prefix) else ""

    def _listen(self, completion_ids: tuple[int, ...], following: Sequence[Message]) -> None:
        """Add what the model reads next, unless nothing could follow it."""
        messages, limit = self._conversation.messages, self.conditions.limits.observation_tokens
        codec = self.codec
        ids = tuple(codec.observation_ids(messages, completion_ids, following))
        if limit is not None and len(ids) > limit and self._conversation.awaits_results:
            shorter = fit_observation(
                following, limit, lambda said: len(codec.observation_ids(messages, completion_ids, said))
            )
            if shorter is None:
                raise UsageError(
                    f"'observation_tokens' is {limit}, but even a notice that the results were left out takes more; "
                    "the template itself needs some of them"
                )
            following = shorter
            ids = tuple(codec.observation_ids(messages, completion_ids, following))
            self.observations_cut += 1
        room, bound = self._room(len(ids))
        if room is not None and room < 1:
            self._conversation.finish(bound)
            return
        self.line.heard(ids)
        self._conversation.hear(following)


def start_episodes(
    tasks: Iterable[Task], start: Callable[[Task], TokenEpisode], *, skip_too_long: bool = False
) -> tuple[list[TokenEpisode], list[tuple[Task, PromptTooLong]]]:
    """An episode for each task, and the tasks that were left out because their prompts are too long, each with why.

    Raises :class:`PromptTooLong` for the first such task unless ``skip_too_long``.
    """
    episodes: list[TokenEpisode] = []
    skipped: list[tuple[Task, PromptTooLong]] = []
    for task in tasks:
        try:
            episodes.append(start(task))
        except PromptTooLong as error:
            if not skip_too_long:
                raise
            skipped.append((task, error))
    return episodes, skipped


def describe_episodes(episodes: Sequence[FinishedEpisode]) -> dict[str, Any]:
    """Counts for a metrics row: why episodes stopped, turns, tokens by origin, observations cut, retries, masks."""
    stops = Counter(episode.stop or "running" for episode in episodes)
    sampled = sum(sum(episode.mask) for episode in episodes)
    tokens = sum(len(episode.mask) for episode in episodes)
    turns = sum(len(episode.ranges) for episode in episodes)
    return {
        "rollouts": len(episodes),
        "turns": turns / len(episodes) if episodes else None,
        "stops": dict(sorted(stops.items())),
        "tokens": sampled,
        "environment_tokens": tokens - sampled,
        "observations_cut": sum(episode.observations_cut for episode in episodes),
        "retried": sum(episode.retried for episode in episodes),
        "masked": sum(episode.masked is not None for episode in episodes),
    }
