"""Pools: the turns of many episodes, and their rewards, are those of one thread, whatever becomes of the workers."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
import callwright.episodes.crew as crews
from callwright.environments import ClockPolicy, Fault, Hazards, RateLimit
from callwright.episodes.conversation import Conversation
from callwright.episodes.crew import Crew
from callwright.episodes.driving import drive
from callwright.episodes.pool import EpisodePool
from callwright.episodes.worker import CloseRequest, Opening, Past, TurnDone, TurnRequest
from callwright.errors import ComponentError, RunError, UsageError
from callwright.walk.conditions import Conditions
from callwright.walk.limits import TurnLimits
from callwright.walk.reward import Reward, RewardRecipe

SUPPORT = Path(__file__).parent / "support"
LOCAL = [("thread", 3), ("process", 2)]


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of parts, which processes find too."""
    monkeypatch.syspath_prepend(str(SUPPORT))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]))
    import pool_parts

    yield pool_parts
    sys.modules.pop("pool_parts")


def play(
    parts: Any,
    scripts: Sequence[Sequence[str]],
    pool: EpisodePool | None = None,
    retries: int = 0,
    task: Callable[[int], cw.Task] | None = None,
    **conditions: Any,
) -> list[tuple[Any, ...]]:
    """What came of episodes with these completions: everything that is known of them, and their rewards."""
    usual = {"time_limit": float("inf"), "limits": TurnLimits(assistant_turns=4)}
    settled = Conditions(**{**usual, **conditions})
    made = parts.task if task is None else task
    form = parts.ListForm() if pool is None else pool.parser
    episodes = [Conversation(made(number), form, (), settled) for number in range(len(scripts))]
    script = {id(one): texts for one, texts in zip(episodes, scripts, strict=True)}
    rewards: dict[int, Reward] = {}

    def ask(live: list[Conversation]) -> list[cw.Completion]:
        return [cw.Completion(script[id(one)][len(one.history)]) for one in live]

    def ended(one: Conversation) -> None:
        rewards[id(one)] = parts.SUMS.score_attempt(one.attempt) if pool is None else pool.score(one.attempt)

    drive(episodes, ask, retries=retries, pool=pool, at_once=3, ended=ended)
    return [
        (one.turns, one.messages, one.stop, one.masked, rewards[id(one)].to_json(), one.retried) for one in episodes
    ]


def some_scripts(seed: int, count: int = 12) -> list[list[str]]:
    rng = random.Random(seed)
    texts = ['[["add", {"n": %d}]]', '[["add", {"n": %d}], ["add", {"n": 2}]]', "[]", "nothing", '[["no", {}]]']
    return [
        [text % rng.randint(20, 40) if "%d" in text else text for text in rng.choices(texts, (8, 4, 2, 1, 2), k=4)]
        for _ in range(count)
    ]


@pytest.mark.parametrize(("executor", "workers"), LOCAL)
def test_episodes_are_those_of_one_thread(parts: Any, executor: str, workers: int) -> None:
    """Also where time passes, between calls and while the user writes: after a turn that called nothing, too.

    One pool for all of it, since starting its processes takes the longest.
    """
    with EpisodePool(parts.ListForm(), parts.SUMS, executor=executor, workers=workers) as pool:
        for seed in range(4):
            scripts = some_scripts(seed)
            expected = play(parts, scripts)
            assert play(parts, scripts, pool) == expected
            assert {stop for _, _, stop, *_ in expected} >= {"answered"}
            assert max(len(turns) for turns, *_ in expected) > 1
        expect_time_to_pass(parts, pool)


def expect_time_to_pass(parts: Any, pool: EpisodePool) -> None:
    wait = '[["wait", {}]]'
    scripts = [list(turns) for turns in product([wait, "[]"], repeat=3)] * 2
    conditions = {
        "task": parts.living_task,
        "limits": TurnLimits(assistant_turns=6, user_turns=3),
        "clock": ClockPolicy(call=20, user_turn=100),
    }
    scripts = [[*script, wait, wait, wait][:6] for script in scripts]
    expected = play(parts, scripts, **conditions)
    rang = {turn.trace.records[-1].outcome.value for turns, *_ in expected for turn in turns if turn.calls}
    assert len(rang) > 4
    assert play(parts, scripts, pool, **conditions) == expected


