"""Prompts: the form's instructions, the offered tools, the query, and plugins that change them."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import callwright as cw
from callwright.prompt import build_messages, describe_tool


def test_a_prompt_holds_the_instructions_the_tools_and_the_query(
    make_task: Callable[..., cw.Task], list_parser: Any
) -> None:
    system, user = build_messages(make_task(4), list_parser)
    assert user == {"role": "user", "content": "What is twice two?"}
    assert system["role"] == "system"
    head, _, offered = system["content"].partition("\n\n# Tools\n")
    assert head == list_parser.instructions()
    described = [json.loads(line) for line in offered.splitlines()]
    assert [tool["name"] for tool in described] == ["double", "shout"]
    assert described[0]["parameters"] == make_task(4).tools["double"].parameters
    assert described[0]["returns"] == {"type": "integer"}


def test_hidden_tools_are_not_shown(make_task: Callable[..., cw.Task], list_parser: Any) -> None:
    tools = {"a": cw.ToolSpec("a", "größer"), "secret": cw.ToolSpec("secret", hidden=True)}
    system, _ = build_messages(make_task(tools=tools), list_parser)
    assert "secret" not in system["content"]
    assert "größer" in system["content"], "characters outside ASCII stand for themselves"
    system, _ = build_messages(make_task(tools={}), list_parser)
    assert system["content"].endswith("# Tools\n(none)\n")


def test_a_tool_without_a_result_says_nothing_of_one() -> None:
    assert json.loads(describe_tool(cw.ToolSpec("a", "b"))) == {
        "name": "a",
        "description": "b",
        "parameters": {"type": "object", "properties": {}},
    }


def test_plugins_may_change_the_messages(make_task: Callable[..., cw.Task], list_parser: Any) -> None:
    @cw.hookimpl
    def callwright_prompt(task: cw.Task, messages: list[cw.Message]) -> None:
        messages.insert(1, {"role": "system", "content": f"Today is the day of {task.id}."})

    registry = cw.Registry()
    registry.add(SimpleNamespace(callwright_prompt=callwright_prompt), name="dated")
    changed = build_messages(make_task(4), list_parser, registry)
    assert [message["role"] for message in changed] == ["system", "system", "user"]
    assert changed[1]["content"] == "Today is the day of t1."
    assert len(build_messages(make_task(4), list_parser, cw.Registry())) == 2
