"""Components that wait: the rewards of many attempts are those of one after the other, and they wait together."""

from __future__ import annotations

import asyncio
import pickle
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import callwright as cw
from callwright.errors import Abstention, ComponentError, DataError
from callwright.machines import event_loop
from callwright.testing import parametrize_with_checks
from callwright.walk.components.component import score_of

WHY = (cw.Evidence("why", "because of a reason"),)
MakeAttempt = Callable[..., cw.Attempt]


def what_it_says(attempt: cw.Attempt, name: str) -> Any:
    """What every form of a component makes of an attempt, by its text: a score, or something to raise."""
    said = attempt.completion.text.partition(name + "=")[2].partition(";")[0]
    if said in ("", "1"):
        return cw.Score(1.0)
    if said == "abstains":
        return Abstention("nobody knows")
    if said == "fails":
        return cw.InfrastructureFailure("the server is down")
    if said == "bug":
        return ZeroDivisionError("division by zero")
    if said == "data":
        return DataError("the task lacks what it needs")
    if said == "outside":
        return cw.Score(7.0)
    return cw.Score(float(said), evidence=WHY)


class Told(cw.RewardComponent):
    """Answers at once."""

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]
        self.heard: list[str] = []

    def score(self, attempt: cw.Attempt) -> cw.Score:
        self.heard.append(attempt.completion.text)
        found = what_it_says(attempt, self.name)
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, cw.Score)
        return found


class Waits(cw.AsyncRewardComponent):
    """Answers after a while that hangs on nothing that anybody knows."""

    def __init__(self, name: str, concurrency: int = 16) -> None:
        self.name, self.concurrency = name, concurrency  # type: ignore[misc]
        self.heard: list[str] = []
        self.at_once = self.most_at_once = 0

    def prepare(self, attempt: cw.Attempt) -> None:
        """Nothing of it is executed."""

    async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
        self.heard.append(attempt.completion.text)
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            for _ in range(random.Random(attempt.completion.text).randrange(4)):
                await asyncio.sleep(0)
        finally:
            self.at_once -= 1
        found = what_it_says(attempt, self.name)
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, cw.Score)
        return found


class PlainWaits(cw.RewardComponent):
    """An ordinary component with a coroutine function."""

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]
        self.inner = Waits(name)

    async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
        return await self.inner.score(attempt)


class Batch(cw.BatchRewardComponent):
    """Answers a batch at a time."""

    def __init__(self, name: str, batch_size: int = 4) -> None:
        self.name, self.batch_size = name, batch_size  # type: ignore[misc]
        self.sizes: list[int] = []

    def score_many(self, attempts: Sequence[cw.Attempt]) -> list[cw.Score | Exception]:
        self.sizes.append(len(attempts))
        return [what_it_says(attempt, self.name) for attempt in attempts]


class AsyncBatch(Batch):
    """The same, awaited."""

    async def score_many(self, attempts: Sequence[cw.Attempt]) -> list[cw.Score | Exception]:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().score_many(attempts)


KINDS: tuple[type[Any], ...] = (Waits, PlainWaits, Batch, AsyncBatch)
PLAN: tuple[tuple[str, float, tuple[str, ...]], ...] = (("a", 1.0, ()), ("b", 2.0, ("a",)), ("c", 1.0, ("b",)))


def recipe_of(kinds: Sequence[type[Any]]) -> cw.RewardRecipe:
    terms = [cw.Term(kind(name), weight, gates) for kind, (name, weight, gates) in zip(kinds, PLAN, strict=True)]
    return cw.RewardRecipe("told", tuple(terms))


def outcome(work: Callable[[], Any]) -> Any:
    """What it gives, or what it raises in words."""
    try:
        return work()
    except Exception as error:
        return type(error).__name__, str(error)


SAID = st.sampled_from(["1", "1", "1", "0.5", "0", "abstains", "fails"])
RARELY = st.sampled_from(["1"] * 20 + ["bug", "data", "outside"])
TEXTS = st.lists(st.tuples(SAID, SAID | RARELY, SAID), max_size=20).map(
    lambda rows: [f"{number}: a={a};b={b};c={c};" for number, (a, b, c) in enumerate(rows)]
)


