"""A small world for the tests of the command line, registered like any plugin."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import callwright as cw
from callwright.errors import DataError, InfrastructureFailure, MissingExtra, UnknownName
from callwright.training.evaluation import evaluate, summarise
from callwright.training.reporter import SILENT, Reporter
from callwright.walk import answers_match


@cw.tool(read_only=True)
def add(a: float, b: float) -> float:
    """The sum of two numbers."""
    return a + b


@cw.tool(read_only=True)
def double(x: float) -> float:
    """Twice a number."""
    return 2 * x


@cw.tool(read_only=True)
def divide(a: float, b: float) -> float:
    """A quotient."""
    if b == 0:
        raise cw.ToolError("division_by_zero", "b is 0")
    return a / b


@cw.tool(read_only=True)
def outage(x: float) -> float:
    """Always down."""
    raise InfrastructureFailure("the server does not answer")


@cw.tool(read_only=True)
def stumble(x: float) -> float:
    """Has a bug."""
    return [x][1]


@cw.tool(read_only=True)
def kill(x: float) -> float:
    """Ends the process, as a tool with a broken library does."""
    os.kill(os.getpid(), signal.SIGKILL)
    return x


@cw.tool(read_only=True)
def hang(x: float) -> float:
    """Never returns."""
    time.sleep(3600)
    return x


class Sums:
    """Tasks of depth 0 (nothing to call), 1 (a sum) and 2 (a doubled sum)."""

    name = "sums-v1"
    offered: Sequence[Any] = (add, double, divide, outage, stumble)

    def __init__(self, count: int = 12, data: str = "") -> None:
        self.environment = cw.environment("sums", tools=self.offered)
        self._splits = {split: [self._task(split, i) for i in range(count)] for split in ("train", "validation")}
        self._tasks = {task.id: task for tasks in self._splits.values() for task in tasks}

    @property
    def splits(self) -> Mapping[str, int]:
        return {name: len(tasks) for name, tasks in self._splits.items()}

    def __getitem__(self, split: str) -> Sequence[cw.Task]:
        if split not in self._splits:
            raise UnknownName("split", split, self._splits)
        return self._splits[split]

    def task(self, task_id: str) -> cw.Task:
        if task_id not in self._tasks:
            raise UnknownName("task", task_id, self._tasks)
        return self._tasks[task_id]

    def _task(self, split: str, index: int) -> cw.Task:
        depth = index % 3
        tools = {tool.spec.name: tool.spec for tool in self.offered}
        first = cw.Call(0, "add", {"a": index, "b": 1})
        second = cw.Call(1, "double", {"x": cw.Reference(0)})
        calls = (first, second)[:depth]
        expected = () if depth == 0 else (float((index + 1) * depth),)
        return cw.Task(
            id=f"{split}-{index}",
            query=("Say hello.", f"What is {index} plus 1?", f"What is twice {index} plus 1?")[depth],
            tools=tools,
            answer=cw.Answer(expected),
            environment=self.environment,
            split=split,
            depth=depth,
            chain=depth,
            structure=("none", "single", "linear")[depth],
            program=cw.Program(calls, thought="I see."),
        )


class LethalSums(Sums):
    """The same with tools that end or hang their process."""

    name = "lethal-sums-v1"
    offered = (*Sums.offered, kill, hang)


class Format(cw.RewardComponent):
    """Whether the text is a program."""

    name, stage = "format", "format"

    def score(self, attempt: cw.Attempt) -> cw.Score:
        if attempt.failure is None:
            return cw.Score(1.0)
        return cw.Score(0.0, evidence=(cw.Evidence(attempt.failure.code, attempt.failure.message),))


class Result(cw.RewardComponent):
    """Whether the answer is right."""

    name, stage = "answer", "answer"

    def score(self, attempt: cw.Attempt) -> cw.Score:
        trace = attempt.trace
        if trace is not None and trace.masked is not None:
            return cw.Score(0.0, evidence=(cw.Evidence("masked", trace.masked),), masked=trace.masked)
        if trace is not None and answers_match(attempt.task.answer, trace.returned):
            return cw.Score(1.0)
        found = list(trace.returned) if trace is not None else None
        return cw.Score(0.0, evidence=(cw.Evidence("wrong", f"returned {found}", expected=str(attempt.task.answer)),))


class Buggy(cw.RewardComponent):
    """A component with a bug."""

    name = "buggy"

    def score(self, attempt: cw.Attempt) -> cw.Score:
        raise ZeroDivisionError("a bug")


#: Names a file. As long as there is none, ``waits`` waits.
GATE = "CLI_FAKES_GATE"


def pass_gate(seconds: float = 300.0) -> None:
    gate, end = os.environ.get(GATE), time.monotonic() + seconds
    while gate and not Path(gate).exists() and time.monotonic() < end:
        time.sleep(0.02)


class Nothing:
    """An algorithm that nobody asks for anything."""

    name = "nothing"
    kl_weight = 0.0


class Slow:
    """A trainer that goes on from its metrics: ``steps`` steps of ``pause`` seconds, between two evaluations."""

    name = "slow"

    def __init__(self, steps: int = 3, pause: float = 0.0) -> None:
        self.steps, self.pause = steps, pause

    def train(self, pipeline: cw.Pipeline, run: cw.Run, *, reporter: Reporter = SILENT) -> None:
        tasks = list(pipeline.tasks("validation"))
        sampler = pipeline.registry.create("sampler", "no-call")
        result = summarise(evaluate(pipeline, tasks, sampler))
        run.write_json("evaluation.json", {"before": result, "during": [], "after": None})
        done = len(run.rows("metrics.jsonl"))
        reporter.start("training", self.steps, done)
        for step in range(done, self.steps):
            time.sleep(self.pause)
            if step + 1 == self.steps:
                pass_gate()
            run.append("metrics.jsonl", [{"step": step + 1, "reward": 0.5}])
            reporter.advance(reward=0.5)
        reporter.finish()
        reporter.say("that was it")
        run.write_json("evaluation.json", {"before": result, "during": [], "after": result})


class Lethal:
    """A sampler whose process ends when it is asked for one of the tasks."""

    name = "lethal"

    def sample(
        self, requests: Sequence[Any], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[cw.Completion]]:
        if any(request.task.id == "validation-5" for request in requests):
            os.kill(os.getpid(), signal.SIGKILL)
        return [[cw.Completion("nothing")] * n for _ in requests]


class Waits:
    """A sampler that knows nothing, and says it of the fifth task when the gate is open."""

    name = "waits"

    def sample(
        self, requests: Sequence[Any], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[cw.Completion]]:
        if any(request.task.id == "validation-4" for request in requests):
            pass_gate()
        return [[cw.Completion("nothing")] * n for _ in requests]


class Modelled(Waits):
    """The same with a folder of a model, which it does not look at."""

    name = "modelled"

    def __init__(self, path: str) -> None:
        self.path = path


class Waiting(cw.RewardComponent):
    """A component that scores one task when the gate is open."""

    name = "waiting"

    def score(self, attempt: cw.Attempt) -> cw.Score:
        if attempt.task.id == "train-7":
            pass_gate()
        return cw.Score(1.0)


def waiting_recipe() -> cw.RewardRecipe:
    return cw.RewardRecipe("waits-at-gate", (cw.Term(Waiting()),))


def sums_recipe() -> cw.RewardRecipe:
    return cw.RewardRecipe("sums", (cw.Term(Format()), cw.Term(Result(), weight=3, requires=("format",))))


def buggy_recipe() -> cw.RewardRecipe:
    return cw.RewardRecipe("buggy", (cw.Term(Buggy()),))


@click.command("greet")
@click.argument("name")
def greet(name: str) -> None:
    """Say hello to NAME."""
    click.echo(f"hello {name}")


@click.command("record")
@click.pass_obj
def record(app: Any) -> None:
    """Show the registered parsers."""
    click.echo(" ".join(app.registry.names("parser")))


@click.command("fail")
@click.argument("how")
def fail(how: str) -> None:
    """Fail in a stated way."""
    failures: dict[str, BaseException] = {
        "memory": MemoryError(),
        "disk": OSError(28, "No space left on device", "out.jsonl"),
        "bug": RuntimeError("two\nlines"),
        "escape": DataError("a name with \x1b[31m in it"),
        "interrupt": KeyboardInterrupt(),
        "extra": MissingExtra("the thing", "train", "torch"),
    }
    raise failures[how]


@cw.hookimpl
def callwright_corpora() -> Iterator[cw.Lazy]:
    yield cw.Lazy("sums-v1", Sums, "sums")
    yield cw.Lazy("lethal-sums-v1", LethalSums, "sums, and tools that end or hang their process")


@cw.hookimpl
def callwright_reward_components() -> Iterator[cw.Lazy]:
    yield cw.Lazy("sums-format", Format, "format")


@cw.hookimpl
def callwright_reward_recipes() -> Iterator[cw.Lazy]:
    yield cw.Lazy("sums", sums_recipe, "format and answer")
    yield cw.Lazy("buggy", buggy_recipe, "raises")
    yield cw.Lazy("waits-at-gate", waiting_recipe, "waits at the gate")


@cw.hookimpl
def callwright_samplers() -> Iterator[cw.Lazy]:
    yield cw.Lazy("lethal", Lethal, "ends its process")
    yield cw.Lazy("waits", Waits, "waits at the gate")
    yield cw.Lazy("modelled", Modelled, "names a model's folder")


@cw.hookimpl
def callwright_algorithms() -> Iterator[cw.Lazy]:
    yield cw.Lazy("nothing", Nothing, "nothing")


@cw.hookimpl
def callwright_trainers() -> Iterator[cw.Lazy]:
    yield cw.Lazy("slow", Slow, "waits")


@cw.hookimpl
def callwright_commands() -> Iterator[cw.Lazy]:
    yield cw.Lazy("greet", "cli_fakes:greet", "say hello")
    yield cw.Lazy("world record", "cli_fakes:record", "list the parsers")
    yield cw.Lazy("world fail", "cli_fakes:fail", "fail")
