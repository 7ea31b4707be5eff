"""Replies of servers: kept once, found again by whoever asks the same, lost to nothing but damage."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from callwright.errors import DataError, RunError
from callwright.machines.model_server.reply_cache import ReplyCache, asking

ANSWER = {"choices": [{"finish_reason": "stop", "message": {"content": "ж\ud800\u0000"}}], "usage": {"x": 1}}
CUT = {"choices": [{"finish_reason": "length", "message": {"content": "a"}}]}


@pytest.fixture
def replies(tmp_path: Path) -> ReplyCache:
    made = ReplyCache(tmp_path / "replies.sqlite")
    assert made.open() == (0, 0)
    return made


def test_an_answer_is_found_again_by_another_start(replies: ReplyCache) -> None:
    key = replies.key("chat", "http://h/v1", {"model": "m", "messages": ["a"]})
    assert replies.get(key) is None
    replies.begun(key)
    replies.put(key, ANSWER)
    replies.close()
    again = ReplyCache(replies.path)
    assert again.open() == (1, 0)
    assert again.get(again.key("chat", "http://h/v1", {"messages": ["a"], "model": "m"})) == ANSWER
    assert (again.damage, replies.damage) == ("", "")


@pytest.mark.parametrize(
    "other",
    [
        ("complete", "http://h/v1", {"model": "m", "seed": 1}),
        ("chat", "http://i/v1", {"model": "m", "seed": 1}),
        ("chat", "http://h/v1", {"model": "n", "seed": 1}),
        ("chat", "http://h/v1", {"model": "m", "seed": 2}),
        ("chat", "http://h/v1", {"model": "m", "seed": 1, "temperature": 0}),
        ("chat", "http://h/v1", {"model": "m"}),
    ],
)
def test_whatever_makes_another_answer_makes_another_key(replies: ReplyCache, other: tuple[Any, ...]) -> None:
    assert replies.key(*other) != replies.key("chat", "http://h/v1", {"model": "m", "seed": 1})


def test_two_who_ask_the_same_and_one_who_asks_it_twice_want_answers_of_their_own(replies: ReplyCache) -> None:
    def keys(name: str, times: int) -> list[str]:
        with asking(name):
            return [replies.key("chat", "http://h", {"model": "m"}) for _ in range(times)]

    first, second = keys("task 1", 3), keys("task 2", 3)
    assert len({*first, *second}) == 6
    assert keys("task 1", 3) == first  # a later start asks in the same order
    for number, key in enumerate([*first, *second]):
        replies.put(key, {"number": number})
    assert [replies.get(key)["number"] for key in keys("task 2", 3)] == [3, 4, 5]  # type: ignore[index]
    plain = [replies.key("chat", "http://h", {"model": "m"}) for _ in range(2)]
    assert len(set(plain)) == 1  # who does not say for whom it asks wants one answer
    with asking("task 1"):
        replies.put(first[0], {"number": 7})
    assert [answer for name, answer in replies.askers() if name] == [{"number": 7}]


def test_no_secret_is_in_the_file(replies: ReplyCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-4711-verysecret")
    replies.secret_variables = ("SOME_KEY", "NOT_SET")
    address = "http://user:sk-4711-verysecret@h/v1?api_key=sk-4711-verysecret"
    key = replies.key("chat", address, {"model": "m", "user": "sk-4711-verysecret"})
    replies.put(key, {"echo": "you sent sk-4711-verysecret"})
    assert replies.get(key) is None
    replies.put(key, ANSWER)
    assert replies.get(key) == ANSWER
    replies.close()
    assert b"verysecret" not in replies.path.read_bytes()
    # The same server under another key gives the same answers.
    assert replies.key("chat", address.replace("4711", "4712"), {}) == replies.key("chat", address, {})


def test_what_is_cut_is_kept_where_it_was_paid_for_and_not_where_it_is_to_be_asked_again(tmp_path: Path) -> None:
    paid, wanted = ReplyCache(tmp_path / "a"), ReplyCache(tmp_path / "b", keep_truncated=False)
    for replies in (paid, wanted):
        replies.put("1", CUT)
        replies.put("2", {"status": "incomplete", "output": []})
        replies.put("3", ANSWER)
    assert [paid.get(key) for key in "123"] == [CUT, {"status": "incomplete", "output": []}, ANSWER]
    assert [wanted.get(key) for key in "123"] == [None, None, ANSWER]


def test_requests_under_way_when_a_start_ends_are_counted_once(replies: ReplyCache) -> None:
    for key in "abcde":
        replies.begun(key)
    replies.put("b", ANSWER)
    replies.gave_up("c")
    again = ReplyCache(replies.path)  # the first one was killed, so it closed nothing
    assert again.open() == (1, 3)
    again.close()
    assert ReplyCache(replies.path).open() == (1, 0)


def test_what_may_have_been_paid_for_is_known_to_all_later_starts(replies: ReplyCache) -> None:
    replies.begun("a", 0.25)
    replies.begun("b", 0.5)
    replies.put("a", ANSWER)
    replies.lost(0.125)  # a try of another one
    assert replies.perhaps_paid() == 0.125
    for _ in range(2):
        later = ReplyCache(replies.path)
        later.open()
        assert later.perhaps_paid() == 0.625
        later.close()


def _ask(replies: ReplyCache, first: int, count: int) -> None:
    for number in range(first, first + count):
        replies.begun(str(number))
        replies.put(str(number), {"number": number})


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_share_it(replies: ReplyCache, method: str) -> None:
    _ask(replies, 0, 10)
    context = multiprocessing.get_context(method)
    workers = [context.Process(target=_ask, args=(replies, 100 * n, 50)) for n in range(1, 4)]
    for worker in workers:
        worker.start()
    threads = [threading.Thread(target=_ask, args=(replies, 1000 * n, 50)) for n in range(1, 4)]
    for thread in threads:
        thread.start()
    for one in [*workers, *threads]:
        one.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert replies.damage == ""
    replies.close()
    assert ReplyCache(replies.path).open() == (310, 0)
    assert replies.get("349") == {"number": 349}


def _ask_for_ever(replies: ReplyCache, said: Any) -> None:
    for number in range(10**9):
        key = str(number)
        replies.begun(key)
        replies.put(key, {"number": number, "much": "x" * 2000})
        said.send(number)  # only now is it known to be kept


def test_a_killed_process_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    replies = ReplyCache(tmp_path / "replies.sqlite")
    context = multiprocessing.get_context("fork")
    for _ in range(3):
        mine, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=_ask_for_ever, args=(replies, theirs))
        worker.start()
        theirs.close()
        assert mine.poll(60)
        time.sleep(0.05)
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        last = -1
        while mine.poll():
            try:
                last = mine.recv()
            except EOFError:
                break
        kept, lost = ReplyCache(replies.path).open()
        assert kept >= last + 1 > 0
        assert lost <= 1


def test_only_its_settings_travel(replies: ReplyCache) -> None:
    replies.put("k", ANSWER)
    copy = pickle.loads(pickle.dumps(replies))
    assert (copy.path, copy.keep_truncated, copy.get("k")) == (replies.path, True, ANSWER)


# Damage ---------------------------------------------------------------------------------------------------------------


def _overwritten(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[: len(data) // 2] = os.urandom(len(data) // 2)
    path.write_bytes(data)


def _of_another_program(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 7")
    other.close()


def _page_spoilt(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096 * 3 : 4096 * 3 + 2000] = b"\xff" * 2000
    path.write_bytes(data)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize("damaged", [_overwritten, _of_another_program, _page_spoilt, _cut])
def test_a_damaged_file_is_named_and_begun_anew(replies: ReplyCache, damaged: Any) -> None:
    _ask(replies, 0, 300)
    replies.close()
    damaged(replies.path)
    bytes_of_damage = replies.path.read_bytes()
    again = ReplyCache(replies.path)
    with pytest.raises(DataError, match=r"replies\.sqlite is damaged, or no file of replies"):
        again.open()
    aside = again.begin_anew()
    assert (aside.name, aside.read_bytes()) == ("set-aside-replies.sqlite", bytes_of_damage)
    assert again.open() == (0, 0)
    assert again.begin_anew().name == "set-aside-replies-2.sqlite"
    assert aside.read_bytes() == bytes_of_damage
    again.put("k", ANSWER)
    assert ReplyCache(replies.path).get("k") == ANSWER


def test_damage_in_the_midst_of_the_work_costs_replies_and_not_the_work(replies: ReplyCache) -> None:
    _ask(replies, 0, 300)
    replies.close()
    replies.path.write_bytes(b"no database" * 1000)
    late = ReplyCache(replies.path)
    assert late.get("1") is None
    late.put("1", ANSWER)
    assert late.get("1") is None
    assert "replies.sqlite: file is not a database" in late.damage


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no/replies\.sqlite cannot be written: unable to open"):
        ReplyCache(tmp_path / "no" / "replies.sqlite").open()


def test_an_answer_is_there_as_it_came(replies: ReplyCache) -> None:
    """Whatever JSON a server may send: lone surrogates, long numbers, null bytes, deep nesting."""
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    for number, value in enumerate(["\ud800", 10**4000, 1e300, "\x00", {"": None}, deep, "é"]):
        replies.put(str(number), {"value": value})
        assert replies.get(str(number)) == json.loads(json.dumps({"value": value}))
    replies.put("x", {"value": 10**5000})  # which Python reads from no text, so that no server's answer holds it
    assert replies.get("x") is None
    assert replies.damage == ""
