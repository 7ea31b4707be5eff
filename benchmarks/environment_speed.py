"""What the stateful environments cost in process: calls, digests, sessions and their memory, all twenty.

Each environment runs a script of lookups, searches, changes and failures (environment_scripts.txt) again and again, in
a fresh session each time, as a rollout does. Per call: CPU time (best of several rounds) with the session's digest
asked for after every call, as ``callwright.execution`` asks for it, and without; and the slowest call. All is measured
in several passes, because other programs slow a machine down for seconds on end. Then what a scenario and a session
cost, with ``copy.deepcopy`` of the same state as the foil, and the memory of many sessions with ten changed rows each.
What a loop of plain Python takes is printed too: where other programs run, compare with that.

    python benchmarks/environment_speed.py                   # about five minutes
    python benchmarks/environment_speed.py --rounds 5 --sessions 0 banking maps
    python benchmarks/environment_speed.py --calls maps      # every call of a script by itself
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import platform
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import callwright as cw
from callwright.environments.rows import table_of
from callwright_plugins.mcp_environments import TOOLS

Script = list[tuple[str, dict[str, Any]]]
ROLLOUTS, CALLS = 256, 10
UPDATES = 10
BUDGET_S = 0.1


def scripts() -> dict[str, tuple[Script, list[bool]]]:
    """By environment the calls, and of each whether it is meant to succeed."""
    found: dict[str, tuple[Script, list[bool]]] = {}
    for line in (Path(__file__).parent / "environment_scripts.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# ") and line[2:] in TOOLS:
            calls, wanted = found.setdefault(line[2:], ([], []))
        elif line and not line.startswith("#"):
            tool, _, arguments = line.partition(" ")
            calls.append((tool.removeprefix("!"), json.loads(arguments)))
            wanted.append(not tool.startswith("!"))
    return found


def check(environment: cw.StatefulEnvironment, script: Script, wanted: list[bool]) -> None:
    """Exit if a call does not do what the script says: then the times would be those of something else."""
    session = environment.open("typical", 0)
    for (tool, arguments), succeeds in zip(script, wanted, strict=True):
        outcome = session.call(tool, arguments)
        if outcome.executed != succeeds:
            sys.exit(f"{environment.name}: {tool} {json.dumps(arguments)}: {outcome!r:.600}")


def seconds(work: Callable[[], Any], rounds: int) -> float:
    """CPU seconds of the quickest of several rounds."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best


def per_call(environment: cw.StatefulEnvironment, script: Script, rounds: int, digests: bool) -> float:
    """CPU seconds a call, opening the session counted in."""
    sessions = range(2)

    def work() -> None:
        for _ in sessions:
            session = environment.open("typical", 0)
            if digests:
                session.digest()
            call, digest = session.call, session.digest
            for tool, arguments in script:
                call(tool, arguments)
                if digests:
                    digest()

    return seconds(work, rounds) / (len(sessions) * len(script))


def loop() -> int:
    """A loop of plain Python: how fast the machine is at the moment."""
    total = 0
    for number in range(100_000):
        total += number * number % 7
    return total


def single_calls(environment: cw.StatefulEnvironment, script: Script, rounds: int) -> list[float]:
    """Wall seconds of every call of the script by itself, the quickest of the rounds."""
    best = [float("inf")] * len(script)
    for _ in range(rounds):
        session = environment.open("typical", 0)
        for number, (tool, arguments) in enumerate(script):
            begun = time.perf_counter()
            session.call(tool, arguments)
            best[number] = min(best[number], time.perf_counter() - begun)
            session.digest()
    return best


def session_costs(environment: cw.StatefulEnvironment, script: Script, rounds: int) -> dict[str, float]:
    """Seconds to build a scenario, and to open, reset and fork a session; fork and reset of one that ran the script."""
    session = environment.open("typical", 0)
    for tool, arguments in script:
        session.call(tool, arguments)
    many = range(2000)

    def reset() -> None:
        for _ in many:
            session.reset()

    state = session.world.base.dump()
    return {
        "build": seconds(lambda: environment._build("typical", 0).total, min(rounds, 5)),
        "open": seconds(lambda: [environment.open("typical", 0) for _ in many], rounds) / len(many),
        "fork": seconds(lambda: [session.fork() for _ in many], rounds) / len(many),
        "reset": seconds(reset, rounds) / len(many),
        "deepcopy": seconds(lambda: copy.deepcopy(state), 2),
    }


