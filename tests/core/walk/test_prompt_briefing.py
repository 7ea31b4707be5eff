"""Briefings in prompts: the world's rules, time and person, and not a byte where there are none."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.environments.briefing.policy import Policy, Rule, written
from callwright.environments.protocol import Briefs, declares
from callwright.walk.prompt import build_messages

#: The first prompts of the shipped corpora, in the form ``json``, as they were before there were briefings.
PINNED = {
    "depthbench-v1": "d657da246904b4b4e2008bbfb6bed60af4f479ef923c4de259072dc248a1fe6d",
    "toolworld-mini-v1": "e2f4e725737062b96d76c295ec08c6213b70f2997f749ad181458c68e44efa47",
}


def on(name: str, make_task: Callable[..., cw.Task], scenario: str = "") -> cw.Task:
    environment = cw.environment(name)
    return evolve(make_task(4), environment=environment, tools=environment.tools, scenario=scenario)


def test_the_briefing_stands_between_instructions_and_tools(
    make_task: Callable[..., cw.Task], list_parser: Any
) -> None:
    task = on("email", make_task)
    environment: Any = task.environment
    system, user = build_messages(task, list_parser)
    told = environment.briefing(environment.open())
    assert system.text.startswith(f"{list_parser.instructions()}\n\n# World\n{told}\n\n# Tools\n")
    assert "Signed in: Robin Lake" in told
    assert "2026-03-02T09:00:00Z" in told
    assert user.content == task.query


def test_models_that_have_the_tools_already_get_it_too(make_task: Callable[..., cw.Task], list_parser: Any) -> None:
    task = on("email", make_task)
    system = build_messages(task, list_parser, native=True)[0]
    assert "\n\n# World\nYou look after the mailbox" in system.text
    assert "# Tools" not in system.text


def test_the_briefing_is_that_of_the_tasks_scenario(make_task: Callable[..., cw.Task], list_parser: Any) -> None:
    people = {
        build_messages(on("calendar", make_task, scenario), list_parser)[0].text.partition("Signed in: ")[2][:12]
        for scenario in ("typical", "sparse", "adversarial")
    }
    assert len(people) > 1


def test_an_example_of_another_world_says_so(make_task: Callable[..., cw.Task], list_parser: Any) -> None:
    task, shot = (evolve(on(name, make_task), program=cw.Program(())) for name in ("email", "calendar"))
    shown = build_messages(task, list_parser, shots=[shot])[1].text
    assert shown.startswith("# World (for this request only)\nYou look after the work calendar")
    assert build_messages(task, list_parser, shots=[task])[1].text == task.query
    plain = build_messages(task, list_parser, shots=[evolve(make_task(4), program=cw.Program(()))])[1].text
    assert plain.startswith("# World (for this request only)\nAnother one.\n\n# Tools")


def test_nothing_is_told_where_there_is_nothing_to_tell(make_task: Callable[..., cw.Task], list_parser: Any) -> None:
    assert "# World" not in build_messages(make_task(4), list_parser)[0].text
    assert not declares(make_task(4).environment, Briefs)


@pytest.mark.parametrize("name", PINNED)
def test_the_prompts_of_shipped_corpora_are_those_of_before(name: str) -> None:
    parser = cw.parser("json", instructions="paper")
    tasks = list(cw.corpus(name)["train"][:5])
    text = "\n".join(message.text for task in tasks for message in build_messages(task, parser))
    assert sha256(text.encode()).hexdigest() == PINNED[name]


def test_the_policy_of_a_session_in_another_process_is_the_same() -> None:
    environment: Any = cw.environment("video_meeting")
    moved = cw.isolated(environment)
    try:
        session = moved.open("typical", 3)
        assert moved.briefs
        assert moved.briefing(session) == environment.briefing(environment.open("typical", 3))
        session.close()
    finally:
        moved.close()
    assert pickle.loads(pickle.dumps(environment)).policy == environment.policy


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "CODE"),
        ("two  spaces", "CODE"),
        ("a line\nbreak", "CODE"),
        ("x" * 301, "CODE"),
        ("fine", "lower"),
        ("a", ""),
    ],
)
def test_rules_that_are_not_rules(text: str, code: str) -> None:
    with pytest.raises(cw.UsageError):
        Rule(text, code)


def test_no_rule_stands_twice() -> None:
    with pytest.raises(cw.UsageError, match="twice"):
        Policy("A shop.", (Rule("Pay first.", "UNPAID"), Rule("Pay first.", "OWED")))


def test_what_is_written() -> None:
    policy = Policy("A shop.", (Rule("Pay first.", "UNPAID"),))
    told = "A shop.\nSigned in: Ada.\nNow: Tuesday, 2026-03-03T09:00:00Z.\n\n"
    rules = "Rules, each with the code that breaking it comes to:\n- Pay first. [UNPAID]"
    assert written(policy, 1_772_528_400, "Ada") == told + rules
    assert written(None, 1_772_528_400, "") == "Now: Tuesday, 2026-03-03T09:00:00Z."
