"""Sessions over SQLite: what fails leaves no trace, forks are apart, and nothing stays open."""

from __future__ import annotations

import gc
import importlib
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import callwright as cw
from callwright.capability import has
from callwright.environments import FunctionEnvironment
from callwright.environments.backends import SQLite, SQLiteTemplate
from callwright.environments.backends.session import ForkedSession
from callwright.environments.capabilities import Diffs, Forks, Resets, Snapshots
from callwright.environments.protocol import TellsGoalState
from callwright.errors import ComponentError, DataError
from callwright.testing import check_component

TABLE = "CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT, data BLOB); CREATE TABLE loose (word);"


@cw.tool
def write(db: SQLite, /, text: str, then: str = "") -> int:
    """Write a note, and then do something else."""
    row = db.execute("INSERT INTO notes (text, data) VALUES (?, ?)", (text, text.encode())).lastrowid
    db.execute("INSERT INTO loose VALUES (?)", (text,))
    if then == "fail":
        raise cw.ToolError("FAILED", "as was asked")
    if then == "crash":
        raise RuntimeError("a bug")
    if then:
        db.execute(then)
    return int(row or 0)


@cw.tool(read_only=True)
def count(db: SQLite, /, then: str = "") -> int:
    """How many notes there are."""
    if then:
        db.execute(then)
    return int(db.execute("SELECT count(*) FROM notes").fetchone()[0])


template = SQLiteTemplate(TABLE)
NOTES = FunctionEnvironment("notes", [write, count], state=template)


@pytest.fixture
def session() -> Any:
    found = NOTES.open()
    yield found
    found.close()


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "sdk_examples"))
    return importlib.import_module("own_database").shop


def test_a_table_that_comes_or_goes_is_another_state(session: Any) -> None:
    digests = [session.digest()]
    for statement in ("CREATE TABLE more (word)", "ALTER TABLE more ADD COLUMN page", "DROP TABLE more"):
        assert session.call("write", {"text": "a", "then": statement}).executed
        session.state.execute("DELETE FROM notes")
        session.state.execute("DELETE FROM loose")
        digests.append(session.digest())
        assert session.fork().digest() == digests[-1]
        assert session.call("count", {"then": statement}).kind == "execution_error"  # it only reads
        assert session.digest() == digests[-1]
    assert len({*digests}) == len(digests)


def test_a_reset_to_a_scenario_that_is_not_there_leaves_the_session() -> None:
    def fill(db: sqlite3.Connection, scenario: str, seed: int) -> None:
        if scenario:
            raise DataError(f"there is no scenario {scenario!r}")

    session: Any = FunctionEnvironment("notes", [write, count], state=SQLiteTemplate(TABLE, fill)).open()
    session.call("write", {"text": "a"})
    with pytest.raises(DataError):
        session.reset("nowhere")
    assert session.call("count", {}).value == 1
    session.reset()
    assert session.call("count", {}).value == 0
    session.close()


def test_the_kit_finds_nothing(shop: Any) -> None:
    check_component("environment", shop, scenarios=["", "sold-out"])


def test_it_forks_resets_and_shows_tables(session: Any) -> None:
    assert all(has(session, one) for one in (Forks, Resets, Diffs, Snapshots))


@pytest.mark.parametrize("then", ["fail", "crash", "SELECT * FROM nowhere"])
def test_a_call_that_fails_leaves_the_state_as_it_was(session: Any, then: str) -> None:
    session.call("write", {"text": "first"})
    before, rows = session.digest(), session.snapshot()
    assert not session.call("write", {"text": "second", "then": then}).executed
    assert (session.digest(), session.snapshot()) == (before, rows)
    assert session.call("write", {"text": "third"}).value == 2


@pytest.mark.parametrize(
    "then", ["COMMIT", "ROLLBACK", "BEGIN", "RELEASE call", "SAVEPOINT mine", "ATTACH ':memory:' AS x"]
)
def test_a_tool_cannot_end_the_transaction_or_open_a_file(session: Any, then: str) -> None:
    before = session.digest()
    outcome = session.call("write", {"text": "x", "then": then})
    assert outcome.kind == "execution_error"
    assert "not authorized" in outcome.message
    assert session.digest() == before


def test_a_read_only_tool_cannot_write(session: Any) -> None:
    outcome = session.call("count", {"then": "DELETE FROM notes"})
    assert "readonly" in outcome.message
    assert session.call("write", {"text": "still possible"}).executed


def test_the_digest_hangs_on_content_and_not_on_the_order_of_rows() -> None:
    one, other, longer = NOTES.open(), NOTES.open(), NOTES.open()
    for found, words in ((one, "ab"), (other, "ba"), (longer, "abc")):
        for word in words:
            found.state.execute("INSERT INTO loose VALUES (?)", (word,))
    assert one.digest() == other.digest() != longer.digest()
    for found in (one, other, longer):
        found.close()


