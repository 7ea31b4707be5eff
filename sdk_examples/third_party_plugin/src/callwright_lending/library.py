"""The environment: typed functions whose positional-only first parameter is the session's state."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import callwright as cw
from callwright.environments import FunctionEnvironment

TITLES = {"birds": ["Wings", "The Nest", "Feathers"], "maps": ["Coastlines", "The Atlas"], "tea": ["Leaves"]}


@dataclass
class Library:
    """Free copies by title, and loans by title: who has it."""

    free: dict[str, int]
    loans: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Book:
    """A title as the catalogue shows it."""

    title: str
    free: int


def fill(scenario: str, seed: int) -> Library:
    """The state that a session begins with. ``closed`` is a library in which everything is lent."""
    draw = random.Random(f"lending/{seed}")  # a text, so that the numbers are the same on every machine
    titles = [title for shelf in TITLES.values() for title in shelf]
    return Library({title: 0 if scenario == "closed" else draw.randint(1, 3) for title in titles})


@cw.tool(read_only=True)
def find_books(library: Library, /, topic: str) -> list[Book]:
    """Books on a topic with the number of copies that are free."""
    return [Book(title, library.free[title]) for title in TITLES.get(topic, [])]


@cw.tool
def borrow(library: Library, /, title: str, member: str) -> str:
    """Lend a copy of a title to a member; returns the receipt."""
    if title not in library.free:
        raise cw.ToolError("unknown_title", f"there is no book called {title!r}")
    if not library.free[title]:
        raise cw.ToolError("none_free", f"every copy of {title!r} is lent")
    library.free[title] -= 1
    library.loans.setdefault(title, []).append(member)
    return f"{member} has {title}"


@cw.tool
def give_back(library: Library, /, title: str, member: str) -> str:
    """Take a copy of a title back from a member."""
    if member not in library.loans.get(title, []):
        raise cw.ToolError("no_such_loan", f"{member!r} does not have {title!r}")
    library.loans[title].remove(member)
    library.free[title] += 1
    return f"{title} is back"


def lending() -> FunctionEnvironment:
    """The factory that the plugin names."""
    return FunctionEnvironment("lending-v1", [find_books, borrow, give_back], state=fill)
