"""A pool for the environments of a run: threads, processes or Ray actors that execute turns and score attempts.

    with pipeline.pool("process", workers=8) as pool:
        drive(episodes, engine, retries=1, pool=pool, ended=lambda episode: …)
        for attempt, reward in pool.scoring(attempts): ...

An episode, with its ids and its messages, stays in this process, and so does what the engine needs. Where the pool has
threads, each takes the answers of the episodes that it began with. Where it has processes or actors, such a thread asks
one of them to parse and execute the turn, in a session that lives there until the episode is over. What comes of it is
the same wherever it is done.

A worker that dies or hangs is replaced, and the turns of its sessions are executed again in fresh ones. What costs
several workers masks its sample.
"""

from __future__ import annotations

import atexit
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from typing import Any, Final, Self

from attrs import evolve

from callwright.episodes.crew import Crew
from callwright.episodes.driving import Episode
from callwright.episodes.worker import (
    SALVAGE,
    ActRequest,
    Answered,
    CloseRequest,
    Done,
    LookRequest,
    Lost,
    Opening,
    Past,
    Request,
    ScoreDone,
    ScoreRequest,
    TurnDone,
    TurnRequest,
    do,
)
from callwright.errors import InfrastructureFailure, UsageError
from callwright.language.parser import ParseFailure, Parser
from callwright.language.program import Call, Program
from callwright.machines.chunk_work import FAREWELL, ChunkWork
from callwright.machines.executors import make_executor
from callwright.machines.job import Job
from callwright.walk.attempt import Attempt
from callwright.walk.conditions import Conditions
from callwright.walk.execution import Caller
from callwright.walk.reward import Reward, RewardRecipe
from callwright.walk.tasks import Task
from callwright.walk.trace import Trace

#: Seconds after which a worker without an answer counts as lost.
STUCK_AFTER: Final = 600.0
_OTHER_PROCESSES: Final = ("process", "ray")
_LATE: Final = (
    "an episode has waited for {limit} for a thread that hangs, and nothing can end a thread; "
    'with executor = "process" its worker is replaced'
)


