"""A cache around any teacher: what was replied once is not asked, or paid, again.

    teacher = cached(registry.create("teacher", "openai", model="gpt-x"), "replies.sqlite")
    teacher = cached(teacher, "replies.sqlite", replay=True)    # never asks: a request that is missing is an error

One SQLite file, for any number of threads and processes. A reply is kept by the digest of its request, the teacher's
name and its settings in the role (the model among them), when it comes. Failures and replies that were cut off are not
kept: asked again they may come out better. Where two processes ask the same at once, both get the reply that came
first.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final, TypeVar

from attrs import evolve, frozen

from callwright.digests import digest_of
from callwright.errors import DataError, RunError, UsageError
from callwright.language.messages import Message
from callwright.machines.model_server import run_to_end
from callwright.training.teaching.teacher import (
    Asker,
    AsksConcurrently,
    Role,
    Teacher,
    TeacherFailure,
    TeacherReply,
    TeacherRequest,
    connected,
)

T = TypeVar("T")
#: Seconds that a write waits for other processes.
_PATIENCE: Final = 60.0
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, request TEXT NOT NULL, role TEXT NOT NULL, "
    "model TEXT NOT NULL, words TEXT NOT NULL, asked TEXT NOT NULL, settings TEXT NOT NULL, reply TEXT NOT NULL) "
    "WITHOUT ROWID"
)
#: What replies cost that are not kept: they were paid for all the same.
_SPENT: Final = "CREATE TABLE IF NOT EXISTS spent (cost REAL NOT NULL)"
#: Of so many stored requests of the role the nearest to a missing one is looked for.
_COMPARED: Final = 2_000
#: Characters of a request that are compared.
_HEAD: Final = 2_000


class MissingReply(UsageError):
    """A replay met a request that its file has no reply for. ``digest`` is the request's."""

    def __init__(self, message: str, digest: str) -> None:
        self.digest = digest
        super().__init__(message)


@frozen
class Stored:
    """A row of a file of replies."""

    request: str
    model: str
    reply: TeacherReply


