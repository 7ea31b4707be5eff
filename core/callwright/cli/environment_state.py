"""``callwright env snapshot | diff``: the whole state of a session in a file, and what is different in another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from callwright.cli.environments import draw_diff, environment_options, make_environment, session_options
from callwright.cli.state_files import compare, dumped, must_have_tables, read_state, write_state
from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import ComponentName


@click.command("snapshot")
@click.argument("name", type=ComponentName("environment"), metavar="ENV")
@session_options
@environment_options
@click.option("-o", "--output", metavar="FILE", help="Write into this file instead of stdout.")
@options.replace_option
@click.pass_obj
def snapshot(
    app: App,
    name: str,
    scenario: str,
    seed: int,
    settings: tuple[str, ...],
    toolsets: tuple[str, ...],
    scale: float | None,
    output: str | None,
    overwrite: bool,
) -> None:
    """The first state of a scenario of ENV as JSON: the time and every table. `env call --state` goes on from it."""
    if output is not None:
        options.refuse_existing(Path(output), overwrite=overwrite)
    session: Any = make_environment(app.registry, name, settings, toolsets, scale).open(scenario, seed)
    must_have_tables(session)
    if output is None:
        click.echo(json.dumps(dumped(session), indent=1, ensure_ascii=False))
    else:
        write_state(session, Path(output))


@click.command("diff")
@click.argument("first", metavar="FILE")
@click.argument("second", metavar="FILE")
@options.json_option
def diff(first: str, second: str, as_json: bool) -> None:
    """What is different in the second of two snapshots. The exit status is 1 if anything is."""
    found = compare(read_state(Path(first)), read_state(Path(second)))
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        draw_diff(found)
    if found:
        click.get_current_context().exit(1)
