"""The loop over the calls of a program: references are resolved, each call is made, its outcome is classified."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from callwright.environments.clock import TimedSession
from callwright.environments.living.opening import next_turn
from callwright.environments.protocol import BoundsResults, By, Outcome, Session, declares
from callwright.environments.sessions import call_session, lost_call, raised_by_session
from callwright.environments.sizes import TooLarge, bounds, check_result
from callwright.errors import InfrastructureFailure
from callwright.language.program import Call, Program
from callwright.tools.spec import ToolSpec
from callwright.walk.calls.handles import Needed
from callwright.walk.calls.references import (
    FEW_COPIES,
    Unresolved,
    check_arguments,
    copies_held,
    copy_json,
    with_results,
)
from callwright.walk.calls.rules import ExecutionRules
from callwright.walk.trace import CallRecord, Trace

#: How a call reaches the session; the pipeline puts the event hook here when a plugin listens to it. Calls of the user
#: reach it by the method ``as_user`` of a caller that has one.
Caller = Callable[[Session, Call, dict[str, Any]], Outcome]

#: In a tuple, made once: ``dict | list`` makes a type whenever it is evaluated.
_CONTAINERS: Final = (dict, list, tuple)


def never_begun(program: Program, error: InfrastructureFailure) -> Trace:
    """The trace of a program with calls whose session could not be opened."""
    first = program.calls[0]
    return Trace((CallRecord(first.id, first.tool, {}, lost_call("session", error)),), program.returns)


def run_calls(
    program: Program,
    session: Session,
    tools: Mapping[str, ToolSpec],
    rules: ExecutionRules,
    caller: Caller,
    copied: bool,
    earlier: Needed | None = None,
    by: By = "agent",
    *,
    goes_on: bool = False,
) -> Trace:
    """Every call of a program in an open session, and a turn of its time; none where the program ``goes_on`` with one.

    ``copied``: values are copied on their way into a tool and out of it. Raises what the session's first digest raises.
    """
    if by == "agent" and not goes_on:
        next_turn(session)
    before = session.digest()
    if type(session) is TimedSession:
        caller = session.caller(caller)
    records = records_of(program, session, tools, rules, caller, copied, earlier, by)
    return Trace(tuple(records), program.returns, before)


def records_of(
    program: Program,
    session: Session,
    tools: Mapping[str, ToolSpec],
    rules: ExecutionRules,
    caller: Caller,
    copied: bool,
    earlier: Needed | None = None,
    by: By = "agent",
) -> Iterator[CallRecord]:
    """The record of each call, as it is made; the last one is of the call to which the session was lost."""
    digest, ask = session.digest, session.call if caller is call_session else None
    results: dict[int, Outcome] = {}
    specs: dict[int, ToolSpec] = {}
    held: dict[int, int] = {}
    few = 1 if copied else FEW_COPIES
    if earlier is not None:  # each turn may hand on more than once what the last one returned
        results.update(earlier[0])
        specs.update(earlier[1])
        few = 0
    bounded = not copied and declares(session.inner if type(session) is TimedSession else session, BoundsResults)
    results_size = 0
    for call in program.calls:
        number, tool = call.id, call.tool
        spec = tools.get(tool)
        arguments: dict[str, Any] = {}
        holding = 0
        try:
            located = call.located
            if located:
                holding = copies_held(located, held)
                arguments = with_results(call.arguments, located, results, specs, rules)
                if holding > few:  # one result is within its own bound
                    check_arguments(arguments)
            else:
                arguments = dict(call.arguments)
            if spec is None or spec.hidden:
                outcome = Outcome("unknown_tool", None, "unknown_tool", f"no tool named {tool!r} is offered")
            elif copied:
                if results_size > (most := bounds().results):
                    raise Unresolved("results_too_large", f"the results are larger than {most:,} characters")
                outcome = caller(session, call, copy_json(arguments))
                results_size += check_result(tool, outcome.value)
                outcome = Outcome(
                    outcome.kind,
                    copy_json(outcome.value),
                    outcome.code,
                    outcome.message,
                    outcome.undeclared,
                    outcome.notices,
                    outcome.injected,
                )
            else:
                if ask is None:
                    outcome = caller(session, call, arguments)
                else:
                    try:  # what call_session does, without a call more
                        outcome = ask(tool, arguments)
                    except BaseException as error:
                        outcome = raised_by_session(tool, error)
                if not bounded:
                    check_result(tool, outcome.value)
        except Unresolved as unresolved:
            outcome = unresolved.outcome
        except TooLarge as error:
            outcome = Outcome("execution_error", None, error.code, error.message)
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
        results[number] = outcome
        if holding and isinstance(outcome.value, _CONTAINERS):
            held[number] = holding
        if spec is not None:
            specs[number] = spec
        yield CallRecord(number, tool, arguments, outcome, state, by)
        if outcome.kind == "infrastructure_error":
            return
