"""A crew: threads that are given jobs, and let go."""

from __future__ import annotations

import queue
import threading
from typing import Any

import pytest

from callwright.episodes import crew


def test_a_crew_is_closed_though_a_thread_takes_its_last_job_just_then(monkeypatch: pytest.MonkeyPatch) -> None:
    class Waiting(queue.SimpleQueue[Any]):
        def empty(self) -> bool:
            left = super().empty()
            while not super().empty():
                self.get_nowait()
            return left

    monkeypatch.setattr(crew, "SimpleQueue", Waiting)
    begun, held = threading.Event(), threading.Event()

    def hold(number: int) -> None:
        begun.set()
        held.wait()

    made = crew.Crew(1)
    made.submit(hold)
    begun.wait()
    made.submit(hold, home=0)
    closing = threading.Thread(target=made.close, daemon=True)
    closing.start()
    closing.join(20)
    held.set()
    assert not closing.is_alive()
