"""Beginning: an opening is done in a session that was just opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import evolve

from callwright.capability import has
from callwright.environments.capabilities import NamesScenarios, user_tools_of
from callwright.environments.hazards.policy import Hazards
from callwright.environments.living.asking import meet_hazards
from callwright.environments.living.called_by_users import call_as_user
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.environments.sessions import call_session
from callwright.errors import DataError, InfrastructureFailure
from callwright.language.program import Call, Program
from callwright.tools.spec import ToolSpec
from callwright.walk.openings.opening import Opening
from callwright.walk.trace import Trace

#: Runs a program in a session that is open: ``(program, session, tools, caller)``.
Run = Callable[[Program, Session, Mapping[str, ToolSpec], Callable[..., Outcome]], Trace]


def begin(
    session: Session, opening: Opening, environment: Environment, scenario: str, hazards: Hazards | None, run: Run
) -> None:
    """Do what happened before. The session then meets ``hazards`` as one that begins, else those of its scenario.

    Raises :class:`callwright.errors.DataError` for an action that does not execute, and
    :class:`callwright.InfrastructureFailure` where the session is lost.
    """
    waiting = _own_hazards(environment, scenario) if hazards is None else hazards
    if waiting:
        meet_hazards(session, Hazards(), environment.name)
    for number, (call, must) in enumerate(opening.calls):
        theirs = environment.tools if call.by == "agent" else user_tools_of(environment)
        program = Program((Call(0, call.tool, dict(call.arguments)),))
        caller = call_session if call.by == "agent" else call_as_user
        trace = run(program, session, _callable(theirs, call.tool), caller)
        if trace.infrastructure is not None:
            raise InfrastructureFailure(f"before the episode: {trace.masked}")
        outcome = trace.records[0].outcome
        if must and not outcome.executed:
            raise DataError(
                f"call {number} ({call.tool!r}) of the opening must execute, and came to {outcome.kind} "
                f"{outcome.code}: {outcome.message:.200}"
            )
    if waiting:
        meet_hazards(session, waiting, environment.name)


def _callable(tools: Mapping[str, ToolSpec], name: str) -> Mapping[str, ToolSpec]:
    """The tool of that name, also where it is hidden: no model makes this call."""
    spec = tools.get(name)
    return {} if spec is None else {name: evolve(spec, hidden=False) if spec.hidden else spec}


def _own_hazards(environment: Environment, scenario: str) -> Hazards | None:
    """Those of the scenario, as far as its environment tells: one of several parts does not."""
    scenarios = environment.scenarios if has(environment, NamesScenarios) else None
    if not isinstance(scenarios, Mapping) or not scenarios:
        return None
    found = getattr(scenarios.get(scenario or next(iter(scenarios))), "hazards", None)
    return found if isinstance(found, Hazards) else None
