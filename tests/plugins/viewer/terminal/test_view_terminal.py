"""The viewer in the terminal: open, filter, follow, read, mark, compare samples, curves; hostile texts stay texts."""

from __future__ import annotations

import asyncio
import json
import unicodedata
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.plugins.viewer.conftest import board_of, make_run, metrics, rollouts, write_rows

import callwright as cw
from callwright.commands import App
from callwright.testing.texts import NASTY
from callwright_plugins.viewer.command import view

pytest.importorskip("textual", reason="needs textual: pip install 'callwright[view]'")

from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Static

from callwright_plugins.viewer.terminal.app import Terminal
from callwright_plugins.viewer.terminal.curves import Curves
from callwright_plugins.viewer.terminal.modals import Comment, Help, Sources
from callwright_plugins.viewer.terminal.plotting import plot, smoothed
from callwright_plugins.viewer.terminal.rendering import cells, document, head
from callwright_plugins.viewer.terminal.rollout import Group, Rollout
from callwright_plugins.viewer.terminal.rows import Rows

Use = Callable[[Terminal, Pilot[None]], Awaitable[None]]


def drive(use: Use, *paths: Path, size: tuple[int, int] = (80, 24)) -> None:
    board = board_of(*paths)

    async def work() -> None:
        app = Terminal(board)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await use(app, pilot)

    try:
        asyncio.run(asyncio.wait_for(work(), 120))
    finally:
        board.close()


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    for _ in range(3000):
        if holds():
            return
        await pilot.pause(0.02)
    raise AssertionError("it never came to hold")


def said(app: Terminal, where: str) -> str:
    return str(app.screen.query_one(where, Static).render())


def count(app: Terminal) -> int:
    return app.screen.query_one("#rows", DataTable).row_count


@pytest.mark.parametrize("over", ["ctrl+c", "question_mark", "o"])
def test_the_key_that_ends_is_said_and_ends(run: Path, over: str) -> None:
    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        await pilot.press(over)
        await pilot.pause()
        told = ["q ends it, and while you write Ctrl-Q"] if over == "ctrl+c" else []
        assert [one.message for one in app._notifications] == told
        await pilot.press("q")
        await until(pilot, lambda: app._exit)

    drive(use, run)


def test_open_filter_and_read(run: Path, other: Path) -> None:
    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        assert isinstance(app.screen, Rows)
        assert count(app) == 72
        assert "first" in said(app, "#head")
        assert "1 of 2" in said(app, "#head")
        await pilot.press("slash", *"step:2 answered:no", "enter")
        await until(pilot, lambda: count(app) < 72)
        rows = app.screen.rows
        assert rows
        assert all(row["step"] == 2 and row["answered"] is False for row in rows)
        await pilot.press("enter")
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, Rollout)
        assert screen.n == rows[0]["n"]
        assert rows[0]["query"] in said(app, "#head")
        assert "── assistant" in said(app, "#body")
        await pilot.press("j")
        assert screen.n == rows[1]["n"]
        await pilot.press("k")
        assert screen.n == rows[0]["n"]
        await pilot.press("g")
        await pilot.pause()
        assert isinstance(app.screen, Group)
        assert "4 kept samples" in said(app, "#head")
        await pilot.press("escape", "t")
        await pilot.pause()
        assert isinstance(app.screen, Rows)
        assert {row["task"] for row in app.screen.rows} == {rows[0]["task"]}
        # Escape leaves the task, then takes the filter back; brackets change the source.
        await pilot.press("escape")
        await until(pilot, lambda: [row["n"] for row in app.screen.rows] == [row["n"] for row in rows])
        await pilot.press("escape")
        await until(pilot, lambda: count(app) == 72)
        await pilot.press("right_square_bracket")
        assert "second" in said(app, "#head")
        await pilot.press("o")
        assert isinstance(app.screen, Sources)
        await pilot.press("enter")
        await pilot.pause()
        assert "first" in said(app, "#head")
        await pilot.press("question_mark")
        assert isinstance(app.screen, Help)
        await pilot.press("escape", "q")

    drive(use, run, other)


def test_a_filter_that_makes_no_sense_is_said(run: Path) -> None:
    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"steps:2")
        await until(pilot, lambda: "no column named 'steps'" in said(app, "#said"))
        app.screen.query_one("#search", Input).value = "step:2"
        await until(pilot, lambda: said(app, "#said") == "" and count(app) == 12)

    drive(use, run)


def test_orders_and_long_tables(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", 20)

    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        screen = app.screen
        assert isinstance(screen, Rows)
        screen.order = "n"
        screen.load()
        assert (len(screen.rows), screen.total) == (200, 240)
        screen.table.move_cursor(row=190)
        await until(pilot, lambda: len(screen.rows) == 240)
        seen = []
        for _ in range(6):
            await pilot.press("s")
            totals = [row["total"] for row in screen.rows]
            seen.append((screen.order, totals == sorted(totals), totals == sorted(totals, reverse=True)))
        assert {name: (up, down) for name, up, down in seen}["total"] == (True, False)
        assert {name: (up, down) for name, up, down in seen}["-total"] == (False, True)

    drive(use, folder)


def test_a_run_is_followed_while_it_grows(own: Path) -> None:
    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        app.board.start()
        screen = app.screen
        assert isinstance(screen, Rows)
        assert screen.order == "-n"  # it was written just now: the newest stands first
        assert "live" in said(app, "#head")
        screen.table.move_cursor(row=3)
        at = screen.current
        write_rows(own / "rollouts.jsonl", rollouts(1, first=3))
        await until(pilot, lambda: count(app) == 36)
        assert screen.current == at
        await pilot.press("2")
        await pilot.pause()
        assert isinstance(app.screen, Curves)
        assert "step 2" in said(app, "#head")
        write_rows(own / "metrics.jsonl", metrics(3, first=3))
        await until(pilot, lambda: "step 5" in said(app, "#head"))
        await pilot.press("plus")
        assert "smoothing 0.9" in said(app, "#head")
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, Rows)

    drive(use, own)


