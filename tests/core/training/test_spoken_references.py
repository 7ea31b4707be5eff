"""References that are stated turn by turn, as conversations with their users."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.environments.hazards.policy import Fault, Hazards
from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.training.demonstrations import reference_of
from callwright.training.spoken_references import conversation_of, speaks
from callwright.walk.conditions import Conditions
from callwright.walk.openings.opening import Opening
from callwright.walk.users.said import Said

MINI = cw.corpus("worlds-mini-v1")


def test_a_conversation_of_every_hand_made_task_has_its_calls_with_the_values_they_get() -> None:
    for task in MINI["validation"]:
        assert speaks(task)
        said = conversation_of(task)
        assert reference_of(MINI, task) == said
        assert (said[0].role, said[-1].role) == ("assistant", "assistant")
        assert said[-1].text
        made = [call for message in said for call in message.tool_calls]
        assert [call.name for call in made] == [
            call["tool"] for turn in task.facts["gold"] for call in turn.get("calls", ())
        ]
        assert not any("API_RESPONSE_" in call.arguments for call in made)
        answered = [message.tool_call_id for message in said if message.role == "tool"]
        assert answered == [call.id for call in made]
        assert len(set(answered)) == len(answered)
        words = [turn["say"] for turn in task.facts["gold"] if "say" in turn]
        assert [message.text for message in said if message.role == "assistant" and message.text] == words


def test_what_the_user_tells_when_asked_stands_between() -> None:
    task = next(one for one in MINI["validation"] if one.user is not None and one.user.options.get("knows"))
    told = [message.text for message in conversation_of(task) if message.role == "user"]
    assert told
    assert all(told)


def test_a_reference_that_cannot_be_read_or_says_nothing_is_refused() -> None:
    task = MINI["validation"][0]
    for gold in (["hello"], [{"calls": [{"arguments": {}}]}], 3):
        with pytest.raises(DataError, match="'say' or with 'calls'"):
            conversation_of(evolve(task, facts={**task.facts, "gold": gold}))
    with pytest.raises(DataError, match="no words"):
        conversation_of(evolve(task, facts={**task.facts, "gold": []}))


def test_without_a_user_the_program_is_shown() -> None:
    task = evolve(MINI["validation"][0], user=None)
    assert reference_of(MINI, task) is task.program
    assert json.dumps(task.facts["gold"])


def _mistaken(*between: dict[str, Any]) -> tuple[Message, ...]:
    """A conversation whose first call has an argument that is none; what follows it, and the rest."""
    task = next(one for one in MINI["validation"] if "calls" in one.facts["gold"][0])
    slip = {"calls": [{**task.facts["gold"][0]["calls"][0], "arguments": {"no_such_argument": 1}}]}
    said = conversation_of(evolve(task, facts={**task.facts, "gold": [slip, *between, *task.facts["gold"]]}))
    assert '"error"' in said[1].text
    return said


def test_a_call_that_fails_and_is_made_up_for_is_not_to_be_learnt() -> None:
    first, *others = _mistaken()
    assert first.extra == {"weight": 0}
    assert first.to_openai()["weight"] == 0
    assert not any(message.extra for message in others)


def test_a_call_that_fails_and_is_told_to_the_user_was_right() -> None:
    assert not any(message.extra for message in _mistaken({"say": "That cannot be done."}))


def test_a_call_that_a_hazard_befell_was_right() -> None:
    task = next(one for one in MINI["validation"] if "calls" in one.facts["gold"][0])
    call = task.facts["gold"][0]
    hazards = Hazards((Fault("unavailable", rate=1.0),))
    said = conversation_of(evolve(task, hazards=hazards, facts={**task.facts, "gold": [call, *task.facts["gold"]]}))
    assert '"error"' in said[1].text
    assert not said[0].extra


def test_the_user_has_heard_what_was_said_before_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[list[str | None]] = []

    class Listening:
        def reply(self, messages: Any, session: Any) -> Said:
            heard.append([message.text for message in messages])
            return Said("Go on.")

    monkeypatch.setattr(Conditions, "user", lambda self, task: Listening())
    opening = Opening(history=(Message.user("I am Ann."), Message.assistant("Hello Ann.")))
    gold: Any = [{"say": "Which one?"}, {"say": "Done."}]
    task = evolve(MINI["validation"][0], opening=opening, facts={"gold": gold})
    conversation_of(task)
    assert heard == [["I am Ann.", "Hello Ann.", task.query, "Which one?"]]
    with pytest.raises(DataError, match="begins with its user"):
        conversation_of(evolve(task, query=""))
    assert reference_of(MINI, evolve(task, query="")) is None