@settings(deadline=None, max_examples=60)
@given(texts=TEXTS, kinds=st.tuples(*[st.sampled_from((Told, *KINDS))] * 3))
def test_rewards_order_and_errors_are_those_of_one_by_one(
    attempt_with: MakeAttempt, texts: list[str], kinds: tuple[type[Any], ...]
) -> None:
    """The oracle are components that answer at once, which the walk asks one attempt after the other."""
    attempts = [attempt_with(text) for text in texts]
    plain = recipe_of((Told, Told, Told))
    expected: list[Any] = []
    for attempt in attempts:
        expected.append(outcome(lambda attempt=attempt: plain.score_attempt(attempt)))  # type: ignore[misc]
        if isinstance(expected[-1], tuple):
            break
    recipe = recipe_of(kinds)
    found: list[Any] = []

    def collect() -> None:
        for reward in recipe.scoring(attempts):
            found.append(reward)

    raised = outcome(collect)
    assert [*found, *([raised] if raised else [])] == expected
    for attempt, one in zip(attempts, expected, strict=False):
        assert outcome(lambda attempt=attempt: recipe.score_attempt(attempt)) == one  # type: ignore[misc]
        assert outcome(lambda attempt=attempt: asyncio.run(recipe.ascore(attempt))) == one  # type: ignore[misc]


@pytest.fixture(scope="module", name="attempt_with")
def _attempt_with(make_attempt: MakeAttempt) -> MakeAttempt:
    return lambda text: make_attempt(text, 4)


def test_what_is_behind_a_shut_gate_is_not_asked(attempt_with: MakeAttempt) -> None:
    judge = Waits("b")
    recipe = cw.RewardRecipe("gated", (cw.Term(Told("a")), cw.Term(judge, 1.0, ("a",))))
    rewards = recipe.score_attempts([attempt_with(f"{number}: a={number % 2};") for number in range(10)])
    assert [text.partition(":")[0] for text in sorted(judge.heard)] == ["1", "3", "5", "7", "9"]
    assert [reward.scores["b"].closed for reward in rewards] == [True, False] * 5


