"""The environment ``zebra-v1``: tools over a state of rows, in isolated sessions of a seeded scenario.

The rows give it everything for nothing: sessions that fork and reset in microseconds, digests, and end states that can
be compared with goals.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import callwright as cw


@cw.row("notes", prefix="N")
class Note:
    """A note. ``prefix`` is what its ids begin with."""

    id: str
    title: str
    done: bool


TITLES = ("Buy tea", "Call Ann", "Water the plants", "Pay the rent", "Book a table")


def typical(rng: random.Random, scale: float) -> Iterator[Note]:
    """The rows that a session begins with: the same ones for the same seed. ``scale`` asks for a larger world."""
    for number in range(max(1, round(5 * scale))):
        yield Note(f"N{number + 1:05}", rng.choice(TITLES), rng.random() < 0.3)


@cw.tool(read_only=True)
def list_notes(world: cw.World, /, done: bool | None = None) -> list[dict[str, str | bool]]:
    """All notes, or only those that are done, or are not."""
    return [
        {"note_id": note.id, "title": note.title, "done": note.done}
        for note in world.rows(Note)
        if done is None or note.done == done
    ]


@cw.tool
def add_note(world: cw.World, /, title: str) -> str:
    """Write a note down; returns its id."""
    if not title.strip():
        raise cw.ToolError("EMPTY_TITLE", "a note needs a title")
    return world.put(Note(world.new_id(Note), title, False)).id


@cw.tool
def finish_note(world: cw.World, /, note_id: str) -> str:
    """Mark a note as done; returns its title."""
    note = world.need(Note, note_id)
    if note.done:
        raise cw.ToolError("ALREADY_DONE", f"{note_id} is done already")
    return world.update(note, done=True).title


def make_zebra() -> cw.StatefulEnvironment:
    """The factory that the plugin names."""
    return cw.StatefulEnvironment(
        "zebra-v1",
        rows=[Note],
        tools=[list_notes, add_note, finish_note],
        scenarios={"typical": cw.Scenario(typical)},
    )
