"""A shelf: a world small enough to use everything that benchmarks know of turns. Workers import this module."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from attrs import evolve

import callwright as cw
from callwright.environments import ClockPolicy, Fault
from callwright.language.messages import ToolCall

DONE = "###STOP###"


@cw.row("books", prefix="B")
class Book:
    """A book, and where it stands."""

    id: str
    title: str
    place: int


@cw.tool
def titles(world: cw.World, /) -> list[str]:
    """What stands there, from left to right."""
    return [book.title for book in sorted(world.rows(Book), key=lambda book: book.place)]


@cw.tool
def put(world: cw.World, /, title: str) -> int:
    """Put a book at the end."""
    place = len(list(world.rows(Book)))
    world.put(Book(world.new_id(Book), title, place))
    return place


@cw.tool
def sort(world: cw.World, /) -> list[str]:
    """Sort the books by title."""
    for place, book in enumerate(sorted(world.rows(Book), key=lambda book: book.title)):
        world.update(book, place=place)
    return titles(world)


@cw.tool
def lend(world: cw.World, /, title: str) -> str:
    """Take a book away."""
    found = world.find(Book, title=title)
    if not found:
        raise cw.ToolError("NO_SUCH_BOOK", f"there is no {title!r}")
    world.drop(found[0])
    return title


def one_book(rng: random.Random, scale: float) -> Iterator[Book]:
    yield Book("B1", "Walden", 0)


SHELF = cw.StatefulEnvironment(
    "shelf",
    rows=[Book],
    tools=[titles, put, sort],
    scenarios={
        "typical": cw.Scenario(one_book),
        "moving": cw.Scenario(one_book, clock=ClockPolicy(call=10, user_turn=100)),
        "faulty": cw.Scenario(one_book, faults=[Fault("unavailable", 1.0, ("put",))]),
    },
    user_tools=[lend],
)
LIMITS = cw.TurnLimits(assistant_turns=12, user_turns=6, steps=2, unparsed="turn")
OPENING = cw.Opening(
    actions=[
        cw.InitialCall("put", {"title": "Emma"}),
        cw.InitialCall("put", {"title": "Lost"}),
        cw.InitialCall("lend", {"title": "Lost"}, by="user"),
    ],
    history=[
        cw.Message.user("Is there room for Utopia?"),
        cw.Message.assistant("", [ToolCall("c1", "put", '{"title": "Utopia"}')]),
        cw.Message.tool("2", "c1", name="put"),
        cw.Message.assistant("Yes, it stands there now."),
    ],
)


def call(name: str, **arguments: Any) -> str:
    """A completion that calls one tool."""
    return cw.parser("hermes").render(cw.Program((cw.Call(0, name, arguments),)))


UNREAD = '<tool_call>\n{"name": "titles", '
TASK = cw.Task(
    "shelf-1",
    "Put Dracula there.",
    SHELF.tools,
    cw.Answer((["Dracula", "Emma", "Utopia", "Walden"],)),
    SHELF,
    scenario="typical",
    user=cw.UserSpec("replayed", {"says": ["Sort them.", "", f"Thanks. {DONE}"], "stop": [DONE, "###TRANSFER###"]}),
    opening=OPENING,
    appear={"sort": 2},
    facts={"category": "late"},
)
#: What a good agent writes: two steps, an answer; a tool that is not there yet, an answer; the tool, an answer.
GOLD = [call("put", title="Dracula"), call("titles"), "Done.", call("sort"), "I cannot sort.", call("sort"), "Sorted."]
PLAIN = evolve(TASK, opening=None, appear={}, user=None)


class Shelves:
    """The corpus: the same in several worlds."""

    name, environment, splits, limits = "shelves-v1", SHELF, {"evaluation": 5}, LIMITS

    def __getitem__(self, split: str) -> list[cw.Task]:
        return [evolve(TASK, id=f"shelf-{number}", seed=number, split=split) for number in range(1, 6)]

    def task(self, task_id: str) -> cw.Task:
        return {task.id: task for task in self["evaluation"]}[task_id]
