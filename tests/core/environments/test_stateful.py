"""Stateful environments: what calls come to, helper tools, toolsets, and that sessions stay apart."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

import callwright as cw
from callwright.environments import Cursor, Limit, Page
from callwright.errors import ComponentError, NameClash, UnknownName, UsageError
from callwright.plugins import load_plugins
from callwright.testing import check_component


@cw.row("books", prefix="B", index=("shelf",))
class Book:
    id: str
    title: str
    shelf: str
    copies: int


@cw.row("loans", prefix="L")
class Loan:
    id: str
    book_id: str
    due: int


class BookView(TypedDict):
    id: str
    copies: int


def view(book: Book) -> BookView:
    return {"id": book.id, "copies": book.copies}


@cw.tool(read_only=True, discovery=True)
def list_books(world: cw.World, /, shelf: str = "", limit: Limit = 20, cursor: Cursor = "") -> Page[BookView]:
    """List books."""
    return cw.page(world.find(Book, shelf=shelf) if shelf else list(world.rows(Book)), view, limit, cursor)


@cw.tool
def lend(world: cw.World, /, book_id: str, copies: Annotated[int, Field(ge=1)] = 1) -> BookView:
    """Lend copies of a book."""
    book = world.need(Book, book_id)
    world.put(Loan(world.new_id(Loan), book_id, world.now + 86_400))
    if book.copies < copies:
        raise cw.ToolError("NONE_LEFT", f"only {book.copies} left")
    return view(world.update(book, copies=book.copies - copies))


@cw.tool
def lend_some(world: cw.World, /, book_ids: list[str]) -> list[str]:
    """Lend a copy of each that is there."""
    lent = []
    for key in book_ids:
        book = world.get(Book, key)
        if book is None or not book.copies:
            world.warn("NOT_ALL", f"{key} cannot be lent")
            continue
        world.update(book, copies=book.copies - 1)
        lent.append(key)
    return lent


@cw.tool(read_only=True)
def liar(world: cw.World, /) -> int:
    """Says that it only reads."""
    world.advance(1)
    return 1


@cw.tool
def broken(world: cw.World, /) -> int:
    """Has a bug."""
    world.advance(1)
    return 1 // 0


@cw.tool(read_only=True)
def echo(numbers: list[int], inner: dict[str, int] | None = None, day: int | None = None) -> dict[str, Any]:
    """Give back what came."""
    return {"numbers": numbers, "inner": inner, "day": day}


class Receipt(BaseModel):
    when: datetime.date


@cw.tool(read_only=True)
def dated(day: datetime.date) -> Receipt:
    """A tool of dates and models."""
    return Receipt(when=day + datetime.timedelta(days=1))


@cw.tool(read_only=True)
def secret(pin: Annotated[str, Field(json_schema_extra={"x-sensitive": True})]) -> bool:
    """Takes a secret."""
    return pin == "1"


def books(rng: random.Random, scale: float) -> Iterator[Book]:
    for number in range(round(40 * scale)):
        yield Book(f"B{number + 1:05d}", f"Title {rng.random():.6f}", f"S{number % 4}", 3)


def nothing(rng: random.Random, scale: float) -> Iterator[Book]:
    return iter(())


TOOLS = [list_books, lend, lend_some, echo, dated, secret]


def library(**options: Any) -> cw.StatefulEnvironment:
    given: dict[str, Any] = {
        "rows": [Book, Loan],
        "tools": TOOLS,
        "scenarios": {"typical": cw.Scenario(books, "a library"), "empty": cw.Scenario(nothing, "no books", now=5)},
    }
    return cw.StatefulEnvironment("library", **{**given, **options})


CASES: list[tuple[str, dict[str, Any], str, str, Any]] = [
    ("lend", {"book_id": "B00001"}, "ok", "", {"id": "B00001", "copies": 2}),
    ("lend", {"book_id": "B00001", "copies": 2.0}, "ok", "", {"id": "B00001", "copies": 1}),
    ("lend", {"book_id": "B00001", "copies": 9}, "execution_error", "NONE_LEFT", None),
    ("lend", {"book_id": "nope"}, "execution_error", "NOT_FOUND", None),
    ("lend", {"book_id": 5}, "schema_error", "type", None),
    ("lend", {}, "schema_error", "missing", None),
    ("lend", {"book_id": "B00001", "copies": 0}, "schema_error", "value", None),
    ("lend", {"book_id": "B00001", "colour": "red"}, "schema_error", "unexpected", None),
    ("lend_some", {"book_ids": ["B00001", "x"]}, "partial", "NOT_ALL", ["B00001"]),
    ("lend_some", {"book_ids": []}, "ok", "", []),
    ("list_books", {"shelf": "none"}, "empty", "", {"items": [], "total": 0, "next_cursor": None}),
    ("list_books", {"cursor": "x"}, "execution_error", "BAD_CURSOR", None),
    ("list_books", {"cursor": "40"}, "execution_error", "BAD_CURSOR", None),
    ("echo", {"numbers": [1.0, 2], "inner": {"a": 1}}, "ok", "", {"numbers": [1, 2], "inner": {"a": 1}, "day": None}),
    ("echo", {"numbers": [], "day": 3.0}, "ok", "", {"numbers": [], "inner": None, "day": 3}),
    ("dated", {"day": "2026-03-31"}, "ok", "", {"when": "2026-04-01"}),
    ("_reset", {}, "unknown_tool", "unknown_tool", None),
    ("", {}, "unknown_tool", "unknown_tool", None),
]


@pytest.mark.parametrize(("tool", "arguments", "kind", "code", "value"), CASES)
def test_outcomes(tool: str, arguments: dict[str, Any], kind: str, code: str, value: Any) -> None:
    session = library().open()
    before, given = session.digest(), dict(arguments)
    outcome = session.call(tool, arguments)
    assert (outcome.kind, outcome.code, outcome.value) == (kind, code, value)
    assert repr(outcome.value) == repr(value)  # 2, not 2.0
    assert arguments == given
    assert outcome.executed or session.digest() == before


def test_pages_join_to_the_whole() -> None:
    session = library().open()
    found: list[str] = []
    cursor = ""
    while True:
        value = session.call("list_books", {"limit": 7, "cursor": cursor}).value
        assert value["total"] == 40
        found += [item["id"] for item in value["items"]]
        cursor = value["next_cursor"]
        if cursor is None:
            break
    assert found == [f"B{number + 1:05d}" for number in range(40)]


def test_a_tool_that_writes_against_its_word_is_a_bug() -> None:
    session = library(tools=[liar]).open()
    before = session.digest()
    with pytest.raises(ComponentError, match="read_only"):
        session.call("liar", {})
    assert session.digest() == before


def test_a_bug_is_raised_after_undoing() -> None:
    session = library(tools=[broken, lend]).open()
    before = session.digest()
    with pytest.raises(ComponentError, match=r"(?s)broken raised ZeroDivisionError.*bug of the environment 'library'"):
        session.call("broken", {})
    assert session.digest() == before
    assert session.call("lend", {"book_id": "B00001"}).executed


def test_a_scenario_that_raises_is_named_with_the_environment_whose_bug_it_is() -> None:
    def rows(rng: random.Random, scale: float) -> Iterator[Any]:
        yield {}["nothing"]

    with pytest.raises(ComponentError) as raised:
        cw.StatefulEnvironment("ruin", rows=[], tools=[], scenarios={"night": cw.Scenario(rows, "dark")}).open()
    said = str(raised.value)
    assert said.startswith("the scenario 'night' of the environment 'ruin' raised KeyError: 'nothing'")
    assert "rows, line" in said
    assert said.endswith("This is a bug of the environment 'ruin'")


def test_two_rows_of_one_key_are_told_with_the_world_that_they_stand_in() -> None:
    def rows(rng: random.Random, scale: float) -> Iterator[Book]:
        yield Book("B00001", "One", "S1", 1)
        yield Book("B00001", "Another", "S1", 1)

    twice = cw.StatefulEnvironment("twice", rows=[], tools=[], scenarios={"night": cw.Scenario(rows, "dark")})
    with pytest.raises(cw.errors.DataError, match="two rows of 'books'") as raised:
        twice.open(seed=7)
    assert str(raised.value) == (
        "environment 'twice', scenario 'night', seed 7: two rows of 'books' have the key 'B00001'"
    )


def test_secrets_are_marked_and_models_not_told() -> None:
    assert secret.spec.sensitive
    assert not lend.spec.sensitive
    assert "x-sensitive" in str(secret.spec.parameters)
    assert "x-sensitive" not in str(secret.spec.to_openai())
    assert "x-sensitive" not in cw_prompt(secret.spec)


def cw_prompt(spec: cw.ToolSpec) -> str:
    from callwright.walk.prompt import describe_tool

    return describe_tool(spec)


def test_helpers_do_what_they_say() -> None:
    session = library().open()
    first = session.digest()
    session.call("lend", {"book_id": "B00001"})
    assert session.helper("_diff").value["books"] == {"changed": {"B00001": {"copies": [3, 2]}}}
    dumped = session.helper("_dump_state").value
    assert session.helper("_count", {"table": "books", "filter": {"shelf": "S1"}}).value == {"count": 10}
    assert session.helper("_get_unique_values", {"table": "books", "field": "shelf"}).value == ["S0", "S1", "S2", "S3"]
    assert session.helper("_get_rows", {"table": "loans"}).value == [
        {"id": "L00001", "book_id": "B00001", "due": 1_772_442_000 + 86_400}
    ]
    assert session.helper("_list_tables").value["loans"]["rows"] == 1
    assert session.helper("_advance_clock", {"seconds": 60}).value == {"now": 1_772_442_060}
    assert session.helper("_reset").value == {"digest": first} == session.helper("_digest").value
    session.helper("_load_scenario", {"state": dumped})
    assert session.helper("_dump_state").value == dumped
    session.helper("_load_scenario", {"name": "empty"})
    assert session.world.now == 5
    assert session.call("list_books", {}).kind == "empty"
    assert session.helper("_count", {"table": "bokks"}).message == (
        "There is no table of 'library' named 'bokks'. Did you mean 'books'? Known: books, loans."
    )
    assert session.helper("_count", {}).kind == "schema_error"
    with pytest.raises(UnknownName, match="_reset"):
        session.helper("_rest")


@pytest.mark.parametrize("code", ["NONE_LEFT", "ANYTHING"])
def test_injected_faults_come_once(code: str) -> None:
    session = library().open()
    session.helper("_inject_fault", {"tool": "lend", "code": code, "nth": 2})
    before = session.digest()
    assert [session.call("lend", {"book_id": "B00001"}).code for _ in range(3)] == ["", code, ""]
    assert session.digest() != before


def test_a_broken_machine_can_be_injected() -> None:
    session = library().open()
    session.helper("_inject_fault", {"tool": "lend", "code": "infrastructure"})
    with pytest.raises(cw.InfrastructureFailure):
        session.call("lend", {"book_id": "B00001"})
    assert session.helper("_inject_fault", {"tool": "lent", "code": "X"}).code == "INVALID"


@cw.row("fines", prefix="F")
class Fine:
    id: str
    book_id: str


@cw.tool
def fine(world: cw.World, /, book_id: str) -> dict[str, str]:
    """Fine somebody: a tool that somebody else adds, with a table of its own."""
    return {"id": world.put(Fine(world.new_id(Fine), world.need(Book, book_id).id)).id}


def test_a_toolset_joins_an_environment_that_is_not_its_own() -> None:
    class Plugin:
        @cw.hookimpl
        def callwright_toolsets(self) -> Iterator[cw.Lazy]:
            yield cw.Lazy("fines", lambda: [fine], summary="fines for the library")

        @cw.hookimpl
        def callwright_environments(self) -> Iterator[cw.Lazy]:
            def make(toolsets: Any = ()) -> cw.StatefulEnvironment:
                return library(toolsets=toolsets)

            yield cw.Lazy("library", make, summary="books")

    registry = load_plugins(entry_points=False, extra={"mine": Plugin()})
    made = cw.environment("library", toolsets=["fines"], registry=registry)
    session = made.open()
    first = session.digest()
    assert session.call("fine", {"book_id": "B00001"}).value == {"id": "F00001"}
    assert session.call("fine", {"book_id": "B00002"}).value == {"id": "F00002"}
    assert session.digest() != first
    assert "fine" not in cw.environment("library", registry=registry).tools
    with pytest.raises(NameClash, match="'lend'"):
        library(toolsets=[[lend]])
    with pytest.raises(UnknownName, match="fines"):
        cw.environment("library", toolsets=["fine"], registry=registry)


def test_scenarios_seeds_and_scale() -> None:
    small, large = library(), library(scale=2.5)
    assert small.open().world.count(Book) == 40
    assert large.open().world.count(Book) == 100
    digests = {small.open(scenario, seed).digest() for scenario in ("", "empty") for seed in (0, 1)}
    assert len(digests) == 4
    assert small.open().digest() == small.open("typical", 0).digest() == library().open().digest()
    with pytest.raises(UnknownName, match="Did you mean 'typical'"):
        small.open("typcal")
    with pytest.raises(UsageError, match="scale"):
        library(scale=0)
    with pytest.raises(UsageError, match="no scenario"):
        library(scenarios={})
    with pytest.raises(NameClash, match="'books'"):
        library(rows=[Book, Book])


def test_another_seed_is_another_world_of_the_same_scenario() -> None:
    environment = library()
    session = environment.open("empty", 3)
    session.reset(seed=4)
    assert session.digest() == environment.open("empty", 4).digest() != environment.open("", 4).digest()
    session.reset("")
    assert session.digest() == environment.open("", 4).digest()


def test_forks_take_injected_faults_along() -> None:
    session = library().open("", 1)
    session.helper("_inject_fault", {"tool": "list_books", "code": "DOWN", "nth": 2})
    fork = session.fork()
    for one in (session, fork):
        assert [one.call("list_books", {}).code for _ in range(3)] == ["", "DOWN", ""]


def test_nasty_values_are_outcomes_and_messages_stay_short() -> None:
    session = library().open()
    before = session.digest()
    for value in ("\ud800", "x" * 200_000, {"a": "\udfff"}, [["\ud800"]]):
        for arguments in ({"book_id": value}, {value if isinstance(value, str) else "book_id": value}):
            outcome = session.call("lend", arguments)
            assert outcome.kind in ("schema_error", "execution_error")
            assert len(outcome.message) <= 600
    assert session.digest() == before
    for name, given in (
        ("_advance_clock", {"seconds": -1}),
        ("_advance_clock", {"seconds": 10**12}),
        ("_get_rows", {"table": "books", "limit": -1}),
        ("_inject_fault", {"tool": "lend", "code": "X", "nth": 0}),
        ("_inject_fault", {"tool": "lend", "code": ""}),
    ):
        assert session.helper(name, given).kind == "schema_error"
    for wrong in ("fines", 5, ["fines"]):
        with pytest.raises(UsageError, match="toolsets"):
            library(toolsets=wrong)
    with pytest.raises(UsageError, match="scenario"):
        library().open(5)  # type: ignore[arg-type]


def test_a_closed_session_refuses() -> None:
    session = library().open()
    session.close()
    session.close()
    with pytest.raises(UsageError, match="closed"):
        session.call("list_books", {})


def test_a_thousand_interleaved_sessions_do_not_meet() -> None:
    made = library()
    base = made.base("typical", 0)
    total = base.total
    rng = random.Random(1)
    script = [("lend", {"book_id": f"B{rng.randrange(1, 41):05d}"}) for _ in range(8)]
    sessions = [made.open() for _ in range(1000)]
    turns = [number for number in range(1000) for _ in script]
    rng.shuffle(turns)
    done = [0] * 1000
    for number in turns:
        sessions[number].call(*script[done[number]])
        done[number] += 1
    assert len({session.digest() for session in sessions}) == 1
    assert base.count_again() == total
    assert made.open().digest() != sessions[0].digest()


def test_it_conforms() -> None:
    check_component("environment", library(), scenarios=["typical", "empty"])


def test_offered_names_are_qualified_where_they_collide() -> None:
    one, other = library(), library(tools=[lend, fine])
    other._name = "café"
    offered = cw.offer(one, other)
    assert list(offered) == [
        "list_books", "library__lend", "lend_some", "echo", "dated", "secret", "caf___lend", "fine",
    ]  # fmt: skip
    assert offered["caf___lend"].original == "lend"
    assert offered["caf___lend"].environment is other
    assert [tool["function"]["name"] for tool in cw.openai_tools(one, other)] == list(offered)
    long = [
        cw.StatefulEnvironment("e" * 70 + str(n), rows=[], tools=[echo], scenarios={"s": cw.Scenario(nothing)})
        for n in range(3)
    ]
    names = list(cw.offer(*long))
    assert all(len(name) <= 64 for name in names)
    assert len(set(names)) == 3
