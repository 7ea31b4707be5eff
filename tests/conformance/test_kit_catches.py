"""Each check of the conformance kit can fail: for every one there is a component that is wrong in just that way."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import random
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import click
import pytest
from attrs import evolve, frozen

import callwright as cw
from callwright.environments.sizes import Bounds, TooLarge, check_result, held_to
from callwright.errors import CannotExpress, DataError, UnknownName
from callwright.language import ParseLimits
from callwright.measuring.benchmark import CorpusBenchmark, Judgement
from callwright.plugins import KINDS
from callwright.testing import check_component, checks_for
from callwright.testing.sample import SHOP, SampleForm, sample_tasks
from callwright.testing.synthesis.shop import Prices
from callwright.tools.spec import FunctionTool
from callwright.training import Rejected, TeacherFailure, TeacherReply
from callwright.training.reporter import SILENT
from callwright.walk import answers_match

#: ``(kind, check, message, component)``: the check must fail on it, saying this.
CASES: list[Any] = []


def case(kind: str, check: str, message: str, **context: Any) -> Callable[[Any], Any]:
    """Register what a decorated class or function makes as a component that must fail a check."""

    def register(make: Any) -> Any:
        CASES.append(pytest.param(kind, check, message, make, context, id=f"{check}-{make.__name__}"))
        return make

    return register


# Parsers --------------------------------------------------------------------------------------------------------------


class Form:
    """A sound form, to be broken in one place at a time."""

    name = "form"

    def __init__(self, **limits: int) -> None:
        self.inner = SampleForm(evolve(SampleForm().limits, **limits))

    def parse(self, text: str) -> Any:
        return self.inner.parse(text)

    def render(self, program: cw.Program) -> str:
        return self.inner.render(program)

    def instructions(self) -> str:
        return self.inner.instructions()


def with_arguments(program: Any, change: Callable[[Any], Any]) -> Any:
    """The program with every value inside of its arguments changed."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: walk(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [walk(inner) for inner in value]
        return change(value)

    if not isinstance(program, cw.Program):
        return program
    return evolve(program, calls=tuple(evolve(call, arguments=walk(call.arguments)) for call in program.calls))


@case("parser", "check_attributes", "name must be a string that is not empty")
class Nameless(Form):
    name = ""


@case("parser", "check_attributes", "lacks instructions, render of callwright.Parser")
class OnlyParses:
    name = "only-parses"

    def parse(self, text: str) -> Any:
        return SampleForm().parse(text)


@case("parser", "check_total", "raised UnicodeEncodeError")
class Encodes(Form):
    def parse(self, text: str) -> Any:
        text.encode("utf-8")
        return super().parse(text)


@case("parser", "check_total", "raised RecursionError")
class Recurses(Form):
    def parse(self, text: str) -> Any:
        def balanced(at: int) -> int:
            return balanced(at + 1) if text[at : at + 1] in ("[", "{") else at

        balanced(0)
        return super().parse(text)


@case("parser", "check_total", "it must give a Program or a ParseFailure")
class GivesNothing(Form):
    def parse(self, text: str) -> Any:
        return super().parse(text) if text else None


@case("parser", "check_failures", "is not within the")
class SpansTooFar(Form):
    def parse(self, text: str) -> Any:
        found = super().parse(text)
        return evolve(found, span=(0, len(text) + 1)) if isinstance(found, cw.ParseFailure) else found


@case("parser", "check_failures", "a code is lower-case words")
class CodesInWords(Form):
    def parse(self, text: str) -> Any:
        found = super().parse(text)
        return evolve(found, code="Not JSON!") if isinstance(found, cw.ParseFailure) else found


@case("parser", "check_failures", "is no stage of a ParseFailure")
class OddStage(Form):
    def parse(self, text: str) -> Any:
        found = super().parse(text)
        return evolve(found, stage="somewhere") if isinstance(found, cw.ParseFailure) else found


@case("parser", "check_failures", "says nothing")
class Silent(Form):
    def parse(self, text: str) -> Any:
        found = super().parse(text)
        return evolve(found, message="") if isinstance(found, cw.ParseFailure) else found


@case("parser", "check_programs", "which JSON does not know")
class LenientNumbers(Form):
    def parse(self, text: str) -> Any:
        found = super().parse(text.replace("1e999", "888"))
        return with_arguments(found, lambda value: float("inf") if value == 888 else value)


@case("parser", "check_programs", "two calls with one id")
class SameIds(Form):
    def parse(self, text: str) -> Any:
        found = super().parse(text)
        if isinstance(found, cw.Program):
            return evolve(found, calls=tuple(evolve(call, id=0) for call in found.calls))
        return found


@case("parser", "check_programs", "holds a tuple, which is not JSON")
class Tuples(Form):
    def parse(self, text: str) -> Any:
        return with_arguments(super().parse(text), lambda value: (value,) if value == 3 else value)


@case("parser", "check_programs", "raised UnicodeEncodeError")
class HalfCharacters(Form):
    def parse(self, text: str) -> Any:
        return with_arguments(super().parse(text), lambda value: "\ud800" if value == "Oslo" else value)


@case("parser", "check_purity", "does it hold state")
class Tired(Form):
    parsed = 0

    def parse(self, text: str) -> Any:
        self.parsed += 1
        return super().parse(text if self.parsed < 1000 else "")


@case("parser", "check_round_trip", "is not the program; what a form cannot express")
class Floats(Form):
    def parse(self, text: str) -> Any:
        return with_arguments(super().parse(text), lambda value: str(value) if type(value) is float else value)


@case("parser", "check_round_trip", "raised TypeError: .*what it cannot write is CannotExpress")
class RendersTextOnly(Form):
    def render(self, program: cw.Program) -> str:
        for call in program.calls:
            if None in call.arguments.values():
                raise TypeError("None is no text")
        return super().render(program)


@case("parser", "check_round_trip", "render refuses even a single call")
class RefusesNumbers(Form):
    def render(self, program: cw.Program) -> str:
        if any(type(value) is int for call in program.calls for value in call.arguments.values()):
            raise CannotExpress("numbers")
        return super().render(program)


@case("parser", "check_round_trip", "render gave bytes")
class RendersBytes(Form):
    def render(self, program: cw.Program) -> Any:
        return super().render(program).encode()


@case("parser", "check_normal_form", "and read again as")
class Templates(Form):
    def render(self, program: cw.Program) -> str:
        return super().render(program).replace("{{7*7}}", "49")


@case("parser", "check_no_call", "render refuses the program without calls")
class AlwaysCalls(Form):
    def render(self, program: cw.Program) -> str:
        if not program.calls:
            raise CannotExpress("nothing to write")
        return super().render(program)


@case("parser", "check_no_call", "is read as ParseFailure")
class NeedsCalls(Form):
    def parse(self, text: str) -> Any:
        found = super().parse(text)
        if isinstance(found, cw.Program) and not found.calls:
            return cw.ParseFailure("structure", "no_calls", "there are no calls", (0, 0))
        return found


@case("parser", "check_thought", "is not in the rendered text")
class Thoughtless(Form):
    def render(self, program: cw.Program) -> str:
        return super().render(evolve(program, thought=""))


@case("parser", "check_thought", "is read back as ''")
class Forgetful(Form):
    def parse(self, text: str) -> Any:
        found = super().parse(text)
        return evolve(found, thought="") if isinstance(found, cw.Program) else found


@case("parser", "check_limits", "more than 400000 characters gave Program")
class AnyLength(Form):
    def parse(self, text: str) -> Any:
        return super().parse(text.strip())


@case("parser", "check_limits", "257 calls are beyond the limits, but are written and read")
class AnyNumber(Form):
    def __init__(self) -> None:
        super().__init__(calls=10_000)


@case("parser", "check_limits", "66 levels are beyond the limits, but are written and read")
class AnyDepth(Form):
    def __init__(self) -> None:
        super().__init__(nesting=100)


@case("parser", "check_limits", "more calls than its limits allow gave Program")
@frozen
class IgnoresItsLimits:
    limits: ParseLimits = SampleForm().limits
    name = "ignores"

    def parse(self, text: str) -> Any:
        return SampleForm().parse(text)

    def render(self, program: cw.Program) -> str:
        return SampleForm().render(program)

    def instructions(self) -> str:
        return SampleForm().instructions()


@case("parser", "check_linear", "does a pattern backtrack over '<'")
class Backtracks(Form):
    def parse(self, text: str) -> Any:
        re.search(r"<[^>]*>$", text)
        return super().parse(text)


@case("parser", "check_instructions", "instructions.. is empty")
class Speechless(Form):
    def instructions(self) -> str:
        return " "


@case("parser", "check_instructions", "what to write when no call is to be made")
class SaysNothingOfNoCall(Form):
    def instructions(self) -> str:
        return "Write your calls as JSON."


@case("parser", "check_instructions", "two different texts")
class Chatty(Form):
    said = 0

    def instructions(self) -> str:
        self.said += 1
        return f"No call: []. (You were told {self.said} times.)"


@case("parser", "check_pickles_before_use", "pickling the parser raised .*say in __reduce__ how to make it again")
class HoldsAFunction(Form):
    def __init__(self) -> None:
        super().__init__()
        self.clean = lambda text: text


@case("parser", "check_pickles_before_use", "another process makes ParseFailure")
class ForgetsItsLimits(Form):
    def __reduce__(self) -> Any:
        return Form, (), {"inner": SampleForm(ParseLimits(characters=10))}


@case("parser", "check_pickles_after_use", "pickling the parser, after it was used, raised TypeError")
class HoldsAGenerator(Form):
    def parse(self, text: str) -> Any:
        self.lines = (line for line in text.splitlines())
        return super().parse(text)


# Reward components ----------------------------------------------------------------------------------------------------


class Right(cw.RewardComponent):
    """A sound component, to be broken in one place at a time."""

    name = "right"
    stage = "answer"

    def score(self, attempt: cw.Attempt) -> cw.Score:
        trace = attempt.trace
        if trace is None:
            return cw.Score(0.0, evidence=(cw.Evidence("no_program", "the text is not a program"),))
        if trace.masked is not None:
            return cw.Score(0.0, evidence=(cw.Evidence("lost", trace.masked),), masked=trace.masked)
        if answers_match(attempt.task.answer, trace.returned):
            return cw.Score(1.0)
        return cw.Score(0.0, evidence=(cw.Evidence("wrong", "the answer is wrong"),))


