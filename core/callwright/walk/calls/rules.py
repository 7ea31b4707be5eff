"""The rules of execution: what the papers leave open and released code decides in its own way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from attrs import frozen

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