class ReplyFile:
    """A file of replies. Opened when first used, in each process anew; a missing file is made. Safe over threads.

    Raises :class:`callwright.errors.DataError` for a file that is something else, and
    :class:`callwright.errors.RunError` where it cannot be written.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._held: tuple[int, sqlite3.Connection] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path, self._lock, self._held = state["path"], threading.Lock(), None

    def close(self) -> None:
        """Close the file; it is opened again when it is used again."""
        with self._lock:
            if self._held is not None and self._held[0] == os.getpid():
                self._held[1].close()
            self._held = None

    def __del__(self) -> None:
        held = getattr(self, "_held", None)
        if held is not None and held[0] == os.getpid():
            held[1].close()

    def get(self, key: str) -> TeacherReply | None:
        """The reply under a key."""
        for (text,) in self._run("SELECT reply FROM replies WHERE key = ?", (key,)):
            return _reply(text, self.path)
        return None

    def put(self, key: str, request: TeacherRequest, settings: Mapping[str, Any], reply: TeacherReply) -> TeacherReply:
        """Keep a reply; the one that is kept, which is another one where somebody else was first."""
        row = (
            key,
            request.digest,
            request.role,
            str(settings.get("model", "")),
            request.first_words,
            json.dumps(request.to_json(), sort_keys=True),
            json.dumps(settings, sort_keys=True),
            json.dumps(reply.to_json(), sort_keys=True),
        )
        self._run("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        if (kept := self.get(key)) is None or kept == reply:
            return reply
        self.spent(reply)
        return kept

    def spent(self, reply: TeacherReply) -> None:
        """Count what a reply cost that is not kept."""
        cost = reply.usage.get("cost", 0.0)
        if cost and not reply.cached:
            self._run("INSERT INTO spent VALUES (?)", (cost,))

    def of_request(self, request: TeacherRequest) -> list[Stored]:
        """Replies to a request of whatever teacher and settings, by model."""
        found = self._run(
            "SELECT request, model, reply FROM replies WHERE request = ? ORDER BY model, key", (request.digest,)
        )
        return [Stored(digest, model, _reply(text, self.path)) for digest, model, text in found]

    def cost(self) -> float:
        """What all replies cost when they were asked, also those that are not kept."""
        costs = [_reply(text, self.path).usage.get("cost", 0.0) for (text,) in self._run("SELECT reply FROM replies")]
        return math.fsum([*costs, *(cost for (cost,) in self._run("SELECT cost FROM spent"))])

    def __len__(self) -> int:
        ((count,),) = self._run("SELECT count(*) FROM replies")
        return int(count)

    def missing(self, request: TeacherRequest, settings: Mapping[str, Any] | None = None) -> MissingReply:
        """The error about a request that has no reply here: which it is, and which stored one is nearest to it."""
        said = (
            f"{self.path} has no reply to a request of the role {request.role!r} that ends in "
            f"{request.first_words!r} ({request.digest[:12]})"
        )
        stored = self._run("SELECT model, settings FROM replies WHERE request = ? ORDER BY key", (request.digest,))
        if stored and settings is not None:
            model, held = stored[0]
            other = json.loads(held)
            names = sorted(key for key in {*other, *settings} if other.get(key) != settings.get(key))
            what = f"of other settings ({', '.join(names)})" if names else "of another teacher"
            near = f"the same request stands there with a reply {what}, of the model {model!r}"
        else:
            near = self._nearest(request)
        return MissingReply(f"{said}; {near}. A replay asks no server: record it first", request.digest)

    def _nearest(self, request: TeacherRequest) -> str:
        rows = self._run(
            "SELECT request, words, asked FROM replies WHERE role = ? ORDER BY key LIMIT ?", (request.role, _COMPARED)
        )
        if not rows:
            return f"it holds no request of that role, and {len(self):,} in all"
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(request.messages[-1].text[-_HEAD:])
        best, likeness = rows[0], -1.0
        for row in rows:
            matcher.set_seq1(_last_text(json.loads(row[2])))
            if matcher.real_quick_ratio() > likeness and matcher.quick_ratio() > likeness:
                ratio = matcher.ratio()
                if ratio > likeness:
                    best, likeness = row, ratio
        wanted, other = json.loads(json.dumps(request.to_json())), json.loads(best[2])
        names = ", ".join(key for key in wanted if wanted[key] != other.get(key))
        return f"the nearest one there is {best[0][:12]}, which ends in {best[1]!r} and differs in: {names}"

    def _run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            with self._lock, self._connection() as connection:
                return connection.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            raise RunError(f"{self.path}, a file of teachers' replies, cannot be used: {error}") from error
        except sqlite3.DatabaseError as error:
            raise DataError(
                f"{self.path} is no file of teachers' replies, or a broken one ({error}): move it away, or name "
                "another one"
            ) from error

    def _connection(self) -> sqlite3.Connection:
        if self._held is not None and self._held[0] == os.getpid():  # not one that a fork copied
            return self._held[1]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"the folder of {self.path} cannot be made: {error.strerror or error}") from error
        made = sqlite3.connect(self.path, timeout=_PATIENCE, check_same_thread=False)
        try:
            # Readers beside one writer; nothing is lost when a process is killed.
            made.execute("PRAGMA journal_mode=WAL")
            made.execute("PRAGMA synchronous=NORMAL")
            made.execute(_TABLE)
            made.execute(_SPENT)
        except BaseException:
            made.close()
            raise
        self._held = (os.getpid(), made)
        return made


def _reply(text: str, path: Path) -> TeacherReply:
    try:
        return TeacherReply.from_json(json.loads(text), cached=True)
    except (ValueError, KeyError, TypeError, DataError) as error:
        raise DataError(f"{path} holds a reply that cannot be read ({error!r}): move the file away") from error


def _last_text(asked: Mapping[str, Any]) -> str:
    return Message.from_openai(asked["messages"][-1]).text[-_HEAD:]


class CachedTeacher:
    """A teacher that looks into a file of replies first. Made by :func:`cached`."""

    def __init__(self, teacher: Teacher, path: Path | str, *, replay: bool = False) -> None:
        self.teacher = teacher
        self.file = ReplyFile(path)
        self.replay = replay

    @property
    def name(self) -> str:
        """The name of the teacher inside."""
        return self.teacher.name

    @property
    def concurrency(self) -> int:
        """How many requests the teacher inside has under way at most; 1 for one that is asked in threads."""
        return self.teacher.concurrency if isinstance(self.teacher, AsksConcurrently) else 1

    def settings(self, role: Role) -> Mapping[str, Any]:
        """Those of the teacher inside."""
        return self.teacher.settings(role)

    def key(self, request: TeacherRequest) -> str:
        """What a reply is kept by: the request, the teacher's name and its settings in the role."""
        return digest_of([self.name, self.settings(request.role), request.to_json()])

    def ask(self, requests: Sequence[TeacherRequest]) -> list[TeacherReply | TeacherFailure]:
        """The kept replies, and the teacher's own to the rest, each kept as soon as it is there.

        A request that stands twice in a batch is asked once. Raises as :meth:`Teacher.ask` does, and
        :class:`MissingReply` in a replay.
        """
        if isinstance(self.teacher, AsksConcurrently):
            return run_to_end(self._ask_all(requests))
        keys = [self.key(request) for request in requests]
        found: dict[str, TeacherReply | TeacherFailure] = {}
        left: dict[str, TeacherRequest] = {}
        for key, request in zip(keys, requests, strict=True):
            if key not in found and key not in left:
                reply = self._kept(key, request)
                if reply is None:
                    left[key] = request
                else:
                    found[key] = reply
        for key, answer in zip(left, self.teacher.ask(list(left.values())) if left else (), strict=True):
            found[key] = self._keep(key, left[key], answer)
        return [found[key] for key in keys]

    async def _ask_all(self, requests: Sequence[TeacherRequest]) -> list[TeacherReply | TeacherFailure]:
        async with self.connected() as asker:
            return await together([asker.ask_one(request) for request in requests])

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Asker]:
        """A way to ask that looks into the file first. In a replay the teacher is not even connected."""
        if self.replay:
            yield _Caching(self, None)
            return
        async with connected(self.teacher) as asker:
            yield _Caching(self, asker)

    def _kept(self, key: str, request: TeacherRequest) -> TeacherReply | None:
        reply = self.file.get(key)
        if reply is None and self.replay:
            raise self.file.missing(request, self.settings(request.role))
        return reply

    def _keep(
        self, key: str, request: TeacherRequest, answer: TeacherReply | TeacherFailure
    ) -> TeacherReply | TeacherFailure:
        if isinstance(answer, TeacherFailure):
            return answer
        if answer.truncated:
            self.file.spent(answer)
            return answer
        return self.file.put(key, request, self.settings(request.role), answer)


