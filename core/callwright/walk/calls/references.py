"""References: the results of earlier calls in the arguments of a call, and how much of them there may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from callwright.environments.protocol import EXECUTED, Outcome
from callwright.environments.sizes import bounds, size_of
from callwright.errors import Abstention
from callwright.language.program import Call, Path, Reference, plain
from callwright.tools.spec import ToolSpec
from callwright.walk.calls.rules import STRICT, ExecutionRules

#: How often earlier results may stand in the arguments of one call.
_MOST_COPIES: Final = 4096
#: Up to so many, what they come to is not measured where nothing is copied: each result has its own bound.
FEW_COPIES: Final = 16


class Unresolved(Exception):
    """A reference has no value; carries the outcome of the call that holds it."""

    def __init__(self, code: str, message: str) -> None:
        self.outcome = Outcome("execution_error", code=code, message=message)


def copies_held(located: Sequence[tuple[object, Reference]], held: Mapping[int, int]) -> int:
    """How often earlier results stand in the arguments of a call, those that may be inside of results counted again.

    Each call may hand on twice what the last one returned, and thirty of them a billion copies; so there is a limit.
    """
    holding = len(located)
    if held:
        for _, reference in located:
            holding += held.get(reference.call, 0)
    if holding > _MOST_COPIES:
        raise Unresolved("too_large", f"the references lead to more than {_MOST_COPIES} copies of earlier results")
    return holding


def check_arguments(arguments: dict[str, Any]) -> None:
    """What references put together is bounded before it is copied, checked or handed to a tool."""
    most = bounds().value
    if size_of(arguments, most) > most:
        raise Unresolved("too_large", f"the references lead to arguments of more than {most:,} characters")


def resolved_arguments(
    call: Call, results: Mapping[int, Outcome], specs: Mapping[int, ToolSpec]
) -> Mapping[str, Any] | None:
    """What a recorded call was given: its arguments with references replaced by what earlier calls returned.

    The text of a reference stays where it came to nothing. ``None`` if a result that it needs is not known.
    """
    try:
        return {key: resolved(value, results, specs, STRICT) for key, value in call.arguments.items()}
    except Unresolved:
        given: Mapping[str, Any] = plain(call.arguments)
        return given
    except Abstention:
        return None


def with_results(
    arguments: Mapping[str, Any],
    located: Sequence[tuple[Path, Reference]],
    results: Mapping[int, Outcome],
    specs: Mapping[int, ToolSpec],
    rules: ExecutionRules,
) -> dict[str, Any]:
    """The arguments of a call with what its references, all of which are ``located``, come to.

    Raises :class:`Unresolved` where one comes to nothing.
    """
    given = dict(arguments)
    done = None
    for path, reference in located:
        key: Any = path[0]
        if len(path) == 1:  # nearly all
            given[key] = dereferenced(reference, results, specs, rules)
        elif key != done:
            given[key] = resolved(given[key], results, specs, rules)
            done = key
    return given


def resolved(value: Any, results: Mapping[int, Outcome], specs: Mapping[int, ToolSpec], rules: ExecutionRules) -> Any:
    """A value with what its references come to. Raises :class:`Unresolved` where one comes to nothing."""
    if type(value) is Reference:
        return dereferenced(value, results, specs, rules)
    if isinstance(value, dict):
        return {key: resolved(inner, results, specs, rules) for key, inner in value.items()}
    if isinstance(value, list):
        return [resolved(inner, results, specs, rules) for inner in value]
    return value


def dereferenced(
    reference: Reference, results: Mapping[int, Outcome], specs: Mapping[int, ToolSpec], rules: ExecutionRules
) -> Any:
    """What a reference comes to. Raises :class:`Unresolved` if that is nothing."""
    outcome = results.get(reference.call)
    if outcome is None:
        if rules.unresolved == "literal":
            return str(reference)
        raise Unresolved("unresolved_reference", f"{reference} names no earlier call")
    # The kind is looked at first because ``executed`` is a property, and nearly all calls did.
    failed = outcome.kind not in EXECUTED and not outcome.executed
    if failed and (rules.after_failure == "fail" or outcome.value is None):
        if rules.after_failure == "pass":
            return str(reference) if reference.path else None
        raise Unresolved("failed_dependency", f"{reference} is the result of a call that failed ({outcome.kind})")
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
            raise Unresolved("unresolved_reference", f"{reference} is not in the result of call {reference.call}")
        value = value[part]
    return value


def copy_json(value: Any) -> Any:
    """A deep copy of a JSON value; leaves are immutable and shared."""
    if isinstance(value, dict):
        return {key: copy_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [copy_json(inner) for inner in value]
    return value
