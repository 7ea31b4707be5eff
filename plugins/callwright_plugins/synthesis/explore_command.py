"""``callwright synthesize explore``: what the tools of an environment can be made to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import ComponentName
from callwright_plugins.synthesis.settings import environment_options, make_environment, read_seeds, write_text

if TYPE_CHECKING:
    from callwright_plugins.synthesis.exploration.explored import Explored


@click.command("explore")
@click.argument("name", type=ComponentName("environment"), metavar="ENV")
@environment_options
@click.option("-o", "--out", type=click.Path(dir_okay=False), metavar="FILE", help="Write everything as JSON.")
@options.replace_option
@options.json_option
@click.pass_obj
def explore_(
    app: App,
    name: str,
    scenario: str,
    seeds: str,
    calls: int | None,
    allow_destructive: bool,
    settings: tuple[str, ...],
    toolsets: tuple[str, ...],
    out: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Call the tools of the environment ENV with what schemas, results and people suggest.

    Found are calls that execute, each with its path from a fresh session, the ways in which each tool fails, and the
    values that are met. The exit status is 1 if a tool never executed.
    """
    from callwright.commands.bars import reporter
    from callwright_plugins.synthesis.exploration.explored import explore

    if out is not None:
        options.refuse_existing(Path(out), overwrite=overwrite)
    environment = make_environment(app, name, settings, toolsets)
    worlds = read_seeds(seeds)
    with reporter() as bars:
        found = explore(
            environment,
            scenario=scenario,
            seeds=worlds,
            calls=calls,
            allow_destructive=allow_destructive,
            reporter=bars,
        )
    if out is not None:
        write_text(Path(out), json.dumps(found.as_json(), indent=1, ensure_ascii=False) + "\n")
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
    else:
        draw(found)
    if found.missing:
        click.get_current_context().exit(1)


def draw(found: Explored) -> None:
    """What was found, a line for each tool."""
    from callwright.commands.terminal import screen, table, text
    from callwright_plugins.synthesis.exploration.explored import TELLING

    shown = table("tool", "shortest path", "fails with", codes=(0,))
    for tool in found.tools:
        witnesses = found.witnesses.get(tool, ())
        path = " ".join(call.tool for call in witnesses[0].calls) if witnesses else "never executed"
        if witnesses and tool in found.untold:
            path += ", which found nothing"
        codes = ", ".join(sorted(found.failures.get(tool, ())))
        shown.add_row(text(tool), text(path, "" if witnesses else "red"), text(codes))
    out = screen()
    out.print(shown)
    worlds = f"{found.calls:,} calls and {found.states:,} states of {len(found.seeds)} worlds"
    out.print(text(f"{len(found.witnesses)} of {len(found.tools)} tools executed, in {worlds}"))
    if found.untold:
        out.print(text(f"Never executed, or never found anything: {', '.join(found.untold)}. What helps: {TELLING}"))
    if found.forbidden:
        out.print(text(f"Not called, because they destroy (--allow-destructive): {', '.join(found.forbidden)}"))
