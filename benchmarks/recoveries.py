"""Failures of tools in synthesised conversations: which are recovered from, given up on, and which are neither.

    python benchmarks/recoveries.py --cache knowledge [--each 1.5]

For every environment it plans conversations, several for each failure (a tool and a code) that exploring met, plays
them and holds them against the gates. A failure counts as *recovered from* where an accepted conversation makes up for
it by other arguments or by another tool, and as *given up on* where one ends by saying why it cannot be done and
changes nothing more. The misses are listed, each with why.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import click

import callwright as cw
from callwright.plugins import default_registry
from callwright.training.synthesis.synthesizer import Materials
from callwright.training.synthesis.units import Accepted
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint
from callwright_plugins.synthesis.blueprints.knowledge import known
from callwright_plugins.synthesis.grounded import Grounded

Cell = tuple[str, str]
WAYS = {"parameters": "by other arguments", "tool": "by another tool", "give up": "given up on"}


def failures_in(blueprint: Blueprint) -> Iterator[tuple[Cell, str]]:
    """The failures of a conversation, and what becomes of each."""
    for stage in blueprint.stages:
        for one in stage.failing:
            yield (stage.calls[one.call].tool, one.code), WAYS[one.recovery]
        if stage.ending == "failure" and stage.calls:
            yield (stage.calls[-1].tool, stage.code), WAYS["give up"]


@click.command()
@click.option("--each", default=1.5, show_default=True, help="Conversations for each failure that was met.")
@click.option("--seed", default=0, show_default=True)
@click.option("--calls", default=1200, show_default=True, help="Calls of exploring, for each seed.")
@click.option("--cache", metavar="FOLDER", help="Where knowledge of the environments is kept.")
def main(each: float, seed: int, calls: int, cache: str | None) -> None:
    """Print a row for each environment, and the misses."""
    began = time.process_time()
    registry = default_registry()
    total: Counter[str] = Counter()
    misses: list[str] = []
    click.echo(f"{'environment':16} {'met':>5} {'accepted':>9} {'arguments':>10} {'tool':>5} {'given up':>9}")
    for name in TOOLS:
        environment = cw.environment(name)
        folder = Path(cache) if cache else None
        found = known(environment, registry=registry, calls=calls, cache=folder)
        cells = {(tool, code) for tool, by_code in found.explored.failures.items() for code in by_code}
        materials = Materials(environment, seed=seed, count=max(40, round(each * len(cells))))
        shares = {"failing": 0.55, "recoveries": 0.45, "several_servers": 0.0, "irrelevance": 0.0}
        synthesizer = Grounded(cache=cache, calls=calls, clarifications=0.0, abstentions=0.0, **shares)
        ways: dict[Cell, set[str]] = defaultdict(set)
        why: dict[Cell, Counter[str]] = defaultdict(Counter)
        for unit in synthesizer.plan(materials):
            made = synthesizer.make(unit, materials)
            for cell, way in failures_in(Blueprint.from_json(unit.payload)):
                if isinstance(made, Accepted):
                    ways[cell].add(way)
                else:
                    why[cell][f"{made.stage}: {made.reason}"] += 1
        met = {cell: ways.get(cell, set()) for cell in cells}
        counts = Counter(way for found_ways in met.values() for way in found_ways)
        row = {"met": len(cells), "accepted": sum(map(bool, met.values())), **counts}
        total.update(row)
        shown = [row["met"], row["accepted"], *(counts[way] for way in WAYS.values())]
        click.echo(f"{name:16} {shown[0]:>5} {shown[1]:>9} {shown[2]:>10} {shown[3]:>5} {shown[4]:>9}")
        for cell in sorted(cell for cell, found_ways in met.items() if not found_ways):
            reasons = ", ".join(why[cell]) or "no world was found in which it fails so"
            misses.append(f"{name}: {cell[0]} {cell[1]}: {reasons}")
    click.echo(f"{total['accepted']} of {total['met']} failures, {time.process_time() - began:.0f} s of CPU")
    click.echo(", ".join(f"{total[way]} {way}" for way in WAYS.values()))
    for one in misses:
        click.echo(f"    {one}")


if __name__ == "__main__":
    main()
