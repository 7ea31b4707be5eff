"""Execution: a program runs in a session, references are resolved, every outcome is classified."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any, Literal

from attrs import frozen

from callwright.environment import Environment, Outcome, Session
from callwright.errors import InfrastructureFailure
from callwright.program import Call, Program, Reference
from callwright.tool import ToolSpec
from callwright.trace import Step, Trace

#: How a call reaches the session; the pipeline puts the event hook here when a plugin listens to it.
Caller = Callable[[Session, Call, dict[str, Any]], Outcome]


@frozen
class ExecutionRules:
    """What the papers leave open and released code decides in its own way.

    ``unresolved``: a reference to no earlier call makes the call fail, or its text is passed on (``literal``).
    ``missing_field``: a path that the result does not have makes the call fail, or stands for the whole result.
    ``after_failure``: a reference to a call that failed makes the call fail too, or is passed on (``pass``): as
    ``null`` if it is bare, as its text if it has a path.
    ``time_limit`` is in seconds per call; a call over it is an infrastructure error and ends the session.
    """

    unresolved: Literal["fail", "literal"] = "fail"
    missing_field: Literal["fail", "whole"] = "fail"
    after_failure: Literal["fail", "pass"] = "fail"
    time_limit: float | None = None


STRICT = ExecutionRules()


class _Unresolved(Exception):
    """A reference has no value; carries the outcome of the call that holds it."""

    def __init__(self, code: str, message: str) -> None:
        self.outcome = Outcome("execution_error", code=code, message=message)


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
    """Run every call of a program in a fresh session.

    Only tools that are offered (``tools``) run; another name is an ``unknown_tool``. A failed call does not stop those
    that do not depend on it. Values are copied on their way into a tool unless the environment is pure, so that no tool
    can change what another one sees. Model output never raises here; a session that cannot be opened is an
    ``infrastructure_error`` of the first call.
    """
    if not program.calls:
        return Trace((), program.returns)
    try:
        session = environment.open(scenario, seed)
    except InfrastructureFailure as error:
        outcome = Outcome("infrastructure_error", code="session", message=str(error))
        first = program.calls[0]
        return Trace((Step(first.id, first.tool, {}, outcome),), program.returns)
    call_session = _limited(caller or _direct, rules.time_limit) if rules.time_limit else (caller or _direct)
    results: dict[int, Outcome] = {}
    specs: dict[int, ToolSpec] = {}
    steps: list[Step] = []
    copied = not environment.pure
    try:
        before = session.digest()
        for call in program.calls:
            spec = tools.get(call.tool)
            arguments: dict[str, Any] = {}
            try:
                arguments = (
                    {key: _resolve(value, results, specs, rules) for key, value in call.arguments.items()}
                    if call.located
                    else dict(call.arguments)
                )
                if copied:
                    arguments = copy_json(arguments)
                if spec is None or spec.hidden:
                    outcome = Outcome("unknown_tool", None, "unknown_tool", f"no tool named {call.tool!r} is offered")
                else:
                    outcome = call_session(session, call, arguments)
                    if copied:
                        outcome = Outcome(outcome.kind, copy_json(outcome.value), outcome.code, outcome.message)
            except _Unresolved as unresolved:
                outcome = unresolved.outcome
            results[call.id] = outcome
            if spec is not None:
                specs[call.id] = spec
            lost = outcome.kind == "infrastructure_error"
            steps.append(Step(call.id, call.tool, arguments, outcome, "" if lost else session.digest()))
            if lost:
                break
    finally:
        session.close()
    return Trace(tuple(steps), program.returns, before)


def _direct(session: Session, call: Call, arguments: dict[str, Any]) -> Outcome:
    try:
        return session.call(call.tool, arguments)
    except InfrastructureFailure as error:
        return Outcome("infrastructure_error", code="infrastructure", message=str(error))
    except Exception as error:  # a tool's own failure is an outcome of the call, whatever it raises
        return Outcome("execution_error", code=type(error).__name__, message=str(error))


def guarded(inner: Caller) -> Caller:
    """A caller whose exceptions become outcomes, as those of a session do."""

    def call(session: Session, call: Call, arguments: dict[str, Any]) -> Outcome:
        try:
            return inner(session, call, arguments)
        except InfrastructureFailure as error:
            return Outcome("infrastructure_error", code="infrastructure", message=str(error))
        except Exception as error:
            return Outcome("execution_error", code=type(error).__name__, message=str(error))

    return call


def _limited(inner: Caller, limit: float) -> Caller:
    """A caller that gives up after ``limit`` seconds. The abandoned thread is a daemon, its session unused."""

    def call(session: Session, call: Call, arguments: dict[str, Any]) -> Outcome:
        answer: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        worker = threading.Thread(target=lambda: answer.put(inner(session, call, arguments)), daemon=True)
        worker.start()
        try:
            return answer.get(timeout=limit)
        except queue.Empty:
            return Outcome("infrastructure_error", code="timeout", message=f"{call.tool} took more than {limit:g} s")

    return call


def _resolve(value: Any, results: Mapping[int, Outcome], specs: Mapping[int, ToolSpec], rules: ExecutionRules) -> Any:
    if isinstance(value, Reference):
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
    if not outcome.executed:
        if rules.after_failure == "pass":
            return str(reference) if reference.path else None
        raise _Unresolved("failed_dependency", f"{reference} is the result of a call that failed ({outcome.kind})")
    value = outcome.value
    spec = specs.get(reference.call)
    field = spec.result_field if spec is not None else None
    path = reference.path or ((field,) if field is not None else ())
    if path == (field,) and isinstance(value, dict) and field not in value:
        # The declared result field, bare or spelled out, of a result without it (a documented error, say): the whole.
        return value
    for part in path:
        if isinstance(part, int):
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
