"""``callwright verl-export``."""

from __future__ import annotations

from pathlib import Path

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import ComponentName


@click.command("verl-export")
@click.argument("corpus", type=ComponentName("corpus"), metavar="CORPUS")
@click.argument("output", metavar="OUT.parquet", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--split", default="train", show_default=True, metavar="NAME", help="The split to write.")
@options.data_option
@options.corpus_settings
@options.ir_option
@click.option("--tools", is_flag=True, help="Write queries alone, for verl's own loop of tool calls, instead of --ir.")
@click.option("--agent", metavar="NAME", help="Write this as agent_name: which agent loop the rows are for.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N tasks.")
@options.replace_option
@click.option("--seed", type=int, hidden=True, expose_value=False, help="Of no effect: a task fixes its world.")
@click.pass_obj
def verl_export(
    app: App,
    corpus: str,
    output: Path,
    split: str,
    data: str | None,
    corpus_options: tuple[str, ...],
    ir: str,
    tools: bool,
    agent: str | None,
    limit: int | None,
    overwrite: bool,
) -> None:
    """Write a corpus as parquet for verl.

    A row is a task: its prompt, the name of the corpus as data_source, the id of the task as ground truth.
    """
    from callwright_plugins.verl_bridge.parquet import write_parquet

    options.refuse_existing(output, overwrite=overwrite)
    made = app.registry.create("corpus", corpus, **options.corpus_keys(data, corpus_options))
    count = write_parquet(
        made,
        output,
        split,
        None if tools else ir,
        agent=agent,
        limit=limit,
        registry=app.registry,
    )
    click.echo(f"{count:,} rows in {output}")
