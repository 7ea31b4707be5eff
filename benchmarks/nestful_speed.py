"""How many samples of NESTFUL are judged in a second: F1, partial, full, and the win, with functions and without.

    python benchmarks/nestful_speed.py --data DIR [--package DIR] [--repeat 5]

``--data`` holds the samples and ``official_verdicts_perturbed.jsonl.gz``, whose rows are judged; ``--package`` the
release's functions, which are executed in a process of their own, so that wall-clock time is taken. The official
scorer, which imports a file for each call, judged 150 samples/s on the machine where the rows were made.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path
from statistics import median

import callwright as cw
from callwright_plugins.nestful.benchmark import Nestful

OFFICIAL = 150.0
#: Answers that are judged together, as by ``callwright benchmark judge``.
AT_ONCE = 64


def speed(title: str, benchmark: Nestful, rows: list[dict[str, object]], repeat: int) -> None:
    parser = cw.parser("json")
    attempts = [attempt for row in rows if (attempt := benchmark.answer(row, parser)) is not None]
    rates, masked = [], 0
    for _ in range(repeat + 1):  # the first starts the process and compiles what is called
        start = time.perf_counter()
        found = []
        for at in range(0, len(attempts), AT_ONCE):
            found += benchmark.judge_together([(attempt.task, attempt) for attempt in attempts[at : at + AT_ONCE]])
        rates.append(len(found) / (time.perf_counter() - start))
        masked = sum(one.masked is not None for one in found)
    rate = median(rates[1:])
    print(
        f"{title}: {rate:,.0f} samples/s ({min(rates[1:]):,.0f} to {max(rates[1:]):,.0f}), {rate / OFFICIAL:.0f} times "
        f"the official scorer's {OFFICIAL:.0f}; {masked} of {len(rows)} masked"
    )


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    reader.add_argument("--data", type=Path, required=True)
    reader.add_argument("--package", type=Path)
    reader.add_argument("--repeat", type=int, default=5)
    options = reader.parse_args()
    path = next(options.data.rglob("official_verdicts_perturbed.jsonl.gz"))
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    if options.package:
        speed("functions", Nestful(options.data, package=options.package), rows, options.repeat)
    speed("table", Nestful(options.data), rows, options.repeat)


if __name__ == "__main__":
    main()
