"""A small world for the tests of the core: two tools, a parser that reads JSON, tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import pytest

import callwright as cw
from callwright.environments import FunctionEnvironment
from callwright.language.program import revive


@cw.tool(read_only=True)
def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


@cw.tool(read_only=True)
def shout(text: str, marks: int = 1) -> str:
    """A text in capitals."""
    if not text:
        raise cw.ToolError("empty_text", "there is nothing to shout")
    return text.upper() + "!" * marks


class ListParser:
    """Reads ``[["tool", {"name": value}], …]``; ``all`` before the list returns every value."""

    name = "list"

    def parse(self, text: str) -> cw.Program | cw.ParseFailure:
        body = text.removeprefix("all")
        try:
            calls = tuple(cw.Call(i, tool, revive(given)) for i, (tool, given) in enumerate(json.loads(body)))
        except (ValueError, TypeError):
            return cw.ParseFailure("syntax", "not_a_list", "the text is not a list of calls", (0, len(text)))
        return cw.Program(calls, "all" if text.startswith("all") else "one")

    def render(self, program: cw.Program) -> str:
        calls = [[call.tool, {key: _plain(value) for key, value in call.arguments.items()}] for call in program.calls]
        return ("all" if program.returns == "all" else "") + json.dumps(calls)

    def instructions(self) -> str:
        return "Write a list of calls, or an empty list for no call."


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, cw.Reference) else value


@pytest.fixture(scope="session")
def list_parser() -> ListParser:
    return ListParser()


@pytest.fixture(scope="session")
def small_environment() -> cw.Environment:
    return FunctionEnvironment("small", [double, shout])


@pytest.fixture(scope="session")
def make_task(small_environment: cw.Environment) -> Callable[..., cw.Task]:
    """``make_task(4)`` expects the value 4; ``make_task()`` expects no call."""

    def make(*values: Any, **more: Any) -> cw.Task:
        fields = {
            "id": "t1",
            "query": "What is twice two?",
            "tools": small_environment.tools,
            "environment": small_environment,
            **more,
        }
        return cw.Task(answer=cw.Answer(values), **fields)

    return make


@pytest.fixture(scope="session")
def make_attempt(make_task: Callable[..., cw.Task], list_parser: ListParser) -> Callable[..., cw.Attempt]:
    """``make_attempt(text, 4)``: a completion of a task that expects 4; whatever is named is a condition."""

    def make(text: str, *values: Any, task: cw.Task | None = None, **more: Any) -> cw.Attempt:
        return cw.Attempt(task or make_task(*values), text, list_parser, cw.Conditions(**more))

    return make


class TakenQueue(SimpleQueue[Any]):
    """Somebody else takes what is left just when one looks whether anything is, as threads may that take jobs."""

    def empty(self) -> bool:
        was = super().empty()
        while not super().empty():
            self.get_nowait()
        return was


@pytest.fixture
def taken_queue() -> type[SimpleQueue[Any]]:
    """A queue of which ``empty()`` is not true any more when it is heard."""
    return TakenQueue
