"""``callwright report``."""

from __future__ import annotations

from pathlib import Path

import click

from callwright.commands.app import App
from callwright.commands.options import refuse_what_is_no_page
from callwright.commands.safe_text import say
from callwright.errors import UsageError
from callwright.training.run_folder import Run


@click.command("report")
@click.argument("run", metavar="PATH")
@click.option("-o", "--output", metavar="FILE", help="Where to write it. Default: report.html in the folder.")
@click.option("--scored", metavar="FILE", help="Of rewards: the rows or logs that were scored, to show their texts.")
@click.option("--tools", metavar="FILE", help="Of logs: the tools that were offered, where they do not say.")
@click.option("--open/--no-open", "show", default=False, help="Show it in the browser.")
@click.pass_obj
def report(app: App, run: str, output: str | None, scored: str | None, tools: str | None, show: bool) -> None:
    """Write the report of PATH as one HTML file. PATH is a run folder, what callwright evaluate -o left, or the
    rewards that callwright score -o wrote, of completions or of other stacks' logs.

    One that was stopped has a report, too.
    """
    from callwright_plugins.report.page import write_report, write_scored

    given = Path(run)
    target = Path(output) if output else None
    refuse_what_is_no_page(target)
    if given.is_file():
        path = write_scored(given, Path(scored) if scored else None, target, say, tools=tools, registry=app.registry)
    elif scored or tools:
        raise UsageError(f"--scored and --tools are for a file of rewards, and {run} is none")
    else:
        path = write_report(Run(given), target, say)
    click.echo(path)
    if show:
        click.launch(str(path.resolve()))
