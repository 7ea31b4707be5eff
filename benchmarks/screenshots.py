"""The pictures of the docs, taken of the real pages in Chromium: what a run, a rollout and a comparison look like.

    python benchmarks/screenshots.py            # about seven minutes on one core; writes docs/pictures

It trains ``tier-mini`` for 40 steps, evaluates two samplers, scores the run's rollouts under a second reward, and
looks at all of it. Needs Chromium and the packages websockets, pillow
and textual.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from browser import Browser
from PIL import Image

from callwright.plugins import default_registry
from callwright_plugins.viewer.serving.api import Board
from callwright_plugins.viewer.serving.server import Viewer
from callwright_plugins.viewer.sources.finding import sources_of
from callwright_plugins.viewer.terminal.app import Terminal

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"


def callwright(*arguments: str, within: Path) -> None:
    subprocess.run([sys.executable, "-m", "callwright", *arguments], cwd=within, check=True, stdout=subprocess.DEVNULL)


def prepare(folder: Path, steps: int) -> list[Path]:
    """What is looked at."""
    for seed in ("0", "1"):
        options = [
            f"trainer.steps={steps}",
            "trainer.whole_step_every=10",
            f"seed={seed}",
            "trainer.rollout_logprobs=true",
        ]
        flags = [one for option in options for one in ("--set", option)]
        callwright("run", "tier-mini", "--output", f"tier-mini-seed-{seed}", *flags, within=folder)
    for sampler, p in (("before", "0.6"), ("after", "0.8")):
        corpus = ["--corpus", "toolworld-mini-v1", "--split", "evaluation"]
        chosen = ["--sampler", "noisy-gold", "--sampler-option", f"p={p}"]
        callwright("evaluate", *corpus, *chosen, "--reward", "tier", "--output", sampler, within=folder)
    callwright("rescore", "tier-mini-seed-0", "--recipe", "toolrl", "-o", "toolrl.jsonl", within=folder)
    names = ("tier-mini-seed-0", "tier-mini-seed-1", "before", "after", "toolrl.jsonl")
    return [folder / name for name in names]


def main() -> None:
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("--steps", type=int, default=40)
    reading.add_argument("--output", type=Path, default=PICTURES)
    reading.add_argument("--folder", type=Path, help="where the runs are, or are to be made; else a temporary one")
    asked = reading.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        names = ("tier-mini-seed-0", "tier-mini-seed-1", "before", "after", "toolrl.jsonl")
        paths = [folder / name for name in names]
        if not all(path.exists() for path in paths):
            paths = prepare(folder, asked.steps)
        registry = default_registry()
        board = Board(sources_of(paths, registry), registry)
        board.read_all()
        with Viewer(board) as server, Browser(width=1440, height=900) as browser:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            take(browser, server.url, board, asked.output)
            server.shutdown()
            thread.join()
        board.close()
        take_terminal(paths[:1], asked.output)
        take_report(folder / "tier-mini-seed-0" / "report.html", asked.output)
        shrink(asked.output)


def take(browser: Browser, url: str, board: Board, output: Path) -> None:
    key = "tier-mini-seed-0"
    rows = board.answer("rows", {"source": key, "q": "step>15 failure:schema* calls>2 score.execution<1 total>0.2"})[
        "rows"
    ]
    row = next(one for one in rows if one["failed"])
    wide = board.answer("groups", {"source": key, "by": "group", "q": "step:20", "sort": "-spread"})["rows"][0]
    places = {
        "rollouts": (f"#/{key}/rows?q=step%3E10", "tr[data-n]", 900),
        "rollout": (f"#/{key}/rows?q=step%3A{row['step']}&n={row['n']}", ".score", 900),
        "group": (
            f"#/{key}/rows?q=group%3A{wide['name']}&n={wide['first']}&group={wide['name']}",
            ".columns section",
            900,
        ),
        "curves": (f"#/{key}/curves?with=tier-mini-seed-1&smooth=ewma&by=0.7", ".chart", 900),
        "compare": ("#/before/compare?with=after", ".flips tr", 900),
        "disagreement": (f"#/{key}/lab?first=total&second=toolrl", ".matrix button.on", 760),
    }
    for name, (place, seen, height) in places.items():
        browser.resize(1440, height)
        browser.open("about:blank")
        browser.open(url + place)
        browser.until(f"document.querySelector({json.dumps(seen)}) !== null")
        settle(browser)
        browser.picture(output / f"{name}.png")
    browser.resize(390, 844, 2)
    browser.dark()
    browser.open("about:blank")
    browser.open(url + places["rollout"][0])
    browser.until("document.querySelector('.score') !== null")
    settle(browser)
    browser.picture(output / "telephone.png")
    assert not browser.complaints, browser.complaints


def take_terminal(paths: list[Path], output: Path) -> None:
    """A rollout as ``--tui`` shows it in 100 columns and 32 lines."""
    registry = default_registry()
    board = Board(sources_of(paths, registry), registry)
    board.read_all()

    async def drive(drawing: Path) -> None:
        app = Terminal(board)
        async with app.run_test(size=(100, 32)) as pilot:
            await pilot.press("slash", *"step>15 failure:schema* calls>2 total>0.2", "enter", "enter")
            await pilot.pause()
            app.save_screenshot(str(drawing))

    with tempfile.TemporaryDirectory() as temporary:
        drawing = Path(temporary) / "terminal.svg"
        asyncio.run(drive(drawing))
        with Browser(width=1240, height=860) as browser:
            browser.open(drawing.as_uri())
            browser.ask("new Promise((done) => setTimeout(done, 300))")
            browser.picture(output / "terminal.png")
    board.close()


def take_report(report: Path, output: Path) -> None:
    with Browser(width=1440, height=900) as browser:
        browser.open(report.resolve().as_uri())
        browser.until("document.querySelector('h1') !== null")
        settle(browser)
        browser.picture(output / "report.png")


def shrink(folder: Path) -> None:
    """A palette in the place of true colours: a third of the bytes, and nobody sees it."""
    for path in folder.glob("*.png"):
        Image.open(path).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def settle(browser: Browser) -> None:
    """Wait until the page says the same twice."""
    before = ""
    while (now := browser.ask("document.body.innerHTML.length + document.body.innerText")) != before:
        before = now
        browser.ask("new Promise((done) => setTimeout(done, 300))")


if __name__ == "__main__":
    main()
