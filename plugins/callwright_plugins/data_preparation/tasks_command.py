"""``callwright prepare tasks``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from callwright.commands.app import App
from callwright.commands.bars import bars_for_bytes
from callwright.errors import DataError, UsageError
from callwright.training.run_folder import write_atomically
from callwright.walk.task_rows.writing import write_tasks
from callwright.walk.tasks import Task
from callwright_plugins.data_preparation.decided_tasks import Imported


@click.command("tasks")
@click.option("--when2call", type=click.Path(), multiple=True, help="A file of When2Call: sft, pref or test.")
@click.option("--irrelevance", type=click.Path(), multiple=True, help="A file of xLAM-irrelevance.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), metavar="FILE", help="What is written.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier output.")
@click.pass_context
def tasks(
    ctx: click.Context, when2call: tuple[str, ...], irrelevance: tuple[str, ...], output: Path, overwrite: bool
) -> None:
    """Make a file of tasks about whether to call at all, from When2Call and xLAM-irrelevance.

    Rows in which something is missing are clarifications, rows that no tool serves abstentions, and the others calls.
    FILE ends in .jsonl, .jsonl.gz, .jsonl.zst or .parquet; the corpus 'tasks' reads it. FILE.manifest.json says what
    was read and what was left out.
    """
    app = ctx.ensure_object(App)
    named = [("when2call", Path(one)) for one in when2call] + [("irrelevance", Path(one)) for one in irrelevance]
    if not named:
        raise UsageError("name at least one file: --when2call FILE or --irrelevance FILE")
    manifest = output.with_name(f"{output.name}.manifest.json")
    standing = [path for path in (output, manifest) if path.exists()]
    if standing and not overwrite:
        raise UsageError(f"{standing[0]} exists: name another -o, or replace it with --overwrite")
    manifest.unlink(missing_ok=True)  # it stands for a whole output, and is written last
    sources = []
    found = [(name, file, Imported(app.registry)) for name, file in named]
    total = sum(file.stat().st_size for _, file in named if file.is_file())
    bars = bars_for_bytes(total, busy=False)

    def every() -> Iterator[Task]:
        ids: set[str] = set()
        for name, file, imported in found:
            for task in imported.tasks(name, file, (lambda size: None) if bars is None else bars.advance):
                if task.id in ids:
                    raise UsageError(f"{file}: another file has such rows, too; write each to a file of its own")
                ids.add(task.id)
                yield task

    about = {"made_by": "callwright prepare tasks"}
    if bars is None:
        count = write_tasks(output, every(), about=about, registry=app.registry)
    else:
        with bars:
            bars.start("reading", total)
            count = write_tasks(output, every(), about=about, registry=app.registry)
            bars.finish()
    for name, file, imported in found:
        sources.append(
            {
                "data": name,
                "file": str(file),
                "kinds": dict(sorted(imported.kinds.items())),
                "left out": dict(imported.left_out.most_common()),
            }
        )
        told = ", ".join(f"{number:,} {kind}" for kind, number in sorted(imported.kinds.items()))
        click.echo(f"{file}: {told or 'no task'}")
        for reason, number in imported.left_out.most_common():
            click.echo(f"  left out: {number:,} ({reason})")
    if not count:
        output.unlink(missing_ok=True)
        raise DataError("none of the files gave a task; see the reasons above, and whether each is of its data set")
    write_atomically(manifest, json.dumps({"format": "tasks", "sources": sources}, indent=2) + "\n")
    click.echo(f"{count:,} tasks in {output}")
