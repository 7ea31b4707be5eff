"""Asking a session from outside: whatever it raises becomes an outcome of the call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CoroutineType
from typing import Any, Final

from callwright.environments.protocol import (
    Briefs,
    Environment,
    HoldsTools,
    Outcome,
    OutcomeKind,
    OutOfProcess,
    PlacesParts,
    Session,
    declares,
)
from callwright.environments.undeclared import Undeclared, account_of, is_of_the_tool, is_shipped, message_of
from callwright.errors import ComponentError, InfrastructureFailure, SessionInUse, UsageError
from callwright.language.program import Call
from callwright.machines.awaiting import finished, is_async

#: By type: whether it is foreign.
_KINDS: Final[dict[type[Any], bool]] = {}
#: By type: whether :func:`is_at_home`.
_AT_HOME: Final[dict[type[Any], bool]] = {}
#: By type: whether a session of it has methods that are to be awaited.
_WAITING: Final[dict[type[Any], bool]] = {}


def is_foreign(environment: Environment) -> bool:
    """Whether code of somebody else runs in an environment: of a plugin, a script or a notebook.

    Environments of functions or of rows are as foreign as their tools.
    """
    if declares(environment, HoldsTools):
        return bool(environment.foreign)  # type: ignore[attr-defined]
    kind = type(environment)
    known = _KINDS.get(kind)
    if known is None:
        known = _KINDS[kind] = not is_shipped(kind.__module__)
    return known


def is_at_home(environment: Environment) -> bool:
    """Whether an environment is seen by its class to be shipped and to live in this process, where no rule says more.

    Of many that are, too, this is not seen.
    """
    kind = type(environment)
    known = _AT_HOME.get(kind)
    if known is None:
        known = _AT_HOME[kind] = is_shipped(kind.__module__) and not (
            declares(environment, HoldsTools)
            or declares(environment, OutOfProcess)
            or declares(environment, PlacesParts)
        )
    return known


def open_session(environment: Environment, scenario: str, seed: int) -> Session:
    """Open a session; one with ``async`` methods as one that waits for what they come to."""
    session: Any = environment.open(scenario, seed)
    kind: type[Any] = type(session)
    if kind is CoroutineType:
        session = finished(session)
        kind = type(session)
    waits = _WAITING.get(kind)
    if waits is None:
        waits = _WAITING[kind] = any(is_async(getattr(kind, name, None)) for name in ("call", "digest", "close"))
    opened: Session = AwaitedSession(session) if waits else session
    return opened


@contextmanager
def opened(environment: Environment, scenario: str = "", seed: int = 0) -> Iterator[Session]:
    """A session for a ``with`` statement, closed at its end, whatever ends it::

        with opened(environment, "typical", seed=3) as session:
            session.call("list_accounts", {"customer_id": "C00001"})

    Sessions have no ``with`` of their own, so that a third party's need nothing but the members of
    :class:`callwright.environments.Session`. One with ``async`` methods is opened as one that waits for them.

    Raises :class:`callwright.UsageError` for what is no environment, scenario or seed.
    """
    if isinstance(environment, str):
        raise UsageError(f"opened() takes an environment, not its name: callwright.environment({environment!r})")
    if not hasattr(environment, "open"):
        raise UsageError(f"opened() takes an environment, such as callwright.environment(…), not {environment!r:.80}")
    if not isinstance(scenario, str):
        raise UsageError(f"the name of a scenario is a text, not {scenario!r:.80}")
    if not hasattr(seed, "__index__"):  # NumPy's whole numbers are some
        raise UsageError(f"the seed of a session is a whole number, not {seed!r:.80}")
    session = open_session(environment, scenario, seed)
    try:
        yield session
    finally:
        session.close()


def briefing_of(environment: Environment, scenario: str, seed: int) -> str:
    """What an environment tells of a session that begins; an empty text if it has nothing to tell."""
    if not declares(environment, Briefs) or not environment.briefs:  # type: ignore[attr-defined]
        return ""
    session = open_session(environment, scenario, seed)
    try:
        told: str = environment.briefing(session)  # type: ignore[attr-defined]
    finally:
        session.close()
    return told


class AwaitedSession(Session):
    """A session whose methods are ``async``, as one whose methods wait for what these come to."""

    __slots__ = ("inner",)

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        outcome: Outcome = finished(self.inner.call(tool, arguments))
        return outcome

    def digest(self) -> str:
        digest: str = finished(self.inner.digest())
        return digest

    def close(self) -> None:
        """Give the session back."""
        finished(self.inner.close())

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # asked for while it is copied or unpickled, before it has one
            raise AttributeError(name)
        return getattr(self.inner, name)


def call_session(session: Session, call: Call, arguments: dict[str, Any]) -> Outcome:
    """Have a session execute a call; what it raises is an outcome of the call, and said to be undeclared.

    Raises :class:`callwright.errors.SessionInUse`, the embedder's doing, and :class:`callwright.errors.ComponentError`,
    by which an environment says that a bug shall stop the run.
    """
    try:
        return session.call(call.tool, arguments)
    except BaseException as error:
        return raised_by_session(call.tool, error)


def raised_by_session(tool: str, error: BaseException) -> Outcome:
    """The outcome of a call that raised, which a tool's own failure is, whatever it raises. Raises anything else."""
    if isinstance(error, InfrastructureFailure):
        return lost_call("infrastructure", error)
    if isinstance(error, SessionInUse | ComponentError) or not is_of_the_tool(error):
        raise error
    return undeclared_failure(tool, error)


def lost_call(code: str, error: InfrastructureFailure) -> Outcome:
    """The outcome of a call of which nothing is known, because the machinery failed."""
    return Outcome("infrastructure_error", None, code, str(error))


def undeclared_failure(name: str, error: BaseException, undeclared: Undeclared = "execution_error") -> Outcome:
    """The outcome of a tool that raised what it does not declare; the code is the name of the exception's type."""
    kind: OutcomeKind = "infrastructure_error" if undeclared == "mask" else "execution_error"
    return Outcome(kind, None, type(error).__name__, message_of(error), account_of(name, error))
