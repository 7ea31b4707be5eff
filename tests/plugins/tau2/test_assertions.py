"""What a judge of sentences is asked, and what is read of its replies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import InfrastructureFailure
from callwright.training.teaching.teacher import TeacherFailure, TeacherReply, TeacherRequest
from callwright_plugins.tau2.assertions import AskedJudge, read_verdicts


def reply(*verdicts: Any) -> str:
    return json.dumps({"verdicts": [{"number": at, "reason": "x", "holds": one} for at, one in verdicts]})


class Teaching:
    """A teacher that says what it is told to."""

    name = "teaching"

    def __init__(self, answer: TeacherReply | TeacherFailure) -> None:
        self.answer = answer
        self.asked: list[TeacherRequest] = []

    def settings(self, role: str) -> Mapping[str, Any]:
        return {"model": "judge-1"}

    def ask(self, requests: Sequence[TeacherRequest]) -> list[TeacherReply | TeacherFailure]:
        self.asked += requests
        return [self.answer] * len(requests)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (reply((1, True), (2, False)), [True, False]),
        ("Here:\n```json\n" + reply((2, False), (1, True)) + "\n```", [True, False]),  # by their numbers
        (reply((1, True)), None),
        (reply((1, True), (2, "yes")), None),
        (reply((1, True), (True, False)), None),
        (reply((0, True), (1, True)), None),
        ('{"verdicts": {}}', None),
        ('{"verdicts": [1, 2]}', None),
        ("[]", None),
        ("{", None),
        ("}{", None),
        ("", None),
    ],
)
def test_every_sentence_needs_a_verdict(text: str, found: list[bool] | None) -> None:
    assert read_verdicts(text, 2) == found


@given(st.text(), st.integers(1, 3))
def test_any_reply_is_read(text: str, count: int) -> None:
    found = read_verdicts("{" + text + "}", count)
    assert found is None or len(found) == count


def test_it_is_shown_the_dialogue_and_the_sentences() -> None:
    teacher: Any = Teaching(TeacherReply(reply((1, True), (2, False))))
    judge = AskedJudge(teacher)
    assert judge.name == "judge-1"
    assert judge.holds([("assistant", "Hi!"), ("user", "No.")], ["It greets.", "It helps."]) == [True, False]
    (request,) = teacher.asked
    assert request.temperature == 0.0
    shown = json.loads(request.messages[-1].text)
    assert shown["dialogue"] == [{"role": "assistant", "text": "Hi!"}, {"role": "user", "text": "No."}]
    assert [one["sentence"] for one in shown["sentences"]] == ["It greets.", "It helps."]


@pytest.mark.parametrize(
    "answer", [TeacherReply("I think so."), TeacherReply(reply((1, True)), finish="length"), TeacherFailure("gone")]
)
def test_no_verdict_masks(answer: TeacherReply | TeacherFailure) -> None:
    teacher: Any = Teaching(answer)
    with pytest.raises(InfrastructureFailure, match="the judge gave no verdict"):
        AskedJudge(teacher).holds([("assistant", "Hi!")], ["It greets."])
