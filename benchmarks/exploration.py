"""What exploring and the dependency graph come to, for every shipped environment, without a model or a network.

    python benchmarks/exploration.py
    python benchmarks/exploration.py --explore-only banking crm
    python benchmarks/exploration.py --golden golden.json --check

Of each environment: calls and states, tools reached, those that are missing, CPU seconds; pairs with a needed step and
with a needed value, and what schemas alone propose. ``--golden`` is a JSON file of edges in words, by environment:
``{"banking": {"edges": "list_accounts→transfer_funds; …", "mutating": […], "read_only": […]}}``; ``→`` and ``⇒`` are
both edges, ``/`` names several tools, ``*`` all that change something. ``--check`` makes every proof again in a process
of its own.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import callwright as cw
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.synthesis.exploration.explored import explore
from callwright_plugins.synthesis.graph.building import build
from callwright_plugins.synthesis.graph.edges import Graph
from callwright_plugins.synthesis.graph.proposals import matched


def golden_pairs(row: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """The pairs that the words of one environment name, and whether both names are written out."""
    known = {*row["read_only"], *row["mutating"]}
    seen = set()
    for chain in row["edges"].split(";"):
        before: list[str] = []
        starred = False
        for word in re.split("[→⇒]", chain):
            name = word.strip()
            whole = re.fullmatch(r"\((\w+)\)", name)
            name = whole[1] if whole else re.sub(r"\s*[\[(].*", "", name)
            all_writes = word.strip().startswith("*")
            here = list(row["mutating"]) if all_writes else [one for one in name.split("/") if one in known]
            for source in before:
                for target in here:
                    if source != target and (source, target) not in seen:
                        seen.add((source, target))
                        yield source, target, not (all_writes or starred)
            if here:
                before, starred = here, all_writes


def check_in_a_fresh_process(name: str, graph: Graph, folder: Path) -> str:
    """What ``callwright synthesize graph --check`` says of the graph."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps(graph.as_json()), encoding="utf-8")
    command = [sys.executable, "-m", "callwright", "synthesize", "graph", name, "--check", str(path), "--json"]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    return f"{said['proofs'] - len(said['wrong'])}/{said['proofs']} proofs hold"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(TOOLS))
    parser.add_argument("--calls", type=int, help="of each seed; default: 600 for each tool")
    parser.add_argument("--explore-only", action="store_true")
    parser.add_argument("--golden", type=Path)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    golden = json.loads(given.golden.read_text(encoding="utf-8")) if given.golden else {}
    sums = dict.fromkeys(
        ("tools", "reached", "cpu", "state", "information", "pairs", "named", "found", "all", "met"), 0.0
    )
    missed: list[str] = []
    for name in given.names:
        environment = cw.environment(name)
        begun = time.process_time()
        explored = explore(environment, calls=given.calls)
        cpu = time.process_time() - begun
        sums["tools"] += len(explored.tools)
        sums["reached"] += len(explored.witnesses)
        sums["cpu"] += cpu
        codes = sum(len(found) for found in explored.failures.values())
        print(
            f"{name:<15} {explored.calls:6,} calls {explored.states:5,} states {len(explored.witnesses):3}/"
            f"{len(explored.tools):<3} tools {codes:4} failures {cpu:6.1f} s CPU "
            f"{' '.join(explored.missing)}",
            flush=True,
        )
        if given.explore_only:
            continue
        begun = time.process_time()
        graph, effort = build(environment, explored)
        cpu = time.process_time() - begun
        steps, told, either = graph.pairs("state"), graph.pairs("information"), graph.pairs()
        strict = {(edge.source, edge.target) for edge in graph.edges if edge.strict}
        proposed = matched(environment.tools)
        sums["state"] += len(steps)
        sums["information"] += len(told)
        sums["pairs"] += len(explored.tools) * (len(explored.tools) - 1)
        line = (
            f"{'':<15} {effort.calls:6,} calls {len(steps):4} steps {len(told):4} values, {len(strict):4} of "
            f"{len(either):4} pairs fail without, {len(set(proposed) & set(either)):4} of {len(proposed):4} by schemas "
            f"{cpu:6.1f} s CPU"
        )
        if name in golden:
            pairs = list(golden_pairs(golden[name]))
            named = [(source, target) for source, target, written in pairs if written]
            found = [pair for pair in named if pair in either]
            sums["named"] += len(named)
            sums["found"] += len(found)
            sums["all"] += len(pairs)
            sums["met"] += sum((source, target) in either for source, target, _ in pairs)
            missed += [f"{name}: {source} → {target}" for source, target in named if (source, target) not in either]
            line += f" golden {len(found)}/{len(named)}"
        if given.check:
            with tempfile.TemporaryDirectory() as folder:
                line += f" {check_in_a_fresh_process(name, graph, Path(folder))}"
        print(line, flush=True)
    print(f"{sums['reached']:.0f} of {sums['tools']:.0f} tools executed, {sums['cpu']:.1f} s CPU")
    if not given.explore_only:
        print(f"{sums['state']:.0f} pairs with a step, {sums['information']:.0f} with a value, of {sums['pairs']:,.0f}")
    if golden:
        print(f"golden pairs: {sums['found']:.0f} of {sums['named']:.0f}", end="; ")
        print(f"with those of *: {sums['met']:.0f} of {sums['all']:.0f}")
        print("\n".join(missed))


if __name__ == "__main__":
    main()