@pytest.mark.parametrize("concurrency", [1, 5])
def test_no_more_wait_at_once_than_a_component_allows(attempt_with: MakeAttempt, concurrency: int) -> None:
    """Also not where several callers of a process ask it at the same time."""
    judge = Waits("a", concurrency)
    recipe = cw.RewardRecipe("judged", (cw.Term(judge),))
    attempts = [attempt_with(f"{number}") for number in range(40)]
    callers = [threading.Thread(target=recipe.score_attempts, args=(attempts,)) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(judge.heard) == 120
    assert judge.most_at_once <= concurrency


def test_they_wait_together(attempt_with: MakeAttempt) -> None:
    """None of twelve answers before all of them were asked."""
    asked: list[str] = []

    class Meets(cw.AsyncRewardComponent):
        name = "meets"
        concurrency = 12

        async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
            asked.append(attempt.completion.text)
            while len(asked) < 12:
                await asyncio.sleep(0.001)
            return cw.Score(1.0)

    recipe = cw.RewardRecipe("meeting", (cw.Term(Meets()),))
    assert len(recipe.score_attempts([attempt_with(str(number)) for number in range(12)])) == 12

    asked.clear()

    async def services() -> list[cw.Reward]:
        return await asyncio.gather(*(recipe.ascore(attempt_with(str(number))) for number in range(12)))

    assert len(asyncio.run(services())) == 12


def test_batches_are_filled(attempt_with: MakeAttempt) -> None:
    batch = Batch("a", 8)
    cw.RewardRecipe("batched", (cw.Term(Waits("w")), cw.Term(batch))).score_attempts(
        [attempt_with(str(number)) for number in range(20)]
    )
    assert sorted(batch.sizes) == [4, 8, 8]


def test_services_that_ask_at_the_same_time_share_batches(attempt_with: MakeAttempt) -> None:
    """One of them gives up, which does nothing to those that are asked with it."""
    batch = AsyncBatch("a", 8)
    recipe = cw.RewardRecipe("batched", (cw.Term(batch),))

    async def services() -> list[Any]:
        asked = [asyncio.create_task(recipe.ascore(attempt_with(f"a={number / 40};"))) for number in range(40)]
        await asyncio.sleep(0)
        asked[7].cancel()
        return await asyncio.gather(*asked, return_exceptions=True)

    found = asyncio.run(services())
    assert isinstance(found.pop(7), asyncio.CancelledError)
    assert [reward.total for reward in found] == [number / 40 for number in range(40) if number != 7]
    assert len(batch.sizes) < 30
    assert max(batch.sizes) <= 8


def test_an_exception_in_a_batch_is_one_attempts_own(attempt_with: MakeAttempt) -> None:
    recipe = cw.RewardRecipe("batched", (cw.Term(Batch("a", 8)),))
    texts = ["a=1;", "a=fails;", "a=0.5;", "a=abstains;", "a=1;"]
    rewards = recipe.score_attempts([attempt_with(text) for text in texts])
    assert [reward.total for reward in rewards] == [1.0, None, 0.5, None, 1.0]
    assert rewards[1].masked == "a failed: the server is down"
    assert rewards[3].masked == "a abstains: nobody knows"


@pytest.mark.parametrize("given", [3, [1.0], "ab", None])
def test_a_batch_with_another_number_of_scores_is_the_components_bug(attempt_with: MakeAttempt, given: Any) -> None:
    class Wrong(cw.BatchRewardComponent):
        name = "wrong"

        def score_many(self, attempts: Sequence[cw.Attempt]) -> Any:
            return given

    recipe = cw.RewardRecipe("wrongly", (cw.Term(Wrong()),))
    with pytest.raises(ComponentError, match=r"'wrong' of 'wrongly' .*asked about 2 .*bug of the component"):
        recipe.score_attempts([attempt_with("a"), attempt_with("b")])


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_what_would_end_the_loop_is_a_bug_of_the_component(attempt_with: MakeAttempt, error: BaseException) -> None:
    class Rude(cw.AsyncRewardComponent):
        name = "rude"

        async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
            raise error

    recipe = cw.RewardRecipe("rudely", (cw.Term(Rude()),))
    with pytest.raises(ComponentError, match="'rude' of 'rudely'"):
        recipe.score_attempt(attempt_with("a"))
    assert event_loop.run(asyncio.sleep(0, "goes on")) == "goes on"


def test_an_answer_that_does_not_come_masks_its_sample_alone(attempt_with: MakeAttempt) -> None:
    cancelled = []

    class Hangs(cw.AsyncRewardComponent):
        name = "hangs"
        time_limit = 0.05

        async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
            try:
                await asyncio.sleep(60 if attempt.completion.text == "b" else 0)
            except asyncio.CancelledError:
                cancelled.append(attempt.completion.text)
                raise
            return cw.Score(1.0)

    recipe = cw.RewardRecipe("hanging", (cw.Term(Hangs()),))
    rewards = recipe.score_attempts([attempt_with(text) for text in "abc"])
    assert [reward.total for reward in rewards] == [1.0, None, 1.0]
    assert rewards[1].masked == "hangs failed: there is no answer after 0.05 s"
    assert cancelled == ["b"]


def test_a_failure_of_the_machinery_masks_in_ordinary_components_too(attempt_with: MakeAttempt) -> None:
    reward = cw.RewardRecipe("told", (cw.Term(Told("a")),)).score_attempt(attempt_with("a=fails;"))
    assert (reward.total, reward.masked) == (None, "a failed: the server is down")


def test_a_loop_is_not_blocked_while_attempts_are_scored(make_attempt: MakeAttempt) -> None:
    """A task that ticks in the same loop ticks on, though everything else that the loop does is to score."""
    recipe = cw.RewardRecipe("told", (cw.Term(Slow()),))

    async def service() -> int:
        ticks, over = 0, False

        async def tick() -> None:
            nonlocal ticks
            while not over:
                await asyncio.sleep(0.001)
                ticks += 1

        ticking = asyncio.create_task(tick())
        for number in range(20):
            before = ticks
            await recipe.ascore(make_attempt(str(number), 4))
            while ticks == before:  # it has to come: a loop that was blocked has not ticked yet
                await asyncio.sleep(0)
        over = True
        await ticking
        return ticks

    assert asyncio.run(service()) >= 20 * 5


class Slow(cw.RewardComponent):
    """Takes ten ticks of a task that ticks beside it; for ever if that one stands still."""

    name: ClassVar[str] = "slow"

    def score(self, attempt: cw.Attempt) -> cw.Score:
        assert threading.current_thread() is not threading.main_thread()
        done = threading.Event()
        done.wait(0.05)
        return cw.Score(1.0)


# Setup and close ------------------------------------------------------------------------------------------------------


class Lives(cw.AsyncRewardComponent):
    """Says when it is set up and closed."""

    def __init__(self, name: str = "lives") -> None:
        self.name = name  # type: ignore[misc]
        self.said: list[str] = []

    async def setup(self) -> None:
        await asyncio.sleep(0)
        self.said.append("setup")

    async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
        self.said.append("score")
        return cw.Score(1.0)

    async def close(self) -> None:
        self.said.append("close")


class PlainLives(Told):
    """The same without waiting."""

    def __init__(self, name: str = "plain") -> None:
        super().__init__(name)
        self.said: list[str] = []

    def setup(self) -> None:
        self.said.append("setup")

    def score(self, attempt: cw.Attempt) -> cw.Score:
        self.said.append("score")
        return cw.Score(1.0)

    def close(self) -> None:
        self.said.append("close")


@pytest.mark.parametrize("make", [Lives, PlainLives])
def test_it_is_set_up_once_and_closed_at_the_end(attempt_with: MakeAttempt, make: type[Any]) -> None:
    component = make()
    recipe = cw.RewardRecipe("living", (cw.Term(component),))
    with recipe:
        assert component.said == ["setup"]
        with recipe.with_terms(Told("other")) as more:  # of the same component: it stays until the last one leaves
            more.score_attempts([attempt_with("1")] * 2)
        recipe.score_attempt(attempt_with("1"))
    assert component.said == ["setup", "score", "score", "score", "close"]
    recipe.score_attempt(attempt_with("1"))
    assert component.said[5:] == ["setup", "score"]


@pytest.mark.parametrize("make", [Lives, PlainLives])
def test_it_is_closed_when_something_is_raised(make: type[Any]) -> None:
    component = make()
    with pytest.raises(KeyError), cw.RewardRecipe("living", (cw.Term(component),)):
        raise KeyError
    assert component.said == ["setup", "close"]


def test_a_setup_that_fails_closes_what_was_set_up(attempt_with: MakeAttempt) -> None:
    class Broken(Lives):
        async def setup(self) -> None:
            raise cw.InfrastructureFailure("no server")

    first, broken = Lives("first"), Broken("broken")
    recipe = cw.RewardRecipe("living", (cw.Term(first), cw.Term(broken)))
    with pytest.raises(cw.InfrastructureFailure, match="no server"), recipe:
        pass
    assert first.said == ["setup", "close"]
    reward = recipe.score_attempt(attempt_with("1"))  # and without a block it masks
    assert reward.masked == "broken failed: no server"


AT_EXIT = """
import asyncio, sys
import callwright as cw

class Lives(cw.AsyncRewardComponent):
    name = "lives"
    def setup(self): print("setup", flush=True)
    async def score(self, attempt): print("score", flush=True); return cw.Score(1.0)
    async def close(self): await asyncio.sleep(0.01); print("close", flush=True)

recipe = cw.RewardRecipe("living", (cw.Term(Lives()),))
corpus = cw.corpus("toolworld-mini-v1")
recipe.score(corpus["evaluation"][0], "text")
"""


def test_what_nobody_closed_is_closed_when_the_process_ends() -> None:
    done = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["setup", "score", "close"], "")


