"""``callwright report``."""

from __future__ import annotations

from pathlib import Path

import click

from callwright.training.run_folder import Run


@click.command("report")
@click.argument("run", metavar="DIR")
@click.option("-o", "--output", metavar="FILE", help="Where to write it. Default: report.html in the folder.")
@click.option("--open/--no-open", "show", default=False, help="Show it in the browser.")
def report(run: str, output: str | None, show: bool) -> None:
    """Write the report of DIR as one HTML file. DIR is a run folder or what callwright evaluate -o left.

    One that was stopped has a report, too.
    """
    from callwright_plugins.report.page import write_report

    path = write_report(Run(Path(run)), Path(output) if output else None)
    click.echo(path)
    if show:
        click.launch(str(path.resolve()))
