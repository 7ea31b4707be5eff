"""A judge that takes its time: a training step's samples scored at once, with and without a cache, and one that fails.

    python benchmarks/judge.py                             # 64 tasks, 8 samples each, a verdict takes 1 s
    python benchmarks/judge.py --tasks 8 --samples 4 --latency 0.2

A stand-in server on loopback (``tests/core/support/stand_in_server.py``) gives the verdicts. ``asked`` is what arrived
there, ``under way`` the most at a time, ``waiting`` the seconds that the server alone needs at that concurrency.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import callwright as cw

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "core" / "support"))
from stand_in_server import Asked, Faults, StandIn, chat


def verdict(asked: Asked) -> dict[str, Any]:
    """Four of five for everything."""
    wanted = asked.body["response_format"]["json_schema"]["schema"]["properties"]
    criteria = {name: {"reason": "So.", "score": 4} for name in wanted["criteria"]["properties"]}
    return chat(json.dumps({"word": wanted["word"]["enum"][0], "criteria": criteria}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--latency", type=float, default=1.0, help="seconds that a verdict takes")
    parser.add_argument("--concurrency", type=int, default=64)
    options = parser.parse_args()
    corpus, form = cw.corpus("toolworld-mini-v1"), cw.parser("json")
    tasks = [task for task in corpus["train"] if task.program is not None and task.program.calls][: options.tasks]
    count = options.tasks * options.samples
    waiting = -(-count // options.concurrency) * options.latency
    print("| run | attempts | scored | asked | under way | waiting | seconds |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        kept = {"cache": str(Path(folder) / "verdicts.sqlite")}
        for name, more, faults in (
            ("no cache", {}, None),
            ("a cache, empty", kept, None),
            ("the same cache", kept, None),
            ("30% of requests fail", {}, Faults(0.3)),
        ):
            attempts = [
                cw.Attempt(task, form.render(task.program), form)
                for task in tasks
                for _ in range(options.samples)
                if task.program is not None
            ]
            with StandIn(verdict, latency=(options.latency, options.latency), faults=faults) as server:
                given = {"model": "m", "base_url": server.url, "server": {"concurrency": options.concurrency}}
                with cw.reward("tier-judged", **given, **more) as reward:
                    begun = time.perf_counter()
                    rewards = reward.score_attempts(attempts)
                    seconds = time.perf_counter() - begun
                scored = sum(one.total is not None for one in rewards)
                arrived, most = len(server.asked), server.most
            print(f"| {name} | {count} | {scored} | {arrived} | {most} | {waiting:.1f} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
