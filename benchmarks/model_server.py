"""The client of model servers under failures, limits and a budget, counted on the server's side.

    python benchmarks/model_server.py                      # 10,000 requests, 30% of all tries fail; 4 worker processes
    python benchmarks/model_server.py --requests 2000 --rate 6000

A stand-in server on loopback (``tests/core/support/stand_in_server.py``) fails by a seeded draw: 429 with Retry-After,
500, 503, 529, dropped connections and half answers. The clients are other processes. What the table says was counted
where the requests arrived, and is compared with what the clients counted.

* lost: requests without an answer. twice: requests that the server answered more than once without a retry of the
  client. uncounted: HTTP requests that arrived and that no client counted.
* of the limit: the most HTTP requests that arrived in any minute (in the whole run, where it is shorter: then against
  the limit for that time), as a share of the limit.
"""

from __future__ import annotations

import argparse
import bisect
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "core" / "support"))
FOLDER = "CALLWRIGHT_COMMAND_FOLDER"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--failures", type=float, default=0.3, help="share of HTTP requests that fail")
    parser.add_argument("--workers", type=int, default=4, help="client processes")
    parser.add_argument("--rate", type=float, default=9000.0, help="HTTP requests a minute, for the runs with a limit")
    parser.add_argument("--limited", action="store_true", help="only the runs with a limit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", metavar="JSON", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(json.loads(options.worker))
        return
    global _common
    with tempfile.TemporaryDirectory() as folder:
        _common = Path(folder)
        table(options)


_common = Path()


def table(options: Any) -> None:
    print("| run | requests | answered | retries | arrived | lost | twice | uncounted | of the limit | seconds |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    once = {"total": options.requests, "failures": options.failures, "seed": options.seed}
    if not options.limited:
        row("no limit, 1 process", **once, workers=1)
        row(f"no limit, {options.workers} processes", **once, workers=options.workers)
    row(f"{options.rate:,.0f} a minute, 1 process", **once, workers=1, rate=options.rate)
    row(
        f"{options.rate:,.0f} a minute, {options.workers} processes", **once, workers=options.workers, rate=options.rate
    )
    spend(options)


def row(name: str, total: int, failures: float, seed: int, workers: int, rate: float | None = None) -> None:
    from stand_in_server import Faults, StandIn

    with StandIn(faults=Faults(failures, seed=seed), latency=(0.0, 0.02)) as there:
        began = time.perf_counter()
        each = [run(there.url, worker, total // workers, rate, None) for worker in range(workers)]
        counted = [finished(process) for process in each]
        seconds = time.perf_counter() - began
    arrived = len(there.asked)
    requests, retries, failed = (sum(one[name] for one in counted) for name in ("requests", "retries", "failed"))
    lost = requests - sum(one["answers"] for one in counted)
    twice = there.answered - sum(one["answers"] for one in counted)
    share = ""
    if rate is not None:
        times = [asked.at for asked in there.asked]
        window = min(60.0, times[-1] - times[0])
        most = max(bisect.bisect_left(times, at + window) - place for place, at in enumerate(times))
        share = f"{most / (rate * window / 60):.1%} ({window:.0f} s)"
    figures = [requests, there.answered, retries, arrived, lost, twice, arrived - requests - retries, share]
    cells = " | ".join(f"{one:,}" if isinstance(one, int) else str(one) for one in figures)
    print(f"| {name} | {cells} | {seconds:.1f} |", flush=True)
    assert failed == lost


def spend(options: Any) -> None:
    """A budget that is reached, over all processes: what the server would charge for what it answered."""
    from stand_in_server import StandIn, chat, usage

    answer = chat("four", counted=usage(40, 90))
    cost = (40 * 2 + 90 * 10) / 1e6
    most = 0.25 * options.requests * cost
    with StandIn(lambda asked: answer, latency=(0.0, 0.02)) as there:
        share = options.requests // options.workers
        each = [run(there.url, worker, share, None, most) for worker in range(options.workers)]
        charged = sum(finished(process)["cost"] for process in each)
    print(
        f"\nA budget of {most:.4f}, {options.workers} processes: {there.answered:,} answers, "
        f"{there.answered * cost:.4f} charged ({there.answered * cost / most:.2%}), {charged:.4f} as the clients count"
    )


def run(url: str, worker: int, total: int, rate: float | None, most: float | None) -> subprocess.Popen[str]:
    asked = json.dumps({"url": url, "worker": worker, "total": total, "rate": rate, "most": most})
    command = [sys.executable, __file__, "--worker", asked]
    # The folder that the processes of one command have in common.
    environment = {**os.environ, FOLDER: str(_common / url.rpartition(":")[2].partition("/")[0])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    said, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a client ended with status {process.returncode}")
    found: dict[str, Any] = json.loads(said)
    return found


def work(asked: dict[str, Any]) -> None:
    """One client process."""
    from callwright.machines.model_server import Server

    server = Server(
        model="m",
        base_url=asked["url"],
        concurrency=64,
        retries=30,  # a share of 0.3 to the 31st power is lost: none
        requests_per_minute=asked["rate"],
        prices=(2.0, 10.0),
        max_cost=asked["most"],
    )
    messages = [{"role": "user", "content": "x"}]

    def asking(number: int) -> Any:
        return lambda one: one.chat(messages, max_tokens=100, user=f"{asked['worker']}/{number}")

    found = server.all([asking(number) for number in range(asked["total"])])
    answers = sum(isinstance(one, dict) for one in found)
    print(json.dumps({**server.usage.to_json(), "answers": answers}))


if __name__ == "__main__":
    main()
