"""A conversation: the state machine is driven through the stages of a blueprint, and every call is executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import define, evolve, field

from callwright.environments.protocol import Environment, Outcome
from callwright.errors import DataError, InfrastructureFailure
from callwright.language.program import Call, Program, Reference, plain
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import validate
from callwright.training.synthesis.synthesizer import Materials
from callwright.training.synthesis.units import Rejected
from callwright.walk.calls.references import resolved_arguments
from callwright.walk.execution import Execution
from callwright.walk.tasks import Task
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Stage
from callwright_plugins.synthesis.dialogue.machine import Event, Machine
from callwright_plugins.synthesis.dialogue.offer import offer
from callwright_plugins.synthesis.dialogue.recording import Due, Recorded, task_of
from callwright_plugins.synthesis.dialogue.words import Asked, ScriptedWords, Words
from callwright_plugins.synthesis.dialogue.worlds import environment_of

_SUCCESS: Final[Mapping[str, Event]] = {"ok": "success", "empty": "success", "partial": "partial success"}

_RECOVERY: Final[Mapping[str, Event]] = {
    "parameters": "other parameters",
    "tool": "another tool",
    "give up": "no way around",
}


def converse(
    blueprint: Blueprint, materials: Materials, seed: int, id: str, words: Words | None = None
) -> Task | Rejected:
    """The task of a blueprint, or why there is none. It hangs on these arguments alone.

    Raises :class:`callwright.InfrastructureFailure` where the session fails.
    """
    environment = environment_of(blueprint.environment, materials)
    return _Conversation(blueprint, materials, seed, words or ScriptedWords(), environment).run(id)


@define
class _Conversation:
    blueprint: Blueprint
    materials: Materials
    seed: int
    words: Words
    environment: Environment
    machine: Machine = field(factory=Machine)
    recorded: Recorded = field(factory=Recorded)
    tools: Mapping[str, ToolSpec] = field(init=False)
    execution: Execution = field(init=False)

    def run(self, id: str) -> Task | Rejected:
        blueprint, environment = self.blueprint, self.environment
        self.tools = offer(blueprint, environment, self.materials, self.seed)
        whole = {**environment.tools, **self.tools}
        self.execution = Execution(environment, whole, scenario=blueprint.scenario, seed=blueprint.seed)
        try:
            first = self.execution.look("goal_state")
            for number, stage in enumerate(blueprint.stages):
                rejected = self._stage(number, stage)
                if rejected is not None:
                    return rejected
                self.machine.on("another request" if number + 1 < len(blueprint.stages) else "no more requests")
            state = self.execution.look("goal_state")
        finally:
            self.execution.close()
        self.recorded.path = tuple(self.machine.path)
        self.recorded.teacher = getattr(self.words, "name", "")
        return task_of(id, blueprint, environment, self.tools, self.recorded, first, state)

    def _stage(self, number: int, stage: Stage) -> Rejected | None:
        environment = self._speaking_of(stage)
        seed = self.seed * 31 + number
        try:
            asked = self._query(stage, environment, seed)
        except DataError as error:
            self.machine.on("unsayable")
            return Rejected("language", "no words say just this", {"stage": number, "error": str(error)[:300]})
        self.machine.on("worded")
        self.recorded.queries.append(asked)
        last: Outcome | None = None
        if stage.ending == "refusal" and not stage.calls:
            self.machine.on("nothing fits")
            self._say(self.words.refusal(environment, seed))
            return None
        if asked.withheld:
            self.machine.on("something is missing")
            self.recorded.gold.append({"say": self.words.question(asked.withheld, environment, seed)})
            self.machine.on("asked")
            self.machine.on("told")
        results: dict[int, Outcome] = {}
        due: dict[int, int] = {}
        for calls in _turns(stage):
            self.machine.on("calls are due")
            program = self._validated(stage, calls, results)
            if isinstance(program, Rejected):
                return program
            made = self._executed(number, stage, calls, program, results, due)
            if isinstance(made, Rejected):
                return made
            last = made
        if self.machine.state == "give up":
            assert last is not None
            self._say(self.words.failure(last.code, last.message, environment, seed))
            return None
        self.machine.on("nothing is left")
        self._say(self.words.answer(None if last is None else last.value, environment, seed))
        return None

    def _speaking_of(self, stage: Stage) -> Environment:
        return environment_of(stage.elsewhere, self.materials) if stage.elsewhere else self.environment

    def _query(self, stage: Stage, environment: Environment, seed: int) -> Asked:
        """The words of a stage. What is left out has a title of its own: else a question is for two things."""
        asked = self.words.query(stage, environment, self.blueprint.persona, seed)
        taken = {one.title for earlier in self.recorded.queries for one in earlier.withheld}
        titles = [one.title for one in asked.withheld]
        if taken.intersection(titles) or len(set(titles)) < len(titles):
            asked = self.words.query(evolve(stage, information="complete"), environment, self.blueprint.persona, seed)
        return asked

    def _say(self, text: str) -> None:
        self.recorded.gold.append({"say": text})
        self.machine.on("said")

    def _validated(self, stage: Stage, calls: Sequence[Call], results: Mapping[int, Outcome]) -> Program | Rejected:
        """The calls of a turn as a program of their own; results of earlier turns stand in it as literal values."""
        own = {call.id: place for place, call in enumerate(calls)}
        known = self.environment.tools
        specs = {one.id: known[one.tool] for one in stage.calls if one.tool in known}
        for literally in (False, True):
            made = []
            for place, call in enumerate(calls):
                try:
                    arguments = _within(call, own, results, specs, literally=literally)
                except LookupError:
                    break
                made.append(Call(place, call.tool, arguments))
            else:
                program = Program(tuple(made), "all" if len(made) > 1 else "one")
                if validate(program, self.tools).valid:
                    self.machine.on("well formed")
                    return program
            self.machine.on("malformed")
            if not literally:
                self.machine.on("another wording")
        self.machine.on("spent")
        tools = [call.tool for call in calls]
        return Rejected("validation", "the calls do not fit what is offered", {"tools": tools})

    def _executed(
        self,
        number: int,
        stage: Stage,
        calls: Sequence[Call],
        program: Program,
        results: dict[int, Outcome],
        due: dict[int, int],
    ) -> Outcome | Rejected:
        trace = self.execution.run(program)
        if trace.masked is not None:
            raise InfrastructureFailure(trace.masked)
        expected = {one.call: one for one in stage.failing}
        self.recorded.gold.append(
            {"calls": [{"tool": one.tool, "arguments": plain(one.arguments)} for one in program.calls]}
        )
        last: Outcome | None = None
        for call, record in zip(calls, trace.records, strict=True):
            last = results[call.id] = record.outcome
            planned = expected.get(call.id)
            arguments = record.arguments if record.arguments is not None else plain(call.arguments)
            if planned is not None:
                if record.outcome.code != planned.code:
                    return self._otherwise(number, call, record.outcome, planned.code)
                self.recorded.failures.append({"tool": call.tool, "code": planned.code, "recovery": planned.recovery})
            elif record.outcome.kind not in _SUCCESS:
                return self._otherwise(number, call, record.outcome, "")
            if planned is None or planned.recovery == "give up":
                after = sorted(due[one] for one, later in stage.edges if later == call.id and one in due)
                due[call.id] = len(self.recorded.due)
                self.recorded.due.append(
                    Due(number, call.tool, dict(arguments), tuple(after), record.outcome, planned is not None, call)
                )
        assert last is not None
        failed = expected.get(calls[-1].id)
        if failed is None:
            self.machine.on(_SUCCESS[last.kind])
            return last
        self.machine.on("failure")
        self.machine.on(_RECOVERY[failed.recovery])
        return last

    def _otherwise(self, number: int, call: Call, outcome: Outcome, planned: str) -> Rejected:
        self.machine.on("otherwise than planned")
        found = outcome.code or outcome.kind
        evidence = {"stage": number, "tool": call.tool, "planned": planned or "ok", "found": found}
        return Rejected("execution", "a call came to something else than was planned", evidence)


def _turns(stage: Stage) -> list[tuple[Call, ...]]:
    """The calls of a stage turn by turn: a turn ends with a call that fails, since that is to be seen first."""
    failing = {one.call for one in stage.failing}
    turns: list[list[Call]] = [[]]
    for call in stage.calls:
        turns[-1].append(call)
        if call.id in failing:
            turns.append([])
    return [tuple(one) for one in turns if one]


def _within(
    call: Call,
    own: Mapping[int, int],
    results: Mapping[int, Outcome],
    specs: Mapping[int, ToolSpec],
    *,
    literally: bool,
) -> dict[str, Any]:
    """The arguments of a call: references within its turn by their new ids, others as what they came to."""
    named = {reference.call for _, reference in call.located}
    earlier = named - own.keys()
    if not named:
        return dict(call.arguments)
    if earlier - results.keys() or (literally and named - earlier):
        raise LookupError
    if named == earlier:  # as the executor resolves them, results of one field included
        found = resolved_arguments(call, results, specs)
        if found is None:
            raise LookupError
        return dict(found)
    return {key: _mixed(value, own, results) for key, value in call.arguments.items()}


def _mixed(value: Any, own: Mapping[int, int], results: Mapping[int, Outcome]) -> Any:
    if isinstance(value, Reference):
        if value.call in own:
            return Reference(own[value.call], value.path)
        found: Any = results[value.call].value
        for part in value.path:
            try:
                found = found[part]
            except (KeyError, IndexError, TypeError) as error:
                raise LookupError from error
        return found
    if isinstance(value, Mapping):
        return {key: _mixed(inner, own, results) for key, inner in value.items()}
    return [_mixed(one, own, results) for one in value] if isinstance(value, list | tuple) else value