# The loop -------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_an_interrupt_ends_the_wait_and_cancels_what_waits() -> None:
    code = """
import asyncio, signal, threading, os
import callwright as cw
class Waits(cw.AsyncRewardComponent):
    name = "waits"
    async def score(self, attempt):
        try:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            await asyncio.sleep(3600)
        finally:
            print("cancelled", flush=True)
    async def close(self):
        print("closed", flush=True)
recipe = cw.RewardRecipe("waiting", (cw.Term(Waits()),))
try:
    with recipe:
        recipe.score(cw.corpus("toolworld-mini-v1")["evaluation"][0], "text")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, sorted(done.stdout.split())) == (0, ["cancelled", "closed", "interrupted"]), done.stderr


# Elsewhere ------------------------------------------------------------------------------------------------------------


class Judge(cw.AsyncRewardComponent):
    """Can be pickled."""

    name = "judge"

    async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
        return cw.Score(0.5, evidence=WHY)


def test_a_recipe_that_waits_can_be_pickled_before_and_after_use(attempt_with: MakeAttempt) -> None:
    recipe = cw.RewardRecipe("judged", (cw.Term(Judge()),))
    before = pickle.dumps(recipe)
    reward = recipe.score_attempt(attempt_with("a"))
    for made in (before, pickle.dumps(recipe)):
        assert pickle.loads(made).score_attempt(attempt_with("a")) == reward


def test_a_pipeline_tells_its_hook_of_each_reward_in_order(attempt_with: MakeAttempt) -> None:
    heard: list[float | None] = []

    class Listens:
        @cw.hookimpl
        def callwright_attempt_scored(self, attempt: cw.Attempt, reward: cw.Reward) -> None:
            heard.append(reward.total)

    registry = cw.plugins.load_plugins(extra={"listens": Listens()})
    pipeline = cw.Pipeline("toolworld-mini-v1", cw.RewardRecipe("w", (cw.Term(Waits("a")),)), registry=registry)
    attempts = [attempt_with(f"{number}: a={number / 10};") for number in range(10)]
    with pipeline:
        rewards = pipeline.score_many(attempts)
        assert heard == [reward.total for reward in rewards] == [number / 10 for number in range(10)]
        assert asyncio.run(pipeline.ascore(attempts[3])) == pipeline.score(attempts[3]) == rewards[3]
    assert heard[10:] == [0.3, 0.3]


class Own(cw.RewardRecipe):
    """A recipe with a way of its own, which is kept."""

    def score_attempt(self, attempt: cw.Attempt) -> cw.Reward:
        return cw.Reward(3.0, super().score_attempt(attempt).scores)


@pytest.mark.parametrize("component", [Told("a"), Judge()], ids=["told", "judge"])
def test_a_recipe_with_a_score_attempt_of_its_own_is_asked_by_it(
    attempt_with: MakeAttempt, component: cw.RewardComponent
) -> None:
    recipe = Own("own", (cw.Term(component),))
    assert [one.total for one in recipe.score_attempts([attempt_with("a")] * 2)] == [3.0, 3.0]
    assert asyncio.run(recipe.ascore(attempt_with("a"))).total == 3.0


class RightAnswer(cw.AsyncRewardComponent):
    """A component as one should be, which waits."""

    name = "right-answer"
    stage = "answer"

    async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
        await asyncio.sleep(0)
        trace = attempt.trace
        if trace is not None and trace.masked is not None:
            raise cw.InfrastructureFailure(trace.masked)
        good = trace is not None and bool(trace.records) and all(one.outcome.executed for one in trace.records)
        return cw.Score(float(good), evidence=() if good else WHY)


@parametrize_with_checks("reward component")
def test_a_component_that_waits_conforms(check: Callable[[Any], None]) -> None:
    check(RightAnswer())


def test_one_who_asks_a_term_alone_has_it_prepared_first(attempt_with: MakeAttempt) -> None:
    class Prepared(Waits):
        def prepare(self, attempt: cw.Attempt) -> None:
            self.heard.append("prepared")

    judge = Prepared("a")
    assert score_of(judge, attempt_with("0: a=1;")).value == 1.0
    assert judge.heard == ["prepared", "0: a=1;"]
