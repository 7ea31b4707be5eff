"""The final state: what the attempt leaves behind is what the reference program leaves behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from attrs import frozen

from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import Abstention, DataError, InfrastructureFailure
from callwright.language.long_numbers import json_text, json_value
from callwright.language.program import Program
from callwright.language.shortening import shortened
from callwright.tools.spec import ToolSpec
from callwright.walk.answers import values_equal
from callwright.walk.attempt import Attempt
from callwright.walk.execution import execute
from callwright.walk.reward import Evidence, RewardComponent, Score
from callwright.walk.tasks import Task

_REMEMBERED: Final = 1 << 14
_MOST_SHOWN: Final = 8


@frozen
class Left:
    """What a program leaves: the digest of the state and, where the session offers it, its ``snapshot()`` (JSON)."""

    digest: str
    snapshot: Any = None
    masked: str | None = None


class FinalState(RewardComponent):
    """In {0, 1}: the session's digest after the last call is that after the reference program in a fresh session.

    Calling nothing leaves the scenario's first state. A difference is explained path by path if sessions have a method
    ``snapshot()`` that returns their state as JSON.
    """

    name: ClassVar[str] = "final_state"
    stage: ClassVar[str] = "answer"

    def __init__(self) -> None:
        self._known: dict[int, tuple[Task, Left]] = {}

    def __reduce__(self) -> Any:
        return type(self), ()  # without the tasks that it has seen

    def score(self, attempt: Attempt) -> Score:
        """1 or 0. Raises :class:`callwright.errors.DataError` for a task without a reference program."""
        expected = self._expected(attempt.task)
        if expected.masked is not None:
            return _masked(f"the reference program: {expected.masked}")
        failure = attempt.failure
        if failure is not None and len(attempt.parts) == 1:  # of several turns, what the others did counts
            return Score(0.0, evidence=(Evidence(failure.code, failure.message),))
        trace = attempt.whole_trace
        if trace.masked is not None:
            return _masked(trace.masked)
        digest = trace.final_state
        if not digest and trace.records:
            raise Abstention("the record of this attempt holds no digest of the state that it left")
        if not digest:
            first = leave(Program(), attempt.task)
            if first.masked is not None:
                return _masked(first.masked)
            digest = first.digest
        if digest == expected.digest:
            return _FULL
        explained = expected.snapshot is not None and not attempt.is_told
        found = leave(attempt.whole, attempt.task) if explained else None
        shown = list(_differences(expected.snapshot, found.snapshot)) if found is not None else []
        evidence = tuple(
            Evidence("state", f"{path or 'the state'} is {theirs}, expected {mine}", None, path, mine, theirs)
            for path, mine, theirs in shown[:_MOST_SHOWN]
        )
        return Score(0.0, evidence=evidence or (Evidence("state", "the state is not what it should be"),))

    def _expected(self, task: Task) -> Left:
        key = id(task)
        known = self._known.get(key)
        if known is not None and known[0] is task:
            return known[1]
        program = task.program
        if program is None:
            if not task.answer.is_no_call:
                raise DataError(f"task {task.id!r} has no reference program, so its final state is not known")
            program = Program()
        left = leave(program, task)
        if left.masked is not None:  # not kept: the machinery may be back the next time
            return left
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[key] = task, left
        return left


def leave(program: Program, task: Task) -> Left:
    """Run a program in a fresh session of the task's world and look at what it leaves."""
    watched = _Watched(task.environment)
    trace = execute(program, watched, task.tools, scenario=task.scenario, seed=task.seed)
    if trace.masked is not None:
        return Left("", None, trace.masked)
    try:
        if not program.calls:
            watched.open(task.scenario, task.seed).close()
    except InfrastructureFailure as error:
        return Left("", None, str(error))
    return Left(watched.digest, watched.snapshot)


class _Watched:
    """An environment that remembers the digest and the snapshot of its session when that is closed."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.digest = ""
        self.snapshot: Any = None

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
        return _WatchedSession(self._environment.open(scenario, seed), self)


class _WatchedSession:
    def __init__(self, session: Session, watcher: _Watched) -> None:
        self._session, self._watcher = session, watcher

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        return self._session.call(tool, arguments)

    def digest(self) -> str:
        return self._session.digest()

    def close(self) -> None:
        self._watcher.digest = self._session.digest()
        snapshot = getattr(self._session, "snapshot", None)
        if callable(snapshot):
            self._watcher.snapshot = json_value(json_text(snapshot(), default=str))
        self._session.close()


def _differences(expected: Any, found: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Every place at which two states differ: ``(path, expected, found)``, in a stable order."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted(expected.keys() | found.keys()):
            inner = f"{path}.{key}" if path else str(key)
            if key not in found:
                yield inner, _shown(expected[key]), "not there"
            elif key not in expected:
                yield inner, "not there", _shown(found[key])
            else:
                yield from _differences(expected[key], found[key], inner)
    elif isinstance(expected, list) and isinstance(found, list):
        for index, (mine, theirs) in enumerate(zip(expected, found, strict=False)):
            yield from _differences(mine, theirs, f"{path}[{index}]")
        if len(expected) != len(found):
            yield path, f"{len(expected)} items", f"{len(found)} items"
    elif not values_equal(expected, found):
        yield path, _shown(expected), _shown(found)


def _shown(value: Any) -> str:
    return shortened(json_text(value, ensure_ascii=False), 80)


def _masked(reason: str) -> Score:
    return Score(0.0, evidence=(Evidence("infrastructure_error", reason),), masked=reason)


_FULL: Final = Score(1.0)
