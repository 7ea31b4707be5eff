"""The cache around teachers: asked once, kept when it comes, never a failure, one file for many processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import sqlite3
import threading
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.errors import DataError, RunError, UnknownName, UsageError
from callwright.training import MissingReply, TeacherFailure, TeacherReply, TeacherRequest, cached
from callwright.training.teaching.cache import ReplyFile
from callwright.training.teaching.teacher import connected


def request(said: str = "Hello", role: Any = "user", **more: Any) -> TeacherRequest:
    return TeacherRequest(role, (cw.Message.user(said),), **more)


class Counting:
    """Answers what it is asked, and counts."""

    name = "counting"

    def __init__(self, model: str = "m") -> None:
        self.model = model
        self.asked: Counter[str] = Counter()

    def settings(self, role: str) -> Mapping[str, Any]:
        return {"model": self.model}

    def reply(self, request: TeacherRequest) -> TeacherReply | TeacherFailure:
        self.asked[request.first_words] += 1
        match request.first_words:
            case "fails":
                return TeacherFailure("down")
            case "cut":
                return TeacherReply("half", finish="length", usage={"cost": 1.0})
        return TeacherReply(
            f"{self.model} {request.first_words} {self.asked[request.first_words]}", usage={"cost": 1.0}
        )

    def ask(self, requests: Sequence[TeacherRequest]) -> list[TeacherReply | TeacherFailure]:
        return [self.reply(request) for request in requests]


class Concurrent(Counting):
    """The same from an event loop."""

    concurrency = 8

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Any]:
        yield self

    async def ask_one(self, request: TeacherRequest) -> TeacherReply | TeacherFailure:
        await asyncio.sleep(0.001)
        if request.first_words == "refused":
            raise UsageError("the key is refused")
        return self.reply(request)


@pytest.fixture(params=[Counting, Concurrent])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_what_was_replied_once_is_not_asked_again(kind: Any, tmp_path: Path) -> None:
    inner = kind()
    teacher = cached(inner, tmp_path / "deep" / "replies.sqlite")
    asked = [request("a"), request("b"), request("a"), request("a", seed=1), request("a", "judge")]
    first = teacher.ask(asked)
    assert inner.asked == {"a": 3, "b": 1}, "twice the same in one batch is one request"
    assert first[0] == first[2]
    assert len({reply.text for reply in first}) == 4
    assert not first[0].cached
    again = cached(kind(), tmp_path / "deep" / "replies.sqlite")
    assert again.ask(asked) == first
    assert again.teacher.asked == {}
    assert all(reply.cached for reply in again.ask(asked)), "what it cost then is not spent again"


def test_failures_and_cut_off_replies_are_asked_again(kind: Any, tmp_path: Path) -> None:
    inner = kind()
    teacher = cached(inner, tmp_path / "replies.sqlite")
    for _ in range(2):
        failed, cut = teacher.ask([request("fails"), request("cut")])
        assert isinstance(failed, TeacherFailure)
        assert cut.truncated
    assert inner.asked == {"fails": 2, "cut": 2}
    assert len(teacher.file) == 0
    assert teacher.file.cost() == ReplyFile(tmp_path / "replies.sqlite").cost() == 2.0, "it was paid for"


def test_of_two_replies_to_one_request_both_were_paid_for(tmp_path: Path) -> None:
    file, asked = ReplyFile(tmp_path / "replies.sqlite"), request("a")
    first, second = (TeacherReply(text, usage={"cost": 1.0}) for text in ("one", "two"))
    assert file.put("key", asked, {}, first) == first
    assert file.put("key", asked, {}, second) == first
    assert (len(file), file.cost()) == (1, 2.0)


def test_another_model_is_asked_for_itself(kind: Any, tmp_path: Path) -> None:
    file = tmp_path / "replies.sqlite"
    assert cached(kind("m"), file).ask([request("a")]) != cached(kind("n"), file).ask([request("a")])
    assert len(ReplyFile(file)) == 2


def test_every_part_of_a_request_is_part_of_the_key(tmp_path: Path) -> None:
    tool = next(iter(cw.corpus("toolworld-mini-v1")["evaluation"][0].tools.values()))
    teacher = cached(Counting(), tmp_path / "replies.sqlite")
    variants = [
        request(), request("other"), request(role="judge"), request(seed=1), request(temperature=0.5),
        request(max_tokens=5), request(schema={"type": "object"}), request(tools=(tool,)),
        TeacherRequest("user", (cw.Message.system("Hello"),)),
    ]  # fmt: skip
    assert len({teacher.key(one) for one in variants}) == len(variants) == len({one.digest for one in variants})


def test_a_replay_never_asks_and_names_what_is_missing(kind: Any, tmp_path: Path) -> None:
    file = tmp_path / "replies.sqlite"
    cached(kind(), file).ask([request("Where is the red car?"), request("What is for lunch?", seed=4)])
    inner = kind()
    replay = cached(inner, file, replay=True)
    assert replay.ask([request("Where is the red car?")])[0].text == "m Where is the red car? 1"
    with pytest.raises(MissingReply) as found:
        replay.ask([request("Where is the red cat?")])
    said = str(found.value)
    missing = request("Where is the red cat?")
    assert found.value.digest == missing.digest
    assert missing.digest[:12] in said
    assert "'user'" in said
    assert "'Where is the red cat?'" in said
    assert "'Where is the red car?'" in said
    assert "differs in: messages" in said
    assert str(file) in said
    with pytest.raises(MissingReply, match="no request of that role, and 2 in all"):
        replay.ask([request("x", "judge")])
    with pytest.raises(MissingReply, match=r"other settings \(model\), of the model 'm'"):
        cached(kind("n"), file, replay=True).ask([request("Where is the red car?")])
    assert inner.asked == {}


def test_one_that_cannot_go_on_ends_the_batch_and_what_came_is_kept(tmp_path: Path) -> None:
    teacher = cached(Concurrent(), tmp_path / "replies.sqlite")
    with pytest.raises(UsageError, match="key is refused"):
        teacher.ask([request("a"), request("refused"), request("b")])
    assert 0 < len(teacher.file) <= 2


def test_a_request_that_is_under_way_is_waited_for(tmp_path: Path) -> None:
    async def work() -> list[Any]:
        async with connected(teacher) as asker:
            return list(await asyncio.gather(*(asker.ask_one(request("a")) for _ in range(9))))

    inner = Concurrent()
    teacher = cached(inner, tmp_path / "replies.sqlite")
    assert len({reply.text for reply in asyncio.run(work())}) == 1
    assert inner.asked == {"a": 1}


def test_a_failure_under_way_is_shared_and_asked_again_later(tmp_path: Path) -> None:
    async def work() -> list[Any]:
        async with connected(teacher) as asker:
            return list(await asyncio.gather(*(asker.ask_one(request("fails")) for _ in range(3))))

    inner = Concurrent()
    teacher = cached(inner, tmp_path / "replies.sqlite")
    assert asyncio.run(work()) == [TeacherFailure("down")] * 3
    assert inner.asked == {"fails": 1}


def _fill(path: str, first: int) -> None:
    teacher = cached(Counting(f"m{0}"), path)
    for number in range(first, first + 40):
        teacher.ask([request(str(number % 50))])


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes_share_a_file(start: str, tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    here = cached(Counting("m0"), path)
    here.ask([request("0")])  # so that a fork has an open connection to leave alone
    processes = [multiprocessing.get_context(start).Process(target=_fill, args=(str(path), 20 * n)) for n in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(here.file) == 50
    here.file.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_threads_share_a_cache(tmp_path: Path) -> None:
    teacher = cached(Counting(), tmp_path / "replies.sqlite")
    found: list[list[str]] = []

    def work() -> None:
        found.append([teacher.ask([request(str(n))])[0].text for n in range(30)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(one == found[0] for one in found), "all get the reply that was kept"


def test_it_goes_to_other_processes_as_its_path(tmp_path: Path) -> None:
    teacher = cached(Counting(), tmp_path / "replies.sqlite")
    (reply,) = teacher.ask([request("a")])
    copy = pickle.loads(pickle.dumps(teacher))
    assert copy.ask([request("a")]) == [reply]
    assert copy.file.path == teacher.file.path


def test_a_file_of_something_else_and_one_that_cannot_be_written_are_said(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database " * 100)
    with pytest.raises(DataError, match=r"notes\.txt is no file of teachers' replies"):
        cached(Counting(), text).ask([request()])
    with pytest.raises(RunError, match="cannot be"):
        cached(Counting(), tmp_path / "notes.txt" / "replies.sqlite").ask([request()])
    broken = tmp_path / "broken.sqlite"
    cached(Counting(), broken).ask([request("a")])
    with sqlite3.connect(broken) as connection:
        connection.execute("UPDATE replies SET reply = '{\"text\": 3'")
    connection.close()
    with pytest.raises(DataError, match="cannot be read"):
        cached(Counting(), broken).ask([request("a")])


def test_requests_are_checked_when_they_are_made() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'user'"):
        request(role="users")
    for wrong in ({"temperature": -0.1}, {"temperature": float("nan")}, {"max_tokens": 0}):
        with pytest.raises(UsageError, match=r"0 or more|1 or more"):
            request(**wrong)
    with pytest.raises(UsageError, match="at least one message"):
        TeacherRequest("user", ())
