"""Prompts: the form's instructions, the offered tools, the query, and plugins that change them."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.errors import ComponentError, DataError
from callwright.language import ToolCall
from callwright.walk.prompt import PROMPT, build_messages, describe_tool, describe_tools, described, draw_shots
from callwright.walk.sampling import offers_tools


def test_a_prompt_holds_the_instructions_the_tools_and_the_query(
    make_task: Callable[..., cw.Task], list_parser: Any
) -> None:
    system, user = build_messages(make_task(4), list_parser)
    assert user == cw.Message(role="user", content="What is twice two?")
    assert system.role == "system"
    head, _, offered = system.text.partition("\n\n# Tools\n")
    assert head == list_parser.instructions()
    described = [json.loads(line) for line in offered.splitlines()]
    assert [tool["name"] for tool in described] == ["double", "shout"]
    assert described[0]["parameters"] == make_task(4).tools["double"].parameters
    assert described[0]["returns"] == {"type": "integer"}


def test_hidden_tools_are_not_shown(make_task: Callable[..., cw.Task], list_parser: Any) -> None:
    tools = {"a": cw.ToolSpec("a", "größer"), "secret": cw.ToolSpec("secret", hidden=True)}
    system, _ = build_messages(make_task(tools=tools), list_parser)
    assert "secret" not in system.text
    assert "größer" in system.text, "characters outside ASCII stand for themselves"
    system, _ = build_messages(make_task(tools={}), list_parser)
    assert system.text.endswith("# Tools\n(none)\n")


def test_tasks_that_share_tools_share_one_list_and_others_have_their_own() -> None:
    first, again, other = (cw.ToolSpec("a", text) for text in ("first", "first", "other"))
    listed = described([first, other])
    assert described(iter([first, other])) is listed
    assert described([again, other]) == listed
    assert [json.loads(line)["description"] for line in described([other, first]).splitlines()] == ["other", "first"]
    assert described([]) == ""


def test_a_tool_without_a_result_says_nothing_of_one() -> None:
    assert json.loads(describe_tool(cw.ToolSpec("a", "b"))) == {
        "name": "a",
        "description": "b",
        "parameters": {"type": "object", "properties": {}},
    }


def test_plugins_may_change_the_messages(make_task: Callable[..., cw.Task], list_parser: Any) -> None:
    @cw.hookimpl
    def callwright_prompt(task: cw.Task, messages: list[dict[str, Any]]) -> None:
        messages.insert(1, {"role": "system", "content": f"Today is the day of {task.id}."})

    registry = cw.Registry()
    registry.add(SimpleNamespace(callwright_prompt=callwright_prompt), name="dated")
    changed = build_messages(make_task(4), list_parser, registry)
    assert [message.role for message in changed] == ["system", "system", "user"]
    assert changed[1].content == "Today is the day of t1."
    assert len(build_messages(make_task(4), list_parser, cw.Registry())) == 2


def hooked(change: Callable[[list[Any]], object]) -> cw.Registry:
    class Changing:
        @cw.hookimpl
        def callwright_prompt(self, messages: list[Any]) -> None:
            change(messages)

    registry = cw.Registry()
    registry.add(Changing(), name="changing")
    return registry


def test_hooks_get_plain_dictionaries(make_task: Callable[..., cw.Task], list_parser: Any) -> None:
    def change(messages: list[Any]) -> None:
        assert all(type(message) is dict for message in messages)
        messages[-1]["content"] += " Hurry!"
        messages[0] = cw.Message.system("Be good.")
        messages.append({"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "double"}}]})

    task = make_task(4)
    messages = build_messages(task, list_parser, hooked(change))
    assert messages == (
        cw.Message.system("Be good."),
        cw.Message.user(f"{task.query} Hurry!"),
        cw.Message.assistant("", [ToolCall("", "double")]),
    )


@pytest.mark.parametrize("left", ["text", {"role": "cook", "content": ""}, {"role": "user", "content": 7}])
def test_a_hook_that_leaves_something_else_is_blamed(
    left: Any, make_task: Callable[..., cw.Task], list_parser: Any
) -> None:
    registry = hooked(lambda messages: messages.append(left))
    with pytest.raises(ComponentError, match=r"'callwright_prompt' messages\[2\] of task 't1' .* bug .*\(changing\)"):
        build_messages(make_task(4), list_parser, registry)


def test_shots_stand_between_the_system_message_and_the_query(
    make_task: Callable[..., cw.Task], list_parser: Any
) -> None:
    task = make_task(4)
    program = cw.Program((cw.Call(0, "double", {"x": 1}),))
    secret = cw.ToolSpec("secret", hidden=True)
    same = evolve(task, id="same", query="What is twice one?", program=program)
    other = evolve(
        same, id="other", query="And one?", tools={"one": cw.ToolSpec("one", "Gives one."), "secret": secret}
    )
    none = evolve(same, id="none", query="And?", tools={}, program=cw.Program(()))
    plain = build_messages(task, list_parser)
    messages = build_messages(task, list_parser, shots=(same, other, none))
    assert [message.role for message in messages] == ["system", *["user", "assistant"] * 3, "user"]
    assert (messages[0], messages[-1]) == plain
    assert messages[1].text == "What is twice one?", "the tools of the system message are its own"
    head, _, query = messages[3].text.partition("\n\n# Request\n")
    title, *offered = head.splitlines()
    assert query == "And one?"
    assert title == "# Tools (for this request only, in place of those above)"
    assert offered == [describe_tool(cw.ToolSpec("one", "Gives one."))]
    assert messages[5].text.splitlines()[1] == "(none)"
    for message, shot in zip(messages[2::2], (same, other, none), strict=True):
        assert shot.program is not None
        assert message.content == list_parser.render(shot.program)
        assert list_parser.parse(message.text) == shot.program


def test_a_shot_needs_a_program(make_task: Callable[..., cw.Task], list_parser: Any) -> None:
    with pytest.raises(DataError, match="'bare' cannot be an example in a prompt"):
        build_messages(make_task(4), list_parser, shots=(evolve(make_task(4), id="bare", program=None),))


def test_the_corpus_draws_the_shots(make_task: Callable[..., cw.Task]) -> None:
    task = make_task(4)
    others = [evolve(task, id=f"other-{index}") for index in range(3)]
    corpus: Any = SimpleNamespace(name="c", shots=lambda task, count: others[:count])
    without: Any = SimpleNamespace(name="c")
    circular: Any = SimpleNamespace(name="c", shots=lambda task, count: [task])
    assert draw_shots(corpus, task, 2) == others[:2]
    assert draw_shots(without, task, 0) == ()
    with pytest.raises(cw.UsageError, match="'c' offers no examples for prompts"):
        draw_shots(without, task, 1)
    with pytest.raises(cw.UsageError, match="has 3 examples for task 't1', not 4"):
        draw_shots(corpus, task, 4)
    with pytest.raises(DataError, match="an example of itself"):
        draw_shots(circular, task, 1)


def test_a_table_is_shown_in_words() -> None:
    spec = cw.ToolSpec.from_tier(
        {
            "name": "keep",
            "parameters": {
                "type": "dict",
                "properties": {"rows": {"type": "pandas.DataFrame", "description": "What to keep of."}},
                "required": ["rows"],
            },
        }
    )
    shown = json.loads(describe_tool(spec))["parameters"]["properties"]["rows"]
    assert shown["description"] == "What to keep of. (a result of an earlier call)"
    assert not any("callwright" in key for key in shown)


@pytest.mark.parametrize("form", ["json", "xml", "direct", "toolrl", "hermes"])
def test_a_prompt_says_how_to_speak_with_a_user_where_there_is_one(make_task: Any, form: str) -> None:
    parser = cw.parser(form)
    alone, together = (build_messages(make_task(user=user), parser)[0].text for user in (None, cw.UserSpec("replayed")))
    assert "# The user" not in alone
    assert together.replace(together[together.index("# The user") : together.index("# Tools")], "") == alone
    assert {"toolrl": "<response>", "hermes": "without a call"}.get(form, "after it what you say") in together


def test_a_sampler_that_hands_the_tools_over_itself_gets_no_world_where_none_is_told(
    make_task: Callable[..., cw.Task], list_parser: Any
) -> None:
    program = cw.Program((cw.Call(0, "double", {"number": 3}),))
    shot = make_task(6, id="shot", query="What is twice three?", program=program)
    system, asked, *example, user = build_messages(make_task(4), list_parser, shots=[shot], native=True)
    assert "# World" not in system.text
    assert (asked.role, asked.text, user.text) == ("user", "What is twice three?", "What is twice two?")
    assert example[0].tool_calls[0].name == "double"


def test_only_a_sampler_that_says_so_hands_the_tools_over() -> None:
    for says, expected in ((True, True), (False, False), (1, False)):
        assert offers_tools(SimpleNamespace(offers_tools=says)) is expected
    assert offers_tools(SimpleNamespace()) is False


def test_brief_tools_are_listed_in_few_words_and_templates_get_whole_functions(
    make_task: Any, list_parser: Any
) -> None:
    from callwright.episodes.codec import template_tool, without_tool_list

    task = make_task(4)
    brief = evolve(task, tools={name: evolve(spec, brief=True) for name, spec in task.tools.items()})
    messages = build_messages(brief, list_parser)
    lines = describe_tools(brief.offered.values())
    assert len("".join(lines)) < len("".join(describe_tools(task.offered.values())))
    assert messages[0].text.endswith("# Tools\n" + "\n".join(lines) + "\n")
    assert "# Tools" not in without_tool_list(messages, lines)[0].text, (
        "a codec whose template lists them takes them out"
    )
    for spec, line in zip(brief.offered.values(), lines, strict=True):
        function = template_tool(line)["function"]
        assert function["name"] == spec.name
        assert function["parameters"]["type"] == "object"
        assert function["parameters"].get("required", []) == list(spec.parameters.get("required", []))


def test_a_task_that_words_its_own_prompt_is_asked_in_these_words(make_task: Any, list_parser: Any) -> None:
    words = (cw.Message.system("Only a letter."), cw.Message.user("A or B?"))
    task = evolve(make_task(4), facts={PROMPT: words})
    for native in (False, True):
        assert build_messages(task, list_parser, native=native) == words
    assert build_messages(evolve(task, facts={}), list_parser) != words
