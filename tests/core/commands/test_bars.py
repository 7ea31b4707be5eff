"""Progress for people: lines in a log file, bars on a terminal."""

from __future__ import annotations

import pytest

from callwright.commands import Bars, Lines, bars_for_bytes


def test_lines_say_what_is_left(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    monkeypatch.setattr("callwright.commands.bars.time.monotonic", lambda: now[0])
    with Lines() as lines:
        lines.start("training", 100, 20)
        for _ in range(80):
            now[0] += 1.0
            lines.advance(reward=0.25)
        lines.finish()
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "training: 80 to do, 20 done before",
        "training: 40/100, about 1 min left, reward 0.25",
        "training: 60/100, about 40 s left, reward 0.25",
        "training: 80/100, about 20 s left, reward 0.25",
        "training: 100/100, in 1 min, reward 0.25",
    ]


def test_a_stage_that_counts_no_more_and_goes_on_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr("callwright.commands.bars.time.monotonic", lambda: now[0])
    with Lines() as lines:
        lines.start("planning", 2)
        lines.advance(2)
        for missing in (3, 1):
            now[0] += 15.0
            lines.advance(0, missing=missing)
        lines.finish()
    assert capsys.readouterr().err.splitlines() == [
        "planning: 2 to do", "planning: 2/2, not over yet, missing 1", "planning: 2/2, in 30 s, missing 1",
    ]  # fmt: skip


def test_bars_draw_without_reading_markup(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "")
    with Bars() as bars:
        bars.start("[red]training[/red]", 3)
        bars.advance(2, reward=0.5)
        bars.say("a [bold]warning[/bold] \x1b[2J")
        bars.finish()
        bars.advance()  # after the end of a stage: nothing
    drawn = capsys.readouterr().err
    assert "[red]training[/red]" in drawn
    assert "2/3" in drawn
    assert "a [bold]warning[/bold] ␛[2J" in drawn


def test_no_bars_where_nobody_looks() -> None:
    assert bars_for_bytes(10**9, busy=False) is None
