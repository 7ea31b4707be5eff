"""The viewer in the terminal where a run grows under the cursor, and where files say what nobody expects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.viewer.conftest import make_run, metrics, rollouts, write_rows

pytest.importorskip("textual", reason="needs textual: pip install 'callwright[view]'")

from tests.plugins.viewer.terminal.test_view_terminal import count, drive, said, until
from textual.pilot import Pilot
from textual.widgets import Input

from callwright_plugins.viewer.terminal.app import Terminal
from callwright_plugins.viewer.terminal.modals import Comment
from callwright_plugins.viewer.terminal.rollout import Group, Rollout
from callwright_plugins.viewer.terminal.rows import Rows

ESCAPES = "\x1b[2J\x1b]0;owned\x07z\u202e"


def rows_of(app: Terminal, order: str) -> Rows:
    screen = app.screen
    assert isinstance(screen, Rows)
    screen.order = order
    screen.load()
    return screen


def on_the_screen(app: Terminal) -> str:
    """What the terminal is sent, without styles."""
    return "".join(part.text for strip in app.screen._compositor.render_strips() for part in strip)


def with_row(folder: Path, **told: Any) -> Path:
    """A run whose fifth row is another one."""
    make_run(folder, 1, prompts=1)
    row = json.loads((folder / "rollouts.jsonl").read_text("utf-8").splitlines()[0])
    write_rows(folder / "rollouts.jsonl", [{**row, **told}])
    return folder


async def go_to_the_odd_row(app: Terminal, pilot: Pilot[None]) -> Rows:
    screen = rows_of(app, "n")
    await pilot.pause()
    screen.table.move_cursor(row=4)
    await pilot.pause()
    assert screen.current == 5
    return screen


def test_who_scrolls_while_rows_come_sees_each_once(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", 20)

    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        screen = rows_of(app, "-n")
        await pilot.pause()
        # Twelve rows are indexed between two looks: the next page begins with rows that are shown.
        write_rows(folder / "rollouts.jsonl", rollouts(1, first=21))
        app.board.read_all()
        screen.table.move_cursor(row=190)
        await until(pilot, lambda: len(screen.rows) > 200)
        screen.look()
        screen.table.move_cursor(row=count(app) - 1)
        await until(pilot, lambda: count(app) == 252)
        assert [row["n"] for row in screen.rows] == list(range(252, 0, -1))

    drive(use, folder)


def test_the_cursor_stays_at_a_row_that_newer_ones_push_down(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", 20)

    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        screen = rows_of(app, "-n")
        await pilot.pause()
        screen.table.move_cursor(row=190)
        await until(pilot, lambda: len(screen.rows) == 240)
        screen.table.move_cursor(row=239)
        await pilot.pause()
        assert screen.current == 1
        write_rows(folder / "rollouts.jsonl", rollouts(1, first=21))
        app.board.read_all()
        screen.look()
        assert screen.current == 1

    drive(use, folder)


@pytest.mark.parametrize("task", [ESCAPES, "a\\b", 'a"b', "a*b", "none", "[bold]t[/bold]", "x" * 60_000])
def test_any_name_of_a_task_is_followed_over_time(tmp_path: Path, task: str) -> None:
    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        screen = await go_to_the_odd_row(app, pilot)
        await pilot.press("t")
        await until(pilot, lambda: [row["n"] for row in screen.rows] == [5])
        assert "by step" in said(app, "#head")
        # No order but that of the steps; a filter or Escape leaves it.
        await pilot.press("s")
        assert [row["n"] for row in screen.rows] == [5]
        assert not set(on_the_screen(app)) & set("\x1b\x07\u202e")
        await pilot.press("escape")
        await until(pilot, lambda: count(app) == 5)

    drive(use, with_row(tmp_path / "run", task=task))


def test_a_comment_is_edited_as_harmless_text(own: Path) -> None:
    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        screen = rows_of(app, "n")
        await pilot.pause()
        screen.table.move_cursor(row=0)
        await pilot.pause()
        app.note(1, "", ESCAPES)
        screen.look()
        await pilot.press("c")
        await pilot.pause()
        assert isinstance(app.screen, Comment)
        assert "owned" in app.screen.query_one(Input).value
        assert not set(on_the_screen(app)) & set("\x1b\x07\u202e")

    drive(use, own)


@pytest.mark.parametrize("size", ["abc", [1], {"a": 1}, True, 12_345])
def test_a_size_may_be_anything(tmp_path: Path, size: Any) -> None:
    call = {"turn": 0, "call": 0, "tool": "x", "arguments": {}, "kind": "ok", "size": size}

    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        await go_to_the_odd_row(app, pilot)
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, Rollout)
        assert "which is not kept" in said(app, "#body")
        assert ("12,345 characters" in said(app, "#body")) == (size == 12_345)
        await pilot.press("g")
        await pilot.pause()
        assert isinstance(app.screen, Group)

    drive(use, with_row(tmp_path / "run", trace=[call]))


@pytest.mark.parametrize("step", ["a", [1], 2.5, None])
def test_figures_of_any_step_are_drawn(own: Path, step: Any) -> None:
    write_rows(own / "metrics.jsonl", [{**next(metrics(1)), "step": step, ESCAPES: 1}])
    by_depth = {ESCAPES: {"n": 3, "accuracy": 0.5}, "2": {"n": 3, "accuracy": None}}
    (own / "evaluation.json").write_text(json.dumps({"before": {"overall": 0.5, "by_depth": by_depth}}), "utf-8")

    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        await pilot.press("2")
        await pilot.pause()
        assert "step 2" in said(app, "#head")
        assert "50.0%" in said(app, "#body")
        assert not set(said(app, "#body")) & set("\x1b\x07\u202e")

    drive(use, own)


def test_a_filter_that_is_too_long_is_said(run: Path) -> None:
    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        app.screen.query_one("#search", Input).value = f"task:{'x' * 60_000}"
        await until(pilot, lambda: "at most 10,000 characters, not 60,000" in said(app, "#said"))

    drive(use, run)
