"""The small world, made once, and an interpreter of its programs that shares no code with the product's execution."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callwright.language.program import Program, plain
from callwright.walk.tasks import Task
from callwright_plugins.toolworld.corpus import ToolWorldCorpus
from callwright_plugins.toolworld.environment import ToolWorld

Calls = list[tuple[str, dict[str, Any]]]
PREFIX = "API_RESPONSE_"


class Interpreter:
    """Runs plain JSON calls; the position of a call is its id."""

    def __init__(self) -> None:
        self.world = ToolWorld()

    def calls(self, program: Program) -> Calls:
        assert [call.id for call in program.calls] == list(range(program.depth))
        return [(call.tool, plain(call.arguments)) for call in program.calls]

    def run(self, calls: Calls, returns: str, scenario: str) -> list[str] | None:
        """What is returned as sorted JSON texts; ``None`` if a call fails."""
        session = self.world.open(scenario)
        values: list[Any] = []
        for tool, arguments in calls:
            given = {}
            for name, value in arguments.items():
                if self.is_reference(value):
                    value = values[int(value.removeprefix(PREFIX))]
                    if isinstance(value, dict):  # every object of this world has one field
                        (value,) = value.values()
                given[name] = value
            outcome = session.call(tool, given)
            if outcome.kind not in ("ok", "empty"):
                return None
            values.append(outcome.value)
        return sorted(json.dumps(value, sort_keys=True) for value in (values if returns == "all" else values[-1:]))

    def is_reference(self, value: Any) -> bool:
        return isinstance(value, str) and value.startswith(PREFIX)

    def expected(self, task: Task) -> list[str]:
        return sorted(json.dumps(value, sort_keys=True) for value in task.answer.values)


@pytest.fixture(scope="session")
def interpreter() -> Interpreter:
    return Interpreter()


@pytest.fixture(scope="session")
def world() -> ToolWorld:
    return ToolWorld()


@pytest.fixture(scope="session")
def corpus() -> ToolWorldCorpus:
    return ToolWorldCorpus()


@pytest.fixture(scope="session")
def evaluation(corpus: ToolWorldCorpus) -> list[Task]:
    return list(corpus["evaluation"])


@pytest.fixture(scope="session")
def train(corpus: ToolWorldCorpus) -> list[Task]:
    return list(corpus["train"][:600])
