"""A sample of rows without holding the others: those whose seeded digests are least.

A row's place depends on the seed and on what it asks alone. So the order of the file does not matter, of rows that ask
the same one is drawn (the first by its output), and what is drawn for reinforcement learning and for supervised
training never overlaps.
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
        self._heap: list[int] = []  # negative digests, so that the greatest is on top
        self._held: dict[int, Row] = {}

    def add(self, row: Row) -> None:
        """Take a row in, if it is among the least."""
        text = f"{row.instruction}\0{row.input}".encode("utf-8", "surrogatepass")
        place = int.from_bytes(hashlib.blake2b(text, digest_size=16, key=self._seed).digest(), "big")
        if not self.size:
            return
        if (held := self._held.get(place)) is not None:
            self._held[place] = min(held, row, key=lambda one: one.output)
            return
        if len(self._heap) < self.size:
            heapq.heappush(self._heap, -place)
        elif place < -self._heap[0]:
            del self._held[-heapq.heapreplace(self._heap, -place)]
        else:
            return
        self._held[place] = row

    def rows(self) -> list[tuple[int, Row]]:
        """What was drawn, with digests, the least first."""
        return sorted(self._held.items(), key=lambda item: item[0])
