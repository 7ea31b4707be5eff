"""Episodes: several completions of one task in one session, read as a single attempt.

    episode = Episode(task, parser)
    turn = episode.step(completion)         # parse, validate, execute, observe; until episode.over
    reward = recipe.score_attempt(episode)

An :class:`Episode` is an :class:`callwright.Attempt`, so every reward scores it: its program is that of all turns, its
trace everything that was executed, its answer what the last turn with calls returned. An attempt is an episode of one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve, field, frozen

from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import InfrastructureFailure, UsageError
from callwright.language.parser import ParseFailure, Parser
from callwright.language.program import Call, Program, Reference
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import Validation, validate
from callwright.walk.attempt import Attempt, Progress
from callwright.walk.execution import STRICT, Caller, ExecutionRules, execute
from callwright.walk.sampling import Completion
from callwright.walk.tasks import Task
from callwright.walk.trace import Step, Trace


@frozen
class Turn:
    """One completion and what came of it. ``trace`` is ``None`` if the text is not a program."""

    completion: Completion
    parsed: Program | ParseFailure
    trace: Trace | None = field(default=None, repr=False)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of this turn, numbered as they were written."""
        return self.parsed.calls if isinstance(self.parsed, Program) else ()


@frozen(slots=False)
class EpisodeTrace(Trace):
    """The trace of all turns; what is returned are the values of the last turn that called something."""

    answer: tuple[Any, ...] = field(default=(), repr=False)

    @property
    def returned(self) -> tuple[Any, ...]:
        """The values that the episode hands to its user."""
        return self.answer


