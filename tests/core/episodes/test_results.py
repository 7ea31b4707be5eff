"""Results as messages: what a parser makes of a turn, for models without a role ``tool``, cut to what fits."""

from __future__ import annotations

from typing import Any

import pytest

import callwright as cw
from callwright.episodes.results import LEFT_OUT, as_user_message, fit_observation, observation_messages
from callwright.errors import ComponentError
from callwright.walk import Turn

RESULT = cw.Message.tool("it is\ud800 so", "call_0", name="add")
SEEN = cw.Message.user(["see: ", {"type": "image"}, "\ud800"])
TURN = Turn(cw.Completion(""), cw.Program())


def observed(list_parser: Any, made: Any) -> tuple[cw.Message, ...]:
    class Telling(type(list_parser)):  # type: ignore[misc]
        def observe(self, turn: Turn) -> Any:
            return made

    return observation_messages(Telling(), TURN)


def length(messages: Any) -> int:
    return sum(len(message.text) for message in messages)


def test_a_parser_tells_results_as_messages_or_in_the_wire_format(list_parser: Any) -> None:
    expected = (
        cw.Message.tool("it is\\ud800 so", "call_0", name="add"),
        cw.Message.user(["see: ", {"type": "image"}, "\\ud800"]),
    )
    assert observed(list_parser, [RESULT, SEEN]) == expected
    assert observed(list_parser, (RESULT.to_openai(), SEEN.to_openai())) == expected
    assert observed(list_parser, "x\ud800") == (cw.Message.tool("x\\ud800"),)
    with pytest.raises(ComponentError, match=r"'observe' gave .*'content' is a number"):
        observed(list_parser, [{"role": "user", "content": 7}])


def test_results_for_models_without_the_role() -> None:
    last = cw.Message.user("and?")
    assert as_user_message([RESULT, cw.Message.tool(["a", "b"]), last]) == (
        cw.Message.user("<tool_response>\nit is\ud800 so\n</tool_response>\n<tool_response>\nab\n</tool_response>"),
        last,
    )


def test_what_is_cut_keeps_whose_result_it_is() -> None:
    long = (
        cw.Message.tool("x" * 90, "call_0", name="add"),
        cw.Message.tool(["y" * 50, "z" * 40], "call_1"),
        cw.Message.user("w" * 90),
    )
    cut = fit_observation(long, 100, length)
    assert cut is not None
    assert length(cut) <= 100
    assert [(one.role, one.tool_call_id, one.name) for one in cut] == [
        ("tool", "call_0", "add"),
        ("tool", "call_1", ""),
        ("user", "", ""),
    ]
    assert cut[1].text.startswith("y")
    assert cut[1].text.endswith("z")
    assert fit_observation(long, len(LEFT_OUT), length) == (cw.Message.tool(LEFT_OUT, "call_0", name="add"),)
    assert fit_observation(long, len(LEFT_OUT) - 1, length) is None