@case("reward component", "check_component_attributes", "is not a subclass of callwright.RewardComponent")
class NoComponent:
    name, low, high, stage = "none", 0.0, 1.0, ""


@case("reward component", "check_component_attributes", "name must be a string")
class NamelessReward(Right):
    name = ""


@case("reward component", "check_component_attributes", "or no recipe can be normalised")
class NoRange(Right):
    high = 0.0


@case("reward component", "check_component_attributes", "stage is 'later'")
class OddlyStaged(Right):
    stage = "later"


@case("reward component", "check_never_raises", "raised AttributeError: 'NoneType' object")
class TrustsTheParser(Right):
    def score(self, attempt: cw.Attempt) -> cw.Score:
        calls = attempt.program.calls  # type: ignore[union-attr]
        return cw.Score(1.0) if calls else cw.Score(0.0, evidence=(cw.Evidence("no_calls", "there are no calls"),))


@case("reward component", "check_never_raises", "it must give a Score")
class GivesANumber(Right):
    def score(self, attempt: cw.Attempt) -> Any:
        return super().score(attempt).value


@case("reward component", "check_range", "is outside of")
class TooMuch(Right):
    def score(self, attempt: cw.Attempt) -> cw.Score:
        return evolve(super().score(attempt), value=5.0)


@case("reward component", "check_range", "is outside of")
class NotANumber(Right):
    def score(self, attempt: cw.Attempt) -> cw.Score:
        return evolve(super().score(attempt), value=float("nan"))


@case("reward component", "check_range", "were low and high passed on to Score")
class ForgetsItsRange(Right):
    low, high = 0.5, 3.0

    def score(self, attempt: cw.Attempt) -> cw.Score:
        return cw.Score(0.75, evidence=(cw.Evidence("a", "b"),))


@case("reward component", "check_evidence", "there is no evidence")
class NoEvidence(Right):
    def score(self, attempt: cw.Attempt) -> cw.Score:
        return evolve(super().score(attempt), evidence=())


@case("reward component", "check_evidence", "needs a code and a reason")
class NoReason(Right):
    def score(self, attempt: cw.Attempt) -> cw.Score:
        score = super().score(attempt)
        return evolve(score, evidence=tuple(evolve(evidence, reason=" ") for evidence in score.evidence))


@case("reward component", "check_evidence", "shows an address in memory")
class ShowsObjects(Right):
    def score(self, attempt: cw.Attempt) -> cw.Score:
        score = super().score(attempt)
        return evolve(score, evidence=tuple(evolve(e, found=repr(object())) for e in score.evidence))


@case("reward component", "check_purity", "does the component keep state")
class Counts(Right):
    scored = 0

    def score(self, attempt: cw.Attempt) -> cw.Score:
        self.scored += 1
        return super().score(attempt) if self.scored < 100 else cw.Score(1.0)


@case("reward component", "check_purity", "draws from the global random generator")
class Draws(Right):
    def score(self, attempt: cw.Attempt) -> cw.Score:
        random.random()
        return super().score(attempt)


@case("reward component", "check_nothing_is_changed", "changed the program")
class ChangesThePrograms(Right):
    def score(self, attempt: cw.Attempt) -> cw.Score:
        for call in attempt.program.calls if attempt.program else ():
            call.arguments.pop("name", None)  # type: ignore[attr-defined]
        return super().score(attempt)


@case("reward component", "check_nothing_is_changed", "changed the trace")
class ChangesTheTrace(Right):
    def score(self, attempt: cw.Attempt) -> cw.Score:
        for step in attempt.trace.records if attempt.trace else ():
            if isinstance(step.outcome.value, dict):
                step.outcome.value.clear()
        return super().score(attempt)


@case("reward component", "check_nothing_is_changed", "changed the facts of the task")
class ChangesTheTask(Right):
    def score(self, attempt: cw.Attempt) -> cw.Score:
        attempt.task.facts["seen"] = attempt.task.facts.get("seen", 0) + 1  # type: ignore[index]
        return super().score(attempt)


@case("reward component", "check_infrastructure", "gets 0.0 instead of 1.0: pass trace.masked on")
class ForgetsTheMask(Right):
    def score(self, attempt: cw.Attempt) -> cw.Score:
        return evolve(super().score(attempt), masked=None)


@case("reward component", "check_many_at_once", "is scored beside it, or are scores in another order")
class MixesABatchUp(cw.BatchRewardComponent):
    """Right for one, and the wrong way round for many."""

    name = "mixed"

    def score_many(self, attempts: Sequence[cw.Attempt]) -> list[cw.Score]:
        return [Right().score(attempt) for attempt in reversed(attempts)]


@case("reward component", "check_many_at_once", "is scored beside it")
class LooksAtTheOthers(cw.AsyncRewardComponent):
    """Its score hangs on how many wait beside it."""

    name = "others"
    waiting_now = 0

    async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
        self.waiting_now += 1
        await asyncio.sleep(0.001)
        self.waiting_now -= 1
        return cw.Score(1.0 if not self.waiting_now else 0.0, evidence=(cw.Evidence("x", "not alone"),))


@case("reward component", "check_pickles_before_use", "pickling the component raised")
class HoldsAPredicate(Right):
    def __init__(self) -> None:
        self.good = lambda answer: True


@case("reward component", "check_pickles_before_use", "another process scores .*value=0.0")
class ForgetsItsWeight(Right):
    def __init__(self, most: float = 0.5) -> None:
        self.most = most

    def __reduce__(self) -> Any:
        return ForgetsItsWeight, (0.0,)

    def score(self, attempt: cw.Attempt) -> cw.Score:
        return evolve(super().score(attempt), value=super().score(attempt).value * self.most)


@case("reward component", "check_pickles_after_use", "pickling the component, after it was used, raised")
class HoldsALock(Right):
    def score(self, attempt: cw.Attempt) -> cw.Score:
        self.lock = threading.Lock()
        return super().score(attempt)


@case("reward component", "check_pickles_after_use", "pickling a score raised")
class GivesItsMatch(Right):
    def score(self, attempt: cw.Attempt) -> cw.Score:
        found: Any = re.match("x*", attempt.completion.text)
        return evolve(super().score(attempt), evidence=(cw.Evidence("match", "what was found", found=found),))


# Reward recipes -------------------------------------------------------------------------------------------------------


class Readable(cw.RewardComponent):
    name = "readable"
    stage = "format"

    def score(self, attempt: cw.Attempt) -> cw.Score:
        failure = attempt.failure
        return cw.Score(1.0) if failure is None else cw.Score(0.0, evidence=(cw.Evidence("x", failure.message),))


def sound_recipe(*, kind: type[cw.RewardRecipe] = cw.RewardRecipe, answer: Any = None, **more: Any) -> cw.RewardRecipe:
    terms = (cw.Term(Readable(), 1), cw.Term(answer or Right(), 4, ("readable",)))
    return kind(**{"name": "sound", "terms": terms, **more})


class ChangedRecipe(cw.RewardRecipe):
    def changed(self, reward: cw.Reward) -> cw.Reward:
        return reward

    def score_attempt(self, attempt: cw.Attempt) -> cw.Reward:
        return self.changed(super().score_attempt(attempt))


@case("reward recipe", "check_recipe_attributes", "name must be a string")
def nameless_recipe() -> Any:
    return sound_recipe(name="")


@case("reward recipe", "check_recipe_attributes", "the recipe has no terms")
def empty_recipe() -> Any:
    return cw.RewardRecipe("empty", (), normalise=False)


@case("reward recipe", "check_recipe_attributes", "nothing can be earned")
def worthless_recipe() -> Any:
    return cw.RewardRecipe("worthless", (cw.Term(Right(), 0),), normalise=False)


@case("reward recipe", "check_recipe_attributes", "stage is 'later'")
def recipe_of_an_odd_component() -> Any:
    return sound_recipe(answer=OddlyStaged())


@case("reward recipe", "check_terms", "the term 'right': scoring the completion .* raised AttributeError")
def recipe_that_trusts_the_parser() -> Any:
    return sound_recipe(answer=TrustsTheParser())


@case("reward recipe", "check_sum", "sum to .*, the total is")
def recipe_with_a_bonus() -> Any:
    class Bonus(ChangedRecipe):
        def changed(self, reward: cw.Reward) -> cw.Reward:
            return evolve(reward, total=None if reward.total is None else reward.total * 0.9)

    return sound_recipe(kind=Bonus)


@case("reward recipe", "check_sum", "nothing says why")
def recipe_that_masks_in_silence() -> Any:
    class Quiet(ChangedRecipe):
        def changed(self, reward: cw.Reward) -> cw.Reward:
            return evolve(reward, total=None)

    return sound_recipe(kind=Quiet)


@case("reward recipe", "check_gates", "is open, though of its gates readable are below")
def recipe_without_gates() -> Any:
    class Open(ChangedRecipe):
        def changed(self, reward: cw.Reward) -> cw.Reward:
            scores = {name: evolve(weighted, closed=False) for name, weighted in reward.scores.items()}
            return evolve(reward, scores=scores)

    return sound_recipe(kind=Open)


@case("reward recipe", "check_gates", "is behind a shut gate, but has 1.0")
def recipe_that_pays_behind_gates() -> Any:
    class Generous(ChangedRecipe):
        def changed(self, reward: cw.Reward) -> cw.Reward:
            full = {n: evolve(w, score=evolve(w.score, value=1.0)) if w.closed else w for n, w in reward.scores.items()}
            return evolve(reward, scores=full)

    return sound_recipe(kind=Generous)


@case("reward recipe", "check_rows", "as JSON raised TypeError")
def recipe_with_evidence_that_is_no_text() -> Any:
    class Objects(Right):
        def score(self, attempt: cw.Attempt) -> cw.Score:
            score = super().score(attempt)
            return evolve(score, evidence=tuple(evolve(e, found={1, 2}) for e in score.evidence))

    return sound_recipe(answer=Objects())


@case("reward recipe", "check_same_reward", "and then")
def recipe_that_counts() -> Any:
    return sound_recipe(answer=Counts())


