"""Programs whose session is in another process: what is sent there, what runs there, and what is made of the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from callwright.environments.living.opening import next_turn, prepare
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import InfrastructureFailure
from callwright.language.program import Call, Program
from callwright.tools.spec import ToolSpec
from callwright.walk.calls.handles import Needed
from callwright.walk.calls.rules import ExecutionRules
from callwright.walk.calls.running import never_begun, records_of
from callwright.walk.trace import CallRecord, Trace

if TYPE_CHECKING:
    from callwright.environments.hazards.policy import Hazards
    from callwright.environments.living.policy import ClockPolicy


def tools_named(program: Program) -> Iterator[str]:
    """The tools that are called, in order: whose turn it is when the process is lost."""
    return iter([call.tool for call in program.calls])


def told_there(
    program: Program, tools: Mapping[str, ToolSpec], environment: Environment, rules: ExecutionRules
) -> tuple[Any, ...]:
    """What :func:`records_there` is told; of tools only those that the environment there does not have itself."""
    theirs = environment.tools
    specs: dict[str, ToolSpec | None] = {}
    for call in program.calls:
        name = call.tool
        spec = tools.get(name)
        if spec is not None and name not in specs:
            own = theirs.get(name)
            specs[name] = None if own is spec or own == spec else spec
    return program, specs, rules, not environment.pure


def gathered(program: Program, found: Iterator[Any]) -> Trace:
    """The trace of what :func:`records_there` sends, up to where its process was lost."""
    before = ""
    records: list[CallRecord] = []
    try:
        before = next(found)
        records.extend(found)
    except InfrastructureFailure as error:
        if not before:
            return never_begun(program, error)
        if len(records) < len(program.calls) and not (records and records[-1].outcome.kind == "infrastructure_error"):
            call = program.calls[len(records)]
            code = getattr(error, "code", "session")
            records.append(CallRecord(call.id, call.tool, {}, Outcome("infrastructure_error", None, code, str(error))))
    return Trace(tuple(records), program.returns, before)


def records_there(
    session: Any,
    program: Program,
    specs: Mapping[str, ToolSpec | None],
    rules: ExecutionRules,
    copied: bool,
    clock: ClockPolicy | None = None,
    hazards: Hazards | None = None,
    earlier: Needed | None = None,
    goes_on: bool = False,
) -> Iterator[Any]:
    """In the process of a session: the digest before the first call, then the record of every call.

    ``specs`` are the tools that the program calls, ``None`` for those that the environment itself has. ``clock`` and
    ``hazards`` are for a session that was opened for this program, ``earlier`` are results that it refers to;
    ``goes_on`` as for :meth:`Execution.run`.
    """
    if clock is not None or hazards is not None:
        prepare(session.inner, clock, hazards, session.environment.name)
    if not goes_on:
        next_turn(session.inner)
    yield session.digest()
    tools = {name: session.tools[name] if spec is None else spec for name, spec in specs.items()}
    yield from records_of(program, session, tools, rules, _call_watched, copied, earlier)


def _call_watched(session: Session, call: Call, arguments: dict[str, Any]) -> Outcome:
    return session.call(call.tool, arguments)  # what it raises is an outcome already
