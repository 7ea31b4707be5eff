"""``callwright synthesize report``: the page of a synthesis."""

from __future__ import annotations

from pathlib import Path

import click

from callwright.commands.options import refuse_what_is_no_page


@click.command("report")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Default: report.html in DIR.")
@click.option("--open/--no-open", "show", default=False, help="Show it in the browser.")
def report_(folder: Path, output: Path | None, show: bool) -> None:
    """Write the page of the finished synthesis in DIR: one HTML file that loads nothing.

    What was planned and rejected, what the tasks cover, how they differ, and ten of them drawn at random.
    """
    from callwright_plugins.synthesis.report.page import write_page

    refuse_what_is_no_page(output)
    path = write_page(folder, output)
    click.echo(path)
    if show:
        click.launch(str(path.resolve()))
