"""Conformance checks for reward components and recipes: pure, within their range, with evidence, never raising."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any, Final

from attrs import evolve

from callwright.errors import CannotExpress, InfrastructureFailure
from callwright.language.parser import Parser
from callwright.language.program import plain
from callwright.testing.expectations import expect, expect_members, expect_name, never_raises, shown, snapshot
from callwright.testing.pickling import elsewhere
from callwright.testing.sample import BrokenShop, SampleForm, sample_tasks, spoiled
from callwright.testing.texts import NASTY, mutated
from callwright.walk.attempt import Attempt
from callwright.walk.completion import Completion
from callwright.walk.components.component import score_of
from callwright.walk.conditions import Conditions, Progress
from callwright.walk.reward import STAGES, Evidence, Reward, RewardComponent, RewardRecipe, Score, Term
from callwright.walk.tasks import Task

#: The tasks to try a component on; ``None`` for the kit's own.
Tasks = Sequence[Task] | None

_MUTATIONS: Final = 60
#: Some rewards have a schedule and must be told how far training is.
_CONDITIONS: Final = Conditions(progress=Progress(30, 100))
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]{6,}")


# Components -----------------------------------------------------------------------------------------------------------


def check_component_attributes(component: RewardComponent) -> None:
    """It is a :class:`callwright.RewardComponent` with a name, a range and a stage."""
    expect(
        isinstance(component, RewardComponent),
        f"{type(component).__name__} is not a subclass of callwright.RewardComponent",
    )
    expect_name(component)
    low, high = component.low, component.high
    expect(
        math.isfinite(low) and math.isfinite(high) and low < high,
        f"the range is [{low}, {high}]; both ends must be finite and the low one lower, or no recipe can be normalised",
    )
    expect(
        component.stage == "" or component.stage in STAGES,
        f"stage is {component.stage!r}; it must be one of {', '.join(STAGES)}, or empty",
    )


def check_never_raises(component: RewardComponent, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """It scores any completion: right ones, wrong ones, and texts that are no program at all."""
    for attempt in _attempts(tasks, parser):
        _scored(component, attempt)


def check_range(component: RewardComponent, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """Every value is a finite number within the declared range, and so is the range that the score states."""
    for attempt in _attempts(tasks, parser):
        _expect_range(component, score_of(component, attempt), attempt)


def check_evidence(component: RewardComponent, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """Below the maximum there is evidence, each piece with a stable code and a reason in words."""
    for attempt in _attempts(tasks, parser):
        _expect_evidence(score_of(component, attempt), attempt)


def check_purity(component: RewardComponent, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """The same attempt gets the same score, in any order, and no global random number is drawn."""
    state = random.getstate()
    first = [score_of(component, attempt) for attempt in _attempts(tasks, parser)]
    for attempt, before in reversed(list(zip(_attempts(tasks, parser), first, strict=True))):
        for _ in range(2):
            after = score_of(component, attempt)
            if after != before:
                raise AssertionError(
                    f"{_about(attempt)} was scored {shown(before)} and then {shown(after)}: does the component keep "
                    "state, or ask a clock, a random generator or a model?"
                )
    expect(random.getstate() == state, "the component draws from the global random generator")


def check_nothing_is_changed(component: RewardComponent, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """Scoring changes neither the task nor anything that other components will look at."""
    of_task: tuple[Task, dict[str, str]] | None = None  # as the last attempt left it
    for attempt in _attempts(tasks, parser):
        if of_task is None or of_task[0] is not attempt.task:
            of_task = attempt.task, _contents_of(attempt.task)
        before = {**of_task[1], **_contents(attempt)}
        score_of(component, attempt)
        of_task = attempt.task, _contents_of(attempt.task)
        after = {**of_task[1], **_contents(attempt)}
        for what, text in before.items():
            if after[what] != text:
                raise AssertionError(f"scoring {_about(attempt)} changed the {what}: every component shares them")


def check_infrastructure(component: RewardComponent, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """If the machinery failed, the score is masked, or is what it would have been: never another number."""
    for healthy, broken in _healthy_and_broken(tasks, parser):
        expected = score_of(component, healthy)
        try:
            found = score_of(component, broken)
        except InfrastructureFailure:  # which masks
            continue
        expect(
            found.masked is not None or found.value == expected.value,
            f"with a server that is down, {_about(broken)} gets {found.value} instead of {expected.value}: pass "
            "trace.masked on as Score(..., masked=…), so that it never becomes a gradient",
        )


def check_many_at_once(component: RewardComponent, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """Many attempts at once get the scores that each gets alone, in their order, and a failure of one stays its own."""
    _expect_many_at_once(RewardRecipe("alone", (Term(component),), normalise=False), tasks, parser)


def _expect_many_at_once(recipe: RewardRecipe, tasks: Tasks, parser: Parser | None) -> None:
    attempts = list(_attempts(tasks, parser))
    # The machinery fails for one here and there, as it does.
    for number, (_, broken) in enumerate(_healthy_and_broken(tasks, parser)):
        attempts.insert(3 * number, broken)
    alone = [recipe.score_attempt(attempt) for attempt in attempts]
    for attempt, expected, found in zip(attempts, alone, recipe.score_attempts(attempts), strict=True):
        if found != expected:
            raise AssertionError(
                f"{_about(attempt)} gets {found.explain()!r} among others at once, and {expected.explain()!r} alone: "
                "does a score hang on who is scored beside it, or are scores in another order than attempts?"
            )


def check_pickles_before_use(component: RewardComponent, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """It can be pickled as it was made, and another process gives the same scores with it."""
    copy = elsewhere(component, "the component")
    for attempt in _attempts(tasks, parser):
        _expect_same_score(copy, attempt, score_of(component, attempt))


def check_pickles_after_use(component: RewardComponent, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """It can be pickled after it has scored, and so can every score and every attempt that it has looked at."""
    scores = []
    of_task: tuple[Task, dict[str, str]] | None = None
    for attempt in _attempts(tasks, parser):
        score = score_of(component, attempt)
        scores.append(score)
        if elsewhere(score, "a score") != score:
            raise AssertionError(f"the score of {_about(attempt)} is another one after it was pickled")
        copy = elsewhere(attempt, f"the attempt of {_about(attempt)}, after it was scored,")
        if of_task is None or of_task[0] is not attempt.task:
            of_task = attempt.task, _contents_of(attempt.task)
        if _contents_of(copy.task) != of_task[1] or _contents(copy) != _contents(attempt):
            raise AssertionError(f"{_about(attempt)} is another one after it was pickled")
    used = elsewhere(component, "the component, after it was used,")
    for attempt, score in zip(_attempts(tasks, parser), scores, strict=True):
        _expect_same_score(used, attempt, score)


def _expect_same_score(copy: RewardComponent, attempt: Attempt, ours: Score) -> None:
    theirs = score_of(copy, attempt)
    if ours != theirs:
        raise AssertionError(f"another process scores {_about(attempt)} {shown(theirs)}, and this one {shown(ours)}")


REWARD_COMPONENT_CHECKS: Final = (
    check_component_attributes,
    check_never_raises,
    check_range,
    check_evidence,
    check_purity,
    check_nothing_is_changed,
    check_infrastructure,
    check_many_at_once,
    check_pickles_before_use,
    check_pickles_after_use,
)


def _scored(component: RewardComponent, attempt: Attempt) -> Score:
    with never_raises(partial(_scoring, attempt)):
        score = score_of(component, attempt)
    if not isinstance(score, Score):
        raise AssertionError(f"score() gave {type(score).__name__} for {_about(attempt)}; it must give a Score")
    return score


def _expect_range(component: RewardComponent, score: Score, attempt: Attempt) -> None:
    if not (isinstance(score.value, int | float) and component.low <= score.value <= component.high):
        raise AssertionError(
            f"the value {score.value!r} of {_about(attempt)} is outside of [{component.low}, {component.high}]"
        )
    if not component.low <= score.low <= score.value <= score.high <= component.high:
        raise AssertionError(
            f"the score of {_about(attempt)} states the range [{score.low}, {score.high}], which is not within the "
            f"component's [{component.low}, {component.high}]: were low and high passed on to Score?"
        )


def _expect_evidence(score: Score, attempt: Attempt) -> None:
    if not (score.full or len(score.evidence) > 0):
        raise AssertionError(
            f"the value {score.value} is below {score.high} for {_about(attempt)}, but there is no evidence: nobody "
            "could tell where the points went"
        )
    for evidence in score.evidence:
        if not (isinstance(evidence, Evidence) and bool(evidence.code) and bool(evidence.reason.strip())):
            raise AssertionError(f"the evidence {shown(evidence)} for {_about(attempt)} needs a code and a reason")
        if _ADDRESS.search(repr(evidence)) is not None:
            raise AssertionError(
                f"the evidence {shown(evidence)} shows an address in memory, which is another one in every run"
            )


# Recipes --------------------------------------------------------------------------------------------------------------


def check_recipe_attributes(recipe: RewardRecipe) -> None:
    """It has a name, terms with names of their own, and a total that can be earned."""
    expect_members(recipe, RewardRecipe)
    expect_name(recipe)
    expect(len(recipe.terms) > 0, "the recipe has no terms")
    expect(recipe.low < recipe.high, f"the totals lie in [{recipe.low}, {recipe.high}]: nothing can be earned")
    expect(
        not recipe.normalise or math.isclose(recipe.high, 1.0),
        f"the largest total of a normalised recipe is {recipe.high}, not 1",
    )
    for term in recipe.terms:
        check_component_attributes(term.component)


def check_terms(recipe: RewardRecipe, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """Every component of the recipe scores any completion, within its range and with evidence."""
    for attempt in _attempts(tasks, parser):
        for term in recipe.terms:
            try:
                score = _scored(term.component, attempt)
                _expect_range(term.component, score, attempt)
                _expect_evidence(score, attempt)
            except AssertionError as error:
                raise AssertionError(f"the term {term.name!r}: {error}") from error


def check_sum(recipe: RewardRecipe, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """The contributions sum to the total, which lies between the recipe's smallest and largest."""
    for attempt, reward in _rewards(recipe, tasks, parser):
        if reward.total is None:
            expect(reward.masked is not None, f"the total of {_about(attempt)} is None, but nothing says why")
            continue
        parts = math.fsum(weighted.contribution for weighted in reward.scores.values())
        if not math.isclose(parts, reward.total, rel_tol=1e-9, abs_tol=1e-9):
            raise AssertionError(f"the contributions of {_about(attempt)} sum to {parts}, the total is {reward.total}")
        if not recipe.low - 1e-9 <= reward.total <= recipe.high + 1e-9:
            raise AssertionError(
                f"the total {reward.total} of {_about(attempt)} is outside of [{recipe.low}, {recipe.high}]"
            )


