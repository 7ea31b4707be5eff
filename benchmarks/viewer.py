"""How long ``callwright view`` takes on many rollouts: to index them, to show the first page, to filter.

    python benchmarks/viewer.py                       # 100,000 rollouts of about 2.6 KB
    python benchmarks/viewer.py --rows 10000 --browser

Rows are those of a real run with other numbers (a short run of ``tier-mini`` is made unless ``--run`` names one).
Figures are seconds of CPU, server and client together, of answers over HTTP: the first of five, and the best of them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from callwright.plugins import default_registry
from callwright_plugins.viewer.serving.api import Board
from callwright_plugins.viewer.serving.server import Viewer
from callwright_plugins.viewer.sources.finding import sources_of

FILTERS = (
    "",
    "answered:no",
    "score.format<1",
    "failure:schema*",
    "tool:GetPrice",
    "step>500 total>0.5",
    "silver",
    '"tool_call return"',
    "-answered:yes sugar depth:4 advantage<0",
)


def make_run(folder: Path) -> Path:
    """A short run with whole groups."""
    options = [
        "--set",
        "trainer.steps=4",
        "--set",
        "trainer.whole_step_every=1",
        "--set",
        "trainer.warm_start.steps=300",
    ]
    command = [sys.executable, "-m", "callwright", "run", "tier-mini", "--output", str(folder), *options]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def multiply(run: Path, target: Path, count: int) -> None:
    """Many rows out of few: others steps, groups and advantages."""
    rows = [json.loads(line) for line in (run / "rollouts.jsonl").read_text("utf-8").splitlines()]
    target.mkdir()
    rng = random.Random(0)
    with (target / "rollouts.jsonl").open("w", encoding="utf-8") as file:
        for number in range(count):
            row = dict(rows[number % len(rows)])
            step = number // 96 + 1
            row |= {
                "step": step,
                "group": f"{step}-{number % 96 // 16}",
                "sample": number % 16,
                "advantage": rng.gauss(0, 1),
            }
            file.write(json.dumps(row) + "\n")
    (target / "metrics.jsonl").write_text('{"step": 1, "reward": 0.5}\n', "utf-8")


def timed(url: str, times: int = 5) -> tuple[float, float, Any]:
    """The first and the best time of an answer, in seconds, and the answer."""
    spent = []
    for _ in range(times):
        begun = time.process_time()
        with urllib.request.urlopen(url) as answer:
            held = json.load(answer)
        spent.append(time.process_time() - begun)
    return spent[0], min(spent), held


def main() -> None:
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("--rows", type=int, default=100_000)
    reading.add_argument("--run", type=Path, help="a run whose rows are taken")
    reading.add_argument("--browser", action="store_true", help="time the page in Chromium, too")
    asked = reading.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        run = asked.run or make_run(Path(folder) / "short")
        target = Path(folder) / "many"
        multiply(run, target, asked.rows)
        size = (target / "rollouts.jsonl").stat().st_size
        print(f"{asked.rows:,} rollouts, {size / 1e6:,.0f} MB")
        show(target, asked.rows, asked.browser)


def show(target: Path, count: int, browser: bool) -> None:
    registry = default_registry()
    begun = time.process_time()
    board = Board(sources_of([target], registry), registry)
    board.start()
    with Viewer(board) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        api = server.url + "api/"
        while not timed(f"{api}rows?source=many&limit=100", 1)[2]["rows"]:
            time.sleep(0.01)
        print(f"| first page of a source that was never indexed | {time.process_time() - begun:.2f} |")
        while timed(f"{api}state", 1)[2]["sources"][0]["rows"] < count:
            time.sleep(0.2)
        print(f"| all of it indexed | {time.process_time() - begun:.1f} |")
        index = target / ".rollouts.jsonl.view.sqlite"
        print(f"| size of the index | {index.stat().st_size / 1e6:,.0f} MB |")
        server.shutdown()
        thread.join()
    board.close()
    begun = time.process_time()
    board = Board(sources_of([target], registry), registry)
    board.start()
    with Viewer(board) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        api = server.url + "api/"
        timed(f"{api}state", 1)
        timed(f"{api}rows?source=many&limit=100", 1)
        print(f"| first page of an indexed source, from the start of the server | {time.process_time() - begun:.2f} |")
        slowest = 0.0
        for text in FILTERS:
            query = urllib.parse.urlencode({"source": "many", "q": text, "limit": 100})
            first, best, held = timed(f"{api}rows?{query}")
            _, facets, _ = timed(f"{api}facets?{query}")
            slowest = max(slowest, first)
            name = f"`{text}`" if text else "no filter"
            print(f"| {name}: {held['total']:,} rows | {best:.3f} (first {first:.3f}), beside it {facets:.3f} |")
        for by in ("task", "group", "failure"):
            first, best, _ = timed(f"{api}groups?source=many&by={by}")
            print(f"| grouped by {by} | {best:.3f} (first {first:.3f}) |")
        for sort in ("-total", "advantage", "score.execution"):
            first, best, _ = timed(f"{api}rows?source=many&sort={sort}")
            print(f"| sorted by {sort} | {best:.3f} (first {first:.3f}) |")
        print(f"| the slowest filter | {slowest:.3f} |")
        if browser:
            in_a_browser(server.url)
        server.shutdown()
        thread.join()
    board.close()


def in_a_browser(url: str) -> None:
    from browser import Browser

    with Browser() as page:
        begun = time.process_time()
        page.open(url)
        page.until("document.querySelectorAll('tr[data-n]').length > 50")
        print(f"| the page in Chromium, from its address to its rows | {time.process_time() - begun:.2f} |")
        page.write("#search", "step>500 total>0.5")
        begun = time.process_time()
        page.until("document.querySelector('.count span').textContent !== '100,000 rows'")
        print(f"| a filter in Chromium, 0.2 s of it waiting for the next key | {time.process_time() - begun:.2f} |")


if __name__ == "__main__":
    main()
