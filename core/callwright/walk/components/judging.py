"""Judging many attempts term by term: each term of a recipe is asked about all of them before the next one is.

The processor then runs the same few functions again and again, which is a fifth faster than attempt by attempt
(:meth:`callwright.RewardRecipe.scoring`); what comes out is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from callwright.environments.sessions import is_foreign
from callwright.errors import (
    Abstention,
    ComponentError,
    DataError,
    InfrastructureFailure,
    PluginError,
    RunError,
    UsageError,
)
from callwright.language.shortening import shortened
from callwright.walk.components.component import RewardComponent, closed
from callwright.walk.components.scores import STAGES, Evidence, Score, WeightedScore

if TYPE_CHECKING:
    from callwright.machines.questions import Asked
    from callwright.walk.attempt import Attempt

#: What scoring needs of a term: name, component, weight, gates, position of its stage; the weighted scores that
#: attempts share, which are the last full one (``None``) and by gates the closed ones; how it is asked, if it waits.
Planned = tuple[str, RewardComponent, float, tuple[str, ...], int, dict[str | None, WeightedScore], "Asked | None"]
#: The score of a term, or what came in place of one.
Known = Score | Exception | SystemExit
#: Scores by term, their weighted sum, the stage, and why the attempt is masked if it is.
Judged = tuple[dict[str, WeightedScore], float, str, str | None]

_DONE: Final = len(STAGES)
#: Characters of what a component returned that a message quotes.
_LONGEST_VALUE: Final = 200
#: More attempts at once are not faster.
MOST: Final = 32
#: Seconds that attempts which are judged together may take, so that nobody waits for a reward that could be there.
_SHORT: Final = 0.01


def judged_together(
    plan: Sequence[Planned],
    attempts: Sequence[Attempt],
    recipe: str,
    check: Callable[[Attempt], None] | None = None,
) -> list[Judged | Exception]:
    """What each attempt comes to under the terms of a recipe, none of which waits; what it raises stands in its place.

    ``recipe`` is the name of the recipe; ``check`` is asked about an attempt before any term is.
    """
    count = len(attempts)
    scores: list[dict[str, WeightedScore]] = [{} for _ in attempts]
    shut: list[dict[str, str | None]] = [{} for _ in attempts]
    stages, totals = [_DONE] * count, [0.0] * count
    masked: list[str | None] = [None] * count
    raised: dict[int, Exception] = {}
    for number, attempt in enumerate(attempts):
        try:
            if check is not None:
                check(attempt)
            masked[number] = attempt.cut_short
        except Exception as error:
            raised[number] = error
    for name, component, weight, requires, position, shared, _ in plan:
        ask, low, high = component.score, component.low, component.high
        # Full scores are mostly one shared object, so their weighted form is too; what is known of it is not asked.
        full = shared.get(None)
        if full is not None and full.score.masked is not None:
            full = None
        usual, gain = (full.score, full.contribution) if full is not None else (None, 0.0)
        for number, attempt in enumerate(attempts):
            if raised and number in raised:
                continue
            closing = shut[number]
            if closing:
                blocking = None
                for required in requires:
                    if required in closing and closing[required] != name:
                        blocking = required
                        break
                if blocking is not None:
                    weighted = shared.get(blocking) or closed_score(component, blocking, weight, shared)
                    scores[number][name] = weighted
                    value = weighted.score.value
                    if value < weighted.score.high:
                        closing[name] = None
                    totals[number] += weight * value
                    continue
            try:
                score = ask(attempt)
                if score is usual and full is not None:
                    scores[number][name] = full
                    totals[number] += gain
                    continue
                value = score.value
                within = low <= value <= high  # False for NaN too
            except (Exception, SystemExit) as error:
                try:
                    score = abstained(component, attempt, error, recipe)
                except Exception as meant:
                    raised[number] = meant
                    continue
                value, within = score.value, True
            if not within:
                raised[number] = out_of_range(component, attempt, value, recipe)
                continue
            if score.masked is not None:
                masked[number] = masked[number] or score.masked
            if value < score.high:
                told_by = closing[name] = score.told_by
                if position < stages[number]:
                    stages[number] = position
                scores[number][name] = WeightedScore(score, weight, told_by is not None)
            else:
                weighted = scores[number][name] = WeightedScore(score, weight)
                if score.masked is None:
                    full = shared[None] = weighted
                    usual, gain = score, weight * value
            totals[number] += weight * value
    return [
        raised[number]
        if number in raised
        else (scores[number], totals[number], stage_name(stages[number]), masked[number])
        for number in range(count)
    ]


def together(
    attempts: Iterable[Attempt], judge: Callable[[Sequence[Attempt]], Sequence[Any | Exception]]
) -> Iterator[Any]:
    """What ``judge`` makes of attempts, in their order; raises what it gives in place of a result.

    They are given to it a few at once: as many as take a moment, and at most :data:`MOST`. Each comes alone whose calls
    somebody listens to, so that hooks are told of one attempt after the other, and where foreign code runs. What
    ``attempts`` raises is raised after the results of those before it.
    """
    size, over = 1, False
    waiting: list[Attempt] = []
    failure: Exception | None = None
    rest = iter(attempts)
    while not over:
        alone: Attempt | None = None
        try:
            for attempt in rest:
                if attempt.conditions.caller is not None or is_foreign(attempt.task.environment):
                    alone = attempt
                    break
                waiting.append(attempt)
                if len(waiting) >= size:
                    break
            else:
                over = True
        except Exception as error:
            over, failure = True, error
        if waiting:
            began = perf_counter()
            found = judge(waiting)
            took, count = perf_counter() - began, len(waiting)
            waiting = []
            for one in found:
                if isinstance(one, Exception):
                    raise one
                yield one
            # What took a moment may take twice as many; what took long comes one by one from now on.
            size = min(MOST, 2 * count if took < _SHORT / 2 else max(1, int(count * _SHORT / took)))
        if alone is not None:
            (one,) = judge([alone])
            if isinstance(one, Exception):
                raise one
            yield one
    if failure is not None:
        raise failure


# What a term's answer means -------------------------------------------------------------------------------------------


def closed_score(
    component: RewardComponent, blocking: str, weight: float, shared: dict[str | None, WeightedScore]
) -> WeightedScore:
    """The weighted score of a term behind a gate that ``blocking`` has shut."""
    weighted = shared.get(blocking)
    if weighted is None:
        weighted = shared[blocking] = WeightedScore(closed(component, blocking), weight, True)
    return weighted


def stage_name(position: int) -> str:
    """The name of the stage at a position; ``done`` behind the last."""
    return STAGES[position] if position < _DONE else "done"


def told(known: dict[str, Known], name: str, component: RewardComponent, attempt: Attempt) -> Score:
    """The score of a term, which is found out once. Raises what stands in place of it."""
    if name not in known:
        try:
            known[name] = component.score(attempt)
        except (Exception, SystemExit) as error:
            known[name] = error
    found = known[name]
    if isinstance(found, Exception | SystemExit):
        raise found
    return found


def abstained(component: RewardComponent, attempt: Attempt, error: Exception | SystemExit, recipe: str) -> Score:
    """The score of a component that abstains. Raises what any other exception of it means."""
    for kind, code, verb in (
        (Abstention, "unknown", "abstains"),
        (InfrastructureFailure, "infrastructure", "failed"),
    ):
        if isinstance(error, kind):
            reason = f"{component.name or type(component).__name__} {verb}: {error}"
            return Score(component.low, component.low, component.high, (Evidence(code, reason),), reason)
    if isinstance(error, ComponentError | DataError | PluginError | RunError | UsageError):  # says itself whose fault
        raise error
    found = error.__traceback__
    if isinstance(error, AttributeError) and error.name == "value" and found is not None and found.tb_next is None:
        # Raised where its score is looked at, not within the component: what it returned is none.
        what = f"returned {shortened(repr(error.obj), _LONGEST_VALUE)}, which is no callwright.Score"
        raise _bug(component, attempt, what, recipe) from None
    raise _bug(component, attempt, f"raised {type(error).__name__}: {error}", recipe) from error


def out_of_range(component: RewardComponent, attempt: Attempt, value: object, recipe: str) -> ComponentError:
    """The error about a component whose score is outside of its range."""
    return _bug(component, attempt, f"returned {value!r}, outside [{component.low:g}, {component.high:g}]", recipe)


def _bug(component: RewardComponent, attempt: Attempt, what: str, recipe: str) -> ComponentError:
    return ComponentError(
        f"reward component {component.name or type(component).__name__!r} of {recipe!r} {what} "
        f"(task {attempt.task.id!r}). This is a bug of the component; the completion was: "
        f"{attempt.completion.text[:400]!r}"
    )
