"""Attempts: a completion of a task with everything that is known of it, each thing computed once."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from callwright.errors import ComponentError
from callwright.language.parser import ParseFailure, Parser
from callwright.language.program import Program
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import Validation, validate
from callwright.walk.execution import STRICT, Caller, ExecutionRules, execute
from callwright.walk.sampling import Completion
from callwright.walk.tasks import Task
from callwright.walk.trace import Trace


@frozen
class Progress:
    """How far training is, for rewards with a schedule: ``step`` of ``total_steps``, counted from 0.

    A training that goes on has a ``step`` beyond ``total_steps``.
    """

    step: int
    total_steps: int


class Attempt:
    """A task and a completion, parsed, validated and executed on first use and shared by all components of all rewards.

    Executing under other rules than :data:`callwright.walk.execution.STRICT` is also done once per set of rules.
    """

    def __init__(
        self,
        task: Task,
        completion: Completion | str,
        parser: Parser,
        *,
        seed: int = 0,
        progress: Progress | None = None,
        caller: Caller | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.task = task
        self.completion = Completion(completion) if isinstance(completion, str) else completion
        self.parser = parser
        self.seed = seed
        self.progress = progress
        self._caller = caller
        self._time_limit = time_limit
        self._parsed: Program | ParseFailure | None = None
        self._validation: Validation | None = None
        self._traces: dict[ExecutionRules, Trace] = {}

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The offered tools."""
        return self.task.tools

    @property
    def parsed(self) -> Program | ParseFailure:
        """What the parser made of the text. Raises :class:`callwright.errors.ComponentError` if the parser raises."""
        parsed = self._parsed
        if parsed is None:
            try:
                parsed = self._parsed = self.parser.parse(self.completion.text)
            except Exception as error:
                raise ComponentError(
                    f"parser {self.parser.name!r} raised {type(error).__name__}: {error} (task {self.task.id!r}). "
                    f"This is a bug of the parser; the completion was: {self.completion.text[:400]!r}"
                ) from error
        return parsed

    @property
    def program(self) -> Program | None:
        """The program, or ``None`` if the text is not one."""
        parsed = self.parsed
        return parsed if isinstance(parsed, Program) else None

    @property
    def failure(self) -> ParseFailure | None:
        """Why the text is not a program, or ``None`` if it is one."""
        parsed = self.parsed
        return parsed if isinstance(parsed, ParseFailure) else None

    @property
    def validation(self) -> Validation | None:
        """Every schema mismatch; ``None`` if there is no program."""
        if self._validation is None:
            program = self.program
            if program is not None:
                self._validation = validate(program, self.task.tools)
        return self._validation

    @property
    def trace(self) -> Trace | None:
        """The execution under the strict rules; ``None`` if there is no program."""
        return self.execution(STRICT)

    def execution(self, rules: ExecutionRules) -> Trace | None:
        """The execution under some rules, in a fresh session of the task's scenario; ``None`` without a program."""
        program = self.program
        if program is None:
            return None
        trace = self._traces.get(rules)
        if trace is None:
            task = self.task
            trace = execute(
                program,
                task.environment,
                task.tools,
                scenario=task.scenario,
                seed=self.seed,
                rules=rules if rules.time_limit or not self._time_limit else _limited(rules, self._time_limit),
                caller=self._caller,
            )
            self._traces[rules] = trace
        return trace

    @property
    def masked(self) -> str | None:
        """Why this attempt must not become a number: the machinery failed while it ran. ``None`` if it did not."""
        if self.completion.lost is not None:
            return self.completion.lost
        for trace in self._traces.values():
            if trace.masked is not None:
                return trace.masked
        return None


def _limited(rules: ExecutionRules, seconds: float) -> ExecutionRules:
    return evolve(rules, time_limit=seconds)
