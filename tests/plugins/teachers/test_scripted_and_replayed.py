"""The teachers that need no model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.errors import DataError, UsageError
from callwright.plugins import default_registry
from callwright.testing import check_component
from callwright.training import MissingReply, TeacherFailure, TeacherReply, TeacherRequest, cached


def made(name: str, **options: Any) -> Any:
    return default_registry().create("teacher", name, **options)


def request(said: str = "Hello", role: Any = "user", **more: Any) -> TeacherRequest:
    return TeacherRequest(role, (cw.Message.user(said),), **more)


def test_the_first_line_that_fits_is_said_and_the_seed_picks_among_texts() -> None:
    lines = [
        {"role": "user", "contains": "name", "says": ["Ann", "Bob"]},
        {"role": "user", "says": "Pardon?"},
        {"contains": "judge", "says": "fine"},
    ]
    teacher = made("scripted", lines=lines)
    asked = [request("your name", seed=0), request("your name", seed=1), request("hm"), request("judge it", "judge")]
    assert [reply.text for reply in teacher.ask(asked)] == ["Ann", "Bob", "Pardon?", "fine"]
    (failure,) = teacher.ask([request("hm", "planner")])
    assert isinstance(failure, TeacherFailure)
    assert "'hm'" in failure.reason


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"say": "x"}, "Did you mean 'says'"),
        ({"role": "user"}, "needs 'says'"),
        ({"role": "users", "says": "x"}, "Did you mean 'user'"),
        ({"says": ["a", 3]}, "needs 'says'"),
        ({"says": "a", "contains": 3}, "is a text"),
        ("x", "is a table"),
    ],
)
def test_a_wrong_line_is_named(line: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        made("scripted", lines=[line])


def test_a_replay_is_what_was_replied_whoever_replied(tmp_path: Path) -> None:
    file = tmp_path / "replies.sqlite"
    lines = [{"says": ["one", "two"]}]
    first = cached(made("scripted", lines=lines), file)
    asked = [request("a"), request("a", seed=1), request("b", "judge")]
    replies = first.ask(asked)
    replayed = made("replayed", file=str(file))
    assert replayed.ask(asked) == replies
    with pytest.raises(MissingReply, match=r"'user'.*'c'.*nearest one.*differs in: messages"):
        replayed.ask([request("c")])
    check_file = cached(made("scripted", lines=[{"says": "other"}]), file)
    check_file.ask([request("a")])
    with pytest.raises(UsageError, match="several replies"):
        replayed.ask([request("a")])
    assert isinstance(replies[0], TeacherReply)


def test_a_file_that_is_missing_or_something_else_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no file"):
        made("replayed", file=str(tmp_path / "none.sqlite"))
    text = tmp_path / "text"
    text.write_text("no database, " * 100)
    with pytest.raises(DataError, match="no file of teachers' replies"):
        made("replayed", file=str(text)).ask([request()])


def answered(request: TeacherRequest) -> str:
    return f"{request.role}: {request.first_words} ({request.seed})"


def test_they_conform(tmp_path: Path) -> None:
    from callwright_plugins.teachers.scripted import ScriptedTeacher

    by_function = ScriptedTeacher(answer=answered)
    check_component("teacher", by_function)
    check_component("teacher", made("scripted", lines=[{"says": ["a", "b"]}]))
    check_component("teacher", cached(by_function, tmp_path / "replies.sqlite"))
    check_component("teacher", made("replayed", file=str(tmp_path / "replies.sqlite")))