@pytest.mark.parametrize(("executor", "workers"), LOCAL)
def test_workers_meet_the_hazards_that_are_met_here(parts: Any, executor: str, workers: int) -> None:
    """Calls that fail by chance, and limits of a turn: the same ones, with the same words, in the same places."""
    wait, twice, often = ('[["wait", {}]' + ', ["wait", {}]' * more + "]" for more in (0, 1, 3))
    conditions = {
        "task": parts.living_task,
        "limits": TurnLimits(assistant_turns=6, user_turns=3),
        "hazards": Hazards((Fault("unavailable", 0.3), Fault("timeout", 0.2)), (RateLimit(2),), seed=1),
    }
    scripts = [[wait, often, wait, twice, wait, often], [often] * 6] * 3
    expected = play(parts, scripts, **conditions)
    met = {record.outcome.injected for turns, *_ in expected for turn in turns for record in turn.trace.records}
    assert met == {"", "unavailable", "timeout", "rate_limit"}
    with EpisodePool(parts.ListForm(), parts.SUMS, executor=executor, workers=workers) as pool:
        found = play(parts, scripts, pool, **conditions)
    assert found == expected
    for there, here in zip(found, expected, strict=True):
        for turn, other in zip(there[0], here[0], strict=True):
            assert [one.outcome.injected for one in turn.trace.records] == [
                one.outcome.injected for one in other.trace.records
            ]


ADD = '[["add", {"n": %d}]]'


def test_a_session_stays_with_its_worker(parts: Any) -> None:
    """The process that is in the state is the same in every turn, and it is not this one."""
    with EpisodePool(parts.ListForm(), parts.SUMS, executor="process", workers=2) as pool:
        found = play(parts, [['[["sign", {}]]'] * 3 + ["[]"]] * 4, pool)
    for number, (turns, *_) in enumerate(found):
        started, *places = turns[-2].trace.records[-1].outcome.value
        assert (started, len(places), len(set(places))) == (number, 3, 1)
        assert places[0] != os.getpid()


def test_a_worker_that_dies_in_the_middle_is_replaced_and_its_sessions_made_again(parts: Any, tmp_path: Path) -> None:
    sign = str(tmp_path / "sign")
    scripts = [[ADD % 5, ADD % 6, "[]"] for _ in range(4)]
    dying = [[ADD % 5, f'[["add", {{"n": 6}}], ["die", {{"sign": "{sign}"}}]]', ADD % 7, "[]"]]
    with EpisodePool(parts.ListForm(), parts.SUMS, executor="process", workers=1) as pool:
        found = play(parts, scripts + dying, pool)
    assert Path(sign).exists()  # and from here on nothing dies of it
    assert found == play(parts, scripts + dying)
    assert found[-1][0][2].trace.records[-1].outcome.value == [4, 5, 6, 7]


def test_a_session_that_cannot_be_made_again_masks_its_sample(parts: Any, tmp_path: Path) -> None:
    """Its state holds the number of its process."""
    sign = tmp_path / "sign"
    script = ['[["sign", {}]]', f'[["die", {{"sign": "{sign}"}}]]', "[]"]
    with EpisodePool(parts.ListForm(), parts.SUMS, executor="process", workers=1) as pool:
        ((_, _, stop, masked, reward, _),) = play(parts, [script], pool)
    assert stop == "machinery"
    assert "came to something else" in masked
    assert reward["total"] is None


def test_what_costs_several_workers_masks_its_sample_alone(parts: Any) -> None:
    scripts = [[ADD % 5, "[]"], [ADD % 5, '[["die", {}]]', "[]"], [ADD % 6, "[]"]]
    with EpisodePool(parts.ListForm(), parts.SUMS, executor="process", workers=2) as pool:
        first, lost, last = play(parts, scripts, pool, retries=3)
    expected = play(parts, [scripts[0], scripts[0], scripts[2]])
    assert (first, last) == (expected[0], expected[2])
    turns, _, stop, masked, reward, retried = lost
    assert (stop, reward["total"], retried, len(turns)) == ("machinery", None, 3, 2)
    assert "several workers were lost to it (its process ended with status 7)" in masked


def test_a_worker_that_hangs_is_replaced_and_its_sample_masked(parts: Any) -> None:
    scripts = [[ADD % 5, "[]"], [ADD % 6, '[["sleep", {"seconds": 60}]]', "[]"], [ADD % 7, "[]"]]
    with EpisodePool(parts.ListForm(), parts.SUMS, executor="process", workers=2, stuck_after=3.0) as pool:
        found = play(parts, scripts, pool)
    assert [one[4]["total"] is None for one in found] == [False, True, False]
    assert "no result after 3 s" in found[1][3]


