"""References: what they stand for when a call runs, and how large that may become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from attrs import frozen

from callwright.environments.protocol import EXECUTED, Outcome
from callwright.environments.sizes import MOST_VALUE, size_of
from callwright.errors import Abstention
from callwright.language.program import Call, Reference, plain
from callwright.tools.spec import ToolSpec

if TYPE_CHECKING:
    from callwright.environments.isolated.environment import Isolation


@frozen(cache_hash=True)
class ExecutionRules:
    """What the papers leave open and released code decides in its own way.

    ``unresolved``: a reference to no earlier call makes the call fail, or its text is passed on (``literal``).
    ``missing_field``: a path that the result does not have makes the call fail, or stands for the whole result.
    ``after_failure``: a reference to a call that failed makes the call fail too, or is passed on (``pass``): as what
    the call answered all the same, else as ``null`` if it is bare and as its text if it has a path.
    ``time_limit`` is in seconds, for opening a session, each call, each digest and closing; whatever is over it is an
    infrastructure error and ends the session. ``None`` is 30 seconds for foreign code and no limit for shipped worlds,
    ``inf`` no limit at all (:mod:`callwright.environments.clock`). ``isolation`` is where sessions live
    (:func:`callwright.environments.isolated.placing.place`).
    """

    unresolved: Literal["fail", "literal"] = "fail"
    missing_field: Literal["fail", "whole"] = "fail"
    after_failure: Literal["fail", "pass"] = "fail"
    time_limit: float | None = None
    isolation: Isolation | None = None


STRICT: Final = ExecutionRules()
#: Codes of calls with a reference that came to nothing; what becomes of these hangs on the rules.
UNRESOLVED: Final = frozenset({"unresolved_reference", "failed_dependency"})
#: How often earlier results may stand in the arguments of one call.
_MOST_COPIES: Final = 4096
#: Up to so many, what they come to is not measured where nothing is copied: each result has its own bound.
FEW_COPIES: Final = 16


class Unresolved(Exception):
    """A reference has no value; carries the outcome of the call that holds it."""

    def __init__(self, code: str, message: str) -> None:
        self.outcome = Outcome("execution_error", code=code, message=message)


def copies_in(located: Sequence[tuple[object, Reference]], held: Mapping[int, int]) -> int:
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
    if size_of(arguments, MOST_VALUE) > MOST_VALUE:
        raise Unresolved("too_large", f"the references lead to arguments of more than {MOST_VALUE:,} characters")


def resolved_arguments(
    call: Call, results: Mapping[int, Outcome], specs: Mapping[int, ToolSpec]
) -> Mapping[str, Any] | None:
    """What a recorded call was given: its arguments with references replaced by what earlier calls returned.

    The text of a reference stays where it came to nothing. ``None`` if a result that it needs is not known.
    """
    try:
        return {key: resolve(value, results, specs, STRICT) for key, value in call.arguments.items()}
    except Unresolved:
        given: Mapping[str, Any] = plain(call.arguments)
        return given
    except Abstention:
        return None


def resolve(value: Any, results: Mapping[int, Outcome], specs: Mapping[int, ToolSpec], rules: ExecutionRules) -> Any:
    """A value with what references in it stand for. Raises :class:`Unresolved` for one that stands for nothing."""
    if type(value) is Reference:
        return dereference(value, results, specs, rules)
    if isinstance(value, dict):
        return {key: resolve(inner, results, specs, rules) for key, inner in value.items()}
    if isinstance(value, list):
        return [resolve(inner, results, specs, rules) for inner in value]
    return value


def dereference(
    reference: Reference, results: Mapping[int, Outcome], specs: Mapping[int, ToolSpec], rules: ExecutionRules
) -> Any:
    """What a reference stands for. Raises :class:`Unresolved` if it stands for nothing."""
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
