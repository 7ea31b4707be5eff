"""The scripted samplers. Each draws from a generator of its own, made from seed, task and number of the completion.

So the same seed gives the same text on every machine, in any order of the tasks and under every ``PYTHONHASHSEED``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random
from typing import Any, ClassVar

from attrs import evolve

from callwright.errors import CannotExpress, DataError, UsageError
from callwright.language.parser import Parser, TakesHandles
from callwright.language.program import Call, Program
from callwright.plugins import Registry
from callwright.tools.spec import ToolSpec
from callwright.walk.answers import answers_match
from callwright.walk.calls.handles import shows_handles
from callwright.walk.completion import Completion
from callwright.walk.execution import execute
from callwright.walk.limits import ONE_TURN, TurnLimits, limits_for
from callwright.walk.sampling import SamplingRequest
from callwright.walk.tasks import Task
from callwright_plugins.scripted_samplers.native import next_wave
from callwright_plugins.scripted_samplers.references import (
    GOLD,
    SETTLED,
    next_turn,
    writes_references,
)
from callwright_plugins.scripted_samplers.values import NoValue, another_value, random_arguments


class Scripted(ABC):
    """What the scripted samplers share: a program for each task and draw, written in the form ``ir``."""

    name: ClassVar[str] = ""

    def __init__(self, registry: Registry, ir: str = "json") -> None:
        self.parser: Parser = registry.create("parser", ir)

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[Completion]]:
        """``[B][n]`` completions. The temperature plays no part. In an episode, later turns call nothing more.

        Raises :class:`callwright.errors.DataError` for a task without a reference program where one is needed, and
        :class:`callwright.errors.CannotExpress` for a program that the form cannot write.
        """
        return [
            [self._completion(request, f"{seed}/{request.task.id}/{draw}") for draw in range(n)] for request in requests
        ]

    def _completion(self, request: SamplingRequest, seed: str) -> Completion:
        return Completion(self.parser.render(self.turn(request, Random(seed))))

    def turn(self, request: SamplingRequest, rng: Random) -> Program:
        """The program of the next turn of an episode: all calls in the first one."""
        return SETTLED if request.turns else self.program(request.task, rng)

    @abstractmethod
    def program(self, task: Task, rng: Random) -> Program:
        """The program for one draw."""


class Gold(Scripted):
    """The reference program, every time.

    Of a task whose fact ``gold`` states its reference turn by turn (objects with ``say``, a text to the user, or
    ``calls``), a turn at a time; in a form that cannot write references a call that takes a result comes after it. Any
    other reference is written over the turns of an episode in such a form, each call when what it needs is there.
    """

    name = "gold"

    def __init__(self, registry: Registry, ir: str = "json") -> None:
        super().__init__(registry, ir)
        self._whole = writes_references(self.parser)

    def turn(self, request: SamplingRequest, rng: Random) -> Program:
        """The next turn of the reference; once it is used up the user hears that everything is settled."""
        if GOLD not in request.task.facts:
            return super().turn(request, rng)
        return next_turn(request.task, request.turns, whole=self._whole)

    def _completion(self, request: SamplingRequest, seed: str) -> Completion:
        gold, parser = request.task.program, self.parser
        if gold is None or GOLD in request.task.facts or not _in_turns(request.limits, parser):
            return super()._completion(request, seed)
        written = self.program(request.task, Random(seed))
        handles = shows_handles(request.task, parser)
        wave = next_wave(written, gold, request.turns, request.task.tools, handles=handles)
        return Completion(parser.render(wave or SETTLED))

    def refuse_tasks(self, tasks: Sequence[Task], limits: TurnLimits) -> None:
        """Raise :class:`callwright.errors.DataError` for tasks that have neither a program nor turns of one, and for
        programs that the form cannot write in so many turns.
        """
        bare = [task.id for task in tasks if task.program is None and GOLD not in task.facts]
        if bare:
            have = "has" if len(bare) == 1 else "have"
            raise DataError(
                f"{len(bare):,} of {len(tasks):,} tasks {have} no reference program, which the sampler {self.name!r} "
                f"writes; the first is {bare[0]!r}. Another sampler can answer them"
            )
        unwritten = [(task, why) for task in tasks if (why := self._unwritten(task, limits_for(task.facts, limits)))]
        if unwritten:
            (first, why), form = unwritten[0], self.parser.name
            raise DataError(
                f"{len(unwritten):,} of {len(tasks):,} tasks have a reference program that the form {form!r} cannot "
                f"write here; the first is {first.id!r}: {why}. {self._ways_out([task for task, _ in unwritten])}"
            )

    def _unwritten(self, task: Task, limits: TurnLimits) -> str:
        """Why the program of a task cannot be written within limits; empty if it can, as far as is known before."""
        if task.program is None or GOLD in task.facts:
            return ""
        if _in_turns(limits, self.parser):
            due, most = len(task.program.waves), limits.assistant_turns
            return f"it takes {due} turns, and there are {most}" if due > most else ""
        try:
            self.parser.render(task.program)
        except CannotExpress as error:
            return str(error)
        return ""

    def _ways_out(self, tasks: Sequence[Task]) -> str:
        several = [task for task in tasks if task.facts.get(ONE_TURN) is not True]
        if not several or not _takes_handles(self.parser):
            return "Another form can (--ir)"
        turns = max(len(task.program.waves) for task in several if task.program is not None)
        return f"Another form can (--ir), and so can this one in {turns} turns (--turns {turns}, in a recipe [turns])"

    def program(self, task: Task, rng: Random) -> Program:
        """The task's own program. Raises :class:`callwright.errors.DataError` if it has none."""
        if task.program is None:
            raise DataError(f"task {task.id!r} has no reference program, which the sampler {self.name!r} writes")
        return task.program


