"""``callwright zebra``: a command made of what Callwright's own commands are made of."""

from __future__ import annotations

import json

import click

from callwright.commands import App, make_pipeline, options, screen, table, text
from callwright.commands.options import ComponentName


@click.command("zebra")
@click.option(
    "--corpus",
    type=ComponentName("corpus"),
    default="toolworld-mini-v1",
    show_default=True,
    metavar="NAME",
    help="Whose tasks.",
)
@click.option("--split", default="evaluation", show_default=True, metavar="NAME", help="Which of its splits.")
@options.json_option
@click.pass_obj
def zebra_command(app: App, corpus: str, split: str, as_json: bool) -> None:
    """Count the tasks of a corpus by their structure."""
    pipeline = make_pipeline(app.registry, corpus, {})
    counts: dict[str, int] = {}
    for task in pipeline.corpus[split]:
        counts[task.structure] = counts.get(task.structure, 0) + 1
    if as_json:
        click.echo(json.dumps(counts))
        return
    shown = table("structure", "tasks", right=(1,))
    for structure, count in sorted(counts.items()):
        shown.add_row(text(structure), text(count))
    screen().print(shown)
