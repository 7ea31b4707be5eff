"""Conditions: what attempts are made under, apart from their tasks.

A task fixes its world by its scenario and seed. Nothing here changes that: ``seed`` draws completions and their order.
"""

from __future__ import annotations

from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from attrs import Attribute, evolve, field, frozen

from callwright.errors import UsageError
from callwright.walk.execution import STRICT, Caller, Execution, ExecutionRules, execute
from callwright.walk.limits import SINGLE_TURN, TurnLimits

if TYPE_CHECKING:
    from callwright.environments.hazards.policy import Hazards
    from callwright.environments.isolated.environment import Isolation
    from callwright.environments.living.policy import ClockPolicy
    from callwright.environments.protocol import Session
    from callwright.language.program import Program
    from callwright.walk.tasks import Task
    from callwright.walk.trace import Trace
    from callwright.walk.users.kinds import UserKinds
    from callwright.walk.users.user import User


@frozen
class Progress:
    """How far training is, for rewards with a schedule: ``step`` of ``total_steps``, counted from 0.

    A training that goes on has a ``step`` beyond ``total_steps``.
    """

    step: int
    total_steps: int


def _checked_limit(_: Any, __: Attribute[Any], limit: object) -> None:
    if limit is None:
        return
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
        raise UsageError(f"time_limit is a number of seconds, inf for none, not {limit!r:.40}")


def _checked_isolation(_: Any, __: Attribute[Any], isolation: object) -> None:
    if isolation is not None and isolation not in ("auto", "process", "none"):
        raise UsageError(f'isolation is "auto", "process" or "none", not {isolation!r:.40}')


@frozen
class Conditions:
    """One value for everything that holds for all attempts of a pipeline.

    ``seed`` draws what is sampled. ``time_limit`` (seconds) is how long a session may take over each thing that is
    asked of it; ``None`` is 30 for foreign code and no limit for shipped worlds, ``inf`` no limit at all. ``limits``
    say how many turns and tokens an attempt may have. ``progress`` is known in training. ``caller`` is how calls reach
    a session where a plugin listens to them. ``isolation`` is where sessions live, under the same ``time_limit``:
    ``auto`` has foreign code in processes that can be killed (:func:`callwright.isolated`), where another process can
    make it, ``process`` all, ``none`` nothing. ``None`` is for objects of the process that
    asks, as they are there: in this process, until two of its threads hang for ever; from then on it is ``auto``.
    ``clock`` is how time moves in the sessions of tasks that name no clock themselves, ``hazards`` are what calls meet
    in those of tasks that name none. ``users`` makes the users of tasks; ``None`` is by the registry of the process.
    What they draw, they draw from ``seed``, too.

    Raises :class:`callwright.UsageError` for a ``time_limit`` or an ``isolation`` that is something else: tools that
    were to run elsewhere would run here.
    """

    seed: int = 0
    time_limit: float | None = field(default=None, validator=_checked_limit)
    limits: TurnLimits = SINGLE_TURN
    progress: Progress | None = None
    caller: Caller | None = field(default=None, repr=False)
    isolation: Isolation | None = field(default=None, kw_only=True, validator=_checked_isolation)
    clock: ClockPolicy | None = field(default=None, kw_only=True)
    users: UserKinds | None = field(default=None, kw_only=True, repr=False, eq=False)
    hazards: Hazards | None = field(default=None, kw_only=True)

    def hazards_of(self, task: Task) -> Hazards | None:
        """The hazards that a session of a task meets under these conditions; ``None``: those of its scenario."""
        return self.hazards if task.hazards is None else task.hazards

    def execution(self, task: Task, rules: ExecutionRules = STRICT, session: Session | None = None) -> Execution:
        """A session of a task under these conditions, in which programs run one after the other.

        ``session`` is one that somebody has opened already, which is used as it is.
        """
        return Execution(
            task.environment,
            task.tools,
            scenario=task.scenario,
            seed=task.seed,
            rules=rules_under(rules, self.time_limit, self.isolation),
            caller=self.caller,
            clock=task.clock or self.clock,
            hazards=self.hazards_of(task),
            opening=task.opening,
            appear=task.appear,
            task=task.id,
            session=session,
        )

    def once(self, program: Program, task: Task, rules: ExecutionRules) -> Trace:
        """What comes of a program in a session of a task under these conditions that is opened for it alone."""
        if task.appear or task.opening is not None:
            with closing(self.execution(task, rules)) as execution:
                return execution.run(program)
        if self.time_limit is not None or self.isolation is not None:
            rules = rules_under(rules, self.time_limit, self.isolation)
        return execute(
            program,
            task.environment,
            task.tools,
            scenario=task.scenario,
            seed=task.seed,
            rules=rules,
            caller=self.caller,
            clock=task.clock or self.clock,
            hazards=self.hazards_of(task),
        )

    def user(self, task: Task) -> User | None:
        """A user for one episode of a task; ``None`` for a task that names none.

        Raises :class:`callwright.errors.DataError` for a user that does not exist or cannot have these options.
        """
        if task.user is None:
            return None
        from callwright.walk.users.kinds import usual_kinds

        return (self.users or usual_kinds()).begin(task, self.seed)


@lru_cache(maxsize=256)
def rules_under(rules: ExecutionRules, time_limit: float | None, isolation: Isolation | None) -> ExecutionRules:
    """The rules, with the limits of the conditions where they state none themselves."""
    return evolve(rules, time_limit=rules.time_limit or time_limit, isolation=rules.isolation or isolation)


DEFAULT_CONDITIONS = Conditions()
