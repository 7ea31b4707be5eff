"""Attempts: what a model did about a task, in one turn or more, with everything that is known of it.

There is one trajectory, and this is it. It comes about in three ways:

    Attempt(task, text, parser)                  # written: one completion or several, executed when somebody asks
    conversation.attempt                         # lived: made turn by turn in a session (callwright.episodes)
    Attempt.told(task, parser, turns)            # told: it happened elsewhere, outcomes included; never executed here

Every reward scores every attempt. What it reads of one of several turns is the program of all turns, everything that
was executed, and as the answer what the last turn with calls returned; of a single turn, just that turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from attrs import evolve

from callwright.errors import Abstention, InfrastructureFailure, UsageError
from callwright.language.parser import OneBlock, ParseFailure, Parser, Span
from callwright.language.program import Program
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import Validation, validate
from callwright.walk.calls.handles import all_with_handles
from callwright.walk.calls.parsing import check_parsed, parsed, parser_bug
from callwright.walk.completion import Completion, completions_of
from callwright.walk.conditions import DEFAULT_CONDITIONS, Conditions, Progress
from callwright.walk.execution import STRICT, Execution, ExecutionRules, unresolved
from callwright.walk.limits import CUT_OFF, StopReason
from callwright.walk.tasks import Task
from callwright.walk.trace import Trace
from callwright.walk.turn import Turn, by_user_turn, joined_program, joined_trace, last_words, with_references_resolved
from callwright.walk.users.said import Said, UserTurn
from callwright.walk.users.world import GOAL, UNASKED, goal_after

if TYPE_CHECKING:
    from callwright.environments.goals.comparing import Comparison

_NOTHING = Completion("")
_NO_CALLS = Program()
_has_one_block = lru_cache(maxsize=256)(lambda kind: issubclass(kind, OneBlock))


class Attempt:
    """A task and the completions of one attempt at it, parsed, validated and executed once for all rewards.

    Turns are executed one after the other in one session of the task's scenario and seed. Each refers to its own calls
    only; results of earlier turns come as literals. What the task's user did after a turn (:attr:`Turn.user`) is done
    again with it. Where a turn is not a program, ``failure`` says why, and
    ``program``, ``validation`` and ``trace`` are ``None``, while ``whole`` and ``whole_trace`` still hold what the
    other turns did. Ids of calls are numbered on over the turns, so that they stay distinct.

    ``stop`` is why a lived attempt ended; ``None`` if nobody drove it. ``truncated``: a limit of length cut it off, so
    that the model was not done; what that earns is the reward's to say.
    """

    # What is not known yet of an attempt, of the class and not set for each: one is made for every rollout.
    truncated = False  # not a property: rewards read it of every attempt
    stop: StopReason | None = None
    _is_told = False
    _said: tuple[Said | None, ...] = ()
    #: What the user's calls came to when a written attempt was executed, by the number of the turn.
    _acted: Mapping[int, UserTurn] = MappingProxyType({})
    _masked_outside: str | None = None
    #: What was paid for an answer that is no turn, as that of a filter (:attr:`.completion.Completion.usage`).
    usage_outside: Mapping[str, float] | None = None
    _turns: tuple[Turn, ...] | None = None
    _ran: list[Trace] | None = None
    _parts: tuple[Program | ParseFailure, ...] | None = None
    _parsed: Program | ParseFailure | None = None
    _whole: Program | None = None
    _validation: Validation | None = None
    _strict_trace: Trace | None = None
    _second: tuple[tuple[int, Span], ...] | None = None
    #: What the task's goal came to, or why that is not known; asked of the session in which the attempt ran.
    _goal: Any = UNASKED

    def __init__(
        self,
        task: Task,
        completion: Completion | str | Sequence[Completion | str],
        parser: Parser,
        conditions: Conditions = DEFAULT_CONDITIONS,
        *,
        said: Iterable[Said | None] = (),
    ) -> None:
        """``said`` is what the task's user said and did after each completion, where it is known.

        Raises :class:`callwright.UsageError` for a task, a completion or a form that is something else: it would be a
        reward's bug when it is scored.
        """
        if not hasattr(parser, "parse"):
            if isinstance(parser, str):  # elsewhere a name will do
                raise UsageError(f"an attempt takes a form itself, not its name: callwright.parser({parser!r})")
            raise UsageError(
                f"the form (ir) of an attempt is one such as callwright.parser('json'), not {parser!r:.80}"
            )
        if type(task) is not Task and not isinstance(task, Task):
            raise UsageError(f"an attempt takes a task itself, not {task!r:.80}: callwright.corpus(…).task(id) has it")
        self.task = task
        self.parser = parser
        self.conditions = conditions
        if isinstance(completion, str):
            self._completions: tuple[Completion, ...] = (Completion(completion),)
        elif isinstance(completion, Completion):
            self._completions = (completion,)
            if completion.truncated:
                self.truncated = True
        else:
            self._completions = completions_of(completion)
            self.truncated = self.completion.truncated
        if said:
            self._said = tuple(said)
        self._traces: dict[ExecutionRules, Trace] = {}

    @classmethod
    def of(
        cls,
        task: Task,
        parser: Parser,
        turns: Iterable[Turn],
        conditions: Conditions = DEFAULT_CONDITIONS,
        *,
        stop: StopReason | None = None,
        masked: str | None = None,
        usage: Mapping[str, float] | None = None,
        goal: Any = UNASKED,
    ) -> Attempt:
        """A lived attempt: turns that were executed in one session here, under the strict rules.

        ``masked`` is how the machinery failed outside the session, if it did, and ``usage`` what was paid for that;
        ``goal`` is what :func:`callwright.walk.users.world.goal_after` said of the session at its end.
        Rules that differ from the strict ones execute all turns again in a fresh session.
        """
        made = cls(task, (), parser, conditions)
        made._set_turns(tuple(turns))
        made.stop, made._masked_outside, made.usage_outside = stop, masked, usage
        made.truncated = made.truncated or stop in CUT_OFF
        if goal is not UNASKED:
            made._goal = goal
        return made

    @classmethod
    def told(
        cls,
        task: Task,
        parser: Parser,
        turns: Iterable[Turn],
        conditions: Conditions = DEFAULT_CONDITIONS,
        *,
        masked: str | None = None,
        goal: Any = UNASKED,
    ) -> Attempt:
        """An attempt that was made elsewhere, with the outcomes that its calls had (:func:`callwright.walk.told_turn`).

        ``masked`` is why it must not become a number, ``goal`` what the session said of the task's goal, if asked.
        Nothing of it is ever executed by a reward. What the record does not know (an ``unknown`` outcome, a digest that
        nobody took, what other rules would have made of a reference) raises :class:`callwright.errors.Abstention`,
        which masks a reward. :func:`callwright.walk.replay` compares the record with a fresh session.
        """
        made = cls(task, (), parser, conditions)
        made._set_turns(tuple(with_references_resolved(turn, task.tools) for turn in turns))
        made._is_told, made._masked_outside = True, masked
        if goal is not UNASKED:
            made._goal = goal
        return made

    def _set_turns(self, turns: tuple[Turn, ...]) -> None:
        self._turns = turns
        self._completions = tuple(turn.completion for turn in turns)
        if any(turn.user is not None for turn in turns):
            self._said = tuple(None if turn.user is None else turn.user.said for turn in turns)
        self._parts = tuple(turn.parsed for turn in turns)
        self.truncated = self.completion.truncated

    def at(self, progress: Progress | None) -> Attempt:
        """The same attempt, seen at another point of a training. Nothing is parsed or executed again."""
        return self.under(evolve(self.conditions, progress=progress))

    def under(self, conditions: Conditions) -> Attempt:
        """The same attempt under other conditions. Nothing is parsed or executed again."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.conditions = conditions
        return other

    def again(self) -> Attempt:
        """The same attempt, for another try at a reward that could not find out: what other rules made of it, in
        sessions that may have failed, is forgotten. What is known of the session in which it ran stays.
        """
        if self._is_told:  # nothing of it is ever executed
            return self
        if self._turns is None:
            return Attempt(self.task, self._completions, self.parser, self.conditions, said=self._said)
        return Attempt.of(
            self.task,
            self.parser,
            self._turns,
            self.conditions,
            stop=self.stop,
            masked=self._masked_outside,
            usage=self.usage_outside,
            goal=UNASKED if isinstance(self._goal, Exception) else self._goal,
        )

    # What was written ------------------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        """As a notebook shows it: the query, each call with what came of it, and what could not be read."""
        from callwright.language.markup import table

        rows: list[tuple[object, ...]] = [
            (record.call, record.tool, record.arguments, record.outcome.kind, record.outcome.value)
            if record.outcome.executed
            else (record.call, record.tool, record.arguments, record.outcome.kind, record.outcome.message)
            for record in self.whole_trace.records
        ]
        if self.failure is not None:
            rows.append(("", "", "", self.failure.code, self.failure.message))
        return table(("call", "tool", "arguments", "outcome", "value"), rows, self.task.query)

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        return self.task.tools

    @property
    def progress(self) -> Progress | None:
        """How far training is, for rewards with a schedule."""
        return self.conditions.progress

    @property
    def completions(self) -> tuple[Completion, ...]:
        """The completions, one a turn."""
        return self._completions

    @property
    def completion(self) -> Completion:
        """The last completion; an empty one if the machinery failed before the first."""
        return self._completions[-1] if self._completions else _NOTHING

    @property
    def parts(self) -> tuple[Program | ParseFailure, ...]:
        """What the parser made of each completion. Raises :class:`callwright.errors.ComponentError` if it raises."""
        parts = self._parts
        if parts is None:
            if len(self._completions) == 1:
                parts = (self.parsed,)
            else:
                read = [parsed(self.parser, one, self.task) for one in self._completions]
                parts = all_with_handles(read, self.task, self.parser)
            self._parts = parts
        return parts

    @property
    def parsed(self) -> Program | ParseFailure:
        """The program of all turns, or the first failure."""
        found = self._parsed
        if found is None:
            if self._parts is None and len(self._completions) == 1:  # nearly all, so without a detour
                completion = self._completions[0]
                try:
                    found = self.parser.parse(completion.text)
                except Exception as error:
                    what = f"raised {type(error).__name__}: {error}"
                    raise parser_bug(self.parser, completion, self.task, what) from error
                kind = type(found)
                if kind is not Program and kind is not ParseFailure:
                    check_parsed(self.parser, completion, self.task, found)
            elif len(self.parts) == 1:
                found = self.parts[0]
            else:
                found = next((part for part in self.parts if isinstance(part, ParseFailure)), None) or self.whole
            self._parsed = found
        return found

    @property
    def program(self) -> Program | None:
        """The program of all turns, or ``None`` if a turn is not one."""
        found = self._parsed or self.parsed
        return found if isinstance(found, Program) else None

    @property
    def failure(self) -> ParseFailure | None:
        """Why the first turn that is not a program is none, or ``None`` if all are."""
        found = self._parsed or self.parsed
        return found if isinstance(found, ParseFailure) else None

    @property
    def second_blocks(self) -> tuple[tuple[int, Span], ...]:
        """Completions, by number, that hold a second complete tool-call block, with the place of it.

        Empty for forms in which several blocks are one answer (:class:`callwright.language.parser.OneBlock`).
        """
        found = self._second
        if found is None:
            form, written = self.one_block, self._completions
            if form is None:
                found = ()
            elif len(written) == 1:  # nearly all, so without a detour
                span = form.second_block(written[0].text)
                found = () if span is None else ((0, span),)
            else:
                spans = [form.second_block(completion.text) for completion in written]
                found = tuple((number, span) for number, span in enumerate(spans) if span is not None)
            self._second = found
        return found

    @property
    def one_block(self) -> OneBlock | None:
        """The parser, if its completions hold one tool-call block, so that it can tell what else they hold."""
        return self.parser if _has_one_block(type(self.parser)) else None  # type: ignore[return-value]

    @property
    def whole(self) -> Program:
        """The calls of every turn that is a program."""
        if self._whole is None:
            self._whole = joined_program(self._programs)
        return self._whole

    @property
    def validation(self) -> Validation | None:
        """Every schema mismatch of all turns; ``None`` if one of them is not a program."""
        if self._validation is None:
            program = self.program
            if program is not None:
                self._validation = validate(program, self.task.tools)
        return self._validation

    # What came of it -------------------------------------------------------------------------------------------------

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns; those of a written attempt are executed now if they were not."""
        if self._turns is None:
            parts = self.parts
            traces = iter(self._strict())
            made = [
                Turn(completion, part, next(traces, None) if isinstance(part, Program) else None)
                for completion, part in zip(self._completions, parts, strict=True)
            ]
            for at, user in self._acted.items():
                made[at] = evolve(made[at], user=user)
            self._turns = tuple(made)
        return self._turns

    @property
    def user_turns(self) -> tuple[tuple[Turn, ...], ...]:
        """The turns by the message of the user that they work on, from the query on: what a step is to benchmarks."""
        return by_user_turn(self.turns)

    @property
    def said(self) -> tuple[Said | None, ...]:
        """What the task's user said and did after each completion; empty where no user was asked."""
        return self._said

    @property
    def trace(self) -> Trace | None:
        """What was executed, under the strict rules; ``None`` if a turn is not a program."""
        return self._strict_trace or self.execution(STRICT)

    @property
    def executed_traces(self) -> tuple[Trace, ...]:
        """What was executed so far, under one set of rules. Unlike the others it executes nothing."""
        if self._turns is not None:
            return tuple(turn.trace for turn in self._turns if turn.trace is not None)
        return tuple(self._traces.values())[:1]

    @property
    def whole_trace(self) -> Trace:
        """Everything that was executed, also where a turn is not a program."""
        trace = self._traces.get(STRICT)
        if trace is None:
            ran = self._strict()
            trace = ran[0] if len(ran) == 1 == len(self.parts) else joined_trace(self._programs, ran)
            if self._said:
                trace = evolve(trace, ended=self._ended())
            self._traces[STRICT] = trace
        return trace

    def execution(self, rules: ExecutionRules) -> Trace | None:
        """What was executed under some rules, once per set of rules; ``None`` if a turn is not a program.

        Raises :class:`callwright.errors.Abstention` for a told attempt in which a reference came to nothing: what other
        rules than the strict ones would have made of it is not known.
        """
        program = self._parsed or self.parsed
        if not isinstance(program, Program):
            return None
        trace = self._traces.get(rules)
        if trace is None:
            if self._turns is None and len(self._completions) == 1 and not self._said:  # nearly all: without a detour
                trace = self._run_one(program, rules)
            elif rules == STRICT or (self._is_told and not unresolved(self.whole_trace)):
                trace = self.whole_trace  # where every reference came to something, all rules give the same
            elif self._is_told:
                raise Abstention(
                    "the attempt was made elsewhere; what its references would have come to under other rules is not "
                    "known"
                )
            else:
                trace = joined_trace(self._programs, self._run(rules))
            self._traces[rules] = trace
        if rules is STRICT:
            self._strict_trace = trace
        return trace

    @property
    def goal(self) -> Comparison | None:
        """What the task's goal (its fact ``goal``) comes to: the session in which it ran is asked, at its end.

        ``None`` without a goal, for a told attempt of which nobody asked, and where sessions check none. Raises
        :class:`callwright.InfrastructureFailure` where the machinery failed, and
        :class:`callwright.errors.DataError` for a goal that is not of the task's environment.
        """
        if GOAL not in self.task.facts or (self._is_told and self._goal is UNASKED):
            return None
        if self._goal is UNASKED and self._turns is None:
            self._strict()
        if self._goal is UNASKED:  # nobody asked when it ran
            self._run(STRICT)
        if isinstance(self._goal, Exception):
            raise self._goal
        return self._goal  # type: ignore[no-any-return]

    @property
    def failed_executions(self) -> Mapping[ExecutionRules, Trace]:
        """What was executed by rules other than the strict ones where the machinery failed: it masks the attempt."""
        return {rules: trace for rules, trace in self._traces.items() if rules != STRICT and trace.masked is not None}

    def learn(self, executions: Mapping[ExecutionRules, Trace]) -> None:
        """Take over what came of executing the attempt elsewhere, such as where it was scored."""
        self._traces.update(executions)

    @property
    def is_told(self) -> bool:
        """Whether the attempt was made elsewhere, so that nothing of it may be executed."""
        return self._is_told

    @property
    def cut_short(self) -> str | None:
        """How the machinery kept the model from what it was to write; ``None`` if it did not.

        A session that fails in a single turn does not: all that the model was to write is there, and a call of its own
        that failed before the machinery did decides what it is worth.
        """
        written = self._completions
        reason = self._masked_outside or (written[-1].masked if written else None)
        if reason is None and self.stop == "machinery" and not self.conditions.limits.single:
            reason = self.masked
        return reason

    @property
    def masked(self) -> str | None:
        """Why this attempt must not become a number: the machinery failed while it ran. ``None`` if it did not."""
        reason = self._masked_outside or self.completion.masked
        if reason is not None:
            return reason
        for turn in self._turns or ():
            if turn.trace is not None and turn.trace.infrastructure is not None:
                return self.whole_trace.masked  # which numbers calls over the turns
        for user in self._users():
            if user.trace is not None and user.trace.infrastructure is not None:
                return f"of the user: {user.trace.masked}"
        for trace in self._traces.values():
            if trace.masked is not None:
                return trace.masked
        return None

    @property
    def _programs(self) -> list[Program]:
        return [part for part in self.parts if isinstance(part, Program)]

    def _strict(self) -> list[Trace]:
        """The trace of each turn that is a program, under the strict rules; those of a written attempt run once."""
        if self._ran is None:
            if self._turns is None:
                known = self._traces.get(STRICT) if len(self._completions) == 1 else None
                self._ran = self._run(STRICT) if known is None else [known]
            else:
                self._ran = [turn.trace for turn in self._turns if turn.trace is not None]
        return self._ran

    def _run_one(self, program: Program, rules: ExecutionRules) -> Trace:
        task, conditions = self.task, self.conditions
        if rules == STRICT and GOAL in task.facts:
            return self._run(rules)[0]
        return conditions.once(program, task, rules)

    def _run(self, rules: ExecutionRules) -> list[Trace]:
        """The trace of each turn that is a program, in a fresh session, up to the first that the machinery ended."""
        programs = self._programs
        stated = rules == STRICT and GOAL in self.task.facts
        if len(programs) == 1 and not self._said and not stated:
            return [self._run_one(programs[0], rules)]
        execution = self.conditions.execution(self.task, rules)
        traces: list[Trace] = []
        try:
            for at, part in enumerate(self.parts):
                said = self._said[at] if at < len(self._said) else None
                if isinstance(part, Program):
                    traces.append(execution.run(part))
                    if traces[-1].infrastructure is not None:
                        break
                else:
                    execution.run(_NO_CALLS)  # if another turn follows, it ended that of the user
                if said is not None and not self._again(execution, at, said, rules):
                    break
            if stated:
                lost = self._masked_outside or (traces[-1].masked if traces else None)
                said_last = last_words(self.completion, self.parts[-1]) if self.parts else ""
                self._goal = InfrastructureFailure(lost) if lost else goal_after(execution.look, self.task, said_last)
        finally:
            execution.close()
        return traces

    def _again(self, execution: Execution, at: int, said: Said, rules: ExecutionRules) -> bool:
        """Have the user do again what it did after a turn; whether the machinery lets the next turn follow."""
        try:
            acted = execution.act(said.calls)
        except InfrastructureFailure as error:
            self._masked_outside = self._masked_outside or f"of the user: {error}"
            return False
        if rules == STRICT:
            self._acted = {**self._acted, at: UserTurn(said, evolve(acted, ended=acted.final_state))}
        if acted.infrastructure is not None:
            self._masked_outside = self._masked_outside or f"of the user: {acted.masked}"
            return False
        return True

    def _users(self) -> Iterable[UserTurn]:
        if not self._said:
            return ()
        if self._turns is None:
            return self._acted.values()
        return [turn.user for turn in self._turns if turn.user is not None]

    def _ended(self) -> str:
        """The digest after the user's turn, if no call of the model followed it."""
        ended = ""
        for turn in self.turns:
            if turn.user is not None and turn.user.trace is not None:
                ended = turn.user.trace.final_state
            elif turn.calls:
                ended = ""
        return ended