def test_a_reward_that_costs_several_workers_is_masked(parts: Any) -> None:
    with EpisodePool(parts.ListForm(), parts.SUMS, executor="process", workers=1) as pool:
        found = play(parts, [[ADD % 1017, "[]"], [ADD % 5, "[]"]], pool)
    assert [one[4]["total"] for one in found] == [None, 0.06]
    assert "several workers were lost to it (its process ended with status 9)" in found[0][4]["masked"]


def test_a_thread_that_hangs_ends_the_work_in_words(parts: Any) -> None:
    with (
        EpisodePool(parts.ListForm(), parts.SUMS, executor="thread", workers=2, stuck_after=0.3) as pool,
        pytest.raises(RunError, match="nothing can end a thread"),
    ):
        play(parts, [['[["sleep", {"seconds": 1.5}]]', "[]"]], pool)


@pytest.mark.parametrize(("executor", "workers"), LOCAL)
def test_a_bug_of_a_reward_ends_the_work(parts: Any, executor: str, workers: int) -> None:
    with (
        EpisodePool(parts.ListForm(), parts.SUMS, executor=executor, workers=workers) as pool,
        pytest.raises(ComponentError, match="sum"),
    ):
        play(parts, [[ADD % 5, "[]"], [ADD % 1023, "[]"]], pool)


@pytest.mark.parametrize(("executor", "workers"), LOCAL)
def test_attempts_are_scored_in_their_order(parts: Any, executor: str, workers: int) -> None:
    attempts = [cw.Attempt(parts.task(1), ADD % number, parts.ListForm()) for number in (*range(30), 1013)]
    with EpisodePool(parts.ListForm(), parts.SUMS, executor=executor, workers=workers) as pool:
        found = list(pool.score_all(attempts))
    assert [one.to_json() for one in found] == [parts.SUMS.score_attempt(one).to_json() for one in attempts]
    assert [one.total for one in found].count(None) == 1


def test_components_live_in_the_workers(parts: Any, tmp_path: Path) -> None:
    reward: RewardRecipe = parts.lives(str(tmp_path))
    with EpisodePool(parts.ListForm(), reward, executor="process", workers=2) as pool:
        play(parts, [[ADD % 5, "[]"]] * 4, pool)
    names = sorted(path.name for path in tmp_path.iterdir())
    places = {name.removeprefix("setup-") for name in names if name.startswith("setup-")}
    assert 1 <= len(places) <= 2
    assert str(os.getpid()) not in places
    assert names == sorted([f"{what}-{place}" for place in places for what in ("setup", "close")])


def test_rewards_that_wait_are_asked_from_here(parts: Any) -> None:
    with EpisodePool(parts.ListForm(), parts.WAITS, executor="process", workers=2) as pool:
        assert not pool.scores
        assert pool.parallel


def test_what_cannot_be_sent_is_said_at_once(parts: Any) -> None:
    class Local:
        name = "local"
        parse, render, instructions = parts.ListForm.parse, parts.ListForm.render, parts.ListForm.instructions

    with pytest.raises(UsageError, match=r'cannot be done here: .*Use executor = "thread"'):
        EpisodePool(Local(), parts.SUMS, executor="process", workers=2)
    EpisodePool(Local(), parts.SUMS, executor="thread", workers=2)
    with pytest.raises(UsageError, match="Did you mean 'process'"):
        EpisodePool(parts.ListForm(), parts.SUMS, executor="proces")


def test_workers_end_with_the_pool(parts: Any) -> None:
    before = set(threading.enumerate())
    with EpisodePool(parts.ListForm(), parts.SUMS, executor="process", workers=2) as pool:
        turns = play(parts, [['[["sign", {}]]', "[]"]] * 4, pool)
        places = {one[0][0].trace.records[0].outcome.value[1] for one in turns}
        for place in places:
            os.kill(place, 0)
    for place in places:
        with pytest.raises(ProcessLookupError):
            os.kill(place, 0)
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("callwright crew"):
            thread.join(120)
            assert not thread.is_alive()
    with pool:  # it may be used again
        assert play(parts, [[ADD % 5, "[]"]], pool) == play(parts, [[ADD % 5, "[]"]])