@case("reward recipe", "check_cut_off", "nobody may gain by not ending")
def recipe_that_pays_for_not_ending() -> Any:
    class Lavish(cw.RewardRecipe):
        def score_attempt(self, attempt: cw.Attempt) -> cw.Reward:
            reward = super().score_attempt(attempt)
            return evolve(reward, total=reward.total + 0.5) if attempt.truncated and reward.total == 0 else reward

    return sound_recipe(kind=Lavish)


@case("reward recipe", "check_masks", "with a server that is down, .* gets 0.2 instead of 1.0")
def recipe_that_forgets_the_mask() -> Any:
    return sound_recipe(answer=ForgetsTheMask())


@case("reward recipe", "check_rewards_at_once", "is scored beside it, or are scores in another order")
def recipe_that_mixes_a_batch_up() -> Any:
    return sound_recipe(answer=MixesABatchUp())


@case("reward recipe", "check_recipe_pickles_before_use", "pickling the recipe raised")
def recipe_of_a_component_that_holds_a_predicate() -> Any:
    return sound_recipe(answer=HoldsAPredicate())


@case("reward recipe", "check_recipe_pickles_after_use", "pickling the recipe, after it was used, raised")
def recipe_of_a_component_that_holds_a_lock() -> Any:
    return sound_recipe(answer=HoldsALock())


# Environments ---------------------------------------------------------------------------------------------------------


class World:
    """A sound environment around the kit's shop, to be broken in one place at a time."""

    name = "world"
    pure = False
    tools: Mapping[str, cw.ToolSpec] = SHOP.tools

    def open(self, scenario: str = "", seed: int = 0) -> Any:
        return self.session(SHOP.open(scenario, seed))

    def session(self, inner: Any) -> Any:
        return Visit(self, inner)

    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        return inner.call(tool, arguments)


class Visit:
    """A session of a world."""

    def __init__(self, world: Any, inner: Any) -> None:
        self.world, self.inner = world, inner

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        return self.world.answer(self.inner, tool, arguments)

    def digest(self) -> Any:
        return self.inner.digest()

    def close(self) -> None:
        self.inner.close()


def specs(**changes: Any) -> dict[str, cw.ToolSpec]:
    """The tools of the shop, the first one changed."""
    first, *others = SHOP.tools.values()
    return {first.name: evolve(first, **changes), **{spec.name: spec for spec in others}}


@case("environment", "check_attributes", "name must be a string")
class NamelessWorld(World):
    name = ""


@case("environment", "check_attributes", "lacks open of callwright.Environment")
class ClosedWorld:
    name, pure, tools = "closed", False, SHOP.tools


@case("environment", "check_attributes", "calls itself 'other'")
class MixedNames(World):
    tools = specs(name="other") | {"find_items": evolve(SHOP.tools["find_items"], name="other")}


@case("environment", "check_attributes", "annotated as read_only and as destructive")
class Contradicts(World):
    tools = specs(read_only=True, destructive=True)


@case("environment", "check_attributes", "pure must be a bool")
class Undecided(World):
    pure = None


@case("environment", "check_schemas", "compiling the schema of tool 'find_items' raised DataError")
class OddSchema(World):
    tools = specs(parameters={"type": "strnig"})


@case("environment", "check_schemas", "has no description")
class Undescribed(World):
    tools = specs(description="")


@case("environment", "check_sessions", "raised OverflowError")
class SmallSeeds(World):
    def open(self, scenario: str = "", seed: int = 0) -> Any:
        if seed >= 2**31:
            raise OverflowError("seed")
        return super().open(scenario, seed)


@case("environment", "check_sessions", "closing a session twice raised ValueError")
class ClosesOnce(World):
    def session(self, inner: Any) -> Any:
        closed: list[int] = []

        def close() -> None:
            if closed:
                raise ValueError("already closed")
            closed.append(1)

        return SimpleNamespace(call=inner.call, digest=inner.digest, close=close)


@case("environment", "check_sessions", "digest.. gave int, not text")
class NumberedStates(World):
    def session(self, inner: Any) -> Any:
        return SimpleNamespace(call=inner.call, digest=lambda: 7, close=inner.close)


@case("environment", "check_same_seed", "does the world depend on")
class Clock(World):
    opened = 0

    def open(self, scenario: str = "", seed: int = 0) -> Any:
        self.opened += 1
        return super().open(scenario, seed + self.opened)


@case("environment", "check_same_seed", "after the same calls was answered")
class Dice(World):
    answered = 0

    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        self.answered += 1
        outcome = inner.call(tool, arguments)
        return evolve(outcome, value=self.answered) if outcome.executed else outcome


@case("environment", "check_isolation", "do they share state")
class OneForAll(World):
    def __init__(self) -> None:
        self.shared = SHOP.open("", 0)

    def open(self, scenario: str = "", seed: int = 0) -> Any:
        return self.shared


@case("environment", "check_isolation", "starts with another digest")
class Remembers(World):
    carts: int = 0

    def open(self, scenario: str = "", seed: int = 0) -> Any:
        return super().open(scenario, seed + self.carts)

    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        outcome = inner.call(tool, arguments)
        self.carts += tool == "put_in_cart" and outcome.executed
        return outcome


