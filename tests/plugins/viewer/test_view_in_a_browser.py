"""The app in a real browser: open, filter, follow a live run, compare, mark, export; and hostile texts inject nothing.

Needs Chromium (Debian and Ubuntu: ``apt install chromium``; or name the program in ``CALLWRIGHT_CHROMIUM``).
"""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.viewer.conftest import board_of, make_run, metrics, rollouts, write_rows
from tests.plugins.viewer.test_view_filtering import MEANT

from callwright.testing.texts import NASTY
from callwright_plugins.viewer.answers.notes import write_note
from callwright_plugins.viewer.serving import server
from callwright_plugins.viewer.serving.api import Board
from callwright_plugins.viewer.serving.exporting import export
from callwright_plugins.viewer.serving.server import Viewer

pytestmark = pytest.mark.slow
ROW = "document.querySelectorAll('tr[data-n]').length"
HOSTILE = [
    '<script>window.owned = 1</script><img src="x" onerror="window.owned = 1">',
    "\x1b[31mred\x1b[0m \u202ereversed\u202c \u200bhidden",
    '"><svg onload="window.owned = 1">',
    "javascript:window.owned=1",
    "a" * 1_000_000,
    *NASTY[:30],
]


@pytest.fixture(scope="module")
def browser(pytestconfig: pytest.Config) -> Iterator[Any]:
    pytest.importorskip("websockets")
    spec = importlib.util.spec_from_file_location("browser", pytestconfig.rootpath / "benchmarks" / "browser.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if module.chromium() is None:
        pytest.skip("no Chromium is installed (Debian and Ubuntu: apt install chromium)")
    with module.Browser() as made:
        yield made


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Serves paths, as ``callwright view`` does, and gives the address."""
    running: list[tuple[Viewer, threading.Thread, Board]] = []

    def begin(*paths: Path) -> str:
        board = board_of(*paths)
        board.start()
        viewer = Viewer(board)
        thread = threading.Thread(target=viewer.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        running.append((viewer, thread, board))
        return viewer.url

    yield begin
    for viewer, thread, board in running:
        viewer.shutdown()
        thread.join()
        viewer.server_close()
        board.close()


def to(browser: Any, url: str) -> None:
    browser.complaints.clear()
    browser.open("about:blank")
    browser.open(url)


def count(browser: Any) -> str:
    return str(browser.ask("document.querySelector('.count span')?.textContent"))


def rows(browser: Any) -> list[int]:
    return [int(one) for one in browser.ask("[...document.querySelectorAll('tr[data-n]')].map((one) => one.dataset.n)")]


def test_open_filter_and_read(browser: Any, serve: Callable[..., str], run: Path) -> None:
    to(browser, serve(run))
    browser.until(f"{ROW} === 72")
    browser.write("#search", "step:2 answered:no")
    browser.until("document.querySelector('.count span').textContent !== '72 rows'")
    shown = rows(browser)
    assert shown
    assert "q=step%3A2+answered%3Ano" in browser.ask("location.hash")
    browser.click("tr[data-n] td.what a")
    browser.until("document.querySelector('.rollout') !== null")
    assert browser.ask("document.querySelectorAll('.score').length") == 6
    assert browser.ask("document.querySelectorAll('.said.assistant pre').length") == 1
    first = browser.ask("document.querySelector('.rollout').dataset.n")
    browser.ask("document.activeElement.blur()")
    browser.press("j")
    browser.until(f"document.querySelector('.rollout').dataset.n !== '{first}'")
    browser.press("g")
    browser.until("document.querySelectorAll('.samples .columns > section').length === 4")
    browser.press("Escape")
    browser.until("document.querySelector('.samples') === null")
    browser.press("Escape")
    browser.until("document.querySelector('.detail') === null")
    browser.write("#search", "steps:2")
    assert browser.until("document.querySelector('[role=alert]')?.textContent").startswith(
        "There is no column named 'steps'"
    )
    assert all("status of 400" in one for one in browser.complaints)


def test_every_place_is_a_link(browser: Any, serve: Callable[..., str], run: Path, other: Path) -> None:
    url = serve(run, other)
    for place, seen in {
        "#/first/rows?q=answered%3Ano&sort=-total&n=5": ".rollout[data-n='5']",
        "#/first/rows?by=failure": ".groups tbody tr",
        "#/first/rows?n=5&task=evaluation-64": ".over-time",
        "#/first/rows?n=5&group=2-0": ".samples .columns > section",
        "#/first/curves?smooth=window&by=3&with=second&band=yes": ".chart path.band",
        "#/first/compare?with=second": ".difference b",
        "#/first/lab?first=total&second=answered": ".matrix button.on",
        "#/": ".home li",
        "#/nothing/rows": ".home .error",
    }.items():
        to(browser, url + place)
        browser.until(f"document.querySelector({json.dumps(seen)}) !== null")
        assert browser.complaints == []


def test_a_run_is_followed_while_it_grows(browser: Any, serve: Callable[..., str], own: Path) -> None:
    to(browser, serve(own))
    browser.until(f"{ROW} === 24")
    write_rows(own / "rollouts.jsonl", rollouts(1, first=3))
    browser.until(f"{ROW} === 36")
    browser.press("2")
    browser.until("document.querySelectorAll('.chart').length > 1")
    browser.click(".tabs a:nth-child(2)")
    write_rows(own / "metrics.jsonl", metrics(3, first=3))
    # Three steps more: the line of the reward has five points.
    browser.until("(document.querySelector('.chart path.line').getAttribute('d').match(/[ML]/g) || []).length === 5")


def notes_of(browser: Any, folder: Path, count: int) -> list[dict[str, Any]]:
    """The notes of a folder, once there are so many."""
    held: list[dict[str, Any]] = []
    for _ in range(1500):
        if (folder / "notes.jsonl").exists():
            held = [json.loads(line) for line in (folder / "notes.jsonl").read_text("utf-8").splitlines()]
        if len(held) >= count:
            break
        browser.ask("new Promise((done) => setTimeout(done, 20))")
    return held


def test_words_typed_while_a_mark_is_on_its_way_are_kept(
    browser: Any, serve: Callable[..., str], own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is slow: notes stand in the order of the keys, and an answer overwrites nothing that is newer."""
    go_on = threading.Event()

    def late(*given: Any) -> Any:
        go_on.wait(30)
        return write_note(*given)

    monkeypatch.setattr(server, "write_note", late)
    to(browser, serve(own) + "#/own/rows?n=3")
    browser.until("document.querySelector('.rollout[data-n=\"3\"]') !== null")
    browser.press("m")
    browser.press("c")
    browser.until("document.activeElement.id === 'comment'")
    browser.command("Input.insertText", text="typed")
    go_on.set()
    assert [one["mark"] for one in notes_of(browser, own, 1)] == ["good"]
    browser.ask("new Promise((done) => setTimeout(done, 200))")
    assert browser.ask("document.getElementById('comment').value") == "typed"
    go_on.clear()
    browser.press("Enter")
    browser.until("document.activeElement.id !== 'comment'")
    browser.press("x")
    browser.until("document.querySelector('tr[data-n=\"3\"] .dot.bad') !== null")
    go_on.set()
    held = notes_of(browser, own, 3)
    assert [(one["mark"], one["comment"]) for one in held] == [("good", ""), ("good", "typed"), ("bad", "typed")]
    # What is dropped with Escape is not written.
    browser.press("c")
    browser.until("document.activeElement.id === 'comment'")
    browser.command("Input.insertText", text=" more")
    browser.press("Escape")
    browser.until("document.getElementById('comment').value === 'typed'")
    browser.press("l")
    held = notes_of(browser, own, 4)
    assert [(one["mark"], one["comment"]) for one in held[3:]] == [("look", "typed")]


def test_a_mark_is_written_down_and_exported(browser: Any, serve: Callable[..., str], own: Path) -> None:
    to(browser, serve(own) + "#/own/rows?n=3")
    browser.until("document.querySelector('.rollout[data-n=\"3\"]') !== null")
    browser.press("m")
    browser.until("document.querySelector('.mark.good').getAttribute('aria-pressed') === 'true'")
    browser.press("c")
    browser.until("document.activeElement.id === 'comment'")
    browser.command("Input.insertText", text="well <b>done</b>")
    browser.press("Enter")
    browser.until("document.querySelector('tr[data-n=\"3\"] .dot.good') !== null")
    browser.until("document.querySelector('.export') !== null")
    browser.until("document.activeElement.id !== 'comment'")
    held = notes_of(browser, own, 2)[-1]
    assert (held["n"], held["mark"], held["comment"]) == (3, "good", "well <b>done</b>")
    browser.write("#search", "mark:good")
    browser.until(f"{ROW} === 1")
    browser.ask(
        "HTMLAnchorElement.prototype.click = function () "
        "{ window.saved = [this.download, decodeURIComponent(this.href)]; }"
    )
    browser.ask(
        "(e => { e.value = 'sft'; e.dispatchEvent(new Event('change', {bubbles: true})); })"
        "(document.querySelector('.export select'))"
    )
    name, text = browser.until("window.saved")
    assert name == "own-sft.jsonl"
    assert json.loads(text.partition(",")[2])["completion"]
    assert browser.complaints == []


def test_a_key_pressed_on_sight_counts_before_the_table_has_the_row(
    browser: Any, serve: Callable[..., str], own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is late: the rollout that is shown is marked all the same, by a key that comes before it is painted."""
    shown, go_on = threading.Event(), threading.Event()
    answer = Board.answer

    def late(board: Board, question: str, asked: Any) -> Any:
        if question in ("rollout", "rows"):
            (shown if question == "rollout" else go_on).wait(30)
        return answer(board, question, asked)

    monkeypatch.setattr(Board, "answer", late)
    to(browser, serve(own) + "#/own/rows?n=3")
    browser.until("document.querySelector('.detail') !== null")
    browser.ask(
        "void new MutationObserver(async () => {"
        "  if (window.pressed || document.querySelector('.rollout[data-n=\"3\"]') === null) return;"
        "  window.pressed = true;"
        "  for (let n = 0; n < 20; n++) await null;"
        "  window.dispatchEvent(new KeyboardEvent('keydown', {key: 'm'}));"
        "}).observe(document.body, {childList: true, subtree: true})"
    )
    shown.set()
    browser.until("document.querySelector('.mark.good')?.getAttribute('aria-pressed') === 'true'")
    go_on.set()
    assert [(one["n"], one["mark"]) for one in notes_of(browser, own, 1)] == [(3, "good")]


def test_a_rollout_is_executed_again(browser: Any, serve: Callable[..., str], run: Path) -> None:
    to(browser, serve(run) + "#/first/rows?n=5")
    browser.until("document.querySelector('#again') !== null")
    browser.press("e")
    browser.until("document.querySelector('.again').textContent === 'executed again, as it was'")
    assert browser.complaints == []


def test_two_are_compared(browser: Any, serve: Callable[..., str], run: Path, other: Path) -> None:
    to(browser, serve(run, other) + "#/first/compare?with=second")
    browser.until("document.querySelectorAll('.flips tbody tr').length > 0")
    assert "points" in browser.ask("document.querySelector('.difference').textContent")
    browser.click(".flips tbody tr td:last-child a")
    browser.until("location.hash.startsWith('#/second/rows')")
    browser.until("document.querySelector('.rollout') !== null")


@pytest.mark.parametrize("exported", [False, True])
def test_hostile_texts_inject_nothing(browser: Any, serve: Callable[..., str], tmp_path: Path, exported: bool) -> None:
    made = make_run(tmp_path / "run", 1, prompts=1)
    row = json.loads((made / "rollouts.jsonl").read_text("utf-8").splitlines()[0])
    told = {"code": "x", "reason": HOSTILE[0], "expected": HOSTILE[0], "found": HOSTILE[2]}
    scores = {HOSTILE[0]: {"value": 0.0, "low": 0.0, "high": 1.0, "weight": 1.0, "evidence": [told]}}
    trace = [
        {
            "turn": 0,
            "call": 0,
            "tool": HOSTILE[0],
            "arguments": {HOSTILE[2]: HOSTILE[0]},
            "kind": "ok",
            "value": {HOSTILE[0]: HOSTILE[2]},
        }
    ]
    odd = [
        {
            **row,
            "query": text,
            "task": text[:200],
            "completion": text,
            "failure": text[:200],
            "scores": scores,
            "trace": trace,
        }
        for text in HOSTILE
    ]
    write_rows(made / "rollouts.jsonl", odd)
    if exported:
        board = board_of(made)
        export(board, tmp_path / "pages")
        board.close()
        url = (tmp_path / "pages" / "index.html").as_uri()
    else:
        url = serve(made)
    to(browser, f"{url}#/run/rows")
    browser.until(f"{ROW} === {4 + len(odd)}")
    for n in range(5, 5 + len(odd)):
        to(browser, f"{url}#/run/rows?n={n}")
        browser.until(f"document.querySelector('.rollout[data-n=\"{n}\"]') !== null")
        assert browser.ask("window.owned") is None
        assert browser.ask("document.querySelectorAll('main script, main img, .talk svg').length") == 0
    to(browser, f"{url}#/run/rows?n=6")
    browser.until("document.querySelector('.rollout[data-n=\"6\"]') !== null")
    # What turns text round, or hides in it, is shown as what it is.
    shown = browser.ask("document.querySelector('.said.assistant pre').textContent")
    assert "\u27e8202E\u27e9" in shown
    assert "\u27e81B\u27e9" in shown or "\u27e8001B\u27e9" in shown
    assert not any(one in shown for one in "\x1b\u202e\u200b")
    assert browser.complaints == []


def test_exported_pages_say_the_same_as_served_ones(
    browser: Any, serve: Callable[..., str], run: Path, other: Path, tmp_path: Path
) -> None:
    board = board_of(run, other)
    export(board, tmp_path / "pages")
    file = (tmp_path / "pages" / "index.html").as_uri()
    to(browser, f"{file}#/first/rows")
    browser.until(f"{ROW} === 72")
    texts = [
        *MEANT,
        '"tool_call return"',
        '"return tool_call"',
        board.answer("rows", {"source": "first"})["rows"][0]["query"],
    ]
    for text in texts:
        browser.write("#search", text)
        wanted = board.answer("rows", {"source": "first", "q": text.strip(), "limit": "100"})
        said = f"{wanted['total']} row{'s' * (wanted['total'] != 1)}"
        browser.until(
            f"document.querySelector('.count span')?.textContent === '{said}' && {ROW} === {min(100, wanted['total'])}"
        )
        assert rows(browser) == [row["n"] for row in wanted["rows"]], text
    for by in ("task", "step", "failure", "answered", "tool", "group"):
        to(browser, f"{file}#/first/rows?by={by}")
        browser.until("document.querySelectorAll('.groups tbody tr').length > 0")
        shown = browser.ask(
            "[...document.querySelectorAll('.groups tbody td:nth-child(2)')].map((one) => Number(one.textContent))"
        )
        wanted = board.answer("groups", {"source": "first", "by": by})["rows"]
        assert shown == [row["count"] for row in wanted]
    for place, seen in {
        "#/first/rows?n=9&q=step%3E0": ".rollout[data-n='9']",
        "#/first/rows?n=9&group=2-0": ".samples .columns > section",
        "#/first/curves": ".chart",
        "#/first/compare?with=second": ".flips tbody tr",
        "#/first/lab?first=total&second=answered": ".matrix button",
    }.items():
        to(browser, file + place)
        browser.until(f"document.querySelector({json.dumps(seen)}) !== null")
        assert browser.complaints == []
    board.close()


@pytest.mark.parametrize("width", [390, 820, 1280, 2560])
def test_nothing_is_wider_than_the_window(
    browser: Any, serve: Callable[..., str], run: Path, other: Path, width: int
) -> None:
    url = serve(run, other)
    browser.resize(width, 900)
    try:
        for place, seen in {
            "#/first/rows": "tr[data-n]",
            "#/first/rows?n=5": ".rollout",
            "#/first/curves": ".chart",
            "#/first/compare": ".difference",
            "#/first/lab": ".matrix",
        }.items():
            to(browser, url + place)
            browser.until(f"document.querySelector({json.dumps(seen)}) !== null")
            assert browser.ask("document.documentElement.scrollWidth") <= width, place
    finally:
        browser.resize(1440, 900)
