"""A sample of rows without holding the others: those whose seeded digests are least.

A row's place depends on the seed and on its content alone. So the order of the file does not matter, equal rows are
one, and what is drawn for reinforcement learning and for supervised training never overlaps.
"""

from __future__ import annotations

import hashlib
import heapq

from callwright_plugins.data_preparation.rows import Row


class Sample:
    """The ``size`` rows of least digest among those that were added."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self._seed = str(seed).encode()
        self._heap: list[tuple[int, Row]] = []  # the negative digest, so that the greatest is on top
        self._held: set[int] = set()

    def add(self, row: Row) -> None:
        """Take a row in, if it is among the least."""
        text = f"{row.instruction}\0{row.input}".encode("utf-8", "surrogatepass")
        place = int.from_bytes(hashlib.blake2b(text, digest_size=16, key=self._seed).digest(), "big")
        if place in self._held or not self.size:
            return
        if len(self._heap) < self.size:
            heapq.heappush(self._heap, (-place, row))
        elif place < -self._heap[0][0]:
            dropped, _ = heapq.heapreplace(self._heap, (-place, row))
            self._held.discard(-dropped)
        else:
            return
        self._held.add(place)

    def rows(self) -> list[tuple[int, Row]]:
        """What was drawn, with digests, the least first."""
        return sorted(((-place, row) for place, row in self._heap), key=lambda item: item[0])
