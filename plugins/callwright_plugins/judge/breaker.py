"""A circuit breaker: a judge that mostly fails ends the run, in place of a file of masked rows."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, Final

from callwright.errors import RunError, UsageError

#: Of so many attempts the share that failed is looked at.
WINDOW: Final = 50


class Breaker:
    """Counts attempts that were judged and attempts that were not. Safe over threads; one a process.

    It opens after ``in_a_row`` failures in a row, and when more than ``share`` of the last :data:`WINDOW` attempts
    failed. Then every further :meth:`note` and :meth:`check` raises :class:`callwright.errors.RunError`.
    """

    def __init__(self, name: str, in_a_row: int = 20, share: float = 0.5) -> None:
        if type(in_a_row) is not int or in_a_row < 1:
            raise UsageError(f"'stop_after' is a whole number, 1 or more, not {in_a_row!r}")
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise UsageError(f"'stop_share' is a share from 0 to 1, not {share!r}")
        self.name, self.in_a_row, self.share = name, in_a_row, share
        self._lock = threading.Lock()
        self.reset()

    def __reduce__(self) -> Any:
        return Breaker, (self.name, self.in_a_row, self.share)

    def reset(self) -> None:
        """Begin anew."""
        self._last: deque[bool] = deque(maxlen=WINDOW)
        self._streak = 0
        self._open: str | None = None

    def check(self) -> None:
        """Raise if it is open."""
        if self._open is not None:
            raise RunError(self._open)

    def note(self, failure: str | None) -> None:
        """One attempt: ``None`` if it was judged, else why it was not. Raises where that is one too many."""
        with self._lock:
            self._last.append(failure is not None)
            self._streak = 0 if failure is None else self._streak + 1
            if self._open is None and failure is not None:
                self._open = self._why(failure)
        self.check()

    def _why(self, failure: str) -> str | None:
        failed = sum(self._last)
        if self._streak >= self.in_a_row:
            what = f"gave no verdict on {self._streak} attempts in a row"
        elif len(self._last) == WINDOW and failed > self.share * WINDOW:
            what = f"gave no verdict on {failed} of the last {WINDOW} attempts"
        else:
            return None
        return (
            f"the judge {self.name} {what}, so it is asked no more; the last time: {failure}. Mend that and start the "
            "same command again: what was judged is kept, if the judge has a cache ('stop_after' and 'stop_share' say "
            "when this is too much)"
        )
