"""Options that the commands of synthesis share: which environment, which worlds, how many calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import ComponentName
from callwright.environments.protocol import Environment
from callwright.errors import UsageError
from callwright.training.run_folder import write_atomically

environment_options = options.stack(
    click.option("--scenario", default="", metavar="NAME", help="The scenario; the first one if left out."),
    click.option("--seeds", default="0,1", show_default=True, metavar="N,N", help="The worlds: a seed each."),
    click.option(
        "--calls",
        type=click.IntRange(min=1),
        metavar="N",
        help="Calls of each seed. Default: 600 for each tool; of a server 60.",
    ),
    click.option(
        "--allow-destructive",
        is_flag=True,
        help="Call tools of a server that destroy something, though nothing says that it is gone with the session.",
    ),
    click.option(
        "--option", "settings", multiple=True, metavar="K=V", help="An option of the environment. Repeatable."
    ),
    click.option(
        "--toolset",
        "toolsets",
        type=ComponentName("toolset"),
        multiple=True,
        metavar="NAME",
        help="Add a registered toolset. Repeatable.",
    ),
)


def make_environment(app: App, name: str, settings: Sequence[str], toolsets: Sequence[str]) -> Environment:
    """The environment that the options describe."""
    given: dict[str, Any] = options.key_values(settings, "--option")
    if toolsets:
        given["toolsets"] = list(toolsets)
    made: Environment = app.registry.create("environment", name, **given)
    return made


def read_seeds(text: str) -> tuple[int, ...]:
    """``"0,1"`` as numbers. Raises :class:`callwright.UsageError` for what is none."""
    try:
        seeds = tuple(int(one) for one in text.split(","))
    except ValueError as error:
        raise UsageError(f"--seeds {text}: expected whole numbers with commas between them, such as 0,1") from error
    if len(set(seeds)) < len(seeds):
        raise UsageError(f"--seeds {text}: each seed once")
    return seeds


def write_text(path: Path, text: str) -> None:
    """Write a file whole. Raises :class:`callwright.UsageError` where it cannot be."""
    try:
        write_atomically(path, text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error