def test_a_fork_is_equal_and_then_apart(session: Any) -> None:
    session.call("write", {"text": "a"})
    fork = session.fork()
    assert fork.digest() == session.digest()
    fork.call("write", {"text": "b"})
    assert session.call("count", {}).value == 1
    assert fork.call("count", {}).value == 2
    assert fork.diff(session)["notes"] == {"added": {"2": {"id": 2, "text": "b", "data": {"blob": "62"}}}}
    fork.close()


def test_a_changed_row_is_told_field_by_field(session: Any) -> None:
    session.call("write", {"text": "a", "then": "UPDATE notes SET text = 'z'"})
    before = session.fork()
    session.call("write", {"text": "b", "then": "UPDATE notes SET text = 'y' WHERE id = 1"})
    assert session.diff(before)["notes"]["changed"] == {"1": {"text": ["z", "y"]}}
    before.close()


def test_reset_begins_again_also_with_another_seed(shop: Any) -> None:
    session = shop.open("", seed=1)
    first = session.digest()
    session.call("order", {"name": "tent", "pieces": 1})
    assert session.digest() != first
    session.reset()
    assert session.digest() == first
    session.reset(seed=2)
    assert session.digest() == shop.open("", seed=2).digest() != first
    session.close()


def test_snapshots_are_put_back(session: Any) -> None:
    session.call("write", {"text": "a"})
    state, digest = session.dump(), session.digest()
    session.call("write", {"text": "b"})
    session.load(state)
    assert session.digest() == digest
    with pytest.raises(DataError, match="those of this database are loose, notes, sqlite_sequence"):
        session.load({"tables": {"other": []}})


def test_it_travels(session: Any) -> None:
    session.call("write", {"text": "a"})
    there = pickle.loads(pickle.dumps(session))
    assert there.digest() == session.digest()
    there.close()


def test_a_thousand_sessions_leave_no_connection_open() -> None:
    for _ in range(1000):
        NOTES.open().call("write", {"text": "a"})  # nobody closes it
    gc.collect()
    assert [one for one in gc.get_objects() if isinstance(one, sqlite3.Connection) and _is_open(one)] == []


def _is_open(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT 1 FROM notes")
    except sqlite3.Error:
        return False
    return True


def test_a_closed_session_says_so_and_closes_again(session: Any) -> None:
    session.close()
    session.close()
    with pytest.raises((ComponentError, cw.InfrastructureFailure)):
        session.digest()


def test_a_file_is_read_and_never_written(tmp_path: Path) -> None:
    file = tmp_path / "notes.sqlite"
    connection = sqlite3.connect(file)
    connection.executescript(TABLE + "INSERT INTO notes (text) VALUES ('there');")
    connection.close()
    before = file.read_bytes()
    session = FunctionEnvironment("notes", [write, count], state=SQLiteTemplate(file)).open()
    session.call("write", {"text": "more"})
    assert session.call("count", {}).value == 2
    session.close()
    assert file.read_bytes() == before


@pytest.mark.parametrize(("script", "said"), [("CREATE TABL x", "syntax error"), (Path("nowhere.db"), "no such file")])
def test_a_bad_template_is_told(script: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        SQLiteTemplate(script)


THEN = ["", "fail", "crash", "DELETE FROM loose", "COMMIT"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["", "fail", "crash", "DELETE FROM loose", "COMMIT"]), st.text(max_size=4)),
        max_size=8,
    )
)
def test_a_session_is_what_its_successful_calls_alone_come_to(calls: list[tuple[str, str]]) -> None:
    session, again = NOTES.open(), NOTES.open()
    for then, text in calls:
        try:
            text.encode()
        except UnicodeEncodeError:
            continue
        arguments = {"text": text, "then": then}
        if session.call("write", arguments).executed:
            assert again.call("write", arguments).executed
    assert session.digest() == again.digest()
    session.close()
    again.close()


class Said(ForkedSession):
    """A session that says what it has come to."""

    def goal_state(self) -> Any:
        return [row["text"] for row in self.snapshot()["notes"]]


class SaysSo(FunctionEnvironment):
    def open(self, scenario: str = "", seed: int = 0) -> Any:
        return Said(self, self.backend(scenario, seed), (scenario, seed))


def test_a_fork_is_of_its_sessions_own_class() -> None:
    world = SaysSo("says-so", [write], state=SQLiteTemplate(TABLE))
    session = world.open()
    assert session.call("write", {"text": "a"}).executed
    fork = session.fork()
    assert fork.call("write", {"text": "b"}).executed
    assert (session.goal_state(), fork.goal_state()) == (["a"], ["a", "b"])
    assert has(fork, TellsGoalState)
    again = fork.fork()
    assert type(again) is Said
    check_component("environment", world)