class NoCall(Scripted):
    """The empty program, every time."""

    name = "no-call"

    def program(self, task: Task, rng: Random) -> Program:
        """No calls."""
        return Program((), thought="None of the tools is needed.")


class NoisyGold(Gold):
    """The reference program in which each call is right with probability ``p``, independently.

    A spoiled call names another offered tool or has one argument changed to another value that fits the schema. If the
    spoiled program still reaches the right answer, other spoilings of the same calls are drawn, up to ``TRIES`` times:
    so a task of ``k`` calls is answered with probability ``p ** k``, wherever a change can be felt at all.
    """

    name = "noisy-gold"
    TRIES: ClassVar[int] = 12

    def __init__(self, registry: Registry, p: float = 0.9, ir: str = "json") -> None:
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
            raise UsageError(f"the option 'p' of the sampler 'noisy-gold' is a probability, not {p!r}")
        super().__init__(registry, ir)
        self.p = float(p)

    def turn(self, request: SamplingRequest, rng: Random) -> Program:
        """The next turn. Of a reference that is stated turn by turn each call may be spoiled, whatever it comes to."""
        turn = super().turn(request, rng)
        if GOLD not in request.task.facts:
            return turn
        rng = Random(f"{rng.random()}/{len(request.turns)}")
        calls = (call if rng.random() < self.p else _spoil(call, request.task, rng) for call in turn.calls)
        return evolve(turn, calls=tuple(calls))

    def program(self, task: Task, rng: Random) -> Program:
        """The reference, spoiled."""
        gold = super().program(task, rng)
        spoiled = [index for index in range(len(gold.calls)) if rng.random() >= self.p]
        program = gold
        for _ in range(self.TRIES if spoiled else 0):
            calls = list(gold.calls)
            for index in spoiled:
                calls[index] = _spoil(calls[index], task, rng)
            program = evolve(gold, calls=tuple(calls))
            if not self._answers(task, program):
                break
        return program

    def _answers(self, task: Task, program: Program) -> bool:
        world: dict[str, Any] = {"scenario": task.scenario, "seed": task.seed, "clock": task.clock}
        world["opening"] = task.opening
        trace = execute(program, task.environment, task.tools, **world)
        return trace.executed and answers_match(task.answer, trace.returned)


class RandomValid(Scripted):
    """``calls`` calls of random offered tools with random arguments that fit their schemas, unrelated to the query.

    Tools that no literal can call (a required table, a pattern that is hard to meet) are left out; if none is left, the
    program is empty.
    """

    name = "random-valid"

    def __init__(self, registry: Registry, calls: int = 1, ir: str = "json") -> None:
        if type(calls) is not int or calls < 0:
            raise UsageError(f"the option 'calls' of the sampler 'random-valid' is a number of calls, not {calls!r}")
        super().__init__(registry, ir)
        self.calls = calls

    def program(self, task: Task, rng: Random) -> Program:
        """Random calls."""
        offered = _offered(task)
        calls: list[Call] = []
        while offered and len(calls) < self.calls:
            spec = rng.choice(offered)
            try:
                calls.append(Call(len(calls), spec.name, random_arguments(spec, rng)))
            except NoValue:
                offered.remove(spec)
        return Program(tuple(calls), thought="Any tool will do.")


def _in_turns(limits: TurnLimits | None, parser: Parser) -> bool:
    return limits is not None and not limits.single and _takes_handles(parser)


def _takes_handles(parser: Parser) -> bool:
    return isinstance(parser, TakesHandles) and parser.takes_handles


def _offered(task: Task) -> list[ToolSpec]:
    return [spec for _, spec in sorted(task.offered.items())]


def _spoil(call: Call, task: Task, rng: Random) -> Call:
    """Another tool with the same arguments, or the same tool with one argument changed; each half of the time."""
    others = [spec.name for spec in _offered(task) if spec.name != call.tool]
    changes = sorted(call.arguments)
    if others and (not changes or rng.random() < 0.5):
        return evolve(call, tool=rng.choice(others))
    if not changes:
        return evolve(call, arguments={"unexpected": True})
    key = rng.choice(changes)
    spec = task.tools.get(call.tool)
    properties = spec.parameters.get("properties") if spec else None
    schema: Any = properties.get(key, {}) if isinstance(properties, dict) else {}
    return evolve(call, arguments={**call.arguments, key: another_value(schema, call.arguments[key], rng)})
