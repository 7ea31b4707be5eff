"""The store of open sessions: bounds, order of eviction, and no session reopened unnoticed."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import define

import callwright as cw
from callwright_plugins.mcp_servers.sessions import SessionGone, SessionStore


@define
class Stub:
    closed: bool = False

    def call(self, tool: str, arguments: dict[str, Any]) -> cw.Outcome:
        raise AssertionError("not called")

    def digest(self) -> str:
        return ""

    def close(self) -> None:
        self.closed = True


@define
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_least_recently_used_is_closed_and_its_id_refused() -> None:
    store = SessionStore(capacity=2, idle=None)
    first, second, third = Stub(), Stub(), Stub()
    store.add("1", first)
    store.add("2", second)
    store.get("1")
    store.add("3", third)
    assert (first.closed, second.closed, third.closed) == (False, True, False)
    assert store.ids == ["1", "3"]
    with pytest.raises(SessionGone, match="to make room"):
        store.get("2")
    with pytest.raises(cw.InfrastructureFailure):
        store.obtain("2", lambda scenario, seed: Stub(), None, None, ("", 0))


def test_a_session_in_a_call_is_not_closed() -> None:
    store = SessionStore(capacity=1, idle=None)
    busy, late = Stub(), Stub()
    with (
        store.using(store.add("busy", busy)),
        pytest.raises(cw.InfrastructureFailure, match="all 1 sessions are in use"),
    ):
        store.add("late", late)
    assert (busy.closed, late.closed) == (False, True)
    store.add("next", Stub())
    assert busy.closed


def test_idle_sessions_are_closed_but_not_busy_ones() -> None:
    clock = Clock()
    store = SessionStore(idle=10.0, clock=clock)
    idle, busy, used = Stub(), Stub(), Stub()
    store.add("idle", idle)
    held = store.add("busy", busy)
    with store.using(held):
        clock.now = 6.0
        store.add("used", used)
        clock.now = 12.0
        assert store.close_idle() == 1
    assert (idle.closed, busy.closed, used.closed) == (True, False, False)
    with pytest.raises(SessionGone, match="nobody used it for 10 s"):
        store.get("idle")


def test_closing_frees_the_id() -> None:
    store = SessionStore()
    first = Stub()
    store.add("a", first)
    assert store.close("a")
    assert not store.close("a")
    assert first.closed
    assert store.get("a") is None
    store.add("a", Stub())
    with pytest.raises(cw.UsageError, match="already"):
        store.add("a", Stub())


def test_a_session_keeps_the_world_it_was_opened_with() -> None:
    store = SessionStore()
    opened: list[tuple[str, int]] = []

    def open(scenario: str, seed: int) -> Stub:
        opened.append((scenario, seed))
        return Stub()

    store.obtain("a", open, None, 5, ("usual", 1))
    store.obtain("a", open, "usual", None, ("other", 9))
    assert opened == [("usual", 5)]
    with pytest.raises(cw.UsageError, match="was opened with seed 5"):
        store.obtain("a", open, None, 6, ("", 0))


def test_capacity_is_checked() -> None:
    with pytest.raises(cw.UsageError):
        SessionStore(capacity=0)
