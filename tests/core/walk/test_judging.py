"""Many attempts are judged term by term, and nobody can tell from what comes out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import callwright as cw
from callwright.errors import Abstention, DataError
from callwright.walk.components.judging import MOST
from callwright.walk.components.scores import Deferred

MakeAttempt = Callable[..., cw.Attempt]
PLAN: tuple[tuple[str, float, tuple[str, ...]], ...] = (
    ("a", 1.0, ()),
    ("b", 2.0, ("a",)),
    ("c", -1.0, ()),
    ("d", 1.0, ("b", "c")),
)
FULL = cw.Score(1.0)
SCORES: dict[str, Any] = {
    "full": FULL,
    "another full": cw.Score(1.0),
    "full, but unknown": cw.Score(1.0, masked="the machinery"),
    "half": cw.Score(0.5, evidence=(cw.Evidence("half", "half"),)),
    "none": cw.Score(0.0, evidence=(cw.Evidence("none", "none"),)),
    "told by c": Deferred(0.0, evidence=(cw.Evidence("none", "none"),), told="c"),
    "unknown": cw.Score(0.0, evidence=(cw.Evidence("lost", "lost"),), masked="lost"),
    "outside": cw.Score(1.5),
    "not a number": cw.Score(float("nan")),
    "abstains": Abstention("who knows"),
    "failed": cw.InfrastructureFailure("down"),
    "bug": KeyError("oops"),
    "leaves": SystemExit(3),
    "no score": 1.0,
    "data": DataError("nothing to compare with"),
    "interrupted": KeyboardInterrupt(),
}


class Says(cw.RewardComponent):
    """What the text of an attempt has it say: the words between commas, one for each term."""

    def __init__(self, name: str, asked: list[tuple[str, str]] | None = None) -> None:
        self.name = name  # type: ignore[misc]
        self.asked = asked

    def score(self, attempt: cw.Attempt) -> cw.Score:
        text = attempt.completion.text
        if self.asked is not None:
            self.asked.append((self.name, text))
        found = SCORES[text.split(",")["abcd".index(self.name)]]
        if isinstance(found, BaseException):
            raise found
        return found  # type: ignore[no-any-return]  # which may be none


def recipe_of(asked: list[tuple[str, str]] | None = None, **options: Any) -> cw.RewardRecipe:
    terms = tuple(cw.Term(Says(name, asked), weight, gates) for name, weight, gates in PLAN)
    return cw.RewardRecipe("says", terms, normalise=False, **options)


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except (Exception, KeyboardInterrupt) as error:
        return type(error).__name__, str(error)


@pytest.fixture(scope="module", name="shipped")
def _shipped() -> MakeAttempt:
    """An attempt at a task of a shipped world, whose attempts are judged together."""
    task = cw.corpus("toolworld-mini-v1")["evaluation"][0]
    parser = cw.parser("json")

    def make(text: str, **about: Any) -> cw.Attempt:
        return cw.Attempt(task, cw.Completion(text, **about), parser)

    return make


USUAL = ["full"] * 6 + [
    "another full",
    "half",
    "none",
    "told by c",
    "unknown",
    "full, but unknown",
    "abstains",
    "failed",
]
RARE = ["outside", "not a number", "bug", "data", "leaves", "no score"]
WORDS = st.sampled_from(USUAL * 6 + RARE)
TEXTS = st.lists(st.tuples(st.tuples(*[WORDS] * 4).map(",".join), st.booleans()), max_size=80)


@settings(deadline=None, max_examples=150)
@given(texts=TEXTS, policy=st.sampled_from(["as_is", "floor", "mask"]))
def test_rewards_their_order_and_errors_are_those_of_one_after_the_other(
    shipped: MakeAttempt, texts: list[tuple[str, bool]], policy: Any
) -> None:
    attempts = [shipped(text, truncated=cut, masked="no answer" if "unknown" in text else None) for text, cut in texts]
    options: dict[str, Any] = {"truncated": policy, **({"floor": 0.25} if policy == "floor" else {})}
    alone, recipe = recipe_of(**options), recipe_of(**options)
    expected: list[Any] = []
    for attempt in attempts:
        expected.append(outcome(lambda attempt=attempt: alone.score_attempt(attempt)))  # type: ignore[misc]
        if isinstance(expected[-1], tuple):
            break
    found: list[Any] = []
    raised = outcome(lambda: found.extend(recipe.scoring(attempts)))
    assert [*found, *([raised] if raised else [])] == expected
    assert [list(one.scores) for one in found] == [list(one.scores) for one in expected[: len(found)]], "in order, too"


def test_a_gate_keeps_a_term_from_being_asked(shipped: MakeAttempt) -> None:
    asked: list[tuple[str, str]] = []
    texts = ["full,full,full,full", "none,full,full,full", "full,none,full,full"] * 20
    recipe_of(asked).score_attempts([shipped(text) for text in texts])
    assert {text for name, text in asked if name == "b"} == {texts[0], texts[2]}
    assert {text for name, text in asked if name == "d"} == {texts[0]}
    assert len(asked) == 20 * (4 + 2 + 3)


class Waits(cw.RewardComponent):
    """Says when it was asked about whom, and takes its time."""

    name: ClassVar[str] = "waits"

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.heard = seconds, list[str]()

    def score(self, attempt: cw.Attempt) -> cw.Score:
        self.heard.append(attempt.completion.text)
        time.sleep(self.seconds)
        return FULL


def taken_ahead(recipe: cw.RewardRecipe, attempts: Sequence[cw.Attempt]) -> list[int]:
    """How many attempts were taken when each reward was given."""
    taken, found = 0, []

    def each() -> Iterator[cw.Attempt]:
        nonlocal taken
        for attempt in attempts:
            taken += 1
            yield attempt

    for number, _ in enumerate(recipe.scoring(each()), 1):
        found.append(taken - number)
    return found


def test_attempts_are_taken_a_few_at_once(shipped: MakeAttempt) -> None:
    ahead = taken_ahead(cw.RewardRecipe("quick", (cw.Term(Waits()),)), [shipped(str(number)) for number in range(200)])
    assert ahead[0] == 0, "the first comes alone"
    assert 4 < max(ahead) < MOST


def test_what_takes_long_is_not_kept_waiting_for_others(shipped: MakeAttempt) -> None:
    ahead = taken_ahead(
        cw.RewardRecipe("slow", (cw.Term(Waits(0.012)),)), [shipped(str(number)) for number in range(9)]
    )
    assert set(ahead) == {0}


@pytest.mark.parametrize("why", ["foreign code", "somebody listens to calls"])
def test_attempts_come_one_after_the_other_where(why: str, shipped: MakeAttempt, make_attempt: MakeAttempt) -> None:
    attempts = [make_attempt(str(number), 4) if why == "foreign code" else shipped(str(number)) for number in range(80)]
    if why != "foreign code":
        listened = evolve(attempts[0].conditions, caller=lambda session, call, given: session.call(call.tool, given))
        attempts = [attempt.under(listened) for attempt in attempts]
    first, second = Waits(), Waits()
    recipe = cw.RewardRecipe("both", (cw.Term(first), cw.Term(second, name="again")))
    for number, _ in enumerate(recipe.scoring(attempts)):
        assert first.heard == second.heard == [str(each) for each in range(number + 1)]


def test_what_the_attempts_raise_comes_after_the_rewards_of_those_before(shipped: MakeAttempt) -> None:
    def attempts() -> Iterator[cw.Attempt]:
        for number in range(50):
            yield shipped(str(number))
        raise DataError("line 51")

    given: list[cw.Reward] = []
    rewards = cw.RewardRecipe("quick", (cw.Term(Waits()),)).scoring(attempts())
    assert outcome(lambda: [given.append(reward) for reward in rewards]) == ("DataError", "line 51")
    assert len(given) == 50


def test_a_recipe_that_checks_attempts_asks_no_term_about_a_bad_one(shipped: MakeAttempt) -> None:
    class Checks(cw.RewardRecipe):
        def check_attempt(self, attempt: cw.Attempt) -> None:
            if attempt.completion.text == "30":
                raise cw.UsageError("not that one")

    component = Waits()
    given: list[cw.Reward] = []
    rewards = Checks("checks", (cw.Term(component),)).scoring(shipped(str(number)) for number in range(50))
    assert outcome(lambda: [given.append(reward) for reward in rewards]) == ("UsageError", "not that one")
    assert len(given) == 30
    assert "30" not in component.heard
