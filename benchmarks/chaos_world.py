"""The plugin of chaos.py: rewards and samples that take their time, and tools that hang, die and misbehave.

    PYTHONPATH=benchmarks callwright -p chaos_world score …

A command is to last a few seconds with few rows, so that a kill finds it at work; and a tool is to do to its process
what tools of others do.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import Any

import callwright as cw
from callwright.testing.synthesis.shop import Prices
from callwright.training import Accepted, Made, Materials, Rejected, Unit
from callwright.walk.completion import Completion
from callwright.walk.sampling import SamplingRequest
from callwright_plugins.scripted_samplers.samplers import NoisyGold

#: Seconds that a row takes to be scored, and a task to be sampled.
ROW, SLOW_ROW, SAMPLE = 0.0005, 0.01, 0.01
#: … a unit to be made, and all of them to be planned and compared.
UNIT, UNITS = 0.01, 0.5


class Patience(cw.RewardComponent):
    """Always 1, after a while."""

    name = "patience"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def score(self, attempt: cw.Attempt) -> cw.Score:
        time.sleep(self.seconds)
        return cw.Score(1.0)


def slow() -> cw.RewardRecipe:
    return cw.reward("tier").with_terms(Patience(ROW), name="chaos-slow")


def slower() -> cw.RewardRecipe:
    return cw.reward("tier").with_terms(Patience(SLOW_ROW), name="chaos-slower")


class SlowNoisyGold(NoisyGold):
    """The scripted sampler ``noisy-gold`` as a model would be: not at once."""

    name = "chaos-sampler"

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[Completion]]:
        time.sleep(SAMPLE * len(requests))
        return super().sample(requests, n=n, seed=seed, temperature=temperature)


class SlowPrices(Prices):
    """The kit's synthesizer with a slow teacher, say."""

    name = "chaos-prices"  # type: ignore[assignment]

    def plan(self, materials: Materials) -> Sequence[Unit]:
        time.sleep(UNITS)
        return Prices.plan(self, materials)

    def make(self, unit: Unit, materials: Materials) -> Accepted | Rejected:
        time.sleep(UNIT)
        return Prices.make(self, unit, materials)

    def compare(self, made: Sequence[Made]) -> Sequence[Rejected | None]:
        time.sleep(UNITS)
        return Prices.compare(self, made)


# Tools ----------------------------------------------------------------------------------------------------------------


@cw.tool
def add(a: int, b: int) -> int:
    """The sum of two integers."""
    return a + b


@cw.tool
def hang(a: int) -> int:
    """Waits for ever."""
    threading.Event().wait()
    return a


@cw.tool
def spin(a: int) -> int:
    """Computes for ever."""
    while True:
        a += 1


@cw.tool
def die(a: int) -> int:
    """Ends its process without a word."""
    os._exit(9)


@cw.tool
def fork(a: int) -> int:
    """Returns twice."""
    os.fork()
    return a


@cw.tool
def interrupt(a: int) -> int:
    """Raises what Ctrl-C raises."""
    raise KeyboardInterrupt


@cw.tool
def leave(a: int) -> int:
    """Asks its process to end."""
    raise SystemExit(0)


@cw.tool
def wander(a: int) -> int:
    """Changes the working folder of its process."""
    os.chdir("/")
    return a


@cw.tool
def shout(a: int) -> int:
    """Writes to standard output, by two ways."""
    print("shouted")
    os.write(1, b"shouted\n")
    return a


@cw.tool
def digits(a: int) -> int:
    """An integer of 5,001 digits."""
    return 10**5000


@cw.tool
def wide(a: list[Any]) -> list[Any]:
    """A list ten times as long."""
    return a * 10


@cw.tool
def hoard(a: int) -> int:
    """Takes memory until there is none."""
    kept = []
    while True:
        kept.append(bytearray(16 << 20))


#: What a completion calls to meet each of them: one call, or for ``wide`` nine that feed each other.
MISCHIEF = ("hang", "spin", "die", "fork", "interrupt", "leave", "wander", "shout", "digits", "wide", "hoard")
#: Those of them that a process bears in which they are called: it is not ended, not filled and not kept for ever.
BORNE = ("fork", "interrupt", "leave", "wander", "shout", "digits", "wide")
TOOLS = [add, hang, spin, die, fork, interrupt, leave, wander, shout, digits, wide, hoard]
ENVIRONMENT = cw.environment("chaos-v1", tools=TOOLS)


class Corpus:
    """One task for each pair of summands."""

    name = "chaos-v1"
    environment = ENVIRONMENT

    def __init__(self) -> None:
        self._tasks = {
            f"add-{a}": cw.Task(
                id=f"add-{a}",
                query=f"What is {a} + 1?",
                tools=ENVIRONMENT.tools,
                answer=cw.Answer((a + 1,)),
                environment=ENVIRONMENT,
                split="train",
                program=cw.Program((cw.Call(0, "add", {"a": a, "b": 1}),)),
                depth=1,
            )
            for a in range(40)
        }

    @property
    def splits(self) -> dict[str, int]:
        return {"train": len(self._tasks)}

    def __getitem__(self, split: str) -> list[cw.Task]:
        if split != "train":
            raise cw.errors.UnknownName("split", split, self.splits)
        return list(self._tasks.values())

    def task(self, task_id: str) -> cw.Task:
        if task_id not in self._tasks:
            raise cw.errors.UnknownName("task", task_id, self._tasks)
        return self._tasks[task_id]


def mischievous(tool: str) -> str:
    """A completion that calls the tool."""
    if tool == "wide":
        calls = [cw.Call(0, tool, {"a": [0] * 10})]
        calls += [cw.Call(index, tool, {"a": cw.Reference(index - 1)}) for index in range(1, 9)]
        return cw.parser("json").render(cw.Program(tuple(calls)))
    return cw.parser("json").render(cw.Program((cw.Call(0, tool, {"a": 1}),)))


@cw.hookimpl
def callwright_reward_recipes():
    yield cw.Lazy("chaos-slow", slow, summary="tier, half a millisecond late")
    yield cw.Lazy("chaos-slower", slower, summary="tier, ten milliseconds late")


@cw.hookimpl
def callwright_samplers():
    yield cw.Lazy("chaos-sampler", SlowNoisyGold, summary="noisy-gold, ten milliseconds a task")


@cw.hookimpl
def callwright_corpora():
    yield cw.Lazy("chaos-v1", Corpus, summary="one sum a task, and tools that misbehave")


@cw.hookimpl
def callwright_synthesizers():
    yield cw.Lazy("chaos-prices", SlowPrices, summary="what things cost, ten milliseconds a unit")
