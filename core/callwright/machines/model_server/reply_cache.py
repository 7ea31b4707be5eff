"""Replies that were paid for: what a model server answered is kept in a file, and a second start does not ask again.

    replies = ReplyCache(folder / "replies.sqlite")
    with asking("task 7, turn 1"):
        key = replies.key("chat", address, body)
        answer = replies.get(key)
        if answer is None:
            replies.begun(key, worst)       # what it may cost at most
            answer = ...                    # of the server
            replies.put(key, answer)

A reply is written before anything else is done with it. A request that was sent and has no reply yet is marked, so that
the next start can say how many were under way when the last one was killed: these alone are asked, and paid, again.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from callwright.errors import DataError, RunError
from callwright.machines.redaction import redacted

REPLIES: Final = "replies.sqlite"
#: Seconds that one process waits for the others that write into the same file.
_PATIENCE: Final = 60.0
#: Characters of a key that can be told from a word.
_SECRET: Final = 8
#: Written into the file, and raised when its tables change.
_VERSION: Final = 2
_TABLES: Final = (
    "CREATE TABLE replies (key TEXT PRIMARY KEY, asker TEXT NOT NULL, answer TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE under_way (key TEXT PRIMARY KEY, worst REAL NOT NULL) WITHOUT ROWID",
    "CREATE TABLE lost (worst REAL NOT NULL)",
    f"PRAGMA user_version = {_VERSION}",
)


class _Asker:
    """Who asks, and how often it has asked the same thing."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.times: Counter[str] = Counter()


_asker: ContextVar[_Asker | None] = ContextVar("callwright_asker", default=None)


@contextlib.contextmanager
def asking(name: str) -> Iterator[None]:
    """In this block requests belong to ``name``, such as one turn of one sample.

    Two samples that send the same request want two answers, and so does one that sends it twice: who asks, and how
    often it has asked before, are part of the key.
    """
    token = _asker.set(_Asker(name))
    try:
        yield
    finally:
        _asker.reset(token)