def check_gates(recipe: RewardRecipe, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """A term behind a gate that is below its maximum gets its minimum and says that it was not looked at."""
    for attempt, reward in _rewards(recipe, tasks, parser):
        for term in recipe.terms:
            weighted = reward.scores[term.name]
            shut = [name for name in term.requires if not reward.scores[name].score.full]
            if weighted.closed != bool(shut):
                raise AssertionError(
                    f"{term.name} of {_about(attempt)} is {'closed' if weighted.closed else 'open'}, though of its "
                    f"gates {', '.join(shut) or 'none'} are below their maximum"
                )
            if shut and weighted.score.value != term.component.low:
                raise AssertionError(
                    f"{term.name} of {_about(attempt)} is behind a shut gate, but has {weighted.score.value}"
                )


def check_rows(recipe: RewardRecipe, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """Every reward can be written as a row of JSON and explained in words."""
    for attempt, reward in _rewards(recipe, tasks, parser):
        with never_raises(f"writing the reward of {_about(attempt)} as JSON"):
            json.dumps(reward.to_json(), allow_nan=False)
        expect(reward.explain() != "", f"the reward of {_about(attempt)} explains nothing")
        expect(reward.stage in (*STAGES, "done"), f"the stage of {_about(attempt)} is {reward.stage!r}")


def check_same_reward(recipe: RewardRecipe, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """The same completion of the same task gets the same reward."""
    first = [reward for _, reward in _rewards(recipe, tasks, parser)]
    for (attempt, after), before in zip(_rewards(recipe, tasks, parser), first, strict=True):
        if after != before:
            raise AssertionError(f"{_about(attempt)} got {before.explain()!r} and then {after.explain()!r}")


def check_masks(recipe: RewardRecipe, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """If the machinery failed, the sample is masked, or its total is what it would have been: never another number."""
    for healthy, broken in _healthy_and_broken(tasks, parser):
        expected, found = recipe.score_attempt(healthy), recipe.score_attempt(broken)
        expect(
            found.total is None or found.total == expected.total,
            f"with a server that is down, {_about(broken)} gets {found.total} instead of {expected.total}: the term "
            "that looks at the trace must pass trace.masked on as Score(..., masked=…)",
        )


def check_rewards_at_once(recipe: RewardRecipe, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """Many attempts at once get the rewards that each gets alone, in their order, and a mask of one stays its own."""
    _expect_many_at_once(recipe, tasks, parser)


def check_cut_off(recipe: RewardRecipe, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """A completion that was cut off is masked, or earns no more than the same text that ended; the sum still holds."""
    for attempt, whole in _rewards(recipe, tasks, parser):
        completion = Completion(attempt.completion.text, truncated=True)
        with never_raises(f"scoring {_about(attempt)}, cut off,"):
            cut = recipe.score_attempt(Attempt(attempt.task, completion, attempt.parser, attempt.conditions))
        if cut.total is None or whole.total is None:
            continue
        expect(
            cut.total <= whole.total + 1e-9,
            f"{_about(attempt)} earns {whole.total}, and {cut.total} when it is cut off: nobody may gain by not ending",
        )
        parts = math.fsum(weighted.contribution for weighted in cut.scores.values())
        expect(
            math.isclose(parts, cut.total, rel_tol=1e-9, abs_tol=1e-9) and cut.total >= recipe.low - 1e-9,
            f"{_about(attempt)}, cut off, has contributions that sum to {parts}, the total is {cut.total}, and the "
            f"recipe's smallest {recipe.low}",
        )


def check_recipe_pickles_before_use(recipe: RewardRecipe, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """It can be pickled as it was made, and another process gives the same rewards with it."""
    copy = elsewhere(recipe, "the recipe")
    for attempt, reward in _rewards(recipe, tasks, parser):
        _expect_same_reward(copy, attempt, reward)


def check_recipe_pickles_after_use(recipe: RewardRecipe, tasks: Tasks = None, parser: Parser | None = None) -> None:
    """It can be pickled after it has scored, and so can every reward."""
    rewards = []
    for attempt, reward in _rewards(recipe, tasks, parser):
        rewards.append(reward)
        if elsewhere(reward, "a reward") != reward:
            raise AssertionError(f"the reward of {_about(attempt)} is another one after it was pickled")
    used = elsewhere(recipe, "the recipe, after it was used,")
    for attempt, reward in zip(_attempts(tasks, parser), rewards, strict=True):
        _expect_same_reward(used, attempt, reward)


def _expect_same_reward(copy: RewardRecipe, attempt: Attempt, ours: Reward) -> None:
    theirs = copy.score_attempt(attempt)
    if ours != theirs:
        raise AssertionError(
            f"another process gives {_about(attempt)} {theirs.explain()!r}, and this one {ours.explain()!r}"
        )


REWARD_RECIPE_CHECKS: Final = (
    check_recipe_attributes,
    check_terms,
    check_sum,
    check_gates,
    check_rows,
    check_same_reward,
    check_masks,
    check_rewards_at_once,
    check_cut_off,
    check_recipe_pickles_before_use,
    check_recipe_pickles_after_use,
)


# What they are tried on -----------------------------------------------------------------------------------------------


def _attempts(tasks: Tasks, parser: Parser | None) -> Iterator[Attempt]:
    """Right, spoiled and nasty completions of each task; the same ones every time, but made anew."""
    form = parser or SampleForm()
    own = tasks is None and parser is None
    for number, task in enumerate(tasks if tasks is not None else sample_tasks()):
        for text in _own_texts()[number] if own else _texts(number, task, form):
            yield Attempt(task, text, form, _CONDITIONS)


@cache
def _own_texts() -> list[list[str]]:
    """The texts for the kit's own tasks in its own form, by task: nearly every check asks for these."""
    return [_texts(number, task, SampleForm()) for number, task in enumerate(sample_tasks())]


def _texts(number: int, task: Task, form: Parser) -> list[str]:
    good = [text for text in (_reference(task, form),) if text is not None]
    if task.program is not None:
        for program in spoiled(task.program):
            try:
                good.append(form.render(program))
            except CannotExpress:
                continue
    texts = [*good, *mutated(good, _MUTATIONS if number < 2 else 0, seed=number)] if good else []
    return [*texts, *(NASTY if number == 1 else ())]


def _healthy_and_broken(tasks: Tasks, parser: Parser | None) -> Iterator[tuple[Attempt, Attempt]]:
    """Reference programs, executed and with a server that is down."""
    form = parser or SampleForm()
    for task in tasks if tasks is not None else sample_tasks():
        text = _reference(task, form)
        if text is not None:
            twin = evolve(task, environment=BrokenShop())
            yield Attempt(task, text, form, _CONDITIONS), Attempt(twin, text, form, _CONDITIONS)


def _rewards(recipe: RewardRecipe, tasks: Tasks, parser: Parser | None) -> Iterator[tuple[Attempt, Reward]]:
    for attempt in _attempts(tasks, parser):
        with never_raises(partial(_scoring, attempt)):
            reward = recipe.score_attempt(attempt)
        yield attempt, reward


def _reference(task: Task, parser: Parser) -> str | None:
    try:
        return None if task.program is None else parser.render(task.program)
    except CannotExpress:
        return None


def _about(attempt: Attempt) -> str:
    return f"the completion {shown(attempt.completion.text)} of task {attempt.task.id!r}"


def _scoring(attempt: Attempt) -> str:
    return f"scoring {_about(attempt)}"


def _contents_of(task: Task) -> dict[str, str]:
    return {
        "tools of the task": snapshot({name: spec.parameters for name, spec in task.tools.items()}),
        "answer of the task": snapshot(list(task.answer.values)),
        "reference program of the task": snapshot(
            [call.arguments for call in task.program.calls] if task.program else 0
        ),
        "facts of the task": snapshot(dict(task.facts)),
    }


def _contents(attempt: Attempt) -> dict[str, str]:
    program, trace = attempt.program, attempt.trace
    steps: Any = [[step.arguments, step.outcome.kind, step.outcome.value] for step in trace.records] if trace else None
    return {
        "program": snapshot([plain(call.arguments) for call in program.calls] if program else None),
        "validation": repr(attempt.validation),
        "trace": snapshot(steps),
    }