def test_what_the_rules_of_a_reward_met_elsewhere_is_known_here(parts: Any) -> None:
    """A session that failed where the reward executed the attempt again masks it here, too."""
    attempt = cw.Attempt(parts.task(1), ADD % 5, parts.ListForm())
    rules = cw.walk.execution.ExecutionRules(unresolved="literal")
    lost = cw.walk.execution.never_begun(attempt.program, cw.InfrastructureFailure("down"))  # type: ignore[arg-type]
    other = attempt.under(evolve(attempt.conditions))
    other.learn({rules: lost})
    assert other.failed_executions == {rules: lost}
    assert "down" in (other.masked or "")


# Crews ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_crew_does_every_job_once_and_where_it_belongs(seed: int) -> None:
    rng, workers = random.Random(seed), 4
    crew = Crew(workers)
    jobs, done = [], []
    busy = [threading.Lock() for _ in range(workers)]
    for number in range(300):
        home = rng.choice([None, None, *range(workers)])

        def work(member: int, number: int = number, pause: float = rng.choice((0, 0, 0.0005))) -> tuple[int, int]:
            assert busy[member].acquire(blocking=False)  # nobody is at two things
            time.sleep(pause)
            done.append(number)
            busy[member].release()
            return number, member

        jobs.append((home, crew.submit(work, home)))
    found = [(home, job.result(120)) for home, job in jobs]
    assert [number for _, (number, _) in found] == list(range(300))
    assert sorted(done) == list(range(300))
    assert all(home in (None, member) for home, (_, member) in found)
    crew.close()


def test_what_is_not_begun_is_not_done_after_the_end() -> None:
    crew, gate, done = Crew(1), threading.Event(), []
    first = crew.submit(lambda member: gate.wait(120))
    crew.submit(done.append)
    crew.submit(done.append, 0)
    first.begun.wait(120)
    crew.close()
    gate.set()
    assert first.result(120) is True
    time.sleep(0.05)
    assert done == []


def test_a_crew_ends_while_its_threads_take_their_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(SimpleQueue[Any]):
        """Whoever looks whether anything is left sees what a thread takes at that moment."""

        def empty(self) -> bool:
            was = super().empty()
            gate.set()
            while not super().empty():
                time.sleep(0.001)
            return was

    monkeypatch.setattr(crews, "SimpleQueue", Late)
    gate, begun = threading.Event(), threading.Event()

    def first(member: int) -> None:
        begun.set()
        gate.wait(120)

    crew = Crew(1)
    crew.submit(first)
    begun.wait(120)
    crew.submit(lambda member: None, 0)
    closing = threading.Thread(target=crew.close, daemon=True)
    closing.start()
    closing.join(60)
    gate.set()
    assert not closing.is_alive()


# One worker -----------------------------------------------------------------------------------------------------------


def test_a_worker_keeps_sessions_until_they_are_given_back(parts: Any) -> None:
    """What runs in other processes, run here."""
    worker = Opening(parts.ListForm(), parts.SUMS, None).open()
    conditions = Conditions(time_limit=float("inf"), limits=TurnLimits(assistant_turns=4))
    two = '[["add", {"n": 5}], ["add", {"n": 7}]]'
    begun = Past(1, parts.task(1), conditions)
    done = worker.do(TurnRequest(begun, two, last=False))
    assert isinstance(done, TurnDone)
    assert done.is_open
    assert done.trace is not None
    held = worker.sessions[1]
    after = done.trace.records[-1].state
    assert after != done.trace.records[0].state
    # A worker that has lost the session makes it again, up to where it was.
    other = Opening(parts.ListForm(), parts.SUMS, None).open()
    past = evolve(begun, texts=(two,), acts=(None,), state=after, opened=True)
    again = other.do(TurnRequest(past, ADD % 2, last=False))
    there = worker.do(TurnRequest(past, ADD % 2, last=False))
    assert isinstance(again, TurnDone)
    assert again == there
    assert again.trace is not None
    assert again.trace.infrastructure is None
    assert worker.do(CloseRequest(1)) is None
    assert worker.sessions == {}
    with pytest.raises(UsageError, match="closed"):
        held.run(cw.Program((cw.Call(0, "add", {"n": 1}),)))
    assert worker.do(CloseRequest(1)) is None, "nothing is there any more"
