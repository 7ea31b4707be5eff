"""A crew: threads that are given jobs, and let go."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any

import pytest

from callwright.episodes import crew


def test_a_crew_is_closed_though_a_thread_takes_its_last_job_just_then(
    monkeypatch: pytest.MonkeyPatch, taken_queue: type[SimpleQueue[Any]]
) -> None:
    monkeypatch.setattr(crew, "SimpleQueue", taken_queue)
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
