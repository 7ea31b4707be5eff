"""What composing costs: a call in a composed session beside the same call in a session of its part.

    python benchmarks/composed_speed.py                            # a few groups of two to four, and all twenty
    python benchmarks/composed_speed.py email+calendar banking+food_delivery

The call mixes of the parts (environment_scripts.txt) run in turn, in one session of the whole and in a session of each
part, with people and money of their own. Printed are CPU microseconds a call with the digest asked for after each, as
episodes do, the best of many rounds in turn, and their ratio; with ``--moving`` the clock moves in both. Then the same
with one person and one account, and what opening, the first digest, forking and resetting cost.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))

from environment_speed import scripts

import callwright as cw
from callwright.environments import ClockPolicy
from callwright_plugins.mcp_environments import TOOLS

GROUPS: Final = ("email+calendar", "banking+food_delivery", "banking+shopping+travel_booking+vehicle", "+".join(TOOLS))
ROUNDS: Final = 40


def microseconds(work: Callable[[], Any]) -> float:
    begun = time.process_time_ns()
    work()
    return (time.process_time_ns() - begun) / 1000


def best(works: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The quickest of many rounds of each, in turn."""
    found = [float("inf")] * len(works)
    for _ in range(rounds):
        for number, work in enumerate(works):
            found[number] = min(found[number], microseconds(work))
    return found


def measure(name: str, moving: bool, rounds: int) -> None:
    environment: Any = cw.environment(name, people="own", money="own")  # as in sessions of the parts
    parts: dict[str, Any] = {part.name: part for part in environment.parts}
    public = {(environment.parts[number].name, tool): named for named, (number, tool) in environment.routes.items()}
    mixes = {part: calls for part, (calls, _) in scripts().items() if part in parts}
    turns = [(part, *call) for part, calls in mixes.items() for call in calls]
    clock = ClockPolicy() if moving else None

    begins = environment.open("typical", 0).now

    def apart(people: Any = None) -> None:
        for part, calls in mixes.items():
            session = parts[part].open("typical", 0)
            if people is not None:
                session.introduce(people)
            session.wait_until(begins)  # as all parts do: at another time they do other things
            session.keep_time(clock)
            session.digest()
            for tool, arguments in calls:
                session.call(tool, arguments)
                session.digest()

    named = [(public[part, tool], arguments) for part, tool, arguments in turns]

    def together(of: Any = environment) -> None:
        session = of.open("typical", 0)
        session.keep_time(clock)
        session.digest()
        for tool, arguments in named:
            session.call(tool, arguments)
            session.digest()

    shared: Any = cw.environment(name)
    begun = time.process_time()
    for part in parts:
        shared.open("typical", 0).part(part)
    built = (time.process_time() - begun) * 1000
    people = shared.people_of(0)
    works = [apart, together, lambda: apart(people), lambda: together(shared)]
    alone, whole, theirs, one = (found / len(turns) for found in best(works, rounds))
    print(f"{name:.60}: {alone:.1f} us a call apart, {whole:.1f} together: {whole / alone:.2f}", flush=True)
    print(f"    with one person {theirs:.1f} us apart, and with one account {one:.1f} together: {one / theirs:.2f}")
    print(f"    introducing the people, once for a seed: {built:.0f} ms")

    first_tool, first_arguments = named[0]

    def touched(calls: list[tuple[str, Any]]) -> Any:
        session = environment.open("typical", 0)
        for tool, arguments in calls:
            session.call(tool, arguments)
        session.digest()
        return session

    every = [
        touched([next(call for call, turn in zip(named, turns, strict=True) if turn[0] == part)]) for part in mixes
    ]
    one = touched([(first_tool, first_arguments)])
    full = touched(named)
    many = 200
    sessions: dict[str, Callable[[], Any]] = {
        "open": lambda: [environment.open("typical", 0) for _ in range(many)],
        "open and digest": lambda: [environment.open("typical", 0).digest() for _ in range(many)],
        "fork, one part touched": lambda: [one.fork() for _ in range(many)],
        "fork, all touched": lambda: [full.fork() for _ in range(many)],
        "digest, nothing new": lambda: [full.digest() for _ in range(many)],
        "reset": lambda: [every[0].reset() for _ in range(many)],
    }
    for what, found in zip(sessions, best(list(sessions.values()), rounds), strict=True):
        print(f"    {what}: {found / many:.1f} us")


def main() -> None:
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("groups", nargs="*", default=GROUPS)
    reading.add_argument("--moving", action="store_true")
    reading.add_argument("--rounds", type=int, default=ROUNDS)
    given = reading.parse_args()
    for name in given.groups:
        measure(name, given.moving, given.rounds)


if __name__ == "__main__":
    main()
