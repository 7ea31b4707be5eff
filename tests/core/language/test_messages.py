"""Messages: what the wire format says survives, what is no message is refused by name."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from attrs.exceptions import FrozenInstanceError
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.errors import DataError
from callwright.language import ToolCall

CALL = ToolCall("call_1", "f", '{"a": 1}')

# Strategies -----------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
KNOWN = [
    "role", "content", "tool_calls", "tool_call_id", "name", "refusal", "function_call", "reasoning_content",
    "reasoning", "thinking", "id", "type", "function",
]  # fmt: skip
FURTHER = st.dictionaries(st.text(max_size=6).filter(lambda key: key not in KNOWN), JSON, max_size=2)
PARTS = st.lists(
    st.text(max_size=8)
    | st.builds(lambda url: {"type": "image_url", "image_url": {"url": url}}, st.text(max_size=6))
    | st.builds(lambda thought: {"type": "thinking", "thinking": thought, "signature": "x"}, st.text(max_size=6))
    | st.builds(
        lambda text: {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}, st.text(max_size=6)
    )
    | st.dictionaries(st.text(max_size=6), JSON, max_size=3),
    max_size=4,
)
CALLS = st.builds(ToolCall, st.text(max_size=6), st.text(max_size=6), st.text(max_size=12), extra=FURTHER)
MESSAGES = st.builds(
    cw.Message,
    st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
    st.text(max_size=12) | PARTS,
    tool_calls=st.lists(CALLS, max_size=2),
    tool_call_id=st.text(max_size=6),
    name=st.text(max_size=6),
    reasoning=st.text(max_size=6),
    extra=FURTHER,
)


# There and back -------------------------------------------------------------------------------------------------------


@given(MESSAGES)
def test_the_wire_format_and_back_is_the_same_message(message: cw.Message) -> None:
    wire = message.to_openai()
    assert cw.Message.from_openai(wire) == message
    assert cw.Message.from_openai(json.loads(json.dumps(wire))) == message
    assert cw.Message.from_openai(wire).to_openai() == wire
    assert None not in [value for key, value in wire.items() if key != "content"]
    assert pickle.loads(pickle.dumps(message)) == message
    assert repr(message).startswith(f"Message(role={message.role!r}")
    assert isinstance(message.text, str)
    assert isinstance(message.thought, str)


ROLES = st.sampled_from(["user", "assistant", "tool"])
JUNK = st.recursive(
    st.none() | st.integers() | st.text(max_size=8) | st.sampled_from(KNOWN),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KNOWN) | st.text(max_size=4), inner, max_size=5)
        | st.fixed_dictionaries({"role": ROLES}, optional=dict.fromkeys(KNOWN[1:], inner))
    ),
)


@given(JUNK)
def test_junk_is_a_message_or_a_data_error(junk: Any) -> None:
    try:
        message = cw.Message.from_openai(junk)
    except DataError:
        return
    assert cw.Message.from_openai(message.to_openai()) == message


@given(st.sampled_from(["system", "user", "assistant", "tool"]), st.text(max_size=20))
def test_a_plain_message_is_role_and_content(role: Any, text: str) -> None:
    plain = {"role": role, "content": text}
    assert cw.Message(role, text).to_openai() == plain
    assert list(cw.Message(role, text).to_openai()) == ["role", "content"]
    assert cw.Message.from_openai({**plain, "tool_calls": None, "name": None, "refusal": None}).to_openai() == plain


# What it says ---------------------------------------------------------------------------------------------------------


def test_messages_in_words() -> None:
    assert cw.Message.system("s") == cw.Message("system", "s")
    assert cw.Message.user("u").to_openai() == {"role": "user", "content": "u"}
    assert cw.Message.tool("42", "call_1", name="f").to_openai() == {
        "role": "tool", "content": "42", "name": "f", "tool_call_id": "call_1",
    }  # fmt: skip
    assistant = cw.Message.assistant(tool_calls=[CALL], reasoning="hm")
    assert assistant.to_openai() == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "hm",
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
    }
    assert repr(assistant) == (
        "Message(role='assistant', tool_calls=(ToolCall(id='call_1', name='f', arguments='{\"a\": 1}'),), "
        "reasoning='hm')"
    )


def test_parts_keep_what_is_no_text() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:…"}}
    message = cw.Message.from_openai(
        {"role": "user", "content": [{"type": "text", "text": "Look: "}, image, "and say."]}
    )
    assert message == cw.Message.user(["Look: ", image, "and say."])
    assert message.text == "Look: [image_url]and say."
    assert not message.is_text
    assert message.to_openai()["content"] == [
        {"type": "text", "text": "Look: "}, image, {"type": "text", "text": "and say."},
    ]  # fmt: skip
    image["image_url"]["url"] = "changed"  # type: ignore[index]
    message.to_openai()["content"][1]["type"] = "changed"
    assert message.content[1] == {"type": "image_url", "image_url": {"url": "data:…"}}


def test_a_refusal_is_said() -> None:
    refused = cw.Message.from_openai({"role": "assistant", "content": None, "refusal": "I can't."})
    assert refused.text == "I can't."
    assert refused.is_text
    both = cw.Message.from_openai({"role": "assistant", "content": "No. ", "refusal": "I can't."})
    assert both.text == "No. I can't."


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking"])
def test_thoughts_are_found_where_servers_put_them(key: str) -> None:
    message = cw.Message.from_openai({"role": "assistant", "content": "x", key: "hm"})
    assert (message.reasoning, message.thought, message.extra) == ("hm", "hm", {})
    assert message.to_openai()["reasoning_content"] == "hm"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "thinking", "thinking": "hm", "signature": "x"},
        {"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"type": "text", "text": "m"}]},
        {"type": "reasoning", "text": "hm"},
    ],
)
def test_thinking_parts_are_thoughts_and_stay_parts(part: dict[str, Any]) -> None:
    given = {"role": "assistant", "content": [part, {"type": "text", "text": "x"}]}
    message = cw.Message.from_openai(given)
    assert (message.text, message.thought, message.reasoning, message.is_text) == ("x", "hm", "", True)
    assert message.to_openai() == given


def test_unknown_keys_survive() -> None:
    given = {
        "role": "assistant",
        "content": "",
        "annotations": [{"at": 3}],
        "tool_calls": [
            {
                "id": "1",
                "type": "function",
                "function": {"name": "f", "arguments": "{}"},
                "extra_content": {"sign": "x"},
            }
        ],
    }
    message = cw.Message.from_openai(given)
    assert message.extra == {"annotations": [{"at": 3}]}
    assert message.to_openai() == {**given, "content": None}
    with pytest.raises(DataError, match="'extra' holds 'content'"):
        cw.Message("user", "x", extra={"content": "y"})


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [('{"a": 1', '{"a": 1'), ("", ""), (None, ""), ({"a": [1.0, True]}, '{"a": [1.0, true]}'), ([1], "[1]"), (7, "7")],
)
def test_arguments_are_the_text_that_was_sampled(arguments: Any, kept: str) -> None:
    for call in (
        {"function": {"name": "f", "arguments": arguments}},
        {"type": "function", "function": {"name": "f", "arguments": arguments}},
        {"name": "f", "arguments": arguments},
    ):
        message = cw.Message.from_openai({"role": "assistant", "tool_calls": [call]})
        assert message.tool_calls == (ToolCall("", "f", kept),)
    assert "id" not in message.to_openai()["tool_calls"][0]


def test_a_call_that_is_one_already_is_kept() -> None:
    message = cw.Message.from_openai({"role": "assistant", "tool_calls": [CALL]})
    assert message.tool_calls == (CALL,)


def test_a_name_that_is_no_text_is_its_json() -> None:
    for name, kept in ((None, ""), (5, "5"), (["f"], '["f"]')):
        message = cw.Message.from_openai({"role": "assistant", "tool_calls": [{"function": {"name": name}}]})
        assert message.tool_calls[0].name == kept


# What it is -----------------------------------------------------------------------------------------------------------


def test_messages_are_values() -> None:
    message = cw.Message.assistant("x", [CALL])
    assert hash(message) == hash(cw.Message.assistant("x", [CALL]))
    assert hash(cw.Message.user(("a", "b")))
    assert hash(cw.Message.user("a")) == hash(cw.Message("user", "a", extra={"b": 1}))
    with pytest.raises(TypeError):
        hash(cw.Message.user([{"type": "image_url"}]))
    with pytest.raises(FrozenInstanceError):
        message.content = "y"  # type: ignore[misc]
    assert cw.Message.from_openai(message) is message


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (None, "a message is an object.*not null"),
        ("hello", "not text"),
        (object(), "not object"),
        ({}, "no 'role'; expected one of system, developer"),
        ({"role": "cook"}, "'role' is 'cook', expected one of system"),
        ({"role": ["user"]}, "'role' is"),
        ({"role": "user", 3: 4}, "the key 3"),
        ({"role": "user", "content": 7}, "'content' is a number, expected text or a list of parts"),
        ({"role": "user", "content": ["x", 7]}, r"'content\[1\]' is a number, expected a part"),
        ({"role": "user", "content": object()}, "'content' is object"),
        ({"role": "user", "name": 7}, "'name' is a number, expected text"),
        ({"role": "tool", "tool_call_id": {}}, "'tool_call_id' is an object, expected text"),
        ({"role": "assistant", "reasoning": ["x"]}, "'reasoning' is a list, expected text"),
        ({"role": "assistant", "refusal": True}, "'refusal' is true, expected text"),
        ({"role": "assistant", "tool_calls": "f"}, "'tool_calls' is text, expected a list"),
        ({"role": "assistant", "tool_calls": ["f"]}, r"'tool_calls\[0\]' is text, expected an object"),
        ({"role": "assistant", "tool_calls": [{"function": "f"}]}, r"'tool_calls\[0\]\.function' is text"),
        ({"role": "assistant", "tool_calls": [{"function": {}, "id": 7}]}, r"'tool_calls\[0\]\.id' is a number"),
        ({"role": "assistant", "tool_calls": [{"type": "custom"}]}, r"'tool_calls\[0\]' is of the type 'custom'"),
        ({"role": "assistant", "tool_calls": [{"function": {"arguments": {1}}}]}, r"function\.arguments' is neither"),
        ({"role": "assistant", "function_call": {"name": "f"}}, "'function_call', which 'tool_calls' has replaced"),
    ],
)
def test_what_is_no_message_is_refused_by_field(wrong: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        cw.Message.from_openai(wrong)


def test_what_has_no_end_is_refused() -> None:
    circle: list[Any] = []
    circle.append({"type": "text", "more": circle})
    for message in ({"role": "user", "content": circle}, {"role": "user", "x": circle}):
        with pytest.raises(DataError, match="nested too deeply"):
            cw.Message.from_openai(message)
    arguments: dict[str, Any] = {}
    arguments["a"] = arguments
    with pytest.raises(DataError, match="neither text nor JSON"):
        cw.Message.from_openai({"role": "assistant", "tool_calls": [{"function": {"arguments": arguments}}]})


def test_a_role_that_nobody_has() -> None:
    with pytest.raises(DataError, match="'role' is 'judge'"):
        cw.Message("judge", "x")  # type: ignore[arg-type]


def test_a_thinking_part_of_another_kind_is_no_thought() -> None:
    said = {"type": "text", "text": "hello"}
    for thinking in (5, {"a": 1}, True):
        made = cw.Message("assistant", ({"type": "thinking", "thinking": thinking}, said))
        assert made.text == "hello"
        assert made.thought == ""
