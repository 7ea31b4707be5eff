"""Conformance checks for teachers: an answer to each request, in order, failures as values, nothing kept in between."""

from __future__ import annotations

import json
import math
from typing import Any, Final

from callwright.language.messages import Message, ToolCall
from callwright.machines.redaction import redacted_value
from callwright.testing.expectations import expect, expect_members, expect_name, never_raises, shown
from callwright.testing.pickling import elsewhere, refuses
from callwright.testing.sample import SHOP
from callwright.training.teaching.teacher import FINISHES, ROLES, Teacher, TeacherFailure, TeacherReply, TeacherRequest


def check_teacher(teacher: Teacher) -> None:
    """It has the members of :class:`callwright.training.Teacher` and a name."""
    expect_members(teacher, Teacher)
    expect_name(teacher)


def check_settings(teacher: Teacher) -> None:
    """What decides its replies in each role is a JSON object with ``model``, the same each time, without secrets."""
    for role in ROLES:
        with never_raises(f"settings({role!r})"):
            settings = teacher.settings(role)  # type: ignore[arg-type]
        try:
            text = json.dumps(settings, sort_keys=True, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise AssertionError(
                f"the settings for {role!r} are no JSON ({error}), so no cache can tell them"
            ) from error
        expect(
            isinstance(json.loads(text), dict) and "model" in settings,
            f"the settings for {role!r} must be an object with 'model', but are {shown(settings)}",
        )
        again = json.dumps(teacher.settings(role), sort_keys=True)  # type: ignore[arg-type]
        expect(text == again, f"the settings for {role!r} are others when they are asked for again: {shown(again)}")
        expect(
            redacted_value(json.loads(text)) == json.loads(text),
            f"the settings for {role!r} hold a secret; caches write them down",
        )


def check_shape(teacher: Teacher) -> None:
    """One answer for each request, and none for none."""
    for count in (len(_requests()), 1, 0):
        with never_raises(f"ask() of {count} requests"):
            answers = teacher.ask(_requests()[:count])
        expect(
            isinstance(answers, list) and len(answers) == count,
            f"{count} requests got {shown(answers)}; it must be a list of one answer each",
        )


def check_answers(teacher: Teacher) -> None:
    """Each is a reply of texts, calls and counted usage, or a failure with a reason."""
    for request, answer in zip(_requests(), teacher.ask(_requests()), strict=True):
        if isinstance(answer, TeacherFailure):
            expect(bool(answer.reason.strip()), f"the failure of a request of the role {request.role!r} has no reason")
            continue
        expect(
            isinstance(answer, TeacherReply),
            f"the role {request.role!r} got {shown(answer)}; it must be a TeacherReply or a TeacherFailure",
        )
        assert isinstance(answer, TeacherReply)
        expect(
            isinstance(answer.text, str) and isinstance(answer.thought, str),
            f"text and thought are texts, not {shown(answer.text)} and {shown(answer.thought)}",
        )
        expect(
            all(isinstance(call, ToolCall) for call in answer.calls), f"calls are ToolCalls, not {shown(answer.calls)}"
        )
        expect(answer.finish in FINISHES, f"finish is {answer.finish!r}, not one of {', '.join(FINISHES)}")
        expect(
            all(isinstance(n, int | float) and math.isfinite(n) and n >= 0 for n in answer.usage.values()),
            f"usage holds finite numbers, 0 or more, not {shown(answer.usage)}",
        )
        expect(
            TeacherReply.from_json(json.loads(json.dumps(answer.to_json()))) == answer,
            f"the reply {shown(answer)} is another one after it was written as JSON, so no cache could keep it",
        )


def check_order(teacher: Teacher) -> None:
    """An answer belongs to its request: the same, alone or in another order."""
    answers = teacher.ask(_requests())
    backwards = teacher.ask(_requests()[::-1])[::-1]
    alone = [teacher.ask([request])[0] for request in _requests()]
    for request, first, other, single in zip(_requests(), answers, backwards, alone, strict=True):
        expect(
            _said(first) == _said(other) == _said(single),
            f"the request {request.first_words!r} of the role {request.role!r} got {shown(first)}, in another order "
            f"{shown(other)} and alone {shown(single)}: does the teacher keep something from one request to the next?",
        )


def check_pickles_before_use(teacher: Teacher) -> None:
    """It can be pickled, so that workers have it, or says in words why not."""
    if not refuses(teacher):
        copy = elsewhere(teacher, "the teacher")
        expect(_of_all_roles(copy) == _of_all_roles(teacher), "another process has a teacher of other settings")


def check_pickles_after_use(teacher: Teacher) -> None:
    """It can be pickled after it was asked, or says in words why not; its answers always can."""
    answers = teacher.ask(_requests())
    expect(elsewhere(answers, "the answers") == answers, "the answers are others after they were pickled")
    check_pickles_before_use(teacher)


TEACHER_CHECKS: Final = (
    check_teacher,
    check_settings,
    check_shape,
    check_answers,
    check_order,
    check_pickles_before_use,
    check_pickles_after_use,
)


def _requests() -> list[TeacherRequest]:
    """One of each role, with tools for the assistant and a schema for the judge, and one of another seed."""
    schema = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}
    said = (Message.system("You stand behind the counter of a shop."), Message.user("What do you ask for?"))
    tools = tuple(SHOP.tools.values())
    return [
        TeacherRequest("planner", (Message.user("Plan a purchase of two things."),), seed=1),
        TeacherRequest("user", said, seed=1),
        TeacherRequest("user", said, seed=2, temperature=1.0, max_tokens=64),
        TeacherRequest("assistant", (Message.user("How much is the apple?"),), tools=tools),
        TeacherRequest("judge", (Message.user("Judge: 2 + 2 = 4."),), schema=schema, temperature=0.0),
    ]


def _said(answer: Any) -> Any:
    return answer if isinstance(answer, TeacherFailure) else (answer.text, answer.calls, answer.finish)


def _of_all_roles(teacher: Teacher) -> str:
    return json.dumps([teacher.settings(role) for role in ROLES], sort_keys=True)  # type: ignore[arg-type]