class _Caching:
    """One request after the other through the file; a request that is under way already is waited for."""

    def __init__(self, teacher: CachedTeacher, asker: Asker | None) -> None:
        self._teacher, self._asker = teacher, asker
        self._under_way: dict[str, asyncio.Future[TeacherReply | TeacherFailure]] = {}

    async def ask_one(self, request: TeacherRequest) -> TeacherReply | TeacherFailure:
        teacher = self._teacher
        key = teacher.key(request)
        while (other := self._under_way.get(key)) is not None:
            await asyncio.wait([other])
            if not other.cancelled() and other.exception() is None:
                found = other.result()  # somebody else's request, so that it took nothing
                return found if isinstance(found, TeacherFailure) else evolve(found, cached=True)
        kept = teacher._kept(key, request)
        if kept is not None:
            return kept
        assert self._asker is not None
        asked = asyncio.ensure_future(self._asker.ask_one(request))
        self._under_way[key] = asked
        try:
            return teacher._keep(key, request, await asked)
        finally:
            del self._under_way[key]


async def together(asking: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """What all of them give, in order; where one raises the others are ended, and the first exception is raised."""
    tasks = [asyncio.ensure_future(one) for one in asking]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def cached(teacher: Teacher, path: Path | str, *, replay: bool = False) -> CachedTeacher:
    """A teacher whose replies are kept in a file. With ``replay`` it is never asked.

    Then a request without a reply raises :class:`MissingReply`, which names its role, its first words, its digest and
    the nearest request that the file has.
    """
    return CachedTeacher(teacher, path, replay=replay)
