"""Pace: how many rows make a chunk, by what rows cost. Chunks are to take a fifth of a second or so."""

from __future__ import annotations

from typing import Final

from attrs import define

from callwright.commands.jsonl import ROWS

#: Seconds that a chunk is to take: long beside what it costs to send one, short beside what a person waits for.
TARGET: Final = 0.2


@define
class Pace:
    """How many rows the next chunk gets: one at first, then up to twice as many as the last one that is done.

    Rows that cost little soon come :data:`callwright.commands.jsonl.ROWS` at a time. Rows that wait a tenth of a second
    each come two at a time, so that every worker gets some. The size of chunks changes no result, and not their order.
    """

    rows: int = 1
    most: int = ROWS

    def __call__(self) -> int:
        return self.rows

    def learn(self, rows: int, seconds: float) -> None:
        """A chunk of so many rows took so long."""
        if rows and seconds > 0:
            self.rows = max(1, min(self.most, 2 * rows, int(TARGET * rows / seconds)))
