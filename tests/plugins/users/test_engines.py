"""Agents of servers and their users: the user hears the content, in every form, and the agent reads the answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.training.evaluation import evaluate

TESTS = Path(__file__).parents[2]
sys.path.append(str(TESTS / "core" / "support"))
sys.path.append(str(TESTS / "core" / "episodes" / "support"))

import phone  # noqa: E402
from stand_in_server import StandIn, chat  # noqa: E402

LIMITS = cw.TurnLimits(assistant_turns=8, user_turns=6)
ASK, DONE = "Please switch airplane mode off.", "It works again."


class Phones:
    """Three tasks of the phone, each with its user."""

    name, environment, splits = "phones-v1", phone.PHONES, {"train": 3}

    def task(self, task_id: str) -> cw.Task:
        return phone.task(int(task_id[1:]))

    def __getitem__(self, split: str) -> Any:
        return [phone.task(number) for number in range(3)]


def in_form(form: str, text: str | None) -> str:
    """A call of ``line``, or words."""
    calls = () if text else (cw.Call(0, "line", {}),)
    return cw.parser(form).render(cw.Program(calls, "one", "A secret.", text))


def agent(native: bool, form: str) -> Any:
    """Looks, asks the user, looks again, and is done: whatever was said last decides."""

    def answer(asked: Any) -> Any:
        said = [one for one in asked.body["messages"] if one["role"] != "system"]
        told = str(said[-1]["content"])
        if "switched" in told or len(said) == 1:
            text = None
        else:
            text = DONE if '"works":true' in told.replace(" ", "") else ASK
        if not native:
            return chat(in_form(form, text))
        return chat(text, calls=[] if text else [("line", "{}")], thought="A secret.", thought_field="reasoning")

    return answer


@pytest.mark.parametrize(
    ("form", "native"),
    [(form, native) for form in ("json", "xml", "direct", "toolrl", "hermes") for native in (False, True)],
)
def test_an_agent_of_a_server_talks_with_its_user(form: str, native: bool) -> None:
    with StandIn(agent(native, form)) as server:
        options = {"model": "m", "base_url": server.url, "tools": "native" if native else "prompt"}
        sampler = cw.sampler("openai", **options)
        pipeline = cw.Pipeline(Phones(), "tier", form, conditions=cw.Conditions(limits=LIMITS))
        kept: list[cw.Attempt] = []
        evaluate(pipeline, pipeline.tasks("train"), sampler, keep=lambda attempt, verdict: kept.append(attempt))
        prompts = [asked.body["messages"][0]["content"] for asked in server.asked]
        sent = json.dumps([asked.body["messages"] for asked in server.asked])
    assert len(kept) == 3
    for attempt in kept:
        assert attempt.stop == "answered"
        said = [turn.user.said for turn in attempt.turns if turn.user is not None]
        assert [one.text for one in said] == ["I have switched it off.", "Thank you, that is all."]
        assert [record.outcome.value["works"] for record in attempt.whole_trace.records] == [False, True]
        assert cw.walk.replay(attempt).same
    assert "I have switched it off." in sent
    assert all(("# The user" in prompt) == (not native) for prompt in prompts)
