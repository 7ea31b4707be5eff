"""A bank whose tools change its state, a corpus over it, and run folders as a trainer leaves them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.environments.protocol import Outcome
from callwright.errors import InfrastructureFailure, UnknownName
from callwright.language.program import Call, Program, Reference
from callwright.plugins import load_plugins
from callwright.tools.spec import ToolSpec
from callwright.walk.tasks import Answer, Task
from callwright.walk.trace import observations
from callwright_plugins import json_ir, lab, prove_rewards, tier_rewards, toolrl_rewards, toolworld


def _spec(name: str, **properties: str) -> ToolSpec:
    parameters = {key: {"type": kind} for key, kind in properties.items()}
    return ToolSpec(name, name, {"type": "object", "properties": parameters, "required": list(properties)})


class BankSession:
    def __init__(self, bank: Bank, start: int) -> None:
        self.bank, self.balance = bank, start

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        if self.bank.down:
            raise InfrastructureFailure("the bank is closed")
        if tool == "Deposit":
            self.balance += arguments["amount"] + self.bank.fee
        return Outcome("ok", self.balance)

    def digest(self) -> str:
        return f"{self.balance:032d}"

    def close(self) -> None:
        pass


class Bank:
    """Stateful; ``fee`` and ``down`` stand for a tool that was changed, or a server that is not there."""

    name, pure = "bank", True
    tools: Mapping[str, ToolSpec] = {
        spec.name: spec for spec in (_spec("Deposit", amount="integer"), _spec("Balance"), _spec("Noop", note="string"))
    }

    def __init__(self) -> None:
        self.fee, self.down = 0, False

    def open(self, scenario: str = "", seed: int = 0) -> BankSession:
        return BankSession(self, int(scenario) + 1000 * seed)


class BankCorpus:
    name = "bank-v1"

    def __init__(self, bank: Bank, truths: bool = True) -> None:
        self.environment = bank
        programs = [
            Program((Call(0, "Deposit", {"amount": 5}), Call(1, "Deposit", {"amount": Reference(0)}))),
            Program((Call(0, "Deposit", {"amount": 2}), Call(1, "Balance", {}))),
            Program(()),
        ]
        answers = [Answer((6030,)), Answer((3012,)), Answer(())]  # from 3010: with the seed 3 of the tasks
        self._tasks = [
            Task(
                f"t{i}",
                "…",
                bank.tools,
                answer,
                bank,
                scenario="10",
                seed=3,
                depth=len(program.calls),
                program=program if truths else None,
            )
            for i, (program, answer) in enumerate(zip(programs, answers, strict=True))
        ]
        self.splits: Mapping[str, int] = {"train": 3}

    def __getitem__(self, split: str) -> Sequence[Task]:
        return self._tasks

    def task(self, task_id: str) -> Task:
        for task in self._tasks:
            if task.id == task_id:
                return task
        raise UnknownName("task", task_id, [task.id for task in self._tasks])


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
def registry(bank: Bank) -> cw.Registry:
    made = {True: BankCorpus(bank), False: BankCorpus(bank, truths=False)}

    class Fakes(ModuleType):
        @staticmethod
        @cw.hookimpl
        def callwright_corpora() -> Iterable[cw.Lazy]:
            yield cw.Lazy("bank-v1", "lab_test_fakes:corpus")
            yield cw.Lazy("bank-without-truth-v1", "lab_test_fakes:corpus_without_truth")

    import sys

    module = ModuleType("lab_test_fakes")
    module.corpus = lambda: made[True]  # type: ignore[attr-defined]
    module.corpus_without_truth = lambda: made[False]  # type: ignore[attr-defined]
    sys.modules["lab_test_fakes"] = module
    modules = {
        "json-ir": json_ir,
        "tier": tier_rewards,
        "toolrl": toolrl_rewards,
        "prove": prove_rewards,
        "lab": lab,
        "toolworld": toolworld,
        "fakes": Fakes("fakes"),
    }
    return load_plugins(extra=modules, entry_points=False)


@pytest.fixture
def invoke(registry: cw.Registry) -> Callable[..., Result]:
    def run(*words: object) -> Result:
        return CliRunner().invoke(
            root, [str(word) for word in words], obj=App(registry=registry), catch_exceptions=True
        )

    return run


RECIPE = """name = "bank"
seed = 4
reward = "tier"
algorithm = "grpo"

[corpus]
name = "bank-v1"
evaluation = "train"

[trainer]
name = "local"
steps = 10
"""


def written(*calls: tuple[str, dict[str, Any]]) -> str:
    body = {str(i): {tool: arguments} for i, (tool, arguments) in enumerate(calls)}
    return json.dumps(body)


@pytest.fixture
def texts(registry: cw.Registry) -> Mapping[str, str]:
    parser = registry.create("parser", "json")
    gold = BankCorpus(Bank())["train"]
    wrong = Program((Call(0, "Deposit", {"amount": 7}),))
    bad = Program((Call(0, "Withdraw", {"sum": 7}),))
    return {
        "gold0": parser.render(gold[0].program),
        "gold1": parser.render(gold[1].program),
        "nothing": parser.render(Program(())),
        "wrong": parser.render(wrong),
        "unknown": parser.render(bad),
        "garbage": "no program",
    }


ROWS = (
    (0, "t0", "gold0"),
    (0, "t0", "wrong"),
    (0, "t0", "nothing"),
    (0, "t0", "garbage"),
    (1, "t1", "gold1"),
    (1, "t1", "unknown"),
    (1, "t2", "nothing"),
    (1, "t2", "wrong"),
)


@pytest.fixture
def run_folder(tmp_path: Path, registry: cw.Registry, texts: Mapping[str, str]) -> Path:
    """A run with its rollouts, as the local trainer writes them; its seed is not that of the tasks."""
    corpus, parser, tier = (
        registry.create("corpus", "bank-v1"),
        registry.create("parser", "json"),
        registry.create("reward recipe", "tier"),
    )
    folder = tmp_path / "run"
    run = cw.Run.create(folder, recipe_text=RECIPE, manifest={})
    rows = []
    for step, task, key in ROWS:
        attempt = cw.Attempt(corpus.task(task), texts[key], parser)
        reward = tier.score_attempt(attempt)
        rows.append(
            {
                "step": step,
                "task": task,
                "completion": texts[key],
                "truncated": False,
                **reward.to_json(),
                "observations": observations(attempt.trace),
            }
        )
    run.append("rollouts.jsonl", rows)
    return folder