def memory(environment: cw.StatefulEnvironment, count: int) -> int:
    """Bytes of ``count`` sessions in each of which ten rows were changed, above what the scenario takes."""
    base = environment.base("typical", 0)
    kinds = sorted(base.tables, key=lambda kind: -len(base.rows(kind)))
    kind, name = next(
        (kind, name)
        for kind in kinds
        for name in table_of(kind).fields
        if name not in table_of(kind).key and type(getattr(next(iter(base.rows(kind).values())), name)) in (int, str)
    )
    rows = list(base.rows(kind).values())[:UPDATES]
    environment.open("typical", 0).digest()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    sessions = []
    for number in range(count):
        session = environment.open("typical", 0)
        for row in rows:
            value = getattr(row, name)
            session.world.begin(read_only=False)
            session.world.update(row, **{name: value + number + 1 if isinstance(value, int) else f"{value} {number}"})
            session.world.end()
        sessions.append(session)
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return used


def measure(name: str, script: Script, wanted: list[bool], rounds: int, sessions: int) -> dict[str, Any]:
    environment = cw.environment(name)
    assert isinstance(environment, cw.StatefulEnvironment)
    check(environment, script, wanted)
    costs = session_costs(environment, script, rounds)
    calls = single_calls(environment, script, rounds)
    slowest = max(range(len(script)), key=calls.__getitem__)
    return {
        "name": name,
        "rows": sum(map(len, environment.base("typical", 0).tables.values())),
        "calls": len(script),
        "bare": per_call(environment, script, rounds, digests=False),
        "full": per_call(environment, script, rounds, digests=True),
        "slowest": script[slowest][0],
        "slowest_s": calls[slowest],
        "bytes": memory(environment, sessions) if sessions else None,
        **costs,
    }


def main() -> None:
    """Measure and print a table in markdown."""
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("names", nargs="*", help="environments; all of them if none is named")
    reading.add_argument("--rounds", type=int, default=20, help="repetitions, of which the quickest counts")
    reading.add_argument("--passes", type=int, default=4, help="times that all is measured, of which the best counts")
    reading.add_argument("--sessions", type=int, default=10_000, help="sessions whose memory is measured; 0: none")
    reading.add_argument("--calls", action="store_true", help="print the time of every call instead")
    given = reading.parse_args()
    found = scripts()
    if unknown := [name for name in given.names if name not in found]:
        reading.error(f"there is no script for {', '.join(unknown)}")
    names = given.names or list(found)
    if given.calls:
        for name in names:
            environment = cw.environment(name)
            assert isinstance(environment, cw.StatefulEnvironment)
            check(environment, *found[name])
            times = single_calls(environment, found[name][0], given.rounds)
            print(f"# {name}: {sum(times) / len(times) * 1e6:.1f} us a call")
            for (tool, arguments), spent in sorted(zip(found[name][0], times, strict=True), key=lambda one: -one[1]):
                print(f"{spent * 1e6:9.1f} us  {tool} {json.dumps(arguments):.90}")
        return
    print(
        f"Python {platform.python_version()}, {platform.machine()}, best of {given.passes} x {given.rounds} rounds; "
        f"a loop of 100,000 steps takes {seconds(loop, given.rounds) * 1e3:.1f} ms\n"
    )
    print(
        "| environment | rows | calls | us a call | with digest | slowest call (us) | build (ms) | open (us) | reset "
        f"| fork | {given.sessions:,} sessions (MB) | deepcopy (ms) |\n" + "|---|" + "--:|" * 4 + "---|" + "--:|" * 6
    )
    lines = [measure(name, *found[name], given.rounds, given.sessions) for name in names]
    for _ in range(given.passes - 1):
        for one in lines:
            again = measure(one["name"], *found[one["name"]], given.rounds, 0)
            one.update({key: min(one[key], value) for key, value in again.items() if isinstance(value, float)})
    for one in lines:
        size = "-" if one["bytes"] is None else f"{one['bytes'] / 1e6:.0f}"
        print(
            f"| `{one['name']}` | {one['rows']} | {one['calls']} | {one['bare'] * 1e6:.1f} | {one['full'] * 1e6:.1f} "
            f"| `{one['slowest']}` {one['slowest_s'] * 1e6:.0f} | {one['build'] * 1e3:.0f} | {one['open'] * 1e6:.1f} "
            f"| {one['reset'] * 1e6:.1f} | {one['fork'] * 1e6:.1f} | {size} | {one['deepcopy'] * 1e3:.1f} |"
        )
    bare, full = (sum(one[which] for one in lines) / len(lines) for which in ("bare", "full"))
    worst, scale = max(lines, key=lambda one: one["full"]), ROLLOUTS * CALLS
    within = sum(one["full"] * scale < BUDGET_S for one in lines)
    print(
        f"\nAverage over {len(lines)} environments: {bare * 1e6:.1f} us a call, {full * 1e6:.1f} us with digest. "
        f"{ROLLOUTS} rollouts of {CALLS} calls: {full * scale:.3f} s of CPU on average, "
        f"{worst['full'] * scale:.3f} s in {worst['name']}, under {BUDGET_S} s in {within} of {len(lines)}."
    )


if __name__ == "__main__":
    main()
