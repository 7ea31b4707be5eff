"""A task as the gates see it: its reference turn by turn, what that comes to, and what earns the reward."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from attrs import evolve

from callwright.environments.goals.comparing import Standard
from callwright.environments.protocol import Environment
from callwright.errors import DataError
from callwright.language.program import Call, Program, revive
from callwright.plugins import Registry
from callwright.walk.answers import answers_match
from callwright.walk.attempt import Attempt
from callwright.walk.tasks import Answer, Task
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint
from callwright_plugins.synthesis.dialogue.shown import World, world_of
from callwright_plugins.synthesis.dialogue.worlds import is_remembered, remembering
from callwright_plugins.synthesis.gates.running import Run, Shown, run, shown_state

#: Facts of tasks (docs/task-files.md).
GOAL: Final = "goal"
GOLD: Final = "gold"
KIND: Final = "kind"
CHANGES_NOTHING: Final = "changes_nothing"
_RUNS: Final = 256


class Case:
    """A task with its blueprint, if that is known.

    ``turns`` are those of its fact ``gold``, else its reference program as one turn; empty where it has neither and the
    right answer is to call nothing. Runs are made once. Raises :class:`callwright.errors.DataError` for a reference
    that cannot be read.
    """

    def __init__(self, task: Task, blueprint: Blueprint | None, registry: Registry) -> None:
        self.task, self.blueprint, self.registry = task, blueprint, registry
        self.turns = _turns(task)
        self._runs: dict[str, Run] = {}
        self._found: dict[Callable[[Case], Any], Any] = {}
        #: By digest: how the state compares with the one that the goal shows.
        self._shown: dict[str, Shown] = {}
        #: The reference as an episode, once somebody has spoken it.
        self.attempt: Attempt | None = None

    def run(self, turns: Sequence[Program]) -> Run:
        """What these turns come to in the world of the task."""
        key = repr([[(call.id, call.tool, call.arguments) for call in turn.calls] for turn in turns])
        found = self._runs.get(key)
        if found is None:
            found = run(self.task, turns, environment=self.environment, standard=self._standard)
            if isinstance(found.reached, Shown):
                found = evolve(found, reached=self._shown.setdefault(found.digest, found.reached))
            if len(self._runs) < _RUNS:
                self._runs[key] = found
        return found

    @cached_property
    def environment(self) -> Environment:
        """That of the task, in which calls that are made again and again are executed once: so it is unless something
        else than the calls changes the world.
        """
        task = self.task
        if task.clock is not None or task.hazards is not None or task.opening is not None:
            return task.environment
        return remembering(task.environment)

    @cached_property
    def _standard(self) -> Standard | None:
        shown = shown_state(self.task.facts.get(GOAL))
        return None if shown is None else Standard(shown)

    @cached_property
    def goes_by_calls(self) -> bool:
        """Whether nothing but calls changes its world, and its user makes none: then words are nothing but words."""
        user = self.task.user
        if user is not None:
            then = user.options.get("then") or ()
            acts = any(isinstance(one, Mapping) and one.get("calls") for one in then)
            if user.name != "scripted" or acts or user.options.get("does"):
                return False
        if self.environment is self.task.environment:
            return False
        return is_remembered(self.environment, self.task.scenario, self.task.seed)

    @cached_property
    def gold(self) -> Run:
        """What the reference comes to."""
        return self.run(self.turns)

    @cached_property
    def nothing(self) -> Run:
        """The world as it begins."""
        return self.run(())

    @cached_property
    def world(self) -> World:
        """What the tools that only look show of the world of the task."""
        return world_of(self.task)

    def once(self, found: Callable[[Case], Any]) -> Any:
        """What a function finds out about the case: once, whoever asks."""
        if found not in self._found:
            self._found[found] = found(self)
        return self._found[found]

    @property
    def has_goal(self) -> bool:
        """Whether the task says what its end state is."""
        return self.gold.reached is not None

    @property
    def kind(self) -> str:
        """The kind of its blueprint (``task``, ``failing``, …); empty where nobody says."""
        if self.blueprint is not None:
            return self.blueprint.kind
        return str(self.task.facts.get(KIND, ""))

    @cached_property
    def changes(self) -> bool:
        """Whether the reference changes something."""
        return self.gold.changes

    @cached_property
    def abstains(self) -> bool:
        """Whether the right end is the world as it was, so that doing nothing is right, too."""
        if self.changes:
            return False
        if self.kind:
            return self.kind in ("failing", "abstention") or self.task.answer.is_no_call
        return self.task.answer.is_no_call or bool(self.task.facts.get(CHANGES_NOTHING))

    @cached_property
    def asks(self) -> bool:
        """Whether an answer is asked for: a task with a goal whose reference changes something is held to that."""
        return not self.abstains and not self.task.answer.is_no_call and not (self.has_goal and self.changes)

    def earns(self, found: Run) -> bool:
        """Whether a run has come to what was asked for: to the goal, and to the answer where one is asked for."""
        if self.task.answer.is_no_call and not self.turns and found.records:
            return False
        if found.reached is not None:
            if not found.reached.equal:
                return False
        elif not found.leaves_as(self.gold):
            return False
        return not self.asks or self.answers(found)

    def answers(self, found: Run) -> bool:
        """Whether every value of the answer, or of one that is equally right, was returned by some call."""
        answer = self.task.answer
        values = found.values
        return any(
            all(any(answers_match(Answer((value,), open=answer.open), (other,)) for other in values) for value in each)
            for each in (answer.values, *answer.others)
        )


def _turns(task: Task) -> list[Program]:
    stated = task.facts.get(GOLD)
    if stated is None:
        return [] if task.program is None or not task.program.calls else [task.program]
    if not isinstance(stated, list | tuple):
        raise DataError(f"the fact {GOLD!r} is a list of turns, not {stated!r:.80}")
    return [_turn(one) for one in stated]


def _turn(stated: Any) -> Program:
    try:
        if isinstance(stated, Mapping) and "say" in stated:
            return Program((), text=str(stated["say"]))
        calls = (Call(at, str(one["tool"]), revive(dict(one["arguments"]))) for at, one in enumerate(stated["calls"]))
        return Program(tuple(calls))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"a turn of the fact {GOLD!r} is an object with 'say' or with 'calls', not {stated!r:.80}"
        ) from error
