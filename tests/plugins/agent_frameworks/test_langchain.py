"""LangGraph's agent over a log: written order, ids, errors, messages, and LangChain's tools as ours."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import bank_errand
import pytest

import callwright as cw
from callwright.episodes.logs.kinds import framework_of

pytest.importorskip("langchain", reason="needs LangChain: pip install 'callwright[langchain]'")

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool


class Scripted(BaseChatModel):
    """Says what it was given, one message after the other."""

    answers: list[AIMessage]
    said: list[int]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        self.said.append(len(self.said))
        return ChatResult(generations=[ChatGeneration(message=self.answers[len(self.said) - 1])])


def script() -> Scripted:
    answers = [
        AIMessage("", tool_calls=[{"id": c.id, "name": c.name, "args": json.loads(c.arguments)} for c in calls])
        for calls in bank_errand.turns()
    ]
    return Scripted(answers=[*answers, AIMessage(bank_errand.ANSWER)], said=[])


@pytest.mark.parametrize("waits", [False, True], ids=["threads", "asyncio"])
def test_an_agent_does_the_errand_as_an_own_loop_does(waits: bool) -> None:
    with cw.Log(bank_errand.errand()) as log:
        agent = create_agent(script(), log.tools("langchain"))
        asked = {"messages": [("user", log.task.query)]}
        result = asyncio.run(agent.ainvoke(asked)) if waits else agent.invoke(asked)
    bank_errand.same(log.episode(result), bank_errand.expected())
    assert log.findings(result) == ()
    assert log.replay().same
    told = [message for message in result["messages"] if isinstance(message, ToolMessage)]
    assert [message.status for message in told] == ["success", "success", "success", "error", "success"]
    assert json.loads(told[3].content)["error"]["code"] == "NOT_FOUND"


def test_eight_parallel_calls_run_in_the_order_in_which_they_were_written() -> None:
    """LangGraph hands them to threads, and ran them in another order in 57 of 60 turns."""
    for turn in range(12):
        with cw.Log(cw.environment("banking"), scenario="typical") as log:
            calls = [{"id": f"{turn}-{n}", "name": "find_customer", "args": {"query": str(n)}} for n in range(8)]
            model = Scripted(answers=[AIMessage("", tool_calls=calls), AIMessage("done")], said=[])
            result = create_agent(model, log.tools("langchain")).invoke({"messages": [("user", "find")]})
        assert [one.arguments["query"] for one in log.calls] == [str(n) for n in range(8)]
        assert log.findings(result) == ()


def test_a_call_that_langchain_could_not_read_is_a_failure_of_its_message() -> None:
    broken = AIMessage(
        "", invalid_tool_calls=[{"id": "x", "name": "find_customer", "args": '{"query": "a"', "error": None}]
    )
    with cw.Log(bank_errand.errand()) as log:
        log.tools("langchain")
        attempt = log.episode([broken, AIMessage("sorry")])
    assert attempt.failure is not None
    assert attempt.failure.code == "invalid_json"
    assert log.calls == ()


def test_its_tools_are_ours() -> None:
    @tool
    def add(a: int, b: int = 1) -> int:
        """The sum."""
        return a + b

    @tool
    async def shout(text: str) -> str:
        """In capitals."""
        await asyncio.sleep(0)
        return text.upper()

    world = cw.environment("theirs", tools=framework_of("langchain").function_tools([add, shout]))
    session = world.open()
    assert session.call("add", {"a": 2, "b": 3}).value == 5
    assert session.call("add", {"a": "two"}).kind == "schema_error"
    assert session.call("shout", {"text": "hey"}).value == "HEY"
    assert world.tools["add"].description == "The sum."
