"""What a worker does for a run: it executes turns in sessions that live there, and scores attempts.

Requests hold all that another worker needs to go on in place of one that died: the texts of the turns before, which are
executed again in a fresh session, and the digest that they led to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import evolve, field, frozen

from callwright.errors import InfrastructureFailure
from callwright.language.parser import ParseFailure, Parser
from callwright.language.program import Call, Program
from callwright.machines.chunk_work import Salvage
from callwright.walk.attempt import Attempt
from callwright.walk.calls.handles import with_handles
from callwright.walk.calls.parsing import parsed
from callwright.walk.completion import Completion
from callwright.walk.conditions import Conditions
from callwright.walk.execution import Caller, Execution, ExecutionRules, never_begun
from callwright.walk.reward import Reward, RewardRecipe
from callwright.walk.tasks import Task
from callwright.walk.trace import Trace


@frozen
class Past:
    """What happened in the session ``session``, which is a number, so that another worker can go on with it.

    ``texts`` are the completions so far and ``acts`` what the user called after each of them, ``None`` where it had no
    turn; ``state`` is the digest that they led to. ``opened`` says whether there was a session at all.
    """

    session: int
    task: Task
    conditions: Conditions
    texts: tuple[str, ...] = ()
    acts: tuple[tuple[Call, ...] | None, ...] = ()
    state: str = ""
    opened: bool = False


@frozen
class TurnRequest:
    """Parse the next completion and execute it. The session is closed after the ``last`` turn."""

    past: Past
    text: str
    last: bool


@frozen
class LookRequest:
    """Answer a question of the user (:meth:`callwright.walk.Execution.look`)."""

    past: Past
    question: str
    given: tuple[Any, ...]


@frozen
class ActRequest:
    """Run calls of the user (:meth:`callwright.walk.Execution.act`)."""

    past: Past
    calls: tuple[Call, ...]


@frozen
class TurnDone:
    """What the parser made of a completion, what came of it, and whether its session is still open."""

    part: Program | ParseFailure
    trace: Trace | None
    is_open: bool


@frozen
class Answered:
    """What came of a request of the user, or how the machinery failed."""

    value: Any = None
    failed: str = ""


@frozen
class CloseRequest:
    """Give a session back."""

    session: int


@frozen
class ScoreRequest:
    """Score an attempt."""

    attempt: Attempt


@frozen
class ScoreDone:
    """A reward, and what the attempt learned of its failures while it was scored."""

    reward: Reward
    failed: Mapping[ExecutionRules, Trace]


@frozen
class Lost:
    """Several workers were lost to a request; ``reason`` says how."""

    reason: str


Request = TurnRequest | LookRequest | ActRequest | CloseRequest | ScoreRequest
Done = TurnDone | Answered | ScoreDone | Lost | None


@frozen
class Opening:
    """How a worker begins: what it scores with, set up."""

    parser: Parser
    reward: RewardRecipe
    caller: Caller | None

    def open(self) -> Worker:
        """The worker, in this process."""
        self.reward.__enter__()
        return Worker(self.parser, self.reward, self.caller)


@frozen
class Worker:
    """What a worker has: its components, and the open sessions by number, each as its last turn has left it."""

    parser: Parser
    reward: RewardRecipe
    caller: Caller | None
    sessions: dict[int, Execution] = field(factory=dict)

    def do(self, request: Request) -> Done:
        """Answer a request."""
        if isinstance(request, TurnRequest):
            return self._turn(request)
        if isinstance(request, CloseRequest):
            self._close(request.session)
            return None
        if isinstance(request, LookRequest):
            return self._for_user(request.past, lambda execution: execution.look(request.question, *request.given))
        if isinstance(request, ActRequest):
            return self._for_user(request.past, lambda execution: execution.act(request.calls))
        attempt = request.attempt.under(evolve(request.attempt.conditions, caller=self.caller))
        return ScoreDone(self.reward.score_attempt(attempt), attempt.failed_executions)

    def _turn(self, request: TurnRequest) -> TurnDone:
        past = request.past
        part = parsed(self.parser, Completion(request.text), past.task)
        there = self.sessions.get(past.session)
        if not isinstance(part, Program):
            if request.last or past.conditions.limits.unparsed == "episode":
                self._close(past.session)
            elif there is not None:
                there.run(Program())  # the user's turn is over
            return TurnDone(part, None, is_open=past.session in self.sessions)
        if not part.calls and there is None and not past.opened:
            return TurnDone(part, Trace((), part.returns), is_open=False)  # nothing is done, so that none is needed
        try:
            execution = there or self._session(past)
        except InfrastructureFailure as error:
            trace = never_begun(part, error)
        else:
            part = with_handles(part, past.task, self.parser, execution.earlier.count)
            assert isinstance(part, Program)
            trace = execution.run(part)
            self.sessions[past.session] = execution
        if request.last or trace.infrastructure is not None:
            self._close(past.session)
        return TurnDone(part, trace, is_open=past.session in self.sessions)

    def _for_user(self, past: Past, ask: Callable[[Execution], Any]) -> Answered:
        try:
            execution = self._session(past)
            self.sessions[past.session] = execution
            return Answered(ask(execution))
        except InfrastructureFailure as error:
            return Answered(failed=str(error) or "the session was lost")

    def _session(self, past: Past) -> Execution:
        """The session as its turns before have left it; made again if it was another worker's.

        Raises :class:`callwright.InfrastructureFailure` if it does not come out the same.
        """
        execution = self.sessions.get(past.session)
        if execution is not None:
            return execution
        task = past.task
        execution = evolve(past.conditions, caller=self.caller).execution(task)
        state = ""
        try:
            for text, acts in zip(past.texts, past.acts, strict=True):
                read = parsed(self.parser, Completion(text), task)
                part = with_handles(read, task, self.parser, execution.earlier.count)
                trace = execution.run(part if isinstance(part, Program) else Program())
                if trace.records:
                    state = trace.records[-1].state
                if acts is not None:
                    state = execution.act(acts).final_state
        except BaseException:
            execution.close()
            raise
        if state != past.state:
            execution.close()
            raise InfrastructureFailure(
                "the worker that held the session was lost, and the same calls came to something else when they were "
                "executed again"
            )
        return execution

    def _close(self, session: int) -> None:
        held = self.sessions.pop(session, None)
        if held is not None:
            held.close()


def do(worker: Worker, request: Request) -> Done:
    """What an executor runs in each worker."""
    return worker.do(request)


def _parts(request: Request) -> Sequence[Request]:
    return (request,)


def _joined(parts: Sequence[Done]) -> Done:
    return parts[0]


def _lost(request: Request, reason: str) -> Done:
    return Lost(f"several workers were lost to it ({reason})")


#: A request cannot be divided, and one that costs workers masks its sample.
SALVAGE: Final[Salvage[Request, Done]] = Salvage(_parts, _joined, _lost)
