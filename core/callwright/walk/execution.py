"""Execution: a program runs in a session, references are resolved, every outcome is classified."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from attrs import frozen

from callwright.environments.protocol import EXECUTED, Environment, Outcome, Session
from callwright.environments.sessions import call_session, lost_call
from callwright.errors import Abstention, InfrastructureFailure, UsageError
from callwright.language.program import Call, Program, Reference, plain
from callwright.tools.spec import ToolSpec
from callwright.walk.trace import CallRecord, Trace

#: How a call reaches the session; the pipeline puts the event hook here when a plugin listens to it.
Caller = Callable[[Session, Call, dict[str, Any]], Outcome]


@frozen(cache_hash=True)
class ExecutionRules:
    """What the papers leave open and released code decides in its own way.

    ``unresolved``: a reference to no earlier call makes the call fail, or its text is passed on (``literal``).
    ``missing_field``: a path that the result does not have makes the call fail, or stands for the whole result.
    ``after_failure``: a reference to a call that failed makes the call fail too, or is passed on (``pass``): as what
    the call answered all the same, else as ``null`` if it is bare and as its text if it has a path.
    ``time_limit`` is in seconds per call; a call over it is an infrastructure error and ends the session.
    """

    unresolved: Literal["fail", "literal"] = "fail"
    missing_field: Literal["fail", "whole"] = "fail"
    after_failure: Literal["fail", "pass"] = "fail"
    time_limit: float | None = None


STRICT: Final = ExecutionRules()
#: Codes of calls with a reference that came to nothing; what becomes of these hangs on the rules.
UNRESOLVED: Final = frozenset({"unresolved_reference", "failed_dependency"})
#: How often earlier results may stand in the arguments of one call.
_MOST_COPIES: Final = 4096
#: In a tuple, made once: ``dict | list`` makes a type whenever it is evaluated.
_CONTAINERS: Final = (dict, list, tuple)


class _Unresolved(Exception):
    """A reference has no value; carries the outcome of the call that holds it."""

    def __init__(self, code: str, message: str) -> None:
        self.outcome = Outcome("execution_error", code=code, message=message)


class Execution:
    """A session of a task in which programs run one after the other; it is opened for the first call.

    Only tools that are offered (``tools``) run; another name is an ``unknown_tool``. A failed call does not stop those
    that do not depend on it. Values are copied on their way into and out of a tool unless the environment is pure, so
    that no tool can change what another one sees. Model output never raises here; a session that cannot be opened or
    that is lost on the way is an ``infrastructure_error`` of the call at hand, and the last record.
    """

    __slots__ = ("_caller", "_closed", "_environment", "_opens", "_rules", "_session", "_tools")

    def __init__(
        self,
        environment: Environment,
        tools: Mapping[str, ToolSpec],
        *,
        scenario: str = "",
        seed: int = 0,
        rules: ExecutionRules = STRICT,
        caller: Caller | None = None,
    ) -> None:
        self._environment, self._tools, self._opens, self._rules = environment, tools, (scenario, seed), rules
        self._caller = caller or call_session
        self._session: Session | None = None
        self._closed = False

    def run(self, program: Program) -> Trace:
        """Run every call of a program. Raises :class:`callwright.UsageError` for calls after :meth:`close`."""
        if not program.calls:
            return Trace((), program.returns)
        if self._closed:
            raise UsageError("the session of this attempt is closed; no call can follow")
        try:
            session = self._session
            if session is None:
                session = self._session = self._environment.open(*self._opens)
            return _run(program, session, self._tools, self._rules, self._caller, not self._environment.pure)
        except InfrastructureFailure as error:
            return _never_begun(program, error)

    def close(self) -> None:
        """Give the session back."""
        session, self._session, self._closed = self._session, None, True
        if session is not None:
            _close(session)


def execute(
    program: Program,
    environment: Environment,
    tools: Mapping[str, ToolSpec],
    *,
    scenario: str = "",
    seed: int = 0,
    rules: ExecutionRules = STRICT,
    caller: Caller | None = None,
) -> Trace:
    """Run every call of a program in a fresh session, as :class:`Execution` does."""
    if not program.calls:
        return Trace((), program.returns)
    try:
        session = environment.open(scenario, seed)
    except InfrastructureFailure as error:
        return _never_begun(program, error)
    try:
        return _run(program, session, tools, rules, caller or call_session, not environment.pure)
    except InfrastructureFailure as error:
        return _never_begun(program, error)
    finally:
        _close(session)


def _never_begun(program: Program, error: InfrastructureFailure) -> Trace:
    first = program.calls[0]
    return Trace((CallRecord(first.id, first.tool, {}, lost_call("session", error)),), program.returns)


def _close(session: Session) -> None:
    try:
        session.close()
    except InfrastructureFailure:  # everything that was to be learned of the session is known
        return


def _run(
    program: Program,
    session: Session,
    tools: Mapping[str, ToolSpec],
    rules: ExecutionRules,
    caller: Caller,
    copied: bool,
) -> Trace:
    """Every call of a program in an open session. Raises what its first digest raises."""
    digest = session.digest
    before = digest()
    if rules.time_limit:
        caller = _limited(caller, rules.time_limit)
    results: dict[int, Outcome] = {}
    specs: dict[int, ToolSpec] = {}
    held: dict[int, int] = {}
    records: list[CallRecord] = []
    for call in program.calls:
        spec = tools.get(call.tool)
        arguments: dict[str, Any] = {}
        holding = 0
        try:
            located = call.located
            if located:
                holding = _holding(located, held)
                arguments = {
                    # Texts and bare references are nearly all; they need no call to see which they are.
                    key: value
                    if (kind := type(value)) is str
                    else (_dereference if kind is Reference else _resolve)(value, results, specs, rules)
                    for key, value in call.arguments.items()
                }
            else:
                arguments = dict(call.arguments)
            if spec is None or spec.hidden:
                outcome = Outcome("unknown_tool", None, "unknown_tool", f"no tool named {call.tool!r} is offered")
            elif copied:
                outcome = caller(session, call, copy_json(arguments))
                outcome = Outcome(
                    outcome.kind, copy_json(outcome.value), outcome.code, outcome.message, outcome.undeclared
                )
            else:
                outcome = caller(session, call, arguments)
        except _Unresolved as unresolved:
            outcome = unresolved.outcome
        except InfrastructureFailure as error:
            outcome = lost_call("infrastructure", error)
        except RecursionError:  # of copying: results were nested in results, deeper and deeper
            outcome = Outcome("execution_error", None, "too_deep", "the values are nested too deeply to be handed on")
        state = ""
        if outcome.kind != "infrastructure_error":
            try:
                state = digest()
            except InfrastructureFailure as error:
                outcome = lost_call("session", error)
        results[call.id] = outcome
        if holding and isinstance(outcome.value, _CONTAINERS):
            held[call.id] = holding
        if spec is not None:
            specs[call.id] = spec
        records.append(CallRecord(call.id, call.tool, arguments, outcome, state))
        if outcome.kind == "infrastructure_error":
            break
    return Trace(tuple(records), program.returns, before)


def _holding(located: Sequence[tuple[object, Reference]], held: Mapping[int, int]) -> int:
    """How often earlier results stand in the arguments of a call, those that may be inside of results counted again.

    Each call may hand on twice what the last one returned, and thirty of them a billion copies; so there is a limit.
    """
    holding = len(located)
    if held:
        for _, reference in located:
            holding += held.get(reference.call, 0)
    if holding > _MOST_COPIES:
        raise _Unresolved("too_large", f"the references lead to more than {_MOST_COPIES} copies of earlier results")
    return holding


def _limited(inner: Caller, limit: float) -> Caller:
    """A caller that gives up after ``limit`` seconds. The abandoned thread is a daemon, its session not used again."""

    def call(session: Session, call: Call, arguments: dict[str, Any]) -> Outcome:
        answer: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()

        def work() -> None:
            try:
                answer.put(inner(session, call, arguments))
            except BaseException as error:  # belongs to the thread that waits
                answer.put(error)

        threading.Thread(target=work, daemon=True).start()
        try:
            found = answer.get(timeout=limit)
        except queue.Empty:
            return Outcome("infrastructure_error", None, "timeout", f"{call.tool} took more than {limit:g} s")
        if isinstance(found, BaseException):
            raise found
        return found

    return call


def resolved_arguments(
    call: Call, results: Mapping[int, Outcome], specs: Mapping[int, ToolSpec]
) -> Mapping[str, Any] | None:
    """What a recorded call was given: its arguments with references replaced by what earlier calls returned.

    The text of a reference stays where it came to nothing. ``None`` if a result that it needs is not known.
    """
    try:
        return {key: _resolve(value, results, specs, STRICT) for key, value in call.arguments.items()}
    except _Unresolved:
        given: Mapping[str, Any] = plain(call.arguments)
        return given
    except Abstention:
        return None


def _resolve(value: Any, results: Mapping[int, Outcome], specs: Mapping[int, ToolSpec], rules: ExecutionRules) -> Any:
    if type(value) is Reference:
        return _dereference(value, results, specs, rules)
    if isinstance(value, dict):
        return {key: _resolve(inner, results, specs, rules) for key, inner in value.items()}
    if isinstance(value, list):
        return [_resolve(inner, results, specs, rules) for inner in value]
    return value


def _dereference(
    reference: Reference, results: Mapping[int, Outcome], specs: Mapping[int, ToolSpec], rules: ExecutionRules
) -> Any:
    outcome = results.get(reference.call)
    if outcome is None:
        if rules.unresolved == "literal":
            return str(reference)
        raise _Unresolved("unresolved_reference", f"{reference} names no earlier call")
    # The kind is looked at first because ``executed`` is a property, and nearly all calls did.
    failed = outcome.kind not in EXECUTED and not outcome.executed
    if failed and (rules.after_failure == "fail" or outcome.value is None):
        if rules.after_failure == "pass":
            return str(reference) if reference.path else None
        raise _Unresolved("failed_dependency", f"{reference} is the result of a call that failed ({outcome.kind})")
    value = outcome.value
    spec = specs.get(reference.call)
    field = spec.result_field if spec is not None else None
    path = reference.path
    if not path:
        if field is None:
            return value
        if type(value) is dict:  # nearly all references: bare, to an object with its declared field or without it
            return value.get(field, value)
        path = (field,)
    if path == (field,) and isinstance(value, dict) and field not in value:
        # The declared result field, bare or spelled out, of a result without it (a documented error, say): the whole.
        return value
    for part in path:
        if type(value) is dict and type(part) is str:  # nearly always
            found = part in value
        elif isinstance(part, int):
            found = isinstance(value, list | tuple) and part < len(value)
        else:
            found = isinstance(value, dict) and part in value
        if not found:
            if rules.missing_field == "whole" or not reference.path:
                return outcome.value
            raise _Unresolved("unresolved_reference", f"{reference} is not in the result of call {reference.call}")
        value = value[part]
    return value


def copy_json(value: Any) -> Any:
    """A deep copy of a JSON value; leaves are immutable and shared."""
    if isinstance(value, dict):
        return {key: copy_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [copy_json(inner) for inner in value]
    return value
