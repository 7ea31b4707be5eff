"""Attempts: turns spoken as an episode with the task's user, and what ``callwright evaluate`` says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from attrs import evolve

from callwright.episodes.conversation import Conversation
from callwright.errors import InfrastructureFailure
from callwright.language.messages import Message
from callwright.language.program import Program, plain
from callwright.training.verdicts import judge
from callwright.walk.attempt import Attempt
from callwright.walk.conditions import Conditions
from callwright.walk.limits import TurnLimits
from callwright.walk.sampling import SamplingRequest
from callwright_plugins.synthesis.gates.case import GOLD, Case

#: Users that answer by themselves: no model is asked.
_BY_THEMSELVES: Final = frozenset({"scripted", "replayed"})


def may_be_spoken(case: Case) -> bool:
    """Whether turns of a task can be spoken here: nobody else has to be asked for what its user says."""
    return case.task.user is None or case.task.user.name in _BY_THEMSELVES


def attempt_of(case: Case, turns: Sequence[Program]) -> Attempt:
    """The attempt that some turns make of a task, with its user; no turns at all: the one that calls nothing."""
    registry, task = case.registry, case.task
    facts = task.facts if turns is case.turns else {**task.facts, GOLD: _stated(turns)}
    spoken = evolve(task, facts=facts, environment=case.environment)
    parser = registry.create("parser", "json")
    sampler = registry.create("sampler", "gold" if turns else "no-call", ir="json")
    most = len(turns) + len(case.turns) + 2
    if not turns and case.goes_by_calls:
        most = 1  # whoever calls nothing has done nothing after one turn as after ten
    conditions = Conditions(limits=TurnLimits(assistant_turns=most, user_turns=most))
    made = Conversation(spoken, parser, [Message.user(task.query)], conditions)
    while not made.over:
        request = SamplingRequest(tuple(made.messages), spoken, made.turns, parser)
        made.accept(sampler.sample([request])[0][0])
    return made.attempt


def gold_attempt(case: Case) -> Attempt:
    """The attempt that the reference makes: once."""
    if case.attempt is None:
        case.attempt = attempt_of(case, case.turns)
    return case.attempt


def is_right(case: Case, turns: Sequence[Program]) -> bool:
    """Whether turns come to what was asked for: by the verdict of ``callwright evaluate``, for the same attempt.

    Of a task whose user is a model the end state and what was returned decide. Raises
    :class:`callwright.InfrastructureFailure` where the session is lost.
    """
    if not may_be_spoken(case):
        return case.earns(case.run(turns))
    if not turns and case.goes_by_calls and case.has_goal and not case.task.instances:
        return case.nothing.reached is not None and case.nothing.reached.equal
    verdict = judge(gold_attempt(case) if turns is case.turns else attempt_of(case, turns))
    if verdict.masked:
        raise InfrastructureFailure(f"the session of task {case.task.id!r} was lost")
    return verdict.answer


def comes_right(case: Case, turns: Sequence[Program]) -> bool:
    """As :func:`is_right`, for turns of which there are many.

    Where a task has a goal the verdict is whether the end state reaches it, and the end state is that of the calls: so
    these are made without the words around them.
    """
    if case.has_goal and not case.task.instances:
        found = case.run(turns)
        return found.reached is not None and found.reached.equal
    return is_right(case, turns)


def _stated(turns: Sequence[Program]) -> list[dict[str, Any]]:
    """Turns as the fact ``gold`` has them; one of which nothing is left is none."""
    return [
        {"calls": [{"tool": one.tool, "arguments": plain(one.arguments)} for one in turn.calls]}
        if turn.calls
        else {"say": turn.text}
        for turn in turns
        if turn.calls or turn.text
    ]
