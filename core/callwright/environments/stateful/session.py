"""Sessions of stateful environments: one isolated world each, which forks, resets and is compared."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from threading import Lock
from typing import TYPE_CHECKING, Any

from callwright.environments.briefing.policy import written
from callwright.environments.calling import call_tool, in_use
from callwright.environments.goals.comparing import Comparison
from callwright.environments.goals.goal import Goal, check_rows
from callwright.environments.goals.states import end_state
from callwright.environments.helpers import HELPERS, READY_HELPERS
from callwright.environments.knowledge.asking import ME, tell
from callwright.environments.living.called_by_users import CalledByUsers
from callwright.environments.living.moving import MovingTime
from callwright.environments.protocol import Outcome, Session
from callwright.environments.undeclared import account_of, bugs_of
from callwright.environments.world import World, difference
from callwright.errors import (
    CallwrightError,
    ComponentError,
    InfrastructureFailure,
    SessionInUse,
    UnknownName,
    UsageError,
)

if TYPE_CHECKING:
    from callwright.environments.stateful.environment import StatefulEnvironment


class StatefulSession(MovingTime, CalledByUsers, Session):
    """One isolated world of a :class:`StatefulEnvironment`, for one thread at a time.

    A second thread is told so (:class:`callwright.errors.SessionInUse`); nothing it wanted to change is lost silently.
    """

    __slots__ = ("_closed", "_faults", "environment", "world")
    bounds_results = True

    def __init__(self, environment: StatefulEnvironment, world: World) -> None:
        self.environment = environment
        self.world = world
        self._faults: dict[str, tuple[int, str]] | None = None
        self._exposure = None
        self._clock = None
        self._notices = ()
        self._user_turns = 0
        self._closed = False
        self._turn = Lock()

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Check the arguments against the schema, then run the tool (:mod:`callwright.environments.calling`).

        Helper tools are unknown. What a tool raises apart from :class:`callwright.ToolError` is a bug of it: what it
        did is undone, and :class:`callwright.errors.ComponentError` names the place. No model is charged with it.

        Where the clock moves, the call takes its time when it is over, whatever came of it, and the latency of the tool
        beside that; the outcome also tells what happened until then. Only a tool that is not there takes none: nothing
        was called.
        """
        if self._closed:
            raise UsageError(f"the session of {self.environment.name!r} is closed")
        world = self.world
        try:
            if self._clock is not None or self._exposure is not None:
                return self.call_with_care(tool, arguments, self._fault if self._faults else None)
            return call_tool(
                self.environment.entries,
                tool,
                arguments,
                world,
                world,
                self._turn,
                self._fault if self._faults else None,
            )
        except CallwrightError:
            raise
        except Exception as error:
            raise ComponentError(
                f"{account_of(tool, error)}\nThis is a bug of the environment {self.environment.name!r}"
            ) from error

    # The whole --------------------------------------------------------------------------------------------------------

    def digest(self) -> str:
        """A hash of the whole state; it costs what changed since it was last asked for."""
        known = self.world.known_digest
        if known is not None:  # asked for after every call, most of which change nothing
            return known
        turn = self._turn
        if not turn.acquire(False):
            raise in_use()
        try:
            return self.world.digest()
        finally:
            turn.release()

    def fork(self) -> StatefulSession:
        """Another session in the same state, which goes its own way."""
        turn = self._turn
        if not turn.acquire(False):
            raise in_use()
        try:
            other = StatefulSession(self.environment, self.world.fork())
            other._clock, other._notices, other._user_turns = self._clock, self._notices, self._user_turns
            other._exposure = None if self._exposure is None else copy(self._exposure)
            other._faults = None if self._faults is None else dict(self._faults)
            return other
        finally:
            turn.release()

    def reset(self, scenario: str | None = None, seed: int | None = None) -> None:
        """Back to the first state of this scenario and seed, or of another one. Injected faults are forgotten.

        The clock moves on as it did (:meth:`keep_time`), also in another scenario; hazards are met as by a new session.
        """
        if self._turn.locked():
            raise in_use()
        self.restart(scenario, seed)

    def restart(self, scenario: str | None = None, seed: int | None = None) -> None:
        """As :meth:`reset`, for helpers: they run in the midst of a call."""
        base = self.world.base
        if scenario is not None or seed is not None:
            if scenario is None and base.origin is not None:
                scenario = base.origin[1][1]
            name = self.environment.scenario_name(scenario or "")
            base = self.environment.base(name, base.seed if seed is None else seed)
        self.world = World(base)
        self._faults, self._notices, self._user_turns = None, (), 0
        if self._exposure is not None:
            self.meet_hazards(self._exposure.hazards)

    def enter(self, world: World) -> None:
        """Go on in another world, as helpers do. Nothing of the one that was left is told."""
        self.world, self._notices, self._user_turns = world, (), 0

    def diff(self, since: StatefulSession | None = None) -> dict[str, Any]:
        """What changed since the scenario's first state, or since ``since``
        (:func:`callwright.environments.world.difference`).
        """
        return difference(World(self.world.base) if since is None else since.world, self.world)

    def briefing(self) -> str:
        environment = self.environment
        if not environment.briefs:
            return ""
        person = environment.person
        with bugs_of(environment.name, "the person"):
            signed_in = "" if person is None else person(self.world)
        fit = environment.fit
        return written(environment.policy, self.world.now, signed_in, compact=fit is not None and fit.compact)

    def knowledge(self, entity: str = ME) -> dict[str, Any]:
        """What somebody knows and no tool tells; ``"me"`` is the user whose session it is. Empty for strangers."""
        known = self.environment.knowledge
        if self._turn.locked():
            raise in_use()
        return {} if known is None else tell(known, self.world, entity, self.environment.name)

    def snapshot(self) -> dict[str, Any]:
        """What differs from the scenario, as JSON, for rewards that compare final states path by path."""
        return self.world.changed_rows()

    def goal_state(self) -> dict[str, Any]:
        """What the session has made of its scenario, without bookkeeping, for rewards that compare end states
        (:mod:`callwright.environments.goals`).
        """
        turn = self._turn
        if not turn.acquire(False):
            raise in_use()
        try:
            return end_state(self.world)
        finally:
            turn.release()

    def check_goal(self, goal: Mapping[str, Any]) -> Comparison:
        """Hold what is there against a goal, as JSON (:class:`callwright.environments.goals.Goal`).

        Raises :class:`callwright.errors.DataError` for a goal that cannot be read or is not of these tables.
        """
        turn = self._turn
        if not turn.acquire(False):
            raise in_use()
        try:
            return check_rows(Goal.from_json(goal), self.world)
        finally:
            turn.release()

    def helper(self, name: str, arguments: Mapping[str, Any] | None = None) -> Outcome:
        """Run a helper tool. Agents cannot: :meth:`call` does not know them.

        Raises :class:`callwright.errors.UnknownName` for one that does not exist.
        """
        if name not in HELPERS:
            raise UnknownName("helper tool", name, HELPERS)
        try:
            return call_tool(READY_HELPERS, name, dict(arguments or {}), self, turn=self._turn)
        except SessionInUse:
            raise
        except UsageError as error:
            return Outcome("execution_error", None, "INVALID", str(error))

    def close(self) -> None:
        """Refuse calls from now on. Closing twice is allowed."""
        self._closed = True

    def inject(self, tool: str, code: str, nth: int) -> None:
        """Let the ``nth`` next valid call of a tool fail with ``code``; ``infrastructure`` is a broken machine."""
        self._faults = {**(self._faults or {}), tool: (nth, code)}

    def _fault(self, tool: str) -> Outcome | None:
        assert self._faults is not None
        if tool not in self._faults:
            return None
        left, code = self._faults.pop(tool)
        if left > 1:
            self._faults[tool] = (left - 1, code)
            return None
        if code == "infrastructure":
            raise InfrastructureFailure(f"{tool} failed because a fault was injected")
        return Outcome("execution_error", None, code, "this failure was injected", injected="fault")
