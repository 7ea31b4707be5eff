"""``callwright plugins new``."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from callwright.commands.app import App
from callwright.commands.safe_text import say
from callwright.errors import UsageError
from callwright_plugins.new_plugin.kind import KINDS
from callwright_plugins.new_plugin.writing import Licence, NewPlugin


@click.command("new")
@click.argument("name")
@click.option("--kind", type=click.Choice(list(KINDS)), required=True, help="What it registers.")
@click.option("--licence", type=click.Choice(get_args(Licence)), default="mit", show_default=True, help="Of its code.")
@click.option("--author", default="", metavar="NAME", help="Who holds the copyright.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="DIR", help="Default: ./callwright-NAME.")
@click.pass_obj
def new(app: App, name: str, kind: str, licence: Licence, author: str, output: Path | None) -> None:
    """Write a plugin NAME: a distribution of your own with a component that works, its tests and a CI file.

    It is green at once. What is special about yours you write in its place.
    """
    made = NewPlugin(name.removeprefix("callwright-"), kind, licence, author)
    taken = {info.name: info for info in app.registry.plugins}.get(made.name)
    if taken is not None:
        where = f"{taken.distribution} {taken.version}".strip() or taken.module
        raise UsageError(f"there is a plugin {made.name!r} already, of {where}; choose another name")
    for of, component in made.components():  # two of one name would be refused by every command, once it is installed
        if component in app.registry.names(of):
            whose = app.registry.spec(of, component).plugin
            raise UsageError(f"the {of} {component!r} is there already, of the plugin {whose!r}; choose another name")
    folder = output or Path(made.distribution)
    made.write(folder)
    say(f"{folder} holds a plugin {made.name!r} with {KINDS[kind].what}. Next:")
    for line in (f"cd {folder}", "pip install --editable '.[dev]'", f"callwright plugins check {made.name}", "pytest"):
        say(f"    {line}")
