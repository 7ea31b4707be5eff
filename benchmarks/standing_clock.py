"""What a clock that could move costs where it stands still: two source trees in turn, each in processes of its own.

    git worktree add /tmp/before main
    python benchmarks/standing_clock.py /tmp/before . food_delivery banking

Of each environment: opening, forking and resetting a session, its digest, and the call mix of
``environment_scripts.txt``. Printed are microseconds, the best of all rounds, and their ratio. With ``--moving`` the
second tree also runs the call mix with a clock that moves.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

#: Seconds that each thing is measured for in a round.
_SECONDS: Final = 0.08


def _best(work: Callable[[], int]) -> float:
    """Microseconds each; ``work`` says how many it did."""
    best, until = float("inf"), time.perf_counter() + _SECONDS
    while time.perf_counter() < until:
        begun = time.process_time_ns()
        done = work()
        best = min(best, (time.process_time_ns() - begun) / 1000 / done)
    return best


def measure(name: str, moving: bool) -> dict[str, float]:
    """One environment, in the tree that this process imports."""
    sys.path.insert(0, str(Path(__file__).parent))
    from environment_speed import scripts

    import callwright as cw

    environment: Any = cw.environment(name)
    script, _ = scripts()[name]

    def mix(clock: Any = None, digests: bool = True) -> int:
        session = environment.open("typical", 0)
        if clock is not None:
            session.keep_time(clock)
        for tool, arguments in script:
            session.call(tool, arguments)
            if digests:
                session.digest()
        return len(script)

    def many(work: Callable[[], Any], count: int = 500) -> Callable[[], int]:
        def repeat() -> int:
            for _ in range(count):
                work()
            return count

        return repeat

    session = environment.open("typical", 0)
    for tool, arguments in script:
        session.call(tool, arguments)

    def digest() -> None:
        session.world._note(lambda: None)  # as a change does: the digest is computed again
        session.world.digest()

    found = {
        "open": _best(many(lambda: environment.open("typical", 0))),
        "fork": _best(many(session.fork)),
        "digest": _best(many(digest)),
        "calls": _best(mix),
        "reset": _best(many(session.reset)),
    }
    if moving:
        from callwright.environments.living.policy import ClockPolicy

        found["moving calls"] = _best(lambda: mix(ClockPolicy()))
    return found


def main() -> None:
    """Run the trees in turn and print what they took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("environments", nargs="+")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--moving", action="store_true", help="Also the call mix under a clock that moves.")
    given = parser.parse_args()
    for name in given.environments:
        best: list[dict[str, float]] = [{}, {}]
        for _ in range(given.rounds):
            for found, tree in zip(best, (given.before, given.after), strict=True):
                moving = given.moving and found is best[1]
                path = os.pathsep.join(str(tree.absolute() / part) for part in ("core", "plugins"))
                command = [sys.executable, __file__, "--measure", name, *(["--moving"] if moving else [])]
                said = subprocess.run(
                    command, env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True, text=True
                )
                for key, value in json.loads(said.stdout).items():
                    found[key] = min(value, found.get(key, value))
        for key, after in best[1].items():
            before = best[0].get(key, best[0]["calls"])
            print(f"{name:<16}{key:<14}{before:9.2f}{after:9.2f} us {after / before:7.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], "--moving" in sys.argv)))
    else:
        main()
