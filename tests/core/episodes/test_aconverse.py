"""A sampler that waits for a server is asked one by one, and gives what it gives in batches."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.episodes.sampling import aconverse, converse, draw_seed, role_of
from callwright.errors import ComponentError, InfrastructureFailure, UsageError
from callwright.machines.lanes import Lanes
from callwright.pipeline import Pipeline
from callwright.training.evaluation import asked_one_by_one, evaluate
from callwright.walk.completion import Completion
from callwright.walk.limits import TurnLimits
from callwright.walk.sampling import SamplingRequest

LIMITS = TurnLimits(assistant_turns=4)


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return cw.Pipeline("toolworld-mini-v1")


class Wild:
    """What it writes hangs on the seed, the task and the messages alone: calls, answers, nonsense, cuts, failures."""

    name = "wild"
    concurrency = 5
    #: Whether a failure is raised where one completion is asked for, as it may be in place of a masked one.
    raises = False

    def __init__(self, parser: cw.Parser, observation_role: str = "user") -> None:
        self.parser, self.observation_role = parser, observation_role
        self.asked: list[tuple[str, int, int, int]] = []
        self.now = self.most = self.entered = 0

    def _one(self, request: SamplingRequest, copy: int, seed: int) -> Completion:
        said = "\n".join(f"{message.role}: {message.content}" for message in request.messages)
        draw = random.Random(blake2b(f"{draw_seed(seed, request.task.id)}/{copy}/{said}".encode()).digest())
        kind = draw.choice(["call", "call", "call", "answer", "nonsense", "cut", "failed", "gold"])
        if kind == "failed":
            return Completion("", masked=f"the server was down for {request.task.id}")
        program = cw.Program()
        if kind == "gold" and request.task.program is not None:
            program = request.task.program
        elif kind in ("call", "cut"):
            tool = draw.choice([*request.task.tools, "NoSuchTool"])
            program = cw.Program((cw.Call(0, tool, {"query": draw.choice(["x", 1, None])}),))
        text = "nonsense" if kind == "nonsense" else self.parser.render(program)
        return Completion(text, truncated=kind == "cut", usage={"requests": 1, "completion_tokens": len(text)})

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[Completion]]:
        self.asked += [(request.task.id, len(request.turns), n, seed) for request in requests]
        return [[self._one(request, copy, seed) for copy in range(n)] for request in requests]

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Wild]:
        self.entered += 1
        yield self
        self.entered -= 1

    async def sample_one(
        self, request: SamplingRequest, *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[Completion]:
        assert self.entered == 1
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(random.random() * 0.002)
        self.now -= 1
        (found,) = self.sample([request], n=n, seed=seed, temperature=temperature)
        if n == 1 and found[0].masked and self.raises:
            raise InfrastructureFailure(found[0].masked)
        return found


class Raising(Wild):
    raises = True


def told(episodes: Sequence[Any]) -> list[Any]:
    return [
        (
            [completion.text for completion in one.attempt.completions],
            [completion.usage for completion in one.attempt.completions],
            one.stop,
            one.masked,
            one.retried,
            [(message.role, message.content) for message in one.messages],
            None if one.attempt.trace is None else one.attempt.trace.returned,
        )
        for one in episodes
    ]


@pytest.mark.parametrize("kind", [Wild, Raising])
@pytest.mark.parametrize("role", ["user", "tool"])
@pytest.mark.parametrize(("n", "retries"), [(1, 0), (1, 2), (3, 0), (3, 2)])
def test_each_by_itself_is_what_a_batch_is(
    pipeline: Pipeline, kind: type[Wild], role: str, n: int, retries: int
) -> None:
    conditions = cw.Conditions(seed=7, limits=LIMITS)
    requests = [SamplingRequest(pipeline.messages(task), task) for task in pipeline.tasks("evaluation", 40)]
    batch, alone = Wild(pipeline.parser, role), kind(pipeline.parser, role)
    expected = converse(pipeline, batch, requests, conditions=conditions, n=n, retries=retries)

    async def work() -> list[Any]:
        lanes = Lanes(3)
        async with alone.connected() as asked:

            async def one(request: SamplingRequest) -> Any:
                with lanes.one() as lane:
                    return await aconverse(
                        pipeline,
                        asked,
                        request,
                        name=alone.name,
                        role=role_of(alone),
                        conditions=conditions,
                        n=n,
                        retries=retries,
                        do=lane.do,
                    )

            found = await asyncio.gather(*map(one, requests))
        lanes.close()
        return found

    found = asyncio.run(work())
    assert [told(group) for group in found] == [told(group) for group in expected]
    assert sorted(alone.asked) == sorted(batch.asked)
    stops = {one.stop for group in expected for one in group}
    assert {"answered", "unparsed", "machinery", "tokens", "assistant_turns"} <= stops
    assert not retries or any(one.retried for group in expected for one in group)


def test_another_number_of_completions_is_the_samplers_bug(pipeline: Pipeline) -> None:
    class Mean(Wild):
        async def sample_one(self, request: SamplingRequest, **options: Any) -> list[Completion]:
            return []

    with pytest.raises(ComponentError, match="sampler 'wild' did not give 1 completions for each of 1 requests"):
        evaluate(pipeline, pipeline.tasks("evaluation", 3), Mean(pipeline.parser))


@pytest.mark.parametrize("given", [KeyError("oops"), [3]])
def test_what_a_sampler_raises_is_its_bug(pipeline: Pipeline, given: Any) -> None:
    class Odd(Wild):
        async def sample_one(self, request: SamplingRequest, **options: Any) -> list[Completion]:
            if isinstance(given, BaseException):
                raise given
            return given  # type: ignore[no-any-return]

    with pytest.raises(
        ComponentError, match=r"sampler 'wild' (raised KeyError: 'oops'|gave 3, which is no callwright)"
    ):
        evaluate(pipeline, pipeline.tasks("evaluation", 3), Odd(pipeline.parser))


# Evaluations of it ----------------------------------------------------------------------------------------------------


def evaluated(pipeline: Pipeline, sampler: Any, **options: Any) -> tuple[list[Any], list[Any]]:
    kept: list[Any] = []
    verdicts = evaluate(
        pipeline,
        pipeline.tasks("evaluation", 60),
        sampler,
        seed=3,
        limits=LIMITS,
        keep=lambda attempt, verdict: kept.append((attempt.completion.text, attempt.stop, verdict)),
        **options,
    )
    return verdicts, kept


def test_an_evaluation_in_a_window_is_the_same_evaluation(pipeline: Pipeline) -> None:
    one_by_one, same = Wild(pipeline.parser), Wild(pipeline.parser)

    class Plain:
        """The same without the capability."""

        name, observation_role, sample = "wild", "user", same.sample

    assert asked_one_by_one(one_by_one)
    assert not asked_one_by_one(Plain())
    done: list[int] = []
    assert evaluated(pipeline, one_by_one, on_batch=done.append) == evaluated(pipeline, Plain(), batch=7)
    assert one_by_one.most == one_by_one.concurrency
    assert done == sorted(done)
    assert done[-1] == 60


def test_it_works_within_a_running_loop(pipeline: Pipeline) -> None:
    async def work() -> Any:
        return evaluated(pipeline, Wild(pipeline.parser))

    assert asyncio.run(work()) == evaluated(pipeline, Wild(pipeline.parser))


def test_what_ends_the_work_ends_it_in_its_place(pipeline: Pipeline) -> None:
    tasks = pipeline.tasks("evaluation", 40)

    class Refused(Wild):
        async def sample_one(self, request: SamplingRequest, **options: Any) -> list[Completion]:
            if request.task.id == tasks[20].id:
                raise UsageError("the key is refused")
            return await super().sample_one(request, **options)

    kept: list[str] = []
    sampler = Refused(pipeline.parser)
    with pytest.raises(UsageError, match="the key is refused"):
        evaluate(pipeline, tasks, sampler, keep=lambda attempt, verdict: kept.append(verdict.task))
    assert kept == [task.id for task in tasks[:20]]
    assert sampler.entered == 0


def test_the_calls_of_a_task_are_made_in_one_thread_and_tasks_side_by_side(pipeline: Pipeline) -> None:
    """Tools that wait hold up neither the server nor one another."""
    threads: dict[str, set[int]] = {}
    inside, lock, together = set[int](), threading.Lock(), threading.Event()

    class Waiting:
        name, pure = "waiting", True

        def open(self, scenario: str = "", seed: int = 0) -> Any:
            threads.setdefault(scenario, set()).add(threading.get_ident())
            return self.Session(scenario)

        class Session:
            def __init__(self, scenario: str) -> None:
                self.scenario = scenario

            def call(self, tool: str, arguments: dict[str, Any]) -> cw.Outcome:
                threads[self.scenario].add(threading.get_ident())
                with lock:
                    inside.add(threading.get_ident())
                    if len(inside) == 4:
                        together.set()  # four calls are made at the same time
                together.wait(30)
                with lock:
                    inside.discard(threading.get_ident())
                time.sleep(0.001)
                return cw.Outcome("ok", 1)

            def digest(self) -> str:
                return ""

            def close(self) -> None:
                threads[self.scenario].add(threading.get_ident())

    class Calling(Wild):
        concurrency = 4

        def _one(self, request: SamplingRequest, copy: int, seed: int) -> Completion:
            tool = next(iter(request.task.tools))
            return Completion(self.parser.render(cw.Program((cw.Call(0, tool, {}),))))

    tasks = [
        evolve(task, environment=Waiting(), scenario=task.id, returns="all") for task in pipeline.tasks("evaluation", 8)
    ]
    evaluate(pipeline, tasks, Calling(pipeline.parser), limits=TurnLimits(assistant_turns=2))
    assert together.is_set()
    assert len(threads) == 8
    assert all(len(used) == 1 for used in threads.values())
    assert threading.get_ident() not in set.union(*threads.values())
