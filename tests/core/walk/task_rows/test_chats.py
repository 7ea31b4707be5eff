"""Chats: what supervised training reads of a task is what a model would have read."""

from __future__ import annotations

import pytest
from attrs import evolve

import callwright as cw
from callwright.errors import DataError
from callwright.language.messages import Message, ToolCall
from callwright.walk.openings.opening import Opening
from callwright.walk.task_rows.chats import chat_row
from callwright.walk.users.said import UserSpec

TASK = next(one for one in cw.corpus("toolworld-mini-v1")["train"] if one.depth == 1)


def test_a_chat_begins_with_what_was_said_before_the_query() -> None:
    call = ToolCall("earlier", "GetPrice", '{"item": "tin"}')
    opening = Opening(
        history=(
            Message.user("Hi"),
            Message.assistant("", [call]),
            Message.tool("3", "earlier"),
            Message.assistant("3"),
        )
    )
    before = [message.to_openai() for message in opening.shown]
    plain = chat_row(TASK)["messages"]
    assert chat_row(evolve(TASK, opening=opening))["messages"] == [*before, *plain]


def test_a_task_that_goes_on_from_its_history_has_no_empty_query() -> None:
    asked = evolve(TASK, query="", opening=Opening(history=(Message.user(TASK.query),)))
    assert chat_row(asked)["messages"] == chat_row(TASK)["messages"]


def test_a_task_that_its_user_begins_is_no_chat() -> None:
    greeted = Opening(history=(Message.assistant("How can I help?"),))
    with pytest.raises(DataError, match="begins with its user"):
        chat_row(evolve(TASK, query="", opening=greeted, user=UserSpec("scripted")))
