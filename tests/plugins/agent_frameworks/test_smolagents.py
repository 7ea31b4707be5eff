"""An agent of smolagents over a log, and its tools as ours."""

from __future__ import annotations

from typing import Any

import bank_errand
import pytest

import callwright as cw
from callwright.episodes.logs.kinds import framework_of

smolagents = pytest.importorskip("smolagents", reason="needs smolagents: pip install 'callwright[smolagents]'")


class Scripted(smolagents.Model):  # type: ignore[misc, name-defined]
    """Says what it was given, one turn after the other; the answer as smolagents wants it, as a call."""

    def __init__(self, turns: list[Any]) -> None:
        super().__init__()
        self.turns = list(turns)

    def generate(self, messages: Any, **_: Any) -> Any:
        calls = self.turns.pop(0)
        if isinstance(calls, str):
            calls = [cw.language.ToolCall("final", "final_answer", f'{{"answer": "{calls}"}}')]
        return smolagents.ChatMessage("assistant", "", tool_calls=[call.to_openai() for call in calls])


def agent(log: cw.Log, turns: list[Any]) -> Any:
    return smolagents.ToolCallingAgent(log.tools("smolagents"), Scripted(turns), max_tool_threads=1, verbosity_level=-1)


def test_an_agent_does_the_errand_as_an_own_loop_does() -> None:
    with cw.Log(bank_errand.errand()) as log:
        run = agent(log, [*bank_errand.turns(), bank_errand.ANSWER])
        run.run(log.task.query)
    bank_errand.same(log.episode(run), bank_errand.expected())
    assert log.findings(run) == ()
    messages = framework_of("smolagents").messages(run)
    assert "NOT_FOUND" in messages[[m.tool_call_id for m in messages].index("call_d")].text
    assert messages[-1].text == bank_errand.ANSWER


def add(a: int, b: int = 1) -> int:
    """The sum.

    Args:
        a: one
        b: another
    """
    return a + b


def test_its_tools_are_ours() -> None:
    session = cw.environment("theirs", tools=framework_of("smolagents").function_tools([smolagents.tool(add)])).open()
    assert session.call("add", {"a": 2}).value == 3
    assert session.call("add", {"a": "two"}).kind == "schema_error"
