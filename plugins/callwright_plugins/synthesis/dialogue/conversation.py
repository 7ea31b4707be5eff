"""Conversing: a blueprint, played through by the state machine in a live session, becomes a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import define, evolve, field

from callwright.digests import digest_of
from callwright.environments.goals.comparing import equal_states
from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.language.program import Program
from callwright.training.synthesis.synthesizer import Materials
from callwright.training.synthesis.units import Rejected
from callwright.walk.execution import Execution
from callwright.walk.tasks import DISTRACTORS, Answer, Task
from callwright.walk.trace import CallRecord
from callwright.walk.users.said import UserSpec
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Stage
from callwright_plugins.synthesis.dialogue import machine
from callwright_plugins.synthesis.dialogue.asking import HeldBack, Listener, held_back
from callwright_plugins.synthesis.dialogue.gold import (
    Done,
    Segment,
    StageRun,
    expected_failures,
    longest_chain,
    segments_of,
    stated,
)
from callwright_plugins.synthesis.dialogue.offered import NEVER, offered_tools
from callwright_plugins.synthesis.dialogue.surroundings import surroundings
from callwright_plugins.synthesis.dialogue.words import (
    TRIES,
    Voice,
    Words,
    persona_of,
    voice_for,
    voice_of,
    withheld_json,
    words_of,
)
from callwright_plugins.synthesis.dialogue.worlds import environment_of, remembering
from callwright_plugins.synthesis.language.replies import Reply, Several
from callwright_plugins.synthesis.language.replies import stated as facts_in
from callwright_plugins.synthesis.language.values.tokens import words_of as tokens_of

#: Stages of rejection.
_LANGUAGE: Final = "language"
_VALIDATOR: Final = "validator"
_EXECUTION: Final = "execution"
#: A turn of the user that does not come.
_NOT_YET: Final = 1_000
#: Members of results that an answer never repeats.
_SECRET: Final = frozenset("token password passcode pin otp secret cvv code key".split())
#: Facts of what was looked up before the last call that an answer tells.
_OF_EACH: Final = 2
_LEVELS: Final = ("minimal", "missing", "complete")


def converse(blueprint: Blueprint, materials: Materials, seed: int, id: str) -> Task | Rejected:
    """The task that a blueprint becomes, or why it becomes none.

    The calls are made in a fresh session, and come to what the blueprint says. A blueprint over several environments
    (``email+calendar``) is played in these, if that of the materials is among them. The words are those of
    ``materials.teacher``, without one those of the grammar; ``seed`` draws them. Raises
    :class:`callwright.errors.DataError` for a blueprint of another environment, or of tools that are not there, and
    :class:`callwright.InfrastructureFailure` where a teacher or a session is not there.
    """
    own = materials.environment.name
    if blueprint.environment != own and own in blueprint.environment.split("+"):
        several = environment_of(materials.registry, blueprint.environment)
        materials = evolve(materials, environment=several)
    elif blueprint.environment != own:
        raise DataError(
            f"the blueprint is of {blueprint.environment!r:.60}, and the environment is {materials.environment.name!r}"
        )
    talk = _Talk(blueprint, materials, seed, id, words_of(materials.teacher))
    try:
        return talk.run()
    finally:
        talk.close()


@define(slots=False)
class _Talk:
    """One conversation under way. Each state has a method, which says what happened."""

    blueprint: Blueprint
    materials: Materials
    seed: int
    id: str
    words: Words
    number: int = 0
    attempt: int = 0
    #: The user's turns so far, the query included.
    user_turns: int = 0
    gold: list[dict[str, Any]] = field(factory=list)
    said: list[Message] = field(factory=list)
    queries: list[dict[str, Any]] = field(factory=list)
    held: list[HeldBack] = field(factory=list)
    levels: list[str] = field(factory=list)
    done: Done = field(factory=Done)
    #: What is left to do in the stage: the question, the turns with calls.
    asks: bool = False
    waiting: list[Segment] = field(factory=list)
    draft: Program | str = ""
    invalid: str = ""
    rejected: Rejected | None = None

    def __attrs_post_init__(self) -> None:
        materials, blueprint = self.materials, self.blueprint
        self.environment = remembering(materials.environment)
        self.tools = offered_tools(blueprint, materials.environment, materials.registry, self.seed)
        self.appear = {tool: _NOT_YET for tool, stage in blueprint.hidden.items() if stage != NEVER}
        self.execution = Execution(
            self.environment,
            self.tools,
            scenario=blueprint.scenario,
            seed=blueprint.seed,
            appear=self.appear,
            task=self.id,
        )
        self.before = self.execution.look("goal_state")
        self.listener = Listener(materials.registry)

    def close(self) -> None:
        """Give the session back."""
        self.execution.close()

    def run(self) -> Task | Rejected:
        """Follow the table until the conversation is over."""
        states: Mapping[str, Callable[[], str]] = {
            machine.QUERY: self._word_the_query,
            machine.DRAFT: self._draft_the_turn,
            machine.REGENERATE: self._regenerate,
            machine.EXECUTE: self._execute,
            machine.RECOVER: self._recover,
            machine.ASK: self._say,
            machine.ANSWER: self._say,
            machine.EXPLAIN: self._say,
            machine.REFUSE: self._say,
            machine.HEAR: self._hear,
            machine.CONTINUE: self._continue,
        }
        state = machine.BEGIN
        while state not in machine.FINAL:
            state = machine.following(state, states[state]())
        return self._task() if self.rejected is None else self.rejected

    @property
    def stage(self) -> Stage:
        """What the user is about now."""
        return self.blueprint.stages[self.number]

    # Query ------------------------------------------------------------------------------------------------------------

    def _word_the_query(self) -> str:
        stage, registry = self.stage, self.materials.registry
        self.voice: Voice = voice_for(stage, self.materials.environment, registry)
        try:
            earlier = self.blueprint.stages[: self.number]
            persona, seed = persona_of(self.blueprint), self.seed + self.number
            query = self.words.query(stage, self.voice, persona, seed, earlier, self._around)
            held = held_back(query.withheld, stage.asked, self.voice.replies, self.seed + self.number)
        except DataError as error:
            self.rejected = Rejected(_LANGUAGE, "no words say just this", {"why": str(error)[:300]})
            return "no words"
        for tool, at in self.blueprint.hidden.items():
            if at == self.number:
                self.appear[tool] = self.user_turns
        self.listener.learn(held)
        self.held.append(held)
        self.levels.append(stage.information if query.withheld else "complete")
        self.queries.append({"query": query.text, "withheld": withheld_json(query.withheld), "turn": self.user_turns})
        self.said.append(Message.user(query.text))
        self.user_turns += 1
        # A question is for who goes on: where nothing can be done there is nothing to ask for.
        self.asks = bool(held.knows) and stage.ending != "refusal"
        self.waiting = segments_of(stage)
        self.ran = StageRun(stage)
        self.attempt = 0
        return "worded"

    def _around(self) -> dict[str, dict[str, Any]]:
        """What the world of the conversation shows of the things that the user asks about now, as it began."""
        if self.stage.elsewhere:
            return {}  # nothing of it is there
        blueprint = self.blueprint
        return surroundings(self.materials.environment, blueprint.scenario, blueprint.seed, self.stage.asked)

    # Turn -------------------------------------------------------------------------------------------------------------

    def _draft_the_turn(self) -> str:
        if not self.asks and self.waiting:
            self.draft = self.ran.program(self.waiting[0])
            self.invalid = self._invalid_calls(self.draft)
            return "invalid" if self.invalid else "calls"
        reply = self._reply()
        # A question names parameters of the tools that are asked for, anything else is about tools that are there.
        own = voice_of(self.materials.environment, self.materials.registry)
        replies = self.voice.replies if reply.kind == "question" else own.replies
        try:
            text = self.words.say(reply, replies, self.said, self.seed + len(self.gold), self.attempt)
        except DataError as error:
            self.draft, self.invalid = "", str(error)[:200]
            return "invalid"
        self.draft, self.invalid = text, self._invalid_text(text, reply)
        if self.invalid:
            return "invalid"
        return {
            "question": "something is missing",
            "answer": "all is done",
            "failure": "it cannot be done",
            "refusal": "no tool fits",
        }[reply.kind]

    def _reply(self) -> Reply:
        """What is to be said now: by what is missing, what was found, or why nothing was."""
        stage = self.stage
        if self.asks:
            return Reply("question", titles=self.held[-1].titles)
        if stage.ending == "refusal":
            return Reply("refusal")
        last = self.ran.records.get(len(stage.calls) - 1)
        if stage.ending == "failure":
            reason = last.outcome.message if last is not None else ""
            return Reply("failure", code=stage.code, reason=reason or stage.code)
        if last is None:
            return Reply("answer")
        return Reply("answer", facts=self._facts_of(stage, last))

    def _facts_of(self, stage: Stage, last: CallRecord) -> tuple[tuple[str, Any], ...]:
        """What an answer tells: of the last call all that it came to, and a little of what else was asked for."""
        told = dict(facts_in(last.outcome.value))
        asked = {call.tool for call in stage.asked.calls}
        earlier: dict[str, Any] = {}
        for _, record in sorted(self.ran.records.items()):
            spec = self.tools.get(record.tool)
            if record is not last and record.tool in asked and spec is not None and spec.read_only:
                earlier |= {name: one for name, one in facts_in(record.outcome.value)[:_OF_EACH] if name not in told}
        return tuple(one for one in (*earlier.items(), *told.items()) if _may_be_told(*one))

    def _invalid_calls(self, program: Program) -> str:
        """Why calls are no turn of the assistant: a tool that is not offered, or arguments that miss something."""
        offered = {name for name in self.tools if self.appear.get(name, 0) < self.user_turns}
        for call in program.calls:
            if call.tool not in offered:
                return f"{call.tool} is not offered"
            needed = self.tools[call.tool].parameters.get("required", ())
            missing = [name for name in needed if name not in call.arguments]
            if missing and not self._fails(call.id):
                return f"{call.tool} needs {missing[0]}"
        return ""

    def _fails(self, number: int) -> bool:
        """Whether the call with this number in the next turn is to fail."""
        return self.waiting[0].places[number] in expected_failures(self.stage)

    def _invalid_text(self, text: str, reply: Reply) -> str:
        """Why a text is no turn of the assistant: the user would hear something else in it."""
        if not text.strip() or "<tool_call>" in text or "<think>" in text:
            return "it says nothing, or something that is no text"
        heard = self.listener.hears(text)
        wanted = frozenset(self.held[-1].knows) if reply.kind == "question" else frozenset()
        if reply.kind == "question":
            return "" if wanted <= heard and "" not in heard else "the user would not hear what it is asked for"
        return f"the user would take it for a question: {', '.join(sorted(heard))}" if heard else ""

    def _regenerate(self) -> str:
        self.attempt += 1
        if not isinstance(self.draft, Program) and self.attempt <= 2 * TRIES:
            return "another draft"
        reason = "a call is not valid" if isinstance(self.draft, Program) else "no words of the assistant are valid"
        self.rejected = Rejected(_VALIDATOR, reason, {"why": self.invalid[:300], "draft": str(self.draft)[:300]})
        return "used up"

    # Tool execution ---------------------------------------------------------------------------------------------------

    def _execute(self) -> str:
        segment, program = self.waiting[0], self.draft
        assert isinstance(program, Program)
        records = self.execution.run(program).records
        self.ran.records.update(zip(segment.places, records, strict=False))
        expected = expected_failures(self.stage)
        partial = False
        for place, record in zip(segment.places, records, strict=False):
            outcome, code = record.outcome, expected.get(place)
            if (
                outcome.kind == "infrastructure_error"
                or outcome.executed == (code is not None)
                or (code is not None and code not in (outcome.code, outcome.kind))
            ):
                return self._not_as_planned(record.tool, outcome.code or outcome.kind, code or "a result")
            partial = partial or outcome.kind == "partial"
        if len(records) != len(segment.places):
            return self._not_as_planned(program.calls[-1].tool, "no record", "a result")
        self.ran.take(segment, records, self.done, self.user_turns - 1)
        self.gold.append(stated(program))
        self.waiting.pop(0)
        self.attempt = 0
        if segment.failing is not None:
            self.failing = segment.failing
            return "failure"
        return "partial" if partial else "success"

    def _not_as_planned(self, tool: str, found: str, expected: str) -> str:
        evidence = {"tool": tool, "found": found, "expected": expected}
        self.rejected = Rejected(_EXECUTION, "a call does not come to what was planned", evidence)
        return "not as planned"

    def _recover(self) -> str:
        # Which way is planned: what makes up for the failure is the next turn, or nothing is left to be called.
        return self.failing.recovery

    # Response ---------------------------------------------------------------------------------------------------------

    def _say(self) -> str:
        assert isinstance(self.draft, str)
        self.gold.append({"say": self.draft})
        self.said.append(Message.assistant(self.draft))
        self.execution.run(Program())  # the user's turn
        self.attempt = 0
        return "said"

    # Continuation -----------------------------------------------------------------------------------------------------

    def _hear(self) -> str:
        self.asks = False
        self.listener.tell(self.held[-1])
        self.user_turns += 1
        self.said.append(Message.user(" ".join(self.held[-1].tells.values())))
        return "told"

    def _continue(self) -> str:
        self.done.before += len(self.stage.calls)
        self.number += 1
        # How many turns there are was drawn with the plan, with a chance that decays.
        return "follow-up" if self.number < len(self.blueprint.stages) else "nothing is left"

    # The task ---------------------------------------------------------------------------------------------------------

    def _task(self) -> Task | Rejected:
        """The task. Where something is asked for and nothing changes, it is held to its answer, and has no goal: else
        whoever does nothing would reach it.
        """
        blueprint, done = self.blueprint, self.done
        state, program = self.execution.look("goal_state"), self._program()
        unchanged = state is not None and equal_states(self.before, state)
        asks = blueprint.kind in ("task", "clarification")
        goal = {} if state is None or (asks and unchanged) else {"goal": {"state": state}}
        if not goal and (program is None or not asks) and blueprint.kind != "abstention":
            return Rejected(_EXECUTION, "nothing tells whether it was done", {"kind": blueprint.kind})
        foreign = [name for name in self.tools if name not in self.materials.environment.tools]
        return Task(
            id=self.id,
            query=self.queries[0]["query"],
            tools=self.tools,
            answer=_answer(done),
            environment=self.materials.environment,
            scenario=blueprint.scenario,
            seed=blueprint.seed,
            depth=len(done.steps),
            chain=longest_chain(done.steps),
            structure=blueprint.structure,
            program=program,
            facts={
                **goal,
                "gold": self.gold,
                "steps": done.steps,
                "stages": self.queries,
                "blueprint": blueprint.to_json(),
                "kind": blueprint.kind,
                "information": min(self.levels, key=_LEVELS.index),
                "persona": persona_of(blueprint).name,
                "chain_tools": list(blueprint.chain),
                "recovers": list(blueprint.recovers),
                "teacher": self.words.name,
                "family": _family(blueprint),
                "environment": blueprint.environment,
                "changes_nothing": unchanged,
                **({DISTRACTORS: foreign} if foreign else {}),
            },
            user=self._user(goal.get("goal")),
            appear=dict(self.appear),
        )

    def _program(self) -> Program | None:
        """All calls that executed, where they come to the same without those that failed on purpose."""
        if not self.done.calls:
            return None
        program = Program(tuple(self.done.calls), thought="This is what was asked for.")
        if not any(stage.failing or stage.ending == "failure" for stage in self.blueprint.stages):
            return program
        world = {"scenario": self.blueprint.scenario, "seed": self.blueprint.seed}
        execution = Execution(self.environment, self.tools, **world)  # type: ignore[arg-type]
        try:
            trace = execution.run(program)
            same = trace.answer_executed and list(trace.returned) == [self.done.value]
        finally:
            execution.close()
        return program if same else None

    def _user(self, goal: Any) -> UserSpec:
        first, *later = self.held
        then: list[Any] = []
        for held, one in zip(later, self.queries[1:], strict=True):
            more = {"knows": dict(held.knows), "tells": dict(held.tells)} if held.knows else None
            then.append(one["query"] if more is None else {"say": one["query"], **more})
        asked = {name: titles for held in self.held for name, titles in held.asked.items()}
        options = {"knows": dict(first.knows), "asked": asked, "tells": dict(first.tells), "then": then}
        given: dict[str, Any] = {name: value for name, value in options.items() if value}
        if goal is not None:
            given["satisfied"] = goal
        return UserSpec("scripted", given)


def _answer(done: Done) -> Answer:
    """What the last call came to. Forms that return all calls of a turn (chats do) may return more of the last ones:
    how many of them are made in one turn is the policy's.
    """
    if not done.calls:
        return Answer()
    return Answer((done.value,), others=tuple(tuple(done.values[-most:]) for most in range(2, len(done.values) + 1)))


def _may_be_told(name: str, value: Any) -> bool:
    """Whether an answer may repeat a member of a result: no secrets, nothing long."""
    values = value.values if isinstance(value, Several) else (value,)
    return not _SECRET & set(tokens_of(name.replace("_", " "))) and all(len(str(one)) <= 120 for one in values)


def _family(blueprint: Blueprint) -> str:
    """What conversations of the same make have in common: which tools are called for what, in which order."""
    return digest_of(
        [
            blueprint.environment,
            blueprint.kind,
            [
                [stage.ending, stage.code, [one.tool for one in stage.calls], [one.tool for one in stage.asked.calls]]
                for stage in blueprint.stages
            ],
        ]
    )[:16]