class EpisodePool:
    """Where the turns of episodes are executed, and their attempts scored.

    ``executor`` and ``workers``: those of :func:`callwright.machines.make_executor`. ``stuck_after`` (seconds): a
    process or an actor without an answer is killed and replaced; a thread without one ends the work, as nothing can end
    it. Workers begin when they are first needed.

    Raises :class:`callwright.UsageError` for parts that no other process can make again.
    """

    def __init__(
        self,
        parser: Parser,
        reward: RewardRecipe,
        caller: Caller | None = None,
        *,
        executor: str = "serial",
        workers: int = 1,
        stuck_after: float = STUCK_AFTER,
    ) -> None:
        self.parser, self.reward = parser, reward
        self._opening = Opening(parser, reward, caller)
        self._executor = make_executor(executor, workers)
        self._stuck_after = stuck_after
        self._elsewhere = executor in _OTHER_PROCESSES
        self._stack = ExitStack()
        self._guard = threading.Lock()
        self._crew: Crew | None = None
        self._asking: Sequence[Callable[[Request], Done]] = ()
        self._here = threading.local()  # which worker the thread at hand asks
        self._homes: dict[int, int] = {}
        self._numbers = count()
        self._lost: dict[tuple[str, tuple[str, ...]], str] = {}
        if self._elsewhere:
            self._check_parts(executor)

    def _check_parts(self, executor: str) -> None:
        try:
            pickle.dumps(self._opening)
        except Exception as error:  # whatever a component of somebody else raises when it is pickled
            raise UsageError(
                f"executor = {executor!r} sends the reward and the textual form to other processes, which cannot be "
                f'done here: {error}. Use executor = "thread"'
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers. Closing twice is allowed; what comes after it begins new ones."""
        with self._guard:
            crew, self._crew, self._asking = self._crew, None, ()
        if crew is not None:
            crew.close()
        self._stack.close()
        self._executor.close()
        atexit.unregister(self.close)

    @property
    def parallel(self) -> bool:
        """Whether anything is done in another place than the thread that asks for it."""
        return self._executor.name != "serial"

    @property
    def scores(self) -> bool:
        """Whether attempts are scored in the pool. A reward that waits is asked from here, where all wait together."""
        return self.parallel and not self.reward.waits

    # Episodes --------------------------------------------------------------------------------------------------------

    def adopt(self, episode: Episode) -> None:
        """Have the turns of an episode executed by the workers, from the first one on."""
        move = getattr(episode, "move", None)
        if self._elsewhere and move is not None and getattr(episode, "parser", None) is self.parser:
            move(self._turns)

    def begin(self, episode: Episode, work: Callable[[], object]) -> Job:
        """Begin with something that belongs to an episode, where its session lives."""

        def there(member: int) -> None:
            self._here.member = member
            work()
            if episode.over:
                self._homes.pop(id(episode), None)
            else:
                self._homes[id(episode)] = member

        return self._opened().submit(there, self._homes.get(id(episode)))

    def wait(self, job: Job) -> Any:
        """What came of it. Raises what it raised."""
        return job.result(None if self._elsewhere else self._stuck_after, _LATE)

    # Attempts --------------------------------------------------------------------------------------------------------

    def score(self, attempt: Attempt) -> Reward:
        """The reward of an attempt, from within something that was begun: by the worker at hand. No hook is told."""
        if not self._elsewhere:
            return self.reward.score_attempt(attempt)
        sent = attempt.under(evolve(attempt.conditions, caller=None, users=None))
        done = self._ask(ScoreRequest(sent))
        if isinstance(done, Lost):
            return Reward(None, {}, masked=done.reason)
        assert isinstance(done, ScoreDone)
        attempt.learn(done.failed)
        return done.reward

    def score_all(self, attempts: Iterable[Attempt]) -> Iterator[Reward]:
        """The rewards of attempts, in their order, by all workers at once. No hook is told."""

        def asked(attempt: Attempt) -> Callable[[int], Reward]:
            def there(member: int) -> Reward:
                self._here.member = member
                return self.score(attempt)

            return there

        crew = self._opened()
        for job in [crew.submit(asked(attempt)) for attempt in attempts]:
            reward: Reward = self.wait(job)
            yield reward

    # Workers ---------------------------------------------------------------------------------------------------------

    def _opened(self) -> Crew:
        with self._guard:
            if self._crew is None:
                if self._elsewhere:
                    farewell = FAREWELL if self.reward.lives else 0.0
                    work = ChunkWork(self._opening.open, do, SALVAGE, self._stuck_after, farewell)
                    self._asking = self._stack.enter_context(self._executor.places(work))
                self._crew = Crew(self._executor.workers)
                atexit.register(self.close)  # a pool that nobody closes would keep its processes waiting for work
            return self._crew

    def _ask(self, request: Request) -> Done:
        member: int = self._here.member
        return self._asking[member](request)

    def _close_session(self, number: int, member: int) -> None:
        """Have a session given back by the worker that holds it; nobody waits for that but its own thread."""
        if getattr(self._here, "member", None) == member:
            self._ask(CloseRequest(number))
        elif self._crew is not None:
            self._crew.submit(lambda member: self._asking[member](CloseRequest(number)), member)

    def _turns(self, task: Task, parser: Parser, conditions: Conditions) -> _Turns:
        return _Turns(self, next(self._numbers), task, evolve(conditions, caller=None, users=None))


class _Turns:
    """The turns of an episode whose session lives with a worker."""

    def __init__(self, pool: EpisodePool, number: int, task: Task, conditions: Conditions) -> None:
        self._pool = pool
        self._past = Past(number, task, conditions)
        self._is_open = False
        self._member = 0

    def take(self, text: str, *, last: bool) -> tuple[Program | ParseFailure, Trace | None]:
        """The next turn. Raises :class:`callwright.InfrastructureFailure` if several workers were lost to it."""
        past = self._past
        self._past = evolve(past, texts=(*past.texts, text), acts=(*past.acts, None))
        done = self._asked(TurnRequest(past, text, last))
        assert isinstance(done, TurnDone)
        self._is_open = done.is_open
        state = done.trace.records[-1].state if done.trace is not None and done.trace.records else past.state
        self._past = evolve(self._past, state=state, opened=past.opened or done.is_open)
        return done.part, done.trace

    def look(self, question: str, *given: Any) -> Any:
        """An answer for the user. Raises :class:`callwright.InfrastructureFailure` if there is none."""
        return self._answered(LookRequest(self._past, question, given))

    def act(self, calls: Sequence[Call]) -> Trace:
        """Calls of the user. Raises :class:`callwright.InfrastructureFailure` if they cannot be run."""
        trace: Trace = self._answered(ActRequest(self._past, tuple(calls)))
        before = self._past.acts[-1] or ()
        self._past = evolve(
            self._past, acts=(*self._past.acts[:-1], (*before, *calls)), state=trace.final_state, opened=True
        )
        return trace

    def close(self) -> None:
        """Give the session back, if it is open."""
        if self._is_open:
            self._is_open = False
            self._pool._close_session(self._past.session, self._member)

    def _answered(self, request: LookRequest | ActRequest) -> Any:
        done = self._asked(request)
        assert isinstance(done, Answered)
        self._is_open = True
        if done.failed:
            raise InfrastructureFailure(done.failed)
        return done.value

    def _asked(self, request: TurnRequest | LookRequest | ActRequest) -> Done:
        pool, past = self._pool, self._past
        known = past.task.id, past.texts
        reason = pool._lost.get(known)  # a retry would cost as many again
        if reason is None:
            done = pool._ask(request)
            if not isinstance(done, Lost):
                self._member = pool._here.member
                return done
            reason = pool._lost[known] = done.reason
        self._is_open = False
        raise InfrastructureFailure(reason)