def test_marks_and_comments_are_written_down(own: Path) -> None:
    def written() -> list[tuple[int, str, str]]:
        lines = (own / "notes.jsonl").read_text("utf-8").splitlines()
        return [(one["n"], one["mark"], one["comment"]) for one in map(json.loads, lines)]

    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        screen = app.screen
        assert isinstance(screen, Rows)
        n = screen.current
        assert n is not None
        await pilot.press("m")
        assert written()[-1] == (n, "good", "")
        await pilot.press("enter", "x", "c")
        await pilot.pause()
        assert isinstance(app.screen, Comment)
        await pilot.press(*"why", "enter")
        await pilot.pause()
        assert written()[-1] == (n, "bad", "why")
        assert "bad  why" in said(app, "#head")
        await pilot.press("x")
        assert written()[-1] == (n, "", "why")
        # Left with Escape, nothing is written.
        await pilot.press("c", *"more", "escape")
        assert len(written()) == 4
        await pilot.press("escape", "slash", *"mark:comment")
        await until(pilot, lambda: count(app) == 1)

    drive(use, own)


def test_a_row_is_executed_again(run: Path) -> None:
    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        await pilot.press("enter", "e")
        await until(pilot, lambda: "executed again, as it was" in said(app, "#body"))

    drive(use, run)


@pytest.mark.parametrize("size", [(80, 24), (200, 60), (40, 12)])
def test_every_size(run: Path, size: tuple[int, int]) -> None:
    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        for keys in (("enter",), ("g",), ("escape", "escape", "2"), ("question_mark",)):
            await pilot.press(*keys)
            await pilot.pause()
            assert app.screen.size == size

    drive(use, run, size=size)


HOSTILE = [
    "[bold red]x[/bold red] [link=http://evil]y[/link] [/] [@click=app.quit]z[/]",
    "\x1b[2J\x1b]0;owned\x07\x9b31m",
    "\u202ereversed\u202c \u200bhidden \u2066x\u2069",
    "a" * 100_000,
    *NASTY,
]


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", 1, prompts=1)
    row = json.loads((folder / "rollouts.jsonl").read_text("utf-8").splitlines()[0])
    (folder / "rollouts.jsonl").unlink()
    told = [{"code": "x", "reason": HOSTILE[0], "expected": HOSTILE[1], "found": HOSTILE[2]}]
    call = {"turn": 0, "call": 0, "tool": HOSTILE[0], "arguments": {HOSTILE[1]: HOSTILE[2]}, "kind": HOSTILE[0]}
    odd = [
        {
            **row,
            "query": text,
            "task": text[:200],
            "completion": text,
            "prompt": text,
            "failure": text[:200],
            "branch": text[:50],
            "scores": {text[:30]: {"value": 0.0, "low": 0.0, "high": 1.0, "weight": 1.0, "evidence": told}},
            "trace": [{**call, "value": {text[:50]: text}, "message": text[:500]}],
        }
        for text in HOSTILE
    ]
    write_rows(folder / "rollouts.jsonl", odd)

    def harmless(text: str) -> bool:
        obeyed = ("Cc", "Cf", "Cs", "Zl", "Zp")
        return not any(unicodedata.category(one) in obeyed and one not in "\n\t\u00ad\u200d" for one in text)

    async def use(app: Terminal, pilot: Pilot[None]) -> None:
        assert count(app) == len(odd)
        for n in range(1, len(odd) + 1):
            found = app.ask("rollout", n=n)
            whole = document(found["document"], found, unfolded=True)
            assert harmless(whole.plain)
            assert harmless(head(found, None).plain)
            assert all(harmless(cell.plain) for cell in cells(found, None))
        await pilot.press("s", "enter")
        for _ in odd:
            assert isinstance(app.screen, Rollout)
            assert app.screen.query_one("#body", Static).render()
            await pilot.press("j")
        await pilot.press("escape", "g")
        await pilot.pause()
        found = app.ask("rollout", n=1)
        assert "[bold red]x[/bold red]" in document(found["document"], found).plain

    drive(use, folder)


def test_columns_of_blocks() -> None:
    assert plot([0.0, 1.0], 2, 1) == ["▁█"]
    assert plot([0.0, 1.0], 2, 2) == [" █", "▁█"]
    assert plot([1.0, 1.0], 2, 2) == ["  ", "██"]
    assert plot([None, 1.0, 2.0], 3, 1) == [" ▁█"]
    assert plot([], 3, 2) == ["   ", "   "]
    assert plot([0.0, 1.0], 4, 1) == ["▁▁██"]
    assert plot([0.0, 0.0, 8.0, 8.0], 2, 1) == ["▁█"]
    assert smoothed([2.0, 2.0, None, 2.0], 0.9) == pytest.approx([2.0, 2.0, 2.0, 2.0])
    assert smoothed([0.0, 1.0], 0.5) == pytest.approx([0.0, 2 / 3])
    assert smoothed([None, 1.0], 0.5) == [None, 1.0]


def test_without_a_terminal_it_says_so(run: Path) -> None:
    found = CliRunner().invoke(view, [str(run), "--tui"], obj=App(registry=cw.default_registry()))
    assert "--tui needs a terminal; --export writes pages" in str(found.exception)


def test_without_textual_it_says_what_to_install(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = CliRunner().invoke(view, [str(run), "--tui"], obj=App(registry=cw.default_registry()))
    assert "pip install 'callwright[view]'" in str(found.exception)
