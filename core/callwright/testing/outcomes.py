"""Conformance checks of outcomes: a kind means the same in every environment, and no thread's call is lost."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from callwright.environments.calling import is_nothing
from callwright.environments.protocol import Environment, Outcome, Session, TakesAnything
from callwright.environments.sessions import open_session
from callwright.errors import InfrastructureFailure, UsageError
from callwright.language.program import join_path
from callwright.language.shortening import shortened
from callwright.testing.arguments import WORDS, fitting_arguments
from callwright.testing.calls import Calls, ask, close_all, drawn_calls
from callwright.testing.expectations import expect, shown
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import allowed_values
from callwright.walk.execution import copy_json

#: A value that no enumeration lists.
_UNLISTED: Final = "no such value"
_LONGEST_REASON: Final = 200
_THREADS: Final = 8
_CALLS_EACH: Final = 25


def check_schema_errors(environment: Environment, scenarios: Sequence[str] = ("",), calls: Calls | None = None) -> None:
    """Arguments that do not fit are a ``schema_error`` that names the place and spells the allowed values out."""
    if isinstance(environment, TakesAnything):
        return
    for scenario in scenarios:
        session = open_session(environment, scenario, 1)
        for tool, arguments in drawn_calls(environment, scenario, calls, wrong=True):
            spec = environment.tools.get(tool)
            if spec is None or spec.compiled.received.validator.is_valid(arguments):
                continue
            _expect_schema_error(ask(session, tool, arguments), f"{tool}({shown(arguments)})")
        for name, spec in sorted(environment.tools.items()):
            for parameter, arguments in _missing(spec):
                about = f"{name}({shown(arguments)}), which lacks {parameter!r},"
                outcome = ask(session, name, arguments)
                _expect_schema_error(outcome, about)
                _expect_said(outcome, parameter, about)
            for parameter, values, arguments in _unlisted(spec):
                about = f"{name}({shown(arguments)})"
                outcome = ask(session, name, arguments)
                _expect_schema_error(outcome, about)
                _expect_said(outcome, parameter, about)
                _expect_said(outcome, values, about)
        close_all(session)


def _expect_schema_error(outcome: Any, about: str) -> None:
    if not isinstance(outcome, Outcome) or outcome.kind == "infrastructure_error":
        return
    expect(
        outcome.kind == "schema_error",
        f"{about} does not fit the schema, but came to {shown(outcome)}: check arguments before the tool runs "
        "(callwright.environments.call_tool does)",
    )
    expect("call 0" not in outcome.message, f"{about} came to a message with the checker's number: {outcome.message}")


def _expect_said(outcome: Any, text: str, about: str) -> None:
    if isinstance(outcome, Outcome) and outcome.kind == "schema_error":
        expect(text in outcome.message, f"{about} came to the message {outcome.message!r}, which does not say {text!r}")


def _missing(spec: ToolSpec) -> list[tuple[str, dict[str, Any]]]:
    """Fitting arguments without one of the required ones, for each of these."""
    fitting = fitting_arguments(spec, Random(13), WORDS)
    required = spec.parameters.get("required", ()) if fitting is not None else ()
    return [(name, {key: value for key, value in (fitting or {}).items() if key != name}) for name in required]


def _unlisted(spec: ToolSpec) -> list[tuple[str, str, dict[str, Any]]]:
    """Fitting arguments with a value that is not listed, for each parameter that lists its values; and these."""
    fitting = fitting_arguments(spec, Random(13), WORDS)
    found = []
    properties = spec.parameters.get("properties")
    for name, schema in properties.items() if fitting is not None and isinstance(properties, Mapping) else ():
        values = schema.get("enum") if isinstance(schema, Mapping) else None
        if isinstance(values, list) and values and _UNLISTED not in values:
            found.append((name, allowed_values(values), {**(fitting or {}), name: _UNLISTED}))
    return found


def check_kinds(environment: Environment, scenarios: Sequence[str] = ("",), calls: Calls | None = None) -> None:
    """Only reading is ``empty``: ``None``, ``[]``, ``{}`` or a page without items; only writing is ``refused``."""
    for scenario in scenarios:
        session = open_session(environment, scenario, 1)
        for tool, arguments in drawn_calls(environment, scenario, calls):
            outcome, spec = ask(session, tool, arguments), environment.tools.get(tool)
            if spec is None or not isinstance(outcome, Outcome):
                continue
            about = f"{tool}({shown(arguments)})"
            if outcome.kind == "empty":
                expect(spec.read_only, f"{about} is 'empty', but the tool declares no read_only: what it did is 'ok'")
                expect(
                    _found_nothing(outcome.value),
                    f"{about} is 'empty' with the value {shown(outcome.value)}; 0, '' and False are values, and so is "
                    "an object with more than items",
                )
            if outcome.kind == "ok" and spec.read_only:
                expect(
                    not _found_nothing(outcome.value),
                    f"{about} only reads and gave {shown(outcome.value)}, which is 'empty' and not 'ok'",
                )
            expect(
                outcome.kind != "refused" or not spec.read_only,
                f"{about} was refused, but the tool declares read_only, so nothing was counted: make it a ToolError",
            )
        close_all(session)


def check_results(environment: Environment, scenarios: Sequence[str] = ("",), calls: Calls | None = None) -> None:
    """Values of executed calls fit the result schema of their tool, where it lists one and they are not ``None``."""
    for scenario in scenarios:
        session = open_session(environment, scenario, 1)
        for tool, arguments in drawn_calls(environment, scenario, calls):
            outcome, spec = ask(session, tool, arguments), environment.tools.get(tool)
            checker = spec.compiled.results if spec is not None else None
            if checker is None or not isinstance(outcome, Outcome) or not outcome.executed:
                continue
            if outcome.value is None or checker.is_valid(outcome.value):
                continue
            error = next(iter(checker.validator.iter_errors(outcome.value)))
            place = join_path(list(error.instance_path)) or "the value"
            expect(
                False,
                f"{tool}({shown(arguments)}) gave {shown(outcome.value)}, which the tool's own result schema refuses: "
                f"{place}: {shortened(error.message, _LONGEST_REASON)}",
            )
        close_all(session)


def _found_nothing(value: Any) -> bool:
    """Whether a value is nothing, also inside of the object in which servers put what is not an object."""
    return is_nothing(value) or (isinstance(value, dict) and value.keys() == {"result"} and is_nothing(value["result"]))


def check_threads(environment: Environment, scenarios: Sequence[str] = ("",), calls: Calls | None = None) -> None:
    """Of calls from several threads in one session all land, or some are refused with a UsageError; none is lost."""
    for scenario in scenarios:
        call = _repeatable(environment, scenario, calls)
        if call is None:
            continue
        session = open_session(environment, scenario, 1)
        landed = _from_threads(session, *call)
        alone = open_session(environment, scenario, 1)
        for _ in range(landed):
            ask(alone, *call)
        tool, arguments = call
        expect(
            session.digest() == alone.digest(),
            f"{landed} calls {tool}({shown(arguments)}) of {_THREADS} threads went through, but the session is not in "
            "the state that as many calls lead to: let a second thread wait, or raise SessionInUse",
        )
        close_all(session, alone)


def _repeatable(environment: Environment, scenario: str, calls: Calls | None) -> tuple[str, dict[str, Any]] | None:
    """A call that changes something each time; else one that executes; ``None`` if none does."""
    executes = None
    for tool, arguments in drawn_calls(environment, scenario, calls):
        session = open_session(environment, scenario, 1)
        states = [session.digest()]
        for _ in range(3):
            outcome = ask(session, tool, arguments)
            if not isinstance(outcome, Outcome) or outcome.kind == "unknown" or not outcome.executed:
                break
            states.append(session.digest())
        close_all(session)
        if len(states) == len(set(states)) == 4:
            return tool, arguments
        if len(states) == 4:
            executes = executes or (tool, arguments)
    return executes


def _from_threads(session: Session, tool: str, arguments: dict[str, Any]) -> int:
    """How many of the calls that several threads make in one session at once went through."""
    landed: list[int] = []
    odd: list[BaseException] = []
    begin = threading.Barrier(_THREADS)

    def work() -> None:
        done = 0
        begin.wait()
        for _ in range(_CALLS_EACH):
            try:
                session.call(tool, copy_json(arguments))
                done += 1
            except (UsageError, InfrastructureFailure):
                continue
            except Exception as error:
                odd.append(error)
                break
        landed.append(done)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # often enough that threads meet inside of a call
    try:
        threads = [threading.Thread(target=work) for _ in range(_THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    expect(
        not odd,
        f"{tool}({shown(arguments)}), called by {_THREADS} threads at once, raised {shown(odd[:1])}, which does not "
        "say that a session is for one thread at a time",
    )
    return sum(landed)
