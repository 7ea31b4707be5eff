"""``callwright view``."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.safe_text import visible
from callwright.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from callwright_plugins.viewer.serving.api import Board


@click.command("view")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: any that is free.")
@click.option("--browse/--no-browse", default=True, help="Open the page in a browser. Default: yes.")
@click.option("--export", "folder", type=click.Path(path_type=Path), metavar="DIR", help="Write the pages as files.")
@click.option(
    "--most", type=click.IntRange(min=1), default=5000, show_default=True, help="Rows of a source in --export."
)
@options.yes_option
@click.option("--tui", is_flag=True, help="In the terminal.")
@click.pass_obj
def view(
    app: App,
    paths: tuple[Path, ...],
    port: int,
    browse: bool,
    folder: Path | None,
    most: int,
    yes: bool,
    tui: bool,
) -> None:
    """Look at every rollout, in the browser or in the terminal.

    PATH is a run, an evaluation, a synthesis, a folder of these, or a file of scored rows, tasks or traces. What grows
    is followed while it grows. The server answers to this machine alone, and writes nothing but your notes.
    """
    from callwright_plugins.viewer.answers.again import Again
    from callwright_plugins.viewer.serving.api import Board
    from callwright_plugins.viewer.sources.finding import sources_of

    if folder is not None and tui:
        raise click.UsageError("--export writes pages; --tui shows none: give one of them")
    board = Board(sources_of(paths, app.registry), app.registry, Again(app.registry, app.recall, yes=yes))
    with contextlib.closing(board):
        if folder is not None:
            from callwright_plugins.viewer.serving.exporting import export

            board.read_all()
            export(board, folder, most, lambda text: click.echo(visible(text), err=True))
            click.echo(str(folder / "index.html"))
        elif tui:
            _terminal(board)
        else:
            _serve(board, port, browse)


def _terminal(board: Board) -> None:
    if importlib.util.find_spec("textual") is None:
        raise MissingExtra("callwright view --tui", "view", "textual")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--tui needs a terminal; --export writes pages")
    from callwright_plugins.viewer.terminal.app import show

    show(board)


def _serve(board: Board, port: int, browse: bool) -> None:
    from callwright_plugins.viewer.serving.server import Viewer

    try:
        server = Viewer(board, port)
    except OSError as error:
        raise UsageError(
            f"port {port} cannot be listened on: {error.strerror or error}; --port 0 takes a free one"
        ) from error
    board.start()
    with server:
        click.echo(server.url)
        click.echo("Ctrl-C ends it", err=True)
        if browse:
            webbrowser.open(server.url)
        server.serve_forever(poll_interval=0.2)  # until a signal, which is the status that the command ends with
