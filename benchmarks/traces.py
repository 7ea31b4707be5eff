"""How many logs of other stacks are read and scored a second, on one core.

    python benchmarks/traces.py --logs 2000

Each log is a conversation of four messages of the assistant with three calls, of which two are parallel. A peer is
beside it: parsing the JSON of the same lines with the standard library, which any reader has to do.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import callwright as cw

FILES = Path(__file__).resolve().parents[1] / "tests" / "plugins" / "log_formats" / "files"


def seconds(work: Callable[[], object]) -> float:
    """Seconds of processor time, the least of three."""
    taken = []
    for _ in range(3):
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return min(taken)


def many(name: str, count: int, folder: Path) -> Path:
    """The conversation ``count`` times, each with ids of its own."""
    text = (FILES / name).read_text(encoding="utf-8")
    if name.endswith(".json"):
        text = json.dumps(json.loads(text)) + "\n"
    path = folder / name.replace(".json", ".jsonl").replace(".jsonll", ".jsonl")
    trace, lang = "5b8efff798038103d269b633813fc60c", "01a20796-edbc-77af-aeb5-59c12a62a567"
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            mine = text.replace(trace, f"{number:032x}").replace(lang, f"{number:08d}{lang[8:]}")
            file.write(mine.replace("resp_", f"resp{number}_").replace('"ford"', f'"ford-{number}"'))
    return path


def main() -> None:
    """Measure every format, and write a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=2000)
    count = parser.parse_args().logs
    tier = cw.reward("tier")
    print(f"{'format':10} {'read/s':>9} {'read and scored/s':>18} {'of json.loads':>14}")
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(path.name for path in FILES.iterdir() if path.suffix in (".jsonl", ".json")):
            form = name.partition(".")[0]
            if form == "inspect":  # one document of all samples
                continue
            path = many(name, count, Path(folder))
            options: dict[str, Any] = {"failed": "^no country"} if form in ("openai", "responses", "atif") else {}

            def read(path: Path = path, form: str = form, options: dict[str, Any] = options) -> int:
                return sum(1 for _ in cw.read_log(path, form, **options))

            def scored(path: Path = path, form: str = form, options: dict[str, Any] = options) -> int:
                return len(tier.score_attempts(log.episode() for log in cw.read_log(path, form, **options)))

            def parsed(path: Path = path) -> None:
                with path.open(encoding="utf-8") as file:
                    for line in file:
                        json.loads(line)

            assert scored() == count, form
            reading, scoring, parsing = seconds(read), seconds(scored), seconds(parsed)
            print(f"{form:10} {count / reading:9,.0f} {count / scoring:18,.0f} {parsing / reading:14.2f}")


if __name__ == "__main__":
    main()
