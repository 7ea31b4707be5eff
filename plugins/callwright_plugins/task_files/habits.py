"""Bad habits of those whose conversations ``compact-tasks`` shows: what is left for reinforcement to put right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

from attrs import evolve, frozen

from callwright.episodes.conversation import Conversation
from callwright.errors import UsageError
from callwright.language.messages import Message
from callwright.language.native import turn_text
from callwright.language.parser import Parser
from callwright.training.spoken_references import GOLD, conversation_of
from callwright.walk.completion import Completion
from callwright.walk.conditions import Conditions
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Task
from callwright_plugins.task_files import COMPACT

_LIMITS: Final = TurnLimits(assistant_turns=60, user_turns=60)
#: What somebody says who is in a hurry, and what a scripted user says then, where its task has no other words.
ENOUGH: Final = "That is done."
INSISTS: Final = "That is not done yet."


@frozen
class Habits:
    """Of all times, how often somebody does what it should not.

    ``stops``: says that all is done when a call is due that follows upon another one's result, and says it again, with
    the same chance, each time that the user insists. ``guesses``: makes a value up where it should ask for it.
    """

    stops: float = 0.0
    guesses: float = 0.0

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Habits:
        """Options as a recipe states them. Raises :class:`callwright.UsageError` for other names and values."""
        if not options.keys() <= {"stops", "guesses"}:
            raise UsageError(f"demonstrations of {COMPACT} have the options 'stops' and 'guesses', not {[*options]}")
        for name, value in options.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise UsageError(
                    f"option {name!r} of the demonstrations of {COMPACT} is a share from 0 to 1, not {value!r}"
                )
        return cls(**options)

    def spoken(
        self, task: Task, parser: Parser, rng: Random, values: Mapping[str, Sequence[Any]]
    ) -> tuple[Message, ...]:
        """The conversation of a reference, with the habits. ``values`` are those that guesses are drawn from."""
        other = guessed(task, rng, values) if rng.random() < self.guesses else None
        return lived(other or task, parser, lambda: rng.random() < self.stops)


def lived(task: Task, parser: Parser, stops: Callable[[], bool] = lambda: False) -> tuple[Message, ...]:
    """What follows the query when a policy says what the reference of a task does: results and the user's turns are
    written as an episode writes them. Where a call follows upon a result and ``stops`` says so, it says that all is
    done instead; the conversation goes on as long as the user insists.
    """
    conversation = Conversation(task, parser, [Message.user(task.query)], Conditions(limits=_LIMITS))
    for message in conversation_of(task):
        if message.role != "assistant":
            continue
        text = turn_text(message, parser)
        if message.tool_calls and conversation.messages[-1].role == "tool":
            while not conversation.over and stops():
                conversation.hear(conversation.take(Completion(ENOUGH)))
                if conversation.messages[-1].text != _insists(task):
                    return _to_last_words(conversation)
        if conversation.over:
            break
        conversation.hear(conversation.take(Completion(text)))
    return _to_last_words(conversation)


def _insists(task: Task) -> str:
    return INSISTS if task.user is None else str(task.user.options.get("insists", INSISTS))


def _to_last_words(conversation: Conversation) -> tuple[Message, ...]:
    """Without the query, and without what the user says to the assistant's last words."""
    found = list(conversation.messages[1:])
    while found and found[-1].role != "assistant":
        found.pop()
    return tuple(found)


def guessed(task: Task, rng: Random, values: Mapping[str, Sequence[Any]]) -> Task | None:
    """The task with a reference that asks for nothing: it calls with another value of the argument that is held back
    in the first request, and says that all is done. ``None`` where nothing is, or there is no other value.
    """
    stages = task.facts.get("stages") or [{}]
    withheld = stages[0].get("withheld")
    calls = [call for turn in task.facts[GOLD] for call in turn.get("calls", ())]
    if not withheld or "say" not in task.facts[GOLD][0] or withheld[0]["call"] >= len(calls):
        return None
    place, name = withheld[0]["call"], withheld[0]["argument"]
    others = [value for value in values.get(name, ()) if value != withheld[0]["value"]]
    if not others:
        return None
    last = {**calls[place], "arguments": {**calls[place]["arguments"], name: rng.choice(others)}}
    gold = [{"calls": [*calls[:place], last]}, {"say": ENOUGH}]
    return evolve(task, facts={**task.facts, GOLD: gold})


def withheld_values(tasks: Iterable[Task]) -> dict[str, list[Any]]:
    """What users hold back in some tasks, by the name of the argument, each value as often as it is."""
    found: dict[str, list[Any]] = {}
    for name, value in _withheld(tasks):
        found.setdefault(name, []).append(value)
    return found


def _withheld(tasks: Iterable[Task]) -> Iterator[tuple[str, Any]]:
    for task in tasks:
        for stage in task.facts.get("stages") or ():
            yield from ((one["argument"], one["value"]) for one in stage.get("withheld") or ())