@case("environment", "check_limits", "standard output belongs to commands")
class Prints(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        print("noise")
        return inner.call(tool, arguments)


@case("environment", "check_limits", "with the code 'result_too_large', but changed the state")
class MeasuresTooLate(World):
    """Measures what its tool has come to when that is done already."""

    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        with held_to(Bounds()):
            outcome = inner.call(tool, arguments)
        try:
            check_result(tool, outcome.value)
        except TooLarge as error:
            return cw.Outcome("execution_error", None, error.code, error.message)
        return outcome


@case("environment", "check_unknown_tool", "calling 'no_such_tool', which is no tool, came to 'ok'")
class AnswersEverything(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        return inner.call(tool, arguments) if tool in self.tools else cw.Outcome("ok", "sure")


@case("environment", "check_unknown_tool", "raised KeyError")
class LooksUp(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        return inner.call(self.tools[tool].name, arguments)


@case("environment", "check_outcomes", "raised KeyError: .*a session's failures are Outcomes")
class Raises(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        for name in self.tools[tool].parameters.get("required", ()):
            _ = arguments[name]
        return inner.call(tool, arguments)


@case("environment", "check_outcomes", "as JSON raised TypeError")
class GivesSets(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        outcome = inner.call(tool, arguments)
        return evolve(outcome, value={1, 2}) if outcome.executed else outcome


@case("environment", "check_outcomes", "as JSON raised ValueError")
class GivesNaN(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        outcome = inner.call(tool, arguments)
        return evolve(outcome, value=float("nan")) if outcome.executed else outcome


@case("environment", "check_outcomes", "without a code")
class NoCodes(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        return evolve(inner.call(tool, arguments), code="")


@case("environment", "check_schema_errors", "does not fit the schema, but came to")
class ChecksNothing(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        outcome = inner.call(tool, arguments)
        return evolve(outcome, kind="execution_error") if outcome.kind == "schema_error" else outcome


@case("environment", "check_schema_errors", "with the checker's number")
class CountsFromZero(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        outcome = inner.call(tool, arguments)
        return evolve(outcome, message=f"call 0 {outcome.message}") if outcome.kind == "schema_error" else outcome


@case("environment", "check_schema_errors", "does not say 'below'")
class SaysNoPlace(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        outcome = inner.call(tool, arguments)
        return (
            evolve(outcome, message="wrong") if outcome.kind == "schema_error" and "name" not in arguments else outcome
        )


@case("environment", "check_kinds", "declares no read_only")
class WritesNothing(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        outcome = inner.call(tool, arguments)
        return evolve(outcome, kind="empty") if tool == "put_in_cart" and outcome.executed else outcome


@case("environment", "check_kinds", "and False are values", calls=[("find_items", {"below": 99.0})])
class CallsAllNothing(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        outcome = inner.call(tool, arguments)
        return evolve(outcome, kind="empty") if tool == "find_items" and outcome.executed else outcome


@case("environment", "check_results", "result schema refuses: the value: ", calls=[("find_items", {"below": 99.0})])
class GivesAnotherType(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        outcome = inner.call(tool, arguments)
        return evolve(outcome, value="three of them") if tool == "find_items" and outcome.executed else outcome


@case("environment", "check_kinds", "which is 'empty' and not 'ok'", calls=[("find_items", {"below": 99.0})])
class HidesNothing(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        outcome = inner.call(tool, arguments)
        return evolve(outcome, value=[]) if tool == "find_items" and outcome.executed else outcome


@case("environment", "check_kinds", "make it a ToolError", calls=[("price_of", {"name": "nothing"})])
class RefusesReading(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        outcome = inner.call(tool, arguments)
        return evolve(outcome, kind="refused") if tool == "price_of" and outcome.failed else outcome


@case("environment", "check_threads", "is not in the state", calls=[("put_in_cart", {"name": "egg"})])
class LosesCalls(World):
    def session(self, inner: Any) -> Any:
        return ForgetfulVisit(self, inner)


class ForgetfulVisit(Visit):
    """Answers in one thread and, without a word, does nothing in the others."""

    def __init__(self, world: Any, inner: Any) -> None:
        super().__init__(world, inner)
        self.thread = threading.get_ident()

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        if threading.get_ident() == self.thread:
            return super().call(tool, arguments)
        return cw.Outcome("ok", {"cart": []})


@case("environment", "check_threads", "for one thread at a time", calls=[("put_in_cart", {"name": "egg"})])
class FallsOver(World):
    def session(self, inner: Any) -> Any:
        return OneThreadedVisit(self, inner)


class OneThreadedVisit(ForgetfulVisit):
    """Raises what says nothing in all threads but one."""

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        if threading.get_ident() != self.thread:
            raise RuntimeError("dictionary changed size during iteration")
        return super().call(tool, arguments)


@case("environment", "check_outcomes", "without a message")
class NoMessages(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        return evolve(inner.call(tool, arguments), message="")


@case("environment", "check_outcomes", "which is no kind")
class OddKinds(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        return evolve(inner.call(tool, arguments), kind="good")


@case("environment", "check_outcomes", "not an Outcome")
class PlainValues(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        return inner.call(tool, arguments).value or 0


@case("environment", "check_failed_calls", "but changed the state")
class HalfDone(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        outcome = inner.call(tool, arguments)
        if not outcome.executed:
            inner.state.cart.append("half")
        return outcome


@case("environment", "check_read_only", "though the tool is annotated as read_only")
class Logs(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        if tool == "price_of":
            inner.state.cart.append("looked at")
        return inner.call(tool, arguments)


@case("environment", "check_values", "changed its arguments")
class EatsArguments(World):
    pure = True

    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        outcome = inner.call(tool, dict(arguments))
        arguments.clear()
        return outcome


@case("environment", "check_values", "was changed by a later call", calls=[("put_in_cart", {"name": "egg"})] * 2)
class HandsOutItsState(World):
    pure = True

    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        outcome = inner.call(tool, arguments)
        return evolve(outcome, value=inner.state.cart) if tool == "put_in_cart" and outcome.executed else outcome


class Forks(World):
    """A sound environment whose sessions can be forked and reset."""

    def session(self, inner: Any) -> Any:
        return ForkingVisit(self, inner)

    def forked(self, inner: Any) -> Any:
        return type(inner)(inner.environment, copy.deepcopy(inner.state))

    def reset(self, inner: Any, first: Any) -> None:
        inner.state = first


class ForkingVisit(Visit):
    """A session that can be forked and reset."""

    def __init__(self, world: Any, inner: Any) -> None:
        super().__init__(world, inner)
        self.first = copy.deepcopy(inner.state)

    def fork(self) -> Any:
        return self.world.session(self.world.forked(self.inner))

    def reset(self) -> None:
        self.world.reset(self.inner, copy.deepcopy(self.first))


@case(
    "environment", "check_fork", "in a fork changed the session it came from", calls=[("put_in_cart", {"name": "egg"})]
)
class SharesItsForks(Forks):
    def forked(self, inner: Any) -> Any:
        return inner


@case("environment", "check_fork", "starts with another digest", calls=[("put_in_cart", {"name": "egg"})] * 2)
class ForksTheBeginning(Forks):
    def forked(self, inner: Any) -> Any:
        return SHOP.open("", 6)


class Tells(ForkingVisit):
    """A session that says more."""

    def goal_state(self) -> Any:
        return self.inner.state.cart

    def fork(self) -> Any:
        return ForkingVisit(self.world, self.world.forked(self.inner))


@case("environment", "check_fork", "a fork lacks goal_state", calls=[("put_in_cart", {"name": "egg"})])
class ForksOfAnotherClass(Forks):
    def session(self, inner: Any) -> Any:
        return Tells(self, inner)


@case("environment", "check_reset", "the digest is not the first one", calls=[("put_in_cart", {"name": "egg"})])
class NeverResets(Forks):
    def reset(self, inner: Any, first: Any) -> None:
        pass


@cw.row("notes", prefix="N")
class Note:
    id: str
    text: str


@cw.row("counter")
class Written:
    id: str
    last: str


@cw.tool
def write_note(world: cw.World, /, text: str) -> str:
    """Write a note."""
    note = world.put(Note(world.new_id(Note), text))
    world.put(Written(note.id, f"the last text was {text}, number {world.count(Note)}"))
    return note.id


@case(
    "environment",
    "check_goal_states",
    "shows which comes first.*not declared as bookkeeping",
    calls=[("write_note", {"text": "one"}), ("write_note", {"text": "two"})],
)
def environment_with_a_log_that_counts() -> Any:
    return cw.StatefulEnvironment(
        "log", rows=[Note, Written], tools=[write_note], scenarios={"empty": cw.Scenario(lambda random, scale: ())}
    )


class Telling(World):
    def session(self, inner: Any) -> Any:
        return TellingVisit(self, inner)

    def state(self, inner: Any) -> Any:
        return {"cart": [*inner.state.cart]}


class TellingVisit(Visit):
    def goal_state(self) -> Any:
        return self.world.state(self.inner)


@case("environment", "check_goal_states", "goal_state.. changed the digest", calls=[("put_in_cart", {"name": "egg"})])
class TellsAndForgets(Telling):
    def state(self, inner: Any) -> Any:
        inner.state.cart.append("seen")
        return {}


@case("environment", "check_goal_states", "one digest and two goal states", calls=[("put_in_cart", {"name": "egg"})])
class TellsSomethingElse(Telling):
    asked = 0

    def state(self, inner: Any) -> Any:
        self.asked += 1
        return {"asked": self.asked}


@case("environment", "check_goal_states", "as JSON.*raised", calls=[("put_in_cart", {"name": "egg"})])
class TellsASet(Telling):
    def state(self, inner: Any) -> Any:
        return {"cart": set(inner.state.cart)}


class KnowingVisit(Visit):
    def knowledge(self, entity: str = "me") -> Any:
        return self.world.known(self.inner, entity)


class Knowing(World):
    def session(self, inner: Any) -> Any:
        return KnowingVisit(self, inner)


@case("environment", "check_knowledge", "knowledge.. changed the digest")
class AsksAndCounts(Knowing):
    def known(self, inner: Any, entity: str) -> Any:
        inner.state.cart.append("asked")
        return {}


@case("environment", "check_knowledge", "for one scenario and seed")
class ForgetsItsPin(Knowing):
    asked = 0

    def known(self, inner: Any, entity: str) -> Any:
        self.asked += 1
        return {"pin": self.asked} if entity == "me" else {}


@case("environment", "check_knowledge", "of a session of scenario.*has to be JSON values by name")
class KnowsASet(Knowing):
    def known(self, inner: Any, entity: str) -> Any:
        return {"pin": {4711}}


@case("environment", "check_knowledge", "somebody whom nobody knows gave")
class KnowsEverybody(Knowing):
    def known(self, inner: Any, entity: str) -> Any:
        return {"pin": "4711"}


class ServedVisit(Visit):
    """A session in which the user has a tool, too."""

    def user_call(self, tool: str, arguments: dict[str, Any]) -> cw.Outcome:
        return cw.Outcome("ok" if tool in self.world.known else "unknown_tool", 1)


class Served(World):
    """A sound environment whose user has a tool, to be broken in one place at a time."""

    user_tools: Mapping[str, cw.ToolSpec] = {"flip": next(iter(SHOP.tools.values()))}
    known: Mapping[str, Any] = {"flip": None}

    def session(self, inner: Any) -> Any:
        return ServedVisit(self, inner)


@case("environment", "check_user_tools", "is offered to agents, too")
def tools_of_users_for_agents() -> Any:
    return type("Changed", (Served,), {"user_tools": SHOP.tools})()


@case("environment", "check_user_tools", "sessions have no user_call")
def tools_of_users_that_nobody_runs() -> Any:
    return type("Changed", (Served,), {"session": lambda self, inner: Visit(self, inner)})()


@case("environment", "check_user_tools", "an agent that calls the user's tool 'flip' gets ok")
def tools_of_users_that_agents_can_call() -> Any:
    return type("Changed", (Served,), {"answer": lambda self, inner, tool, arguments: cw.Outcome("ok", 1)})()


@case("environment", "check_user_tools", "the user's call of 'flip' gets")
def tools_of_users_that_users_cannot_call() -> Any:
    return type("Changed", (Served,), {"known": {}})()


@case("environment", "check_pickles_before_use", "pickling the environment raised")
class HoldsACallback(World):
    def __init__(self) -> None:
        self.called = lambda tool: None


@case("environment", "check_pickles_before_use", "is the function 'local_tool.<locals>.count'.* top level of a module")
def environment_of_a_local_tool() -> Any:
    return cw.environment("local", tools=[local_tool()])


@case("environment", "check_pickles_before_use", "a fresh session has another digest")
class SendsNoState(World):
    def session(self, inner: Any) -> Any:
        return StatelessVisit(self, inner)


class StatelessVisit(Visit):
    def __reduce__(self) -> Any:
        return Visit, (self.world, type(self.inner)(self.inner.environment, None))


@case("environment", "check_pickles_after_use", "pickling a session, after calls, raised TypeError")
class HoldsItsAnswers(World):
    def answer(self, inner: Any, tool: str, arguments: dict[str, Any]) -> Any:
        inner.state.cart = AnswersSoFar(inner.state.cart)
        return super().answer(inner, tool, arguments)


class AnswersSoFar(list[str]):
    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle this")

    def __deepcopy__(self, memo: Any) -> Any:
        return AnswersSoFar(self)


@case(
    "environment",
    "check_pickles_after_use",
    "in a copy of a session changed the session",
    calls=[("put_in_cart", {"name": "egg"})] * 4,
)
class SharesItsCopies(World):
    def session(self, inner: Any) -> Any:
        return SharedVisit(self, inner)


class SharedVisit(Visit):
    def __deepcopy__(self, memo: Any) -> Any:
        return Visit(self.world, self.inner)


# Corpora --------------------------------------------------------------------------------------------------------------


class Tasks:
    """A sound corpus, to be broken in one place at a time."""

    name = "tasks"
    environment = SHOP

    def __init__(self) -> None:
        tasks = sample_tasks()
        train = [evolve(task, split="train") for task in tasks[:4]]
        self.tasks = {"train": train, "evaluation": [evolve(task, split="evaluation") for task in tasks[4:]]}

    @property
    def splits(self) -> dict[str, int]:
        return {split: len(tasks) for split, tasks in self.tasks.items()}

    def __getitem__(self, split: str) -> Any:
        if split not in self.tasks:
            raise UnknownName("split", split, self.tasks)
        return self.tasks[split]

    def task(self, task_id: str) -> Any:
        for tasks in self.tasks.values():
            for task in tasks:
                if task.id == task_id:
                    return task
        raise UnknownName("task", task_id, [])

    def change(self, index: int, **changes: Any) -> Tasks:
        self.tasks["train"][index] = evolve(self.tasks["train"][index], **changes)
        return self


@case("corpus", "check_attributes", "splits must be a mapping")
class NoSplits(Tasks):
    def __init__(self) -> None:
        self.tasks = {}


@case("corpus", "check_splits", "splits says that 'train' has 9 tasks, but there are 4")
class Miscounts(Tasks):
    @property
    def splits(self) -> dict[str, int]:
        return {**super().splits, "train": 9}


@case("corpus", "check_splits", "says that it is of 'validation'")
def corpus_of_another_split() -> Any:
    return Tasks().change(1, split="validation")


@case("corpus", "check_ids", "both have a task with the id 'sample-4'")
def corpus_with_one_id_twice() -> Any:
    return Tasks().change(1, id="sample-4")


@case("corpus", "check_ids", "is another task than the one of split")
class FindsTheFirst(Tasks):
    def task(self, task_id: str) -> Any:
        return self.tasks["train"][0]


@case("corpus", "check_ids", "raised KeyError")
class FindsNothing(Tasks):
    def task(self, task_id: str) -> Any:
        raise KeyError(task_id)


@case("corpus", "check_unknown_names", r"corpus\['no such split'\] raised KeyError; it must raise UnknownName")
class PlainDictionary(Tasks):
    def __getitem__(self, split: str) -> Any:
        return self.tasks[split]


@case("corpus", "check_unknown_names", r"task\('no such task'\) was found")
class FindsAnything(Tasks):
    def task(self, task_id: str) -> Any:
        return self.tasks["train"][0]


@case("corpus", "check_tasks", "has no query")
def corpus_without_a_query() -> Any:
    return Tasks().change(1, query=" ")


@case("corpus", "check_tasks", "offers 'teleport', which its environment 'sample-shop' does not have")
def corpus_with_a_tool_of_nobody() -> Any:
    return Tasks().change(1, tools={"teleport": cw.ToolSpec("teleport")})


@case("corpus", "check_tasks", "calls \\['price_of'\\], which it names as a distractor")
def corpus_whose_reference_calls_a_distractor() -> Any:
    return Tasks().change(1, facts={"distractors": ["price_of"]})


@case("corpus", "check_tasks", "offers 'teleport', which its environment .* its fact 'distractors' does not name")
def corpus_with_another_distractor_than_it_names() -> Any:
    return Tasks().change(1, tools={"teleport": cw.ToolSpec("teleport")}, facts={"distractors": ["fly"]})


@case("corpus", "check_tasks", "the fact 'distractors' of task .* is a list of names")
def corpus_whose_distractors_are_no_names() -> Any:
    return Tasks().change(1, facts={"distractors": "teleport"})


@case("corpus", "check_tasks", "offers 'total' under the name 'sum'")
def corpus_with_a_renamed_tool() -> Any:
    return Tasks().change(1, tools={"sum": SHOP.tools["total"]})


@case("corpus", "check_tasks", "returns 'all', its reference program 'one'")
def corpus_with_another_return() -> Any:
    return Tasks().change(1, returns="all")


@case("corpus", "check_tasks", "refers to calls that it does not have")
def corpus_with_a_dangling_reference() -> Any:
    return Tasks().change(1, program=cw.Program((cw.Call(0, "price_of", {"name": cw.Reference(3)}),)))


@case("corpus", "check_reference_programs", "does not fit its tools: .*expected string, found integer")
def corpus_with_a_program_that_does_not_fit() -> Any:
    return Tasks().change(1, program=cw.Program((cw.Call(0, "price_of", {"name": 3}),)))


@case("corpus", "check_reference_programs", "does not execute: .*unknown_item")
def corpus_with_a_program_that_fails() -> Any:
    return Tasks().change(1, program=cw.Program((cw.Call(0, "price_of", {"name": "yacht"}),)))


@case("corpus", "check_reference_programs", "the expected answer is")
@case("corpus", "check_full_reward", "the reference program of task 'sample-1' gets 0.5: answer 0/1")
def corpus_with_a_wrong_answer() -> Any:
    return Tasks().change(1, answer=cw.Answer((-1,)))


@case("corpus", "check_sound", "task 'sample-2' gives full marks to its reference without the last call")
def corpus_with_a_call_that_nobody_needs() -> Any:
    corpus = Tasks()
    task = corpus.tasks["train"][2]
    again = cw.Call(1, "price_of", {"name": "apple"})
    return corpus.change(
        2, program=cw.Program((task.program.calls[0], again)), answer=cw.Answer((task.answer.values[0],))
    )


@case("corpus", "check_repeatable", "is it drawn from a global random generator")
class Shuffles(Tasks):
    asked = 0

    def __getitem__(self, split: str) -> Any:
        self.asked += 1
        tasks = super().__getitem__(split)
        return tasks if self.asked <= len(self.tasks) else tasks[::-1]


@case(
    "corpus",
    "check_repeatable",
    "is another one of a second instance",
    again=Tasks().change(1, query="Something else?"),
)
def corpus_with_another_twin() -> Any:
    return Tasks()


class ShowsTexts(Tasks):
    """Demonstrates and has references, as it should."""

    def reference(self, task: Any) -> Any:
        return "a text" if task.program else None

    def demonstrations(self, seed: int, count: int, options: Any = None) -> Any:
        return [(self.tasks["train"][number % 4], [cw.Message.assistant("a text")]) for number in range(count)]


@case("corpus", "check_demonstrations", "the reference of task 'sample-0' is 3")
class RefersToNumbers(ShowsTexts):
    def reference(self, task: Any) -> Any:
        return 3


@case("corpus", "check_demonstrations", "the reference of task 'sample-0' is another one a second time")
class RefersToWhatComesNext(ShowsTexts):
    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def reference(self, task: Any) -> Any:
        self.asked += 1
        return f"text {self.asked}"


@case("corpus", "check_demonstrations", "asked for 4 demonstrations it makes 3")
class ShowsTooFew(ShowsTexts):
    def demonstrations(self, seed: int, count: int, options: Any = None) -> Any:
        return super().demonstrations(seed, count - 1)


@case("corpus", "check_demonstrations", "the demonstration of .* is .*the user speaks")
class ShowsTheUser(ShowsTexts):
    def demonstrations(self, seed: int, count: int, options: Any = None) -> Any:
        return [(task, [cw.Message.user("the user speaks")]) for task, _ in super().demonstrations(seed, count)]


@case("corpus", "check_demonstrations", "is another one for the same seed")
class ShowsSomethingElse(ShowsTexts):
    asked = 0

    def demonstrations(self, seed: int, count: int, options: Any = None) -> Any:
        self.asked += 1
        return [(task, f"text {self.asked}") for task, _ in super().demonstrations(seed, count)]


def test_sound_demonstrations_pass() -> None:
    check_component("corpus", ShowsTexts())


@case("corpus", "check_pickles_before_use", "pickling the corpus raised TypeError")
class HoldsItsFile(Tasks):
    def __init__(self) -> None:
        super().__init__()
        self.rows = (row for row in self.tasks)


@case("corpus", "check_pickles_before_use", "is another one of a second instance")
class DrawsAgain(Tasks):
    def __reduce__(self) -> Any:
        return evolved_corpus, ()


def evolved_corpus() -> Any:
    return Tasks().change(1, query="What does a book cost?")


@case(
    "corpus",
    "check_pickles_after_use",
    "pickling the attempt of task 'sample-1', after it was scored, raised TypeError",
)
def corpus_that_sends_what_it_compiled() -> Any:
    specs = {
        name: SendsWhatItCompiled(**{field: getattr(spec, field) for field in attrs.fields_dict(cw.ToolSpec)})
        for name, spec in SHOP.tools.items()
    }
    return Tasks().change(1, tools=specs)


# Samplers -------------------------------------------------------------------------------------------------------------


class Script:
    """A sound sampler, to be broken in one place at a time."""

    name = "script"

    def sample(self, requests: Any, *, n: int = 1, seed: int = 0, temperature: float = 1.0) -> Any:
        return [[self.completion(request, seed, draw, temperature) for draw in range(n)] for request in requests]

    def completion(self, request: cw.SamplingRequest, seed: int, draw: int, temperature: float) -> Any:
        drawn = random.Random(f"{request.task.id}/{seed}/{draw}").randint(0, 9) if temperature else 0
        return cw.Completion(f"{request.task.id} {drawn}", (1, 2), (-0.5, 0.0))


@case("sampler", "check_attributes", "lacks sample of callwright.Sampler")
class Mute:
    name = "mute"


@case("sampler", "check_shape", "it must be one list of 3 per request")
class OneEach(Script):
    def sample(self, requests: Any, *, n: int = 1, **more: Any) -> Any:
        return super().sample(requests, n=1, **more)


@case("sampler", "check_shape", "sample.. of 0 requests with n=1 raised IndexError")
class NeedsRequests(Script):
    def sample(self, requests: Any, **more: Any) -> Any:
        _ = requests[0]
        return super().sample(requests, **more)


@case("sampler", "check_completions", "gave str, not a Completion")
class GivesText(Script):
    def completion(self, *drawn: Any) -> Any:
        return super().completion(*drawn).text


@case("sampler", "check_completions", "2 token ids and 1 log-probabilities")
class DropsOne(Script):
    def completion(self, *drawn: Any) -> Any:
        return evolve(super().completion(*drawn), logprobs=(-0.5,))


@case("sampler", "check_completions", "are they logits")
class GivesLogits(Script):
    def completion(self, *drawn: Any) -> Any:
        return evolve(super().completion(*drawn), logprobs=(3.5, -2.0))


@case("sampler", "check_completions", "finite and not above 0")
class GivesInfinity(Script):
    def completion(self, *drawn: Any) -> Any:
        return evolve(super().completion(*drawn), logprobs=(float("-inf"), -2.0))


@case("sampler", "check_seed", "is a global random generator used")
class Unseeded(Script):
    drawn = 0

    def completion(self, *drawn: Any) -> Any:
        self.drawn += 1
        return evolve(super().completion(*drawn), text=f"{self.drawn}")


@case("sampler", "check_greedy", "at temperature 0 the seed matters")
class NeverGreedy(Script):
    def completion(self, request: Any, seed: int, draw: int, temperature: float) -> Any:
        return super().completion(request, seed, draw, 1.0)


@case("sampler", "check_greedy", "two calls gave different completions")
class Restless(Script):
    drawn = 0

    def completion(self, *drawn: Any) -> Any:
        self.drawn += 1
        return cw.Completion(f"{self.drawn}")


@case("sampler", "check_requests", "are the completions in the order of the requests")
class Sorted(Script):
    def sample(self, requests: Any, **more: Any) -> Any:
        return super().sample(sorted(requests, key=lambda request: request.task.id), **more)


@case("sampler", "check_requests", "the requests were changed")
class EditsMessages(Script):
    def completion(self, request: Any, *drawn: Any) -> Any:
        object.__setattr__(request.messages[0], "content", f"{request.messages[0].content}!")
        return super().completion(request, *drawn)


class Asked(Script):
    """One that can be asked for each request by itself."""

    concurrency: Any = 2

    def connected(self) -> Any:
        return contextlib.nullcontext(self)

    async def sample_one(self, request: Any, **more: Any) -> Any:
        return self.sample([request], **more)[0]


@case("sampler", "check_one_by_one", "by itself gives .* with others")
class CountsRequests(Asked):
    async def sample_one(self, request: Any, *, seed: int, **more: Any) -> Any:
        return self.sample([request], seed=seed + 1, **more)[0]


@case("sampler", "check_one_by_one", "a whole number, 1 or more")
class NoneAtATime(Asked):
    concurrency = 0


@case("sampler", "check_one_by_one", "sample_one.. of .* at a time with n=1 raised ValueError")
class Refuses(Asked):
    async def sample_one(self, request: Any, **more: Any) -> Any:
        raise ValueError("not now")


@case("sampler", "check_pickles_before_use", "pickling the sampler raised")
class HoldsADraw(Script):
    def __init__(self) -> None:
        self.draw = lambda: 4


@case("sampler", "check_pickles_before_use", "another process samples")
class NumbersItsCopies(Script):
    copies = 0

    def __reduce__(self) -> Any:
        return NumbersItsCopies, (), {"copies": self.copies + 1}

    def completion(self, *drawn: Any) -> Any:
        return evolve(super().completion(*drawn), text=f"{self.copies}")


@case("sampler", "check_pickles_after_use", "pickling the sampler raised")
class HoldsItsRandomness(Script):
    def completion(self, *drawn: Any) -> Any:
        self.numbers = (number for number in range(4))
        return super().completion(*drawn)


# Other kinds ----------------------------------------------------------------------------------------------------------

TOOL = next(iter(SHOP._functions.values()))  # type: ignore[attr-defined]


@case("toolset", "check_toolset", "not a generator|not generator")
def toolset_that_is_used_up() -> Any:
    return (tool for tool in [TOOL])


@case("toolset", "check_toolset", "decorate it with @callwright.tool")
def toolset_of_functions() -> Any:
    return [len]


@case("toolset", "check_toolset", "two tools are named 'find_items'")
def toolset_with_one_name_twice() -> Any:
    return [TOOL, TOOL]


@case("toolset", "check_toolset", "compiling the schema of tool 'find_items' raised DataError")
def toolset_with_an_odd_schema() -> Any:
    return [FunctionTool(evolve(TOOL.spec, parameters={"type": "strnig"}), TOOL.function)]


def local_tool() -> FunctionTool:
    @cw.tool(read_only=True)
    def count(text: str) -> int:
        """How long a text is."""
        return len(text)

    return count


@case("toolset", "check_pickles_before_use", "is the function 'local_tool.<locals>.count' .*top level of a module")
def toolset_of_a_local_tool() -> Any:
    return [local_tool()]


class SendsWhatItCompiled(cw.ToolSpec):
    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__


@case("toolset", "check_pickles_after_use", "after it was used, raised TypeError: .*Validator")
def toolset_that_sends_what_it_compiled() -> Any:
    spec = SendsWhatItCompiled(**{name: getattr(TOOL.spec, name) for name in attrs.fields_dict(cw.ToolSpec)})
    return [FunctionTool(spec, TOOL.function, TOOL.state)]


@case("trainer", "check_trainer", "lacks train of callwright.Trainer")
def trainer_without_training() -> Any:
    return SimpleNamespace(name="t")


#: What the trainers below are tried with; they count and look at nothing of it.
SHORT = {
    "name": "short",
    "corpus": "toolworld-mini-v1",
    "ir": "json",
    "reward": "tier",
    "trainer": {"name": "local"},
}


class Counting:
    """A sound trainer that counts to four, to be broken in one place at a time."""

    name = "counting"
    steps = 4

    def figure(self, step: int, done: int) -> Any:
        return step / 2

    def train(self, pipeline: Any, run: Any, *, reporter: Any = SILENT) -> None:
        done = len(run.rows("metrics.jsonl"))
        reporter.start("counting", self.steps, done)
        for step in range(done, self.steps):
            run.append("metrics.jsonl", [{"step": step, "figure": self.figure(step, done)}])
            reporter.advance(1)
        reporter.finish()
        run.write_json("evaluation.json", {"steps": self.steps})


def test_a_sound_trainer_passes() -> None:
    assert check_component("trainer", Counting(), recipe=SHORT) == ()
    assert all("none was given" in why for why in check_component("trainer", Counting()))


@case("trainer", "check_signature", r"train\(pipeline, run, reporter=…\) cannot be called")
class TrainerWithoutReporter(Counting):
    def train(self, pipeline: Any, run: Any) -> None:
        pass


@case("trainer", "check_group", "group must be a whole number, 1 or more, but is 0")
class TrainerOfNoGroup(Counting):
    group = 0


@case("trainer", "check_mistakes", r"check\(loaded, None\) raised AttributeError")
class TrainerThatNeedsAPipeline(Counting):
    def check(self, loaded: Any, pipeline: Any) -> Any:
        return pipeline.corpus.mistakes


@case("trainer", "check_mistakes", "check\\(\\) gave 'no model', which is no UsageError")
class TrainerThatTellsTexts(Counting):
    def check(self, loaded: Any, pipeline: Any) -> Any:
        return ["no model"]


@case("trainer", "check_plan", r"dry_run\(\) is no JSON object: .*PosixPath", recipe=SHORT)
class TrainerThatPlansPaths(Counting):
    def dry_run(self, pipeline: Any, *, strict: bool = False) -> Any:
        return {"folder": Path("x")}


@case("trainer", "check_run", "row 1 of metrics.jsonl has figure = nan", recipe=SHORT)
class TrainerOfNoNumbers(Counting):
    def train(self, pipeline: Any, run: Any, *, reporter: Any = SILENT) -> None:
        (run.path / "metrics.jsonl").write_text('{"step": 0, "figure": NaN}\n')


@case("trainer", "check_run", "trained again, a finished run has another metrics.jsonl", recipe=SHORT)
class TrainerThatNeverEnds(Counting):
    @property
    def steps(self) -> int:  # type: ignore[override]
        self.asked = getattr(self, "asked", 0) + 1
        return 4 if self.asked < 4 else 5


@case("trainer", "check_goes_on", "the run that was stopped and went on has another metrics.jsonl", recipe=SHORT)
class TrainerThatForgets(Counting):
    def figure(self, step: int, done: int) -> Any:
        return step - done


@case("synthesizer", "check_synthesizer", "lacks plan of callwright.training.synthesis.Synthesizer")
def synthesizer_without_a_plan() -> Any:
    return SimpleNamespace(name="t", make=print, compare=print)


class Broken:
    """The kit's own synthesizer with a part in place of one of its own."""

    name = "broken"

    def __init__(self, **parts: Any) -> None:
        self.__dict__ |= {"plan": Prices().plan, "make": Prices().make, "compare": Prices().compare, **parts}


@case("synthesizer", "check_plan", "nothing is planned")
def synthesizer_of_nothing() -> Any:
    return Broken(plan=lambda materials: [])


@case("synthesizer", "check_plan", "has the index 0, and its place is 1")
def synthesizer_that_does_not_count() -> Any:
    return Broken(plan=lambda materials: [evolve(unit, index=0) for unit in Prices().plan(materials)])


@case("synthesizer", "check_plan", "two units have the id")
def synthesizer_of_equal_ids() -> Any:
    return Broken(plan=lambda materials: [evolve(unit, id="u") for unit in Prices().plan(materials)])


@case("synthesizer", "check_plan", "planned again, the units are others")
def synthesizer_that_draws_anew() -> Any:
    rng = random.Random(0)
    return Broken(plan=lambda materials: Prices().plan(evolve(materials, seed=rng.randrange(99))))


@case("synthesizer", "check_made_again", "made a second time")
def synthesizer_that_counts_along() -> Any:
    counter = iter(range(10**6))

    def make(unit: Any, materials: Any) -> Any:
        made = Prices().make(unit, materials)
        return evolve(made, evidence={"n": next(counter)}) if hasattr(made, "evidence") else made

    return Broken(make=make)


@case("synthesizer", "check_made_again", "made in another order")
def synthesizer_that_remembers_the_last_unit() -> Any:
    last = [-1]

    def make(unit: Any, materials: Any) -> Any:
        made = Prices().make(unit, materials)
        before, last[0] = last[0], unit.index
        after_a_later_one = before > unit.index > 0 and hasattr(made, "row")
        return evolve(made, row={**made.row, "query": "Again!"}) if after_a_later_one else made

    return Broken(make=make)


@case("synthesizer", "check_made_elsewhere", "made in another process")
def synthesizer_that_forgets_its_words() -> Any:
    class Forgetful(Broken):
        def __reduce__(self) -> Any:
            return Prices, ()

    return Forgetful(make=Prices("How much is the {name}?").make)


@case("synthesizer", "check_results", "must be an Accepted or a Rejected")
def synthesizer_that_gives_tasks() -> Any:
    return Broken(make=lambda unit, materials: sample_tasks()[0])


@case("synthesizer", "check_results", "is no task: .*'colour'")
def synthesizer_of_odd_rows() -> Any:
    def make(unit: Any, materials: Any) -> Any:
        made = Prices(things=("apple",)).make(unit, materials)
        return evolve(made, row={**made.row, "colour": 1}) if hasattr(made, "row") else made

    return Broken(make=make)


@case("synthesizer", "check_results", "raised KeyError.*say it with a Rejected")
def synthesizer_that_raises() -> Any:
    return Broken(make=lambda unit, materials: {}["a"])


@case("synthesizer", "check_compare", "must be None or a Rejected for each")
def synthesizer_that_drops_verdicts() -> Any:
    return Broken(compare=lambda made: [one for one in Prices().compare(made) if one])


@case("synthesizer", "check_compare", "compared again")
def synthesizer_that_compares_with_what_it_saw() -> Any:
    seen: set[str] = set()

    def compare(made: Any) -> Any:
        verdicts = [Rejected("seen", "seen before") if one.unit.id in seen else None for one in made]
        seen.update(one.unit.id for one in made)
        return verdicts

    return Broken(compare=compare)


class Echo:
    """A sound teacher, to be broken in one place at a time."""

    name = "echo"

    def settings(self, role: str) -> Any:
        return {"model": "echo"}

    def ask(self, requests: Any) -> Any:
        return [self.reply(request) for request in requests]

    def reply(self, request: Any) -> Any:
        if request.role == "planner":
            return TeacherFailure("an echo has no plan")
        return TeacherReply(f"{request.first_words} ({request.seed})", usage={"prompt_tokens": 3})


def echo(**changed: Any) -> Any:
    return type("Changed", (Echo,), changed)()


@case("teacher", "check_teacher", "name must be a string")
def teacher_without_a_name() -> Any:
    return echo(name="")


@case("teacher", "check_teacher", "lacks ask of callwright.training.teaching.Teacher")
def teacher_that_cannot_be_asked() -> Any:
    return SimpleNamespace(name="t", settings=lambda role: {"model": ""})


@case("teacher", "check_settings", "are no JSON")
def teacher_with_settings_that_are_no_json() -> Any:
    return echo(settings=lambda self, role: {"model": "m", "stop": {1, 2}})


@case("teacher", "check_settings", "must be an object with 'model'")
def teacher_without_a_model() -> Any:
    return echo(settings=lambda self, role: {})


@case("teacher", "check_settings", "are others when they are asked for again")
def teacher_whose_settings_count() -> Any:
    numbers = iter(range(100))
    return echo(settings=lambda self, role: {"model": "m", "asked": next(numbers)})


@case("teacher", "check_settings", "hold a secret")
def teacher_that_tells_its_key() -> Any:
    return echo(settings=lambda self, role: {"model": "m", "api_key": "sk-abcdefghijklmnop"})


@case("teacher", "check_shape", "one answer each")
def teacher_that_drops_failures() -> Any:
    return echo(ask=lambda self, requests: [one for one in Echo.ask(self, requests) if isinstance(one, TeacherReply)])


@case("teacher", "check_shape", "raised ValueError")
def teacher_that_raises_for_one() -> Any:
    return echo(reply=lambda self, request: [][0] if request.role == "none" else int(request.role))


@case("teacher", "check_answers", "must be a TeacherReply or a TeacherFailure")
def teacher_that_answers_with_text() -> Any:
    return echo(reply=lambda self, request: "yes")


@case("teacher", "check_answers", "has no reason")
def teacher_that_fails_without_a_reason() -> Any:
    return echo(reply=lambda self, request: TeacherFailure(" "))


@case("teacher", "check_answers", "finish is 'stopped'")
def teacher_that_ends_in_words_of_its_own() -> Any:
    return echo(reply=lambda self, request: TeacherReply("x", finish="stopped"))


@case("teacher", "check_answers", "finite numbers, 0 or more")
def teacher_that_counts_below_zero() -> Any:
    return echo(reply=lambda self, request: TeacherReply("x", usage={"cost": -1.0}))


@case("teacher", "check_answers", "calls are ToolCalls")
def teacher_with_calls_of_another_kind() -> Any:
    return echo(reply=lambda self, request: TeacherReply("x", calls=({"name": "f"},)))


@case("teacher", "check_order", "does the teacher keep something")
def teacher_that_remembers() -> Any:
    def ask(self: Any, requests: Any) -> Any:
        return [TeacherReply(str(number)) for number, _ in enumerate(requests)]

    return echo(ask=ask)


class SendsALock(Echo):
    def __init__(self) -> None:
        self.lock = threading.Lock()


@case("teacher", "check_pickles_before_use", "pickling the teacher raised TypeError")
def teacher_with_a_lock() -> Any:
    return SendsALock()


class KeepsALock(Echo):
    def reply(self, request: Any) -> Any:
        self.lock = threading.Lock()
        return super().reply(request)


@case("teacher", "check_pickles_after_use", "pickling the teacher raised TypeError")
def teacher_that_keeps_a_lock() -> Any:
    return KeepsALock()


@case("model check", "check_model_check", "lacks examine of callwright.training.ModelCheck")
def model_check_without_a_look() -> Any:
    return SimpleNamespace(name="m")


@case("command", "check_command", "is a click.Command, not function")
def command_that_is_a_function() -> Any:
    return lambda: None


@case("command", "check_command", "has no help")
def command_without_help() -> Any:
    return click.Command("quiet")


# Trackers -------------------------------------------------------------------------------------------------------------


class Shelf:
    """A sound tracker, to be broken in one place at a time."""

    name = "shelf"

    def __init__(self) -> None:
        self.made = 0

    def follow(self, run: Any, known: str | None) -> Any:
        self.made += 1
        return SimpleNamespace(id=known or f"run-{self.made}", send=lambda step: None, close=lambda completed: None)


@case("tracker", "check_tracker", "lacks follow")
def tracker_that_lacks_a_member() -> Any:
    return SimpleNamespace(name="nothing")


@case("tracker", "check_follow", "id must be a text that is not empty")
class NoId(Shelf):
    def follow(self, run: Any, known: str | None) -> Any:
        return SimpleNamespace(id="", send=lambda step: None, close=lambda completed: None)


@case("tracker", "check_follow", "raised UnicodeEncodeError")
class AsciiOnly(Shelf):
    def follow(self, run: Any, known: str | None) -> Any:
        made = super().follow(run, known)
        made.send = lambda step: [str(cell).encode("ascii") for row in step.rollouts for cell in row.values()]
        return made


@case("tracker", "check_follow", "raised IndexError")
class WantsRollouts(Shelf):
    def follow(self, run: Any, known: str | None) -> Any:
        made = super().follow(run, known)
        made.send = lambda step: step.rollouts[0]
        return made


@case("tracker", "check_goes_on", "it was to go on with 'run-1', and its id is 'run-2'")
class BeginsAnew(Shelf):
    def follow(self, run: Any, known: str | None) -> Any:
        return super().follow(run, None)


def test_a_sound_tracker_conforms() -> None:
    assert check_component("tracker", Shelf()) == ()


@case("command", "check_command", "the command 'many quiet' has no help")
def command_with_a_subcommand_without_help() -> Any:
    return click.Group("many", help="Many.", commands=[click.Command("quiet")])


@case("command", "check_help", "show --help raised RuntimeError: not now")
def command_that_fails_to_explain() -> Any:
    class Late(click.Command):
        def format_help_text(self, context: Any, formatter: Any) -> None:
            raise RuntimeError("not now")

    return Late("show", help="Show.")


@case("command", "check_options", "show: the option --all has no help")
def command_with_an_option_without_help() -> Any:
    return click.Command("show", help="Show.", params=[click.Option(["--all"])])


@case("command", "check_options", "spell the option --all_of in lower case, with dashes")
def command_with_an_option_of_underscores() -> Any:
    return click.Command("show", help="Show.", params=[click.Option(["--all_of"], help="All.")])


@case("command", "check_unknown_option", "show takes --there-is-no-such-option")
def command_that_takes_anything() -> Any:
    class Any_(click.Command):
        def parse_args(self, context: Any, args: Any) -> Any:
            return []

    return Any_("show", help="Show.")


class Frame:
    """A sound adapter to a framework without agents, to be broken in one place at a time."""

    name = "frame"

    def tools(self, log: Any) -> list[str]:
        return list(log.task.offered)

    def messages(self, run: Any) -> list[cw.Message]:
        if not isinstance(run, list):
            raise DataError("this is no run of frame")
        return [cw.Message.from_openai(one) for one in run]

    def function_tools(self, tools: Any) -> list[Any]:
        if [*tools]:
            raise DataError("this is no tool of frame")
        return []


def frame(**changed: Any) -> Any:
    return type("Changed", (Frame,), changed)()


@case("framework", "check_framework", "lacks function_tools")
def framework_that_lacks_a_member() -> Any:
    return SimpleNamespace(name="t", tools=None, messages=None)


@case("framework", "check_tools", "0 tools were made of")
def framework_without_tools() -> Any:
    return frame(tools=lambda self, log: [])


@case("framework", "check_tools", "called one of them")
def framework_that_tries_its_tools() -> Any:
    return frame(tools=lambda self, log: [log.call(name, {}) for name in log.task.offered])


@case("framework", "check_messages", "raised AttributeError")
def framework_that_reads_anything() -> Any:
    return frame(messages=lambda self, run: run if isinstance(run, list) and hasattr(run[0], "role") else run.messages)


@case("framework", "check_function_tools", "it took an object for a tool")
def framework_that_loses_tools() -> Any:
    return frame(function_tools=lambda self, tools: [])


class Lines:
    """A sound format of logs, to be broken in one place at a time."""

    name = "lines"

    def recognises(self, path: Any, head: bytes) -> bool:
        return head.startswith(b"lines")

    def read(self, path: Any, tools: Any) -> Any:
        raise DataError(f"{path}: these are no lines")


def lines(**changed: Any) -> Any:
    return type("Changed", (Lines,), changed)()


@case("log format", "check_log_format", "lacks read")
def format_that_reads_nothing() -> Any:
    return SimpleNamespace(name="t", recognises=None)


@case("log format", "check_recognises", "for its own")
def format_that_takes_everything() -> Any:
    return lines(recognises=lambda self, path, head: True)


@case("log format", "check_recognises", "raised UnicodeDecodeError")
def format_that_decodes() -> Any:
    return lines(recognises=lambda self, path, head: "x" in head.decode())


@case("log format", "check_refuses", "raised JSONDecodeError")
def format_that_lets_errors_pass() -> Any:
    import json

    return lines(read=lambda self, path, tools: [json.loads(path.read_bytes().decode(errors="replace"))])


@case("log format", "check_refuses", "does not name the file")
def format_that_does_not_say_where() -> Any:
    def read(self: Any, path: Any, tools: Any) -> Any:
        raise DataError("these are no lines")

    return lines(read=read)


class Pollster:
    """A sound user, to be broken in one place at a time."""

    name = "pollster"

    def begin(self, task: Any, seed: int) -> Any:
        return SimpleNamespace(reply=lambda messages, session: self.say(messages, seed))

    def say(self, messages: Any, seed: int) -> Any:
        spoken = len(messages) // 2
        return cw.Said(f"Question {spoken} of {seed}?", done=spoken > 3)


def pollster(**changed: Any) -> Any:
    return type("Changed", (Pollster,), changed)()


@case("user", "check_user", "lacks begin of callwright.walk")
def user_that_never_begins() -> Any:
    return SimpleNamespace(name="t")


@case("user", "check_user", "has no method reply")
def user_without_an_answer() -> Any:
    return pollster(begin=lambda self, task, seed: "hello")


@case("user", "check_replies", "reply.. to '' raised IndexError")
def user_that_reads_the_first_word() -> Any:
    return pollster(say=lambda self, messages, seed: cw.Said(messages[-1].text.split()[0]))


@case("user", "check_replies", "it must be a Said")
def user_that_answers_with_text() -> Any:
    return pollster(say=lambda self, messages, seed: "What?")


@case("user", "check_replies", "calls must be Calls")
def user_with_calls_of_another_kind() -> Any:
    return pollster(say=lambda self, messages, seed: cw.Said(calls=("f",)))  # type: ignore[arg-type]


@case("user", "check_replies", "neither says nor does anything")
def user_that_is_silent() -> Any:
    return pollster(say=lambda self, messages, seed: cw.Said(messages[-1].text))


@case("user", "check_seed", "is a global random generator used")
def user_that_counts_all_users() -> Any:
    count = iter(range(10_000))
    return pollster(say=lambda self, messages, seed: cw.Said(str(next(count)), done=len(messages) > 6))


@case("user", "check_end", "goes on asking")
def user_that_never_ends() -> Any:
    return pollster(say=lambda self, messages, seed: cw.Said("More?"))


@case("user", "check_pickles", "pickling the user raised TypeError")
def user_with_a_lock() -> Any:
    made = Pollster()
    made.lock = threading.Lock()  # type: ignore[attr-defined]
    return made


@case("user", "check_pickles", "says something else")
def user_that_forgets_what_it_is() -> Any:
    return Elsewhere()


class Elsewhere(Pollster):
    def __init__(self, here: bool = True) -> None:
        self.here = here

    def __reduce__(self) -> Any:
        return Elsewhere, (False,)

    def say(self, messages: Any, seed: int) -> Any:
        return cw.Said(f"{self.here}", done=len(messages) > 4)


# Benchmarks ----------------------------------------------------------------------------------------------------------


class Measure(CorpusBenchmark):
    """A sound benchmark, to be broken in one place at a time."""

    name = "measure"

    def __init__(self) -> None:
        super().__init__(Tasks(), "train")


@case("benchmark", "check_members", "'2' is none of its versions")
class OfAnotherVersion(Measure):
    def __init__(self) -> None:
        super().__init__()
        self.version = "2"


@case("benchmark", "check_members", "which stands before a version")
class NamedLikeAVersion(Measure):
    name = "measure:1"


@case("benchmark", "check_members", "lacks aggregate")
class OnlyTasks(Tasks):
    pass


@case("benchmark", "check_categories", "categories do not add up")
class CountsTooMany(Measure):
    @property
    def categories(self) -> dict[str, int]:
        return {name: count + 1 for name, count in super().categories.items()}


@case("benchmark", "check_categories", "raises nothing")
class KnowsEveryCategory(Measure):
    def tasks(self, category: str | None = None) -> Any:
        return super().tasks(category if category in self.categories else None)


@case("benchmark", "check_judging_is_total", "gave the score 7")
class GenerousJudge(Measure):
    def judge(self, task: Any, attempt: Any) -> Judgement:
        return Judgement(True, 7.0)


@case("benchmark", "check_judging_is_total", "gave another judgement the second time")
class Fickle(Measure):
    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def judge(self, task: Any, attempt: Any) -> Judgement:
        self.asked += 1
        return Judgement(False, 0.0, f"error {self.asked}")


@case("benchmark", "check_judging_is_total", "right, and yet")
class RightAndWrong(Measure):
    def judge(self, task: Any, attempt: Any) -> Judgement:
        return Judgement(True, 1.0, "wrong")


@case("benchmark", "check_tables", "there is no figure 'overall'")
class NoTotal(Measure):
    def aggregate(self, judged: Any) -> Any:
        return {name: share for name, share in super().aggregate(judged).items() if name != "overall"}


@case("benchmark", "check_tables", "overall is 0.0, not None")
class CountsWhatIsMasked(Measure):
    def aggregate(self, judged: Any) -> Any:
        right = [one.judgement.correct for one in judged]
        return {"overall": sum(right) / len(right) if right else None}


@case("benchmark", "check_tables", "hang on the order")
class LastCounts(Measure):
    def aggregate(self, judged: Any) -> Any:
        known = [one.judgement for one in judged if one.judgement.masked is None]
        return {"overall": known[-1].score if known else None}


@case("benchmark", "check_pickles", "pickle")
class HoldsARule(Measure):
    def __init__(self) -> None:
        super().__init__()
        self.rule = lambda judgement: judgement


# Capabilities: a member that is nearly one of them --------------------------------------------------------------------

MISSPELT = {
    "parser": (Form, "takes_handle"),
    "environment": (World, "user_tool"),
    "reward component": (Right, "setups"),
    "reward recipe": (type(sound_recipe()), "schedule"),
    "sampler": (Script, "observations_role"),
    "trainer": (SimpleNamespace, "groups"),
    "corpus": (Tasks, "prompt_texts"),
    "benchmark": (Measure, "judge_togethers"),
    "synthesizer": (Prices, "limitss"),
    "teacher": (Echo, "concurency"),
    "user": (Pollster, "liness"),
}


def _misspelt(kind: str) -> Callable[[], Any]:
    base, name = MISSPELT[kind]

    def made() -> Any:
        misspelt = type(base.__name__, (base,), {name: lambda self: None})
        if kind != "reward recipe":
            return misspelt()
        whole = sound_recipe()
        object.__setattr__(whole, "__class__", misspelt)
        return whole

    return made


for _kind in MISSPELT:
    case(_kind, "check_capabilities", "is nearly")(_misspelt(_kind))


# The tests ------------------------------------------------------------------------------------------------------------

SOUND: list[tuple[str, Callable[[], Any]]] = [
    ("parser", Form),
    ("parser", SampleForm),
    ("reward component", Right),
    ("reward component", Readable),
    ("reward recipe", sound_recipe),
    ("environment", World),
    ("environment", Forks),
    ("environment", Served),
    ("environment", lambda: SHOP),
    ("corpus", Tasks),
    ("benchmark", Measure),
    ("sampler", Script),
    ("toolset", lambda: [TOOL]),
    ("trainer", Counting),
    ("synthesizer", Prices),
    ("teacher", Echo),
    ("user", Pollster),
    ("model check", lambda: SimpleNamespace(name="m", examine=lambda folder: None)),
    ("command", lambda: click.Command("loud", help="Be loud.")),
]


@pytest.mark.parametrize(("kind", "make"), SOUND)
def test_what_is_sound_passes_every_check(kind: str, make: Any) -> None:
    for check in checks_for(kind):
        check(make())


@pytest.mark.parametrize(("kind", "check", "message", "make", "context"), CASES)
def test_what_is_broken_fails_its_check(kind: str, check: str, message: str, make: Any, context: Any) -> None:
    (found,) = (one for one in checks_for(kind, **context) if one.name == check)
    with pytest.raises(AssertionError, match=f"(?s){message}"):
        found(make())


def test_a_synthesizer_says_where_it_is_tried() -> None:
    class Somewhere(Broken):
        tried_in = "nowhere"

    (check,) = (one for one in checks_for("synthesizer") if one.name == "check_plan")
    with pytest.raises(UnknownName, match="environment named 'nowhere'"):
        check(Somewhere())


def test_every_check_has_a_component_that_it_catches() -> None:
    """Those of algorithms have their own, beside the algorithms."""
    caught = {(parameters.values[0], parameters.values[1]) for parameters in CASES}
    kinds = [kind for kind in KINDS if kind != "algorithm"]
    assert caught == {(kind, check.name) for kind in kinds for check in checks_for(kind)}


def leaves(value: Any) -> Iterator[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is None:
        yield value
    else:
        for one in inner:
            yield from leaves(one)


def test_what_the_kit_tries_is_varied() -> None:
    """The generators reach what they are meant to reach; a kit that tries nothing catches nothing."""
    from callwright.testing.arguments import fitting_arguments, wrong_arguments
    from callwright.testing.programs import programs
    from callwright.testing.rewards import _attempts
    from callwright.testing.texts import NASTY, mutated

    made = list(programs(150, seed=1))
    assert made == list(programs(150, seed=1))
    values = [leaf for program in made for call in program.calls for leaf in leaves(dict(call.arguments))]
    assert {type(value) for value in values} >= {str, int, float, bool, type(None), cw.Reference}
    assert {program.structure for program in made} >= {"none", "single", "parallel", "linear", "mixed"}

    form = SampleForm()
    good = [form.render(program) for program in made[:5]]
    texts = list(mutated(good, 400, seed=3))
    assert texts == list(mutated(good, 400, seed=3))
    codes = {found.code for found in map(form.parse, [*texts, *NASTY]) if isinstance(found, cw.ParseFailure)}
    assert codes >= {"invalid_json", "too_deep", "not_a_program"}
    assert sum(isinstance(form.parse(text), cw.Program) for text in texts) > 20

    attempts = list(_attempts(None, None))
    kinds = {step.outcome.kind for attempt in attempts if attempt.trace for step in attempt.trace.records}
    assert kinds >= {"ok", "unknown_tool", "schema_error", "execution_error"}
    found = [attempt.validation for attempt in attempts if attempt.validation]
    for kind in ("names", "parameters", "types"):
        assert any(getattr(validation, kind) for validation in found)
    assert {attempt.task.structure for attempt in attempts} >= {"none", "single", "parallel", "linear", "funnel"}

    rng = random.Random(1)
    for spec in SHOP.tools.values():
        fitting = fitting_arguments(spec, rng)
        assert fitting is not None
        assert copy.deepcopy(fitting) == json.loads(json.dumps(fitting))
        assert len(list(wrong_arguments(spec, rng))) >= 2
