"""What planning comes to, for every shipped environment, without a model or a network.

    python benchmarks/blueprints.py
    python benchmarks/blueprints.py banking crm --count 13517 --cache FOLDER

Exploring and proving come first and are kept in --cache; they are not counted. ``--count`` is that of the whole
mixture, of which each environment has its part. Of each environment: blueprints and CPU seconds, calls of a blueprint,
the tool that the fewest conversations call, edges (pairs of tools) and failures (tool and code) that are covered; then
the shares that were asked for. ``--replay`` makes every call of every blueprint again in fresh sessions.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import callwright as cw
from callwright.language.program import Call
from callwright.plugins import default_registry
from callwright.training.synthesis.synthesizer import Materials
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, coverage_of, pairs_of
from callwright_plugins.synthesis.blueprints.knobs import Knobs
from callwright_plugins.synthesis.blueprints.knowledge import Knowledge, cache_folder, known
from callwright_plugins.synthesis.blueprints.planning import plan_blueprints
from callwright_plugins.synthesis.graph.references import replaced, value_at


def wrong_calls(blueprints: Sequence[Blueprint]) -> tuple[int, int]:
    """How many calls were made again, and how many did not come to what their stage says."""
    environments: dict[str, Any] = {}
    made = wrong = 0
    for one in blueprints:
        if one.environment not in environments:
            environments[one.environment] = default_registry().create("environment", one.environment)
        session = environments[one.environment].open(one.scenario, one.seed)
        for stage in one.stages:
            codes = {failing.call: failing.code for failing in stage.failing}
            results: list[Any] = []
            for place, call in enumerate(stage.calls):
                outcome = session.call(call.tool, filled(call, results))
                results.append(outcome.value)
                made += 1
                came = "" if outcome.executed else outcome.code or outcome.kind
                wrong += came != codes.get(place, "")
        session.close()
    return made, wrong


def filled(call: Call, results: Sequence[Any]) -> dict[str, Any]:
    """The arguments of a call with what its references stand for."""
    arguments: Any = dict(call.arguments)
    for path, reference in call.located:
        arguments = replaced(arguments, path, value_at(results[reference.call], reference.path))
    return dict(arguments)


def shares(blueprints: Sequence[Blueprint]) -> Counter[str]:
    """What the knobs say shares of, counted."""
    found: Counter[str] = Counter()
    for one in blueprints:
        found["blueprints"] += 1
        found[one.kind] += 1
        found["distractors"] += bool(one.distractors)
        found["stripped"] += bool(one.stripped)
        talk = one.kind in ("task", "failing")
        found["conversations"] += talk
        found["irrelevant"] += talk and bool(one.stages[-1].elsewhere)
        found["several servers"] += "+" in one.environment
        for stage in one.stages:
            if talk and stage.calls:
                found["turns"] += 1
                found[stage.information] += 1
            for failing in stage.failing:
                found[f"by {failing.recovery}"] += 1
    return found


def row(name: str, knowledge: Knowledge, blueprints: Sequence[Blueprint], seconds: float) -> tuple[str, Counter[str]]:
    """The line of an environment, and its numbers for the sums."""
    called = coverage_of(blueprints)
    tools = knowledge.explored.witnesses
    least = min(tools, key=lambda tool: called[tool])
    pairs = {pair for one in blueprints for pair in pairs_of(one.stages)}
    wanted = set(knowledge.graph.pairs())
    cells = {(tool, code) for tool, codes in knowledge.explored.failures.items() for code in codes}
    filled_cells = {one.recovers for one in blueprints if one.recovers[0]} & cells
    depth = sum(one.depth for one in blueprints) / max(1, len(blueprints))
    numbers = Counter(
        {
            "tools": len(tools),
            "tools in 20": sum(called[tool] >= 20 for tool in tools),
            "pairs": len(wanted),
            "pairs met": len(pairs & wanted),
            "cells": len(cells),
            "cells met": len(filled_cells),
            "calls": sum(one.depth for one in blueprints),
        }
    )
    line = (
        f"| `{name}` | {len(blueprints)} | {seconds:.1f} | {depth:.1f} | {called[least]} (`{least}`) | "
        f"{len(pairs & wanted)} of {len(wanted)} | {len(filled_cells)} of {len(cells)} |"
    )
    return line, numbers


def main() -> None:
    """Plan, count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(TOOLS))
    parser.add_argument("--count", type=int, default=13_517, help="of the whole mixture")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=cache_folder())
    parser.add_argument("--replay", action="store_true")
    given = parser.parse_args()
    sums: Counter[str] = Counter()
    seconds = 0.0
    print("| environment | blueprints | CPU s | calls | least called tool | edges | failures |\n" + "|---" * 7 + "|")
    for number, name in enumerate(given.names):
        count = given.count // len(TOOLS) + (number < given.count % len(TOOLS))
        environment = cw.environment(name)
        knowledge = known(environment, registry=default_registry(), cache=given.cache)
        begun = time.process_time()
        blueprints = plan_blueprints(Materials(environment, given.seed, count), knowledge, Knobs())
        took = time.process_time() - begun
        seconds += took
        line, numbers = row(name, knowledge, blueprints, took)
        sums += shares(blueprints) + numbers
        if given.replay:
            made, wrong = wrong_calls(blueprints)
            sums += Counter({"made again": made, "wrong": wrong})
        print(line, flush=True)
    print(f"\n{sums['blueprints']:,} blueprints in {seconds:.1f} s of CPU: {sums['blueprints'] / seconds:.0f} a second")
    for name, of in (
        ("clarification", "blueprints"),
        ("abstention", "blueprints"),
        ("distractors", "blueprints"),
        ("stripped", "blueprints"),
        ("irrelevant", "conversations"),
        ("several servers", "conversations"),
        ("complete", "turns"),
        ("missing", "turns"),
        ("minimal", "turns"),
        ("tools in 20", "tools"),
        ("pairs met", "pairs"),
        ("cells met", "cells"),
    ):
        print(f"{name}: {sums[name]:,} of {sums[of]:,} {of} ({100 * sums[name] / max(1, sums[of]):.1f}%)")
    print(
        "failures made up for: "
        + ", ".join(f"{sums[f'by {way}']:,} by {way}" for way in ("parameters", "tool", "give up"))
    )
    if given.replay:
        print(f"{sums['made again']:,} calls made again, {sums['wrong']} came to something else")


if __name__ == "__main__":
    main()
