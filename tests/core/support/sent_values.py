"""Values to be sent to other processes, importable by name there."""

from __future__ import annotations

from random import Random
from typing import Any

import callwright as cw


@cw.tool(read_only=True)
def days(weeks: int) -> int:
    """How many days some weeks have."""
    return 7 * weeks


@cw.tool(name="renamed", read_only=True)
def another_name(weeks: int) -> int:
    """How many days some weeks have."""
    return 7 * weeks


def plain(weeks: int) -> int:
    """How many days some weeks have."""
    return 7 * weeks


#: A tool of a function whose name stays the function's own.
WRAPPED = cw.tool(name="wrapped", read_only=True)(plain)


class Clock:
    """Holds a method that is a tool."""

    def hours(self, days: int) -> int:
        """How many hours some days have."""
        return 24 * days


METHOD = cw.tool(Clock().hours)


def notes(scenario: str, seed: int) -> list[str]:
    return [scenario, str(seed)]


@cw.tool
def note(state: list[str], /, text: str) -> int:
    """Write something down."""
    state.append(text)
    return len(state)


def local_tool() -> Any:
    @cw.tool
    def count(text: str) -> int:
        """How long a text is."""
        return len(text)

    return count


@cw.row("books", prefix="B", index=("shelf",))
class Book:
    id: str
    shelf: int
    copies: int


@cw.tool
def lend(world: cw.World, /, book_id: str) -> dict[str, int]:
    """Lend a copy."""
    book = world.need(Book, book_id)
    if not book.copies:
        raise cw.ToolError("NONE_LEFT", "none is left")
    return {"left": world.update(book, copies=book.copies - 1).copies}


@cw.tool
def buy(world: cw.World, /, shelf: int) -> str:
    """Buy a book."""
    number = world.random().randrange(9)
    world.advance(60)
    return world.put(Book(world.new_id(Book), shelf, number)).id


def books(random: Random, scale: float) -> list[Book]:
    return [Book(f"B{number:05d}", random.randrange(4), 2) for number in range(1, 1 + int(50 * scale))]


def library(**options: Any) -> cw.StatefulEnvironment:
    return cw.StatefulEnvironment(
        "library", rows=[Book], tools=[lend, buy], scenarios={"typical": cw.Scenario(books)}, **options
    )


# What runs in the other process ---------------------------------------------------------------------------------------


def total(task: cw.Task, text: str) -> tuple[float | None, int]:
    """The reward of a completion, and which environment object it was executed in."""
    return cw.reward("tier").score(task, text).total, id(task.environment)


def go_on(session: Any, calls: list[tuple[str, dict[str, Any]]]) -> tuple[list[str], str]:
    """What a session that came from elsewhere answers, and its digest then."""
    return [session.call(tool, arguments).kind for tool, arguments in calls], session.digest()


def names_of(registry: Any) -> list[str]:
    return [info.name for info in registry.plugins if not info.blocked]