class Episode(Attempt):
    """An attempt of several turns. Each turn refers to its own calls only; results of earlier ones come as literals.

    ``failure`` is that of the first turn that is not a program; then ``program``, ``validation`` and ``trace`` are
    ``None``, as for any attempt, while ``whole`` and ``whole_trace`` still hold what the other turns did. In these the
    calls of all turns are numbered on, so that ids stay distinct.
    """

    def __init__(
        self,
        task: Task,
        parser: Parser,
        completions: Iterable[Completion | str] = (),
        *,
        seed: int = 0,
        progress: Progress | None = None,
        caller: Caller | None = None,
        time_limit: float | None = None,
    ) -> None:
        super().__init__(
            task, Completion(""), parser, seed=seed, progress=progress, caller=caller, time_limit=time_limit
        )
        self._turns: list[Turn] = []
        self._kept = _Kept(task.environment)
        self._rules = STRICT if time_limit is None else ExecutionRules(time_limit=time_limit)
        self._whole: Program | None = None
        for completion in completions:
            self.step(completion)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns so far."""
        return tuple(self._turns)

    @property
    def over(self) -> bool:
        """Whether the last turn called nothing, was not a program, or the machinery failed."""
        if not self._turns:
            return False
        last = self._turns[-1]
        return not last.calls or (last.trace is not None and last.trace.infrastructure is not None)

    def step(self, completion: Completion | str) -> Turn:
        """Parse the next completion and execute it in the episode's session.

        Raises :class:`callwright.UsageError` if the machinery failed before (nothing that follows can be known), and
        for calls after :meth:`close`.
        """
        if self.masked is not None:
            raise UsageError(f"the episode has ended: {self.masked}")
        single = Attempt(self.task, completion, self.parser)
        program, trace = single.program, None
        if program is not None:
            trace = self._execute(program, self._kept, self._rules)
        turn = Turn(single.completion, single.parsed, trace)
        self._turns.append(turn)
        self.completion = turn.completion
        self._whole = self._validation = None
        self._traces.clear()
        return turn

    def close(self) -> None:
        """Give the session back. The episode can still be scored."""
        self._kept.release()

    def __enter__(self) -> Episode:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # As an attempt --------------------------------------------------------------------------------------------------

    @property
    def whole(self) -> Program:
        """The calls of every turn that is a program, numbered on."""
        if self._whole is None:
            programs = [turn.parsed for turn in self._turns if isinstance(turn.parsed, Program)]
            offsets = self._offsets(programs)
            calls = [
                _renumbered(call, offset)
                for program, offset in zip(programs, offsets, strict=True)
                for call in program.calls
            ]
            last = next((program for program in reversed(programs) if program.calls), Program())
            thought = "\n".join(program.thought for program in programs if program.thought)
            self._whole = Program(tuple(calls), last.returns, thought)
        return self._whole

    @property
    def whole_trace(self) -> EpisodeTrace:
        """Everything that was executed, under the strict rules."""
        return self._join([turn.trace for turn in self._turns if turn.trace is not None])

    @property
    def parsed(self) -> Program | ParseFailure:
        """The program of all turns, or the first failure."""
        for turn in self._turns:
            if isinstance(turn.parsed, ParseFailure):
                return turn.parsed
        return self.whole

    @property
    def validation(self) -> Validation | None:
        """Every schema mismatch of all turns; ``None`` if one of them is not a program."""
        if self._validation is None and self.failure is None:
            self._validation = validate(self.whole, self.task.tools)
        return self._validation

    def execution(self, rules: ExecutionRules) -> Trace | None:
        """What was executed; under other rules than the strict ones, all turns again in one fresh session."""
        if self.failure is not None:
            return None
        trace = self._traces.get(rules)
        if trace is None:
            if rules == STRICT:
                trace = self.whole_trace
            else:
                kept = _Kept(self.task.environment)
                programs = [turn.parsed for turn in self._turns if isinstance(turn.parsed, Program)]
                try:
                    limited = evolve(rules, time_limit=rules.time_limit or self._time_limit)
                    trace = self._join([self._execute(program, kept, limited) for program in programs])
                finally:
                    kept.release()
            self._traces[rules] = trace
        return trace

    @property
    def masked(self) -> str | None:
        """How the machinery failed in any turn; ``None`` if it did not."""
        return next((turn.trace.masked for turn in self._turns if turn.trace and turn.trace.masked), None)

    def _execute(self, program: Program, kept: _Kept, rules: ExecutionRules) -> Trace:
        task = self.task
        return execute(
            program, kept, task.tools, scenario=task.scenario, seed=self.seed, rules=rules, caller=self._caller
        )

    def _offsets(self, programs: list[Program]) -> list[int]:
        offsets, following = [], 0
        for program in programs:
            offsets.append(following)
            following += max((call.id for call in program.calls), default=-1) + 1
        return offsets

    def _join(self, traces: list[Trace]) -> EpisodeTrace:
        programs = [turn.parsed for turn in self._turns if isinstance(turn.parsed, Program)]
        steps = []
        for trace, offset in zip(traces, self._offsets(programs), strict=True):
            for step in trace.steps:
                steps.append(Step(step.call + offset, step.tool, step.arguments, step.outcome, step.state))
        calling = [trace for trace in traces if trace.steps]
        if not calling:
            return EpisodeTrace()
        return EpisodeTrace(tuple(steps), calling[-1].returns, calling[0].state, calling[-1].returned)


def _renumbered(call: Call, offset: int) -> Call:
    if not offset:
        return call
    arguments = (
        {key: _moved(value, offset) for key, value in call.arguments.items()} if call.located else call.arguments
    )
    return Call(call.id + offset, call.tool, arguments)


def _moved(value: Any, offset: int) -> Any:
    if isinstance(value, Reference):
        return Reference(value.call + offset, value.path)
    if isinstance(value, dict):
        return {key: _moved(inner, offset) for key, inner in value.items()}
    if isinstance(value, list):
        return [_moved(inner, offset) for inner in value]
    return value


class _Kept:
    """An environment whose one session is opened at the first call and stays open until it is released."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._session: Session | None = None
        self._released = False

    @property
    def name(self) -> str:
        return self._environment.name

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        return self._environment.tools

    @property
    def pure(self) -> bool:
        return self._environment.pure

    def open(self, scenario: str = "", seed: int = 0) -> Session:
        """The session; closing what is returned leaves it open."""
        if self._released:
            raise UsageError("the episode is closed: its session is gone")
        if self._session is None:
            self._session = self._environment.open(scenario, seed)
        return _StaysOpen(self._session)

    def release(self) -> None:
        """Close the session."""
        if self._session is not None:
            with contextlib.suppress(InfrastructureFailure):
                self._session.close()
            self._session = None
        self._released = True


class _StaysOpen:
    """A session whose ``close`` does nothing; everything else is the session's own."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        return self._session.call(tool, arguments)

    def digest(self) -> str:
        return self._session.digest()

    def close(self) -> None:
        """Not yet."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)
