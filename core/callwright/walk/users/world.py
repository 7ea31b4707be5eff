"""Looking at a world wherever its session lives: what a user sees of it, and what was left in the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from callwright.environments.clock import TimedSession
from callwright.environments.knowledge.asking import knowledge_of
from callwright.environments.protocol import Session
from callwright.errors import DataError, InfrastructureFailure
from callwright.language.long_numbers import json_text, json_value

if TYPE_CHECKING:
    from callwright.walk.execution import Execution
    from callwright.walk.tasks import Task

#: The fact of a task that holds its goal (:class:`callwright.environments.goals.Goal`), as JSON.
GOAL: Final = "goal"


class _Unasked(Enum):
    UNASKED = "unasked"


#: In place of what a goal came to, before the session is asked. It is itself in every process.
UNASKED: Final = _Unasked.UNASKED

#: What is asked of what was left, and the method of the session that answers. No turn of a user passes for that.
LEFT: Final = {"goal": "check_goal", "digest": "digest", "goal_state": "goal_state", "snapshot": "snapshot"}
#: The questions about a goal.
GOALS: Final = frozenset({"goal", "check_goal"})
#: What else may be asked beside what somebody knows.
_ANSWERED_BY: Final = {"check_goal": "check_goal", "now": "tell_time", **LEFT}


@frozen
class WorldView:
    """What a user sees of the session: what it knows, whether its goal is reached, and how late it is.

    It changes nothing. Every question raises :class:`callwright.InfrastructureFailure` where the session is lost.
    """

    _ask: Callable[..., Any]

    def knowledge(self, entity: str = "me") -> Mapping[str, Any]:
        """What an entity of the world knows that no tool tells; empty where nothing is known."""
        found: Mapping[str, Any] = self._ask("knowledge", entity)
        return found

    def check_goal(self, goal: Mapping[str, Any]) -> Any:
        """What a goal comes to: a :class:`callwright.environments.goals.Comparison`.

        Raises :class:`callwright.errors.DataError` for a goal that cannot be read, and for a world that knows none.
        """
        found = self._ask("check_goal", goal)
        if found is None:
            missing = "neither check_goal() nor goal_state()"
            raise DataError(f"a user has a goal, but sessions of this environment have {missing}")
        return found

    @property
    def now(self) -> int | None:
        """The time in the world, in seconds since 1970 (UTC); ``None`` where there is none."""
        found: int | None = self._ask("now")
        return found


def ask_world(session: Session, question: str, *given: Any) -> Any:
    """The answer of a session to a question of :class:`WorldView` or of :data:`LEFT`; ``None`` if it knows none.

    Raises what the session raises, :class:`callwright.InfrastructureFailure` where it is lost.
    """
    if question == "knowledge":
        return knowledge_of(session, *given)
    inner: Any = session.inner if isinstance(session, TimedSession) else session
    method = getattr(inner, "check_answer", None) if question == "goal" and len(given) > 1 else None
    if method is None:
        method = getattr(inner, _ANSWERED_BY[question], None)
        given = given[:1]
    if not callable(method):
        at = getattr(inner, "now", None) if question == "now" else None
        return at if type(at) is int else None
    if isinstance(session, TimedSession):
        return session.asked(f"{question!r} of a session", lambda: method(*given))
    return method(*given)


def told_as_json(asked: Execution, question: str) -> Any:
    """What a session tells beyond the protocol, as JSON; ``None`` if it does not."""
    found = asked.look(question)
    return None if found is None else json_value(json_text(found, default=str))


def goal_after(look: Callable[..., Any], task: Task, answer: str | None) -> Any:
    """What the goal of a task comes to now: a comparison, ``None`` where sessions check none, or why it is not known.

    ``look`` asks the session (:meth:`callwright.walk.Execution.look`). ``answer`` is what the agent said in the end
    (:func:`callwright.walk.turn.last_words`), ``None`` where nobody knows. Errors are returned, for whoever wants to
    know.
    """
    try:
        return look("goal", task.facts[GOAL], *(() if answer is None else (answer,)))
    except InfrastructureFailure as error:
        return error
    except DataError as error:
        return DataError(f"task {task.id!r}: {error}")
