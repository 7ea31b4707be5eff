"""Execution: a program runs in a session, references are resolved, every outcome is classified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from callwright.environments.capabilities import user_tools_of
from callwright.environments.clock import too_many_stuck
from callwright.environments.living.opening import close, moves_time, next_turn, open_for
from callwright.environments.protocol import (
    Environment,
    OutOfProcess,
    PlacesParts,
    Session,
    declares,
)
from callwright.environments.sessions import (
    call_session,
    is_at_home,
    is_foreign,
    open_session,
)
from callwright.errors import DataError, InfrastructureFailure, UsageError
from callwright.language.program import Call, Program
from callwright.tools.spec import ToolSpec
from callwright.walk.calls.elsewhere import gathered, told_there, tools_named
from callwright.walk.calls.elsewhere import records_there as records_there
from callwright.walk.calls.handles import Earlier
from callwright.walk.calls.references import copy_json as copy_json
from callwright.walk.calls.references import resolved_arguments as resolved_arguments
from callwright.walk.calls.rules import STRICT as STRICT
from callwright.walk.calls.rules import UNRESOLVED as UNRESOLVED
from callwright.walk.calls.rules import ExecutionRules as ExecutionRules
from callwright.walk.calls.running import Caller as Caller
from callwright.walk.calls.running import never_begun as never_begun
from callwright.walk.calls.running import run_calls
from callwright.walk.trace import Trace

if TYPE_CHECKING:
    from callwright.environments.hazards.policy import Hazards
    from callwright.environments.isolated.environment import IsolatedEnvironment, IsolatedSession
    from callwright.environments.living.policy import ClockPolicy
    from callwright.walk.openings.opening import Opening


class Execution:
    """A session of a task in which programs run one after the other; it is opened for the first call.

    Only tools that are offered (``tools``) run; another name is an ``unknown_tool``. A failed call does not stop those
    that do not depend on it. Values are copied on their way into and out of a tool unless the environment is pure, so
    that no tool can change what another one sees. Model output never raises here; a session that cannot be opened or
    that is lost on the way is an ``infrastructure_error`` of the call at hand, and the last record.

    ``clock`` lets the session's time move: with each call that reaches it, and with the user's turn that follows a
    program without calls. ``hazards`` are what its calls meet, in place of those of its scenario. ``opening`` is done
    when the session is opened; ``appear`` says which tools are offered only from a turn of the user on. ``task`` is the
    id of the task, for errors. ``session`` is one that is open already: it is used as it is, and whoever opened it
    closes it. Raises
    :class:`callwright.UsageError`, with the first call, if its time cannot move or its calls meet no hazards, and
    :class:`callwright.errors.DataError` if an action of the opening does not execute.
    """

    __slots__ = (
        "_answered",
        "_appear",
        "_caller",
        "_clock",
        "_closed",
        "_environment",
        "_given",
        "_hazards",
        "_opening",
        "_opens",
        "_rules",
        "_session",
        "_task",
        "_there",
        "_tools",
        "_turn",
        "_user_turns",
        "earlier",
    )

    def __init__(
        self,
        environment: Environment,
        tools: Mapping[str, ToolSpec],
        *,
        scenario: str = "",
        seed: int = 0,
        rules: ExecutionRules = STRICT,
        caller: Caller | None = None,
        clock: ClockPolicy | None = None,
        hazards: Hazards | None = None,
        opening: Opening | None = None,
        appear: Mapping[str, int] | None = None,
        task: str = "",
        session: Session | None = None,
    ) -> None:
        self._environment, self._tools, self._opens, self._rules = environment, tools, (scenario, seed), rules
        self._clock, self._hazards, self._user_turns = clock, hazards, 0
        self._opening, self._appear, self._turn, self._task = opening, appear, 0, task
        self._caller = caller or call_session
        self._session = self._given = session
        self._there: IsolatedEnvironment | None = None
        self._closed = False
        #: Whether the user has acted since the model's last turn: what it does now belongs to the same answer.
        self._answered = False
        #: What the turns so far came to, as later ones refer to it.
        self.earlier = Earlier()

    def run(self, program: Program, *, goes_on: bool = False) -> Trace:
        """Run every call of a program. Raises :class:`callwright.UsageError` for calls after :meth:`close`.

        ``goes_on`` says that these calls are of the same turn of the model as the last ones.
        """
        self._answered = False
        if not program.calls:
            self._user_turns += 1  # which passes when something is called after it
            self._turn += 1
            return Trace((), program.returns)
        try:
            session = self._opened()
            environment, tools = self._environment, self._tools
            if self._appear:
                tools = {name: spec for name, spec in tools.items() if self._appear.get(name, 0) <= self._turn}
            earlier = self.earlier.needed(program) if self.earlier.count else None
            if self._there is not None and self._caller is call_session:
                there: IsolatedSession = session  # type: ignore[assignment]
                given = told_there(program, tools, environment, self._rules)
                if earlier is not None or goes_on:
                    given = *given, None, None, earlier, goes_on
                trace = gathered(program, there.stream(tools_named(program), records_there, *given))
            else:
                copied = not environment.pure
                trace = run_calls(program, session, tools, self._rules, self._caller, copied, earlier, goes_on=goes_on)
        except InfrastructureFailure as error:
            return never_begun(program, error)
        self.earlier.add(program, trace.records, self._tools)
        return trace

    def look(self, question: str, *given: Any) -> Any:
        """What the user asks of the session (:mod:`callwright.walk.users.world`), now that its turn has passed.

        Whoever wants to know what was left asks for its ``digest``, ``goal_state``, ``snapshot`` or what a ``goal``
        comes to, and no turn passes for that.

        Raises :class:`callwright.InfrastructureFailure` where the session cannot be asked.
        """
        from callwright.walk.users.world import GOALS, LEFT, ask_world

        found = ask_world(self._opened(passing=question not in LEFT), question, *given)
        return self._goal_by_state(given[0]) if found is None and question in GOALS else found

    def _goal_by_state(self, goal: Mapping[str, Any]) -> Any:
        """What a goal comes to in sessions that tell what they have come to and check no goal; ``None`` in others."""
        from callwright.environments.goals.goal import Goal, check_paths
        from callwright.walk.users.world import told_as_json

        state = told_as_json(self, "goal_state")
        if state is None:
            return None
        world: Any = {"scenario": self._opens[0], "seed": self._opens[1], "opening": self._opening}
        fresh = Execution(self._environment, self._tools, **world, rules=self._rules, clock=self._clock)
        try:
            return check_paths(Goal.from_json(goal), told_as_json(fresh, "goal_state"), state)
        finally:
            fresh.close()

    def act(self, calls: Sequence[Call]) -> Trace:
        """Run calls of the user, by the tools that the environment has for users; ``state`` is that before them.

        They meet what calls of the model meet: the clock, hazards, and whoever listens to calls. Raises
        :class:`callwright.InfrastructureFailure` if the session cannot be opened.
        """
        from callwright.environments.living.called_by_users import call_as_user

        session, environment = self._opened(), self._environment
        theirs = user_tools_of(environment)
        caller: Caller = getattr(self._caller, "as_user", call_as_user)
        if not self._answered:
            next_turn(session)
        self._answered = True
        return run_calls(Program(tuple(calls), "all"), session, theirs, STRICT, caller, not environment.pure, by="user")

    def _opened(self, *, passing: bool = True) -> Session:
        """The session, in which the turns of the user that are over have passed, unless they are not to."""
        if self._closed:
            raise UsageError("the session of this attempt is closed; no call can follow")
        session = self._session
        if session is None:
            self._there = elsewhere(self._environment, self._rules)
            place, limit = self._there or _with_parts(self._environment, self._rules), self._rules.time_limit
            session = open_for(place, *self._opens, limit, self._clock, self._hazards)
            if self._opening is not None:
                self._begin(session, self._opening)
            self._session = session
        if passing and self._user_turns:
            self._let_users_speak(session)
        return session

    def _begin(self, session: Session, opening: Opening) -> None:
        from callwright.walk.openings.beginning import begin

        def run(program: Program, there: Session, tools: Mapping[str, ToolSpec], caller: Caller) -> Trace:
            return run_calls(program, there, tools, STRICT, caller, not self._environment.pure)

        try:
            begin(session, opening, self._environment, self._opens[0], self._hazards, run)
        except DataError as error:
            close(session)
            raise DataError(f"task {self._task!r}: {error}" if self._task else str(error)) from error
        except BaseException:
            close(session)
            raise

    def _let_users_speak(self, session: Session) -> None:
        turns, self._user_turns = self._user_turns, 0
        if self._clock is not None or moves_time(session):
            from callwright.environments.living.asking import user_turn

            for _ in range(turns):
                user_turn(session)

    def close(self) -> None:
        """Give the session back."""
        session, self._session, self._closed = self._session, None, True
        if session is not None and session is not self._given:
            close(session)


def execute(
    program: Program,
    environment: Environment,
    tools: Mapping[str, ToolSpec],
    *,
    scenario: str = "",
    seed: int = 0,
    rules: ExecutionRules = STRICT,
    caller: Caller | None = None,
    clock: ClockPolicy | None = None,
    hazards: Hazards | None = None,
    opening: Opening | None = None,
) -> Trace:
    """Run every call of a program in a fresh session, as :class:`Execution` does.

    Raises :class:`callwright.UsageError` for a session in place of an environment: :class:`Execution` takes one.
    """
    if not program.calls:
        return Trace((), program.returns)
    if opening is not None:
        again: Any = {"rules": rules, "caller": caller, "clock": clock, "hazards": hazards, "opening": opening}
        execution = Execution(environment, tools, scenario=scenario, seed=seed, **again)
        try:
            return execution.run(program)
        finally:
            execution.close()
    try:
        if (
            is_at_home(environment)
            and rules.time_limit is None
            and rules.isolation != "process"
            and clock is None
            and hazards is None
        ):
            session = open_session(environment, scenario, seed)  # nearly all, so without a detour
        else:
            if not hasattr(environment, "open"):
                raise UsageError(
                    f"execute() opens a session of an environment, and {type(environment).__name__} is none; a session "
                    "that is open goes to Execution(environment, tools, session=session)"
                )
            there = elsewhere(environment, rules)
            if there is not None and (caller is None or caller is call_session):
                given = told_there(program, tools, environment, rules)
                if clock is not None or hazards is not None:
                    given = *given, clock, hazards
                return gathered(program, there.once(scenario, seed, tools_named(program), records_there, *given))
            place = there or _with_parts(environment, rules)
            session = open_for(place, scenario, seed, rules.time_limit, clock, hazards)
    except InfrastructureFailure as error:
        return never_begun(program, error)
    try:
        return run_calls(program, session, tools, rules, caller or call_session, not environment.pure)
    except InfrastructureFailure as error:
        return never_begun(program, error)
    finally:
        close(session)


def elsewhere(environment: Environment, rules: ExecutionRules) -> IsolatedEnvironment | None:
    """The environment with its sessions in processes, where the rules say so; ``None`` for sessions in this process."""
    if not declares(environment, OutOfProcess):
        isolation = rules.isolation
        if isolation != "process" and declares(environment, PlacesParts):
            placed: Any = _with_parts(environment, rules)
            return placed if declares(placed, OutOfProcess) else None  # else its foreign parts alone are elsewhere
        if isolation != "process" and (
            isolation == "none" or not is_foreign(environment) or (isolation is None and not too_many_stuck())
        ):
            return None
    # Nothing is imported for worlds that stay here.
    from callwright.environments.isolated.placing import place

    return place(environment, rules.isolation, rules.time_limit)


def _with_parts(environment: Environment, rules: ExecutionRules) -> Environment:
    """The environment; one of several with its foreign parts in processes, where the rules say so."""
    if rules.isolation != "process" and declares(environment, PlacesParts):
        placed: Environment = environment.placed(rules.isolation, rules.time_limit)  # type: ignore[attr-defined]
        return placed
    return environment


def unresolved(trace: Trace) -> bool:
    """Whether a reference of a call came to nothing."""
    return any(record.outcome.code in UNRESOLVED for record in trace.records)