class ReplyCache:
    """Answers of model servers by their requests, in an SQLite file that threads and processes of one host share.

    ``keep_truncated``: whether an answer that a limit of tokens cut is kept, too; one that was paid for is, one that a
    teacher should give again is not. An answer that holds the value of one of the environment variables
    ``secret_variables`` (of 8 characters or more) is not kept. Keys are digests, so that the file holds answers and
    the names of who asked.

    Only the path travels to other processes. An error of the file in the midst of the work costs replies, never the
    work: the file is then left alone, and :attr:`damage` says why.
    """

    def __init__(self, path: Path, *, keep_truncated: bool = True, secret_variables: Sequence[str] = ()) -> None:
        self.path, self.keep_truncated, self.secret_variables = path, keep_truncated, tuple(secret_variables)
        self._begin()

    def _begin(self) -> None:
        self._guard = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        #: Why nothing is kept any more; empty while all is well.
        self.damage = ""

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("path", "keep_truncated", "secret_variables")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    # Requests and replies ---------------------------------------------------------------------------------------------

    def key(self, endpoint: str, address: str, body: Mapping[str, Any]) -> str:
        """The key of a request that is about to be made, once for each: a digest of all that makes its answer.

        ``body`` holds the model. Passwords and keys in the address take no part.
        """
        stated = json.dumps([endpoint, redacted(address), body], sort_keys=True, default=str)
        asker = _asker.get()
        if asker is None:
            return _digest(stated)
        plain = _digest(stated)
        asker.times[plain] += 1
        return _digest(f"{asker.name}\n{asker.times[plain]}\n{stated}")

    def get(self, key: str) -> dict[str, Any] | None:
        """The answer that is kept, if there is one."""
        found = self._do("SELECT answer FROM replies WHERE key = ?", (key,))
        try:
            answer = json.loads(found[0][0]) if found else None
        except (ValueError, RecursionError):
            return None
        return answer if isinstance(answer, dict) else None

    def begun(self, key: str, worst: float = 0.0) -> None:
        """The request is sent now, and may cost so much at most."""
        self._do("INSERT OR IGNORE INTO under_way VALUES (?, ?)", (key, worst))

    def lost(self, worst: float) -> None:
        """A request may have been answered, and have cost so much at most, but its answer or usage did not come."""
        self._do("INSERT INTO lost VALUES (?)", (worst,))

    def perhaps_paid(self) -> float:
        """What may have been paid for requests of which nothing is known, at most; also those of killed starts."""
        return math.fsum(worst for (worst,) in self._do("SELECT worst FROM lost", ()))

    def put(self, key: str, answer: Mapping[str, Any]) -> None:
        """Keep an answer, unless it is one of those that are not kept; the request is no longer under way."""
        statements: list[tuple[str, tuple[Any, ...]]] = [("DELETE FROM under_way WHERE key = ?", (key,))]
        if (text := self._text(answer)) is not None:
            asker = _asker.get()
            row = (key, asker.name if asker else "", text)
            statements.append(("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", row))
        self._all(statements)

    def _text(self, answer: Mapping[str, Any]) -> str | None:
        """An answer as it is kept; ``None`` for one that is not."""
        if not self.keep_truncated and _truncated(answer):
            return None
        try:
            text = json.dumps(answer)
        except (ValueError, TypeError, RecursionError):  # a number of more digits than Python writes, such things
            return None
        secrets = (os.environ.get(name, "") for name in self.secret_variables)
        return None if any(len(secret) >= _SECRET and secret in text for secret in secrets) else text

    def gave_up(self, key: str) -> None:
        """The request failed, and is not tried again."""
        self._do("DELETE FROM under_way WHERE key = ?", (key,))

    # The file ---------------------------------------------------------------------------------------------------------

    def open(self) -> tuple[int, int]:
        """Look the file over, which is made if it is not there: how many replies it holds, and how many requests were
        under way when the process before this one ended. These are then among what may have been paid for.

        Raises :class:`callwright.errors.DataError` for a file that is damaged or no cache of replies, and
        :class:`callwright.errors.RunError` for one that cannot be written.
        """
        try:
            with self._guard:
                connection = self._opened()
                sound = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
                if sound != "ok":
                    raise sqlite3.DatabaseError(sound)
                kept = connection.execute("SELECT count(*) FROM replies").fetchone()[0]
                with connection:
                    connection.execute("INSERT INTO lost SELECT worst FROM under_way WHERE worst > 0")
                    lost = connection.execute("DELETE FROM under_way").rowcount
        except sqlite3.OperationalError as error:
            self.close()
            raise RunError(f"{self.path} cannot be written: {error}") from error
        except sqlite3.DatabaseError as error:
            self.close()
            raise DataError(f"{self.path} is damaged, or no file of replies: {error}") from error
        return int(kept), int(lost)

    def begin_anew(self) -> Path:
        """Set the file aside and begin with an empty one. Returns where the old one is now."""
        self.close()
        aside = self.path.with_name(f"set-aside-{self.path.name}")
        number = 1
        while aside.exists():  # an earlier one, whose answers were paid for as well
            number += 1
            aside = self.path.with_name(f"set-aside-{self.path.stem}-{number}{self.path.suffix}")
        self.path.replace(aside)
        for rest in ("-wal", "-shm", "-journal"):
            self.path.with_name(self.path.name + rest).unlink(missing_ok=True)
        self.open()
        return aside

    def askers(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every reply with who asked for it, in no order."""
        for name, text in self._do("SELECT asker, answer FROM replies", ()):
            yield str(name), json.loads(text)

    def close(self) -> None:
        """Close the file, which is one file then, and complete."""
        with self._guard:
            if self._connection is not None and self._process == os.getpid():
                with contextlib.suppress(sqlite3.Error):
                    self._connection.close()
            self._connection = None

    def _do(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        return self._all([(statement, values)])

    def _all(self, statements: Sequence[tuple[str, tuple[Any, ...]]]) -> list[Any]:
        """Several statements in one step, and the rows of the last one. None, and nothing done, once it is damaged."""
        rows: list[Any] = []
        with self._guard:
            if self.damage:
                return rows
            try:
                connection = self._opened()
                with connection:
                    for statement, values in statements:
                        rows = connection.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                self.damage = f"{self.path}: {error}"
        return rows

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        # A connection of the parent of a fork must not be used, nor closed, here.
        connection = sqlite3.connect(self.path, timeout=_PATIENCE, check_same_thread=False)
        try:
            _prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self._process = connection, os.getpid()
        return connection


def damage_of(path: Path) -> str | None:
    """Why a file of replies cannot be used; ``None`` if it can, or is not there. Reads, and changes nothing."""
    if not path.exists():
        return None
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            sound = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.OperationalError:  # somebody writes, or it may not be read: nothing can be told
        return None
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if (sound, version) == ("ok", _VERSION) else f"{sound}, version {version}"


def _prepare(connection: sqlite3.Connection) -> None:
    """Make the tables, unless they are there."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, _VERSION):
        raise sqlite3.DatabaseError(f"it is of version {version}, and this program writes {_VERSION}")
    # With a log beside the file an answer costs one write and no wait for the disk, and a kill loses none; after a
    # power cut the last ones may be gone, but the file is sound.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if version == 0:
        with connection:
            connection.execute("BEGIN IMMEDIATE")  # of two processes that find no tables one makes them
            if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
                for statement in _TABLES:
                    connection.execute(statement)


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def _truncated(answer: Mapping[str, Any]) -> bool:
    """Whether a limit of tokens cut one of the completions: of chat and text completions, and of responses."""
    choices = answer.get("choices")
    cut = answer.get("status") == "incomplete"
    return cut or any(
        choice.get("finish_reason") == "length"
        for choice in (choices if isinstance(choices, list) else ())
        if isinstance(choice, Mapping)
    )
