"""The proofs of every dependency graph, made again: each graph in a process of its own that has seen nothing.

    python benchmarks/proofs.py --cache knowledge [--calls 1200]

Knowledge is taken from the folder, or found out and kept there. Then ``callwright synthesize check`` makes the calls of
all proofs of each environment again, in a fresh process with another hash seed.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import click

import callwright as cw
from callwright.plugins import default_registry
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.synthesis.blueprints.knowledge import known


@click.command()
@click.option("--cache", required=True, metavar="FOLDER", help="Where knowledge of the environments is kept.")
@click.option("--calls", default=1200, show_default=True, help="Calls of exploring, for each seed.")
def main(cache: str, calls: int) -> None:
    """Print how many proofs of each environment hold, and what does not."""
    registry = default_registry()
    proofs = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(TOOLS):
            graph = known(cw.environment(name), registry=registry, calls=calls, cache=Path(cache)).graph
            file = Path(folder) / f"{name}.json"
            file.write_text(json.dumps(graph.as_json()), encoding="utf-8")
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            said = subprocess.run(
                [sys.executable, "-m", "callwright", "synthesize", "check", str(file), "--json"],
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONHASHSEED": str(number + 1)},
            )
            if said.returncode not in (0, 1):
                raise click.ClickException(f"{name}: {said.stderr[-400:]}")
            found = json.loads(said.stdout)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            proofs, wrong = proofs + found["proofs"], wrong + len(found["wrong"])
            click.echo(
                f"{name:16} {found['proofs'] - len(found['wrong']):>5} of {found['proofs']:>5} hold, {took:.1f} s"
            )
            for one in found["wrong"]:
                click.echo(f"    {one['source']} -> {one['target']} ({one['kind']}): {one['reason']}")
    click.echo(f"{proofs - wrong:,} of {proofs:,} proofs hold")


if __name__ == "__main__":
    main()
