"""What commands draw with: a screen, tables, colours. Rich is imported here, and only when something is drawn."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from callwright.commands.safe_text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text


def screen(*, stderr: bool = False) -> Console:
    """A console on stdout or stderr. Nothing that is printed is read as markup.

    Where the reader has gone away, printing raises :class:`BrokenPipeError` as ``print`` does (Rich would exit with 1).
    """
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True
            raise  # Rich calls this while it handles the BrokenPipeError

    return Screen(file=sys.stderr if stderr else sys.stdout, markup=False, emoji=False, highlight=False)


def text(value: object, style: str = "") -> Text:
    """A text of unknown origin, harmless for terminals."""
    from rich.text import Text

    return Text(visible(str(value)), style)


def table(*headings: str, right: Sequence[int] = (), title: str = "") -> Table:
    """An empty table; the columns of these positions are set flush right."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", title_style="bold", pad_edge=False)
    for position, heading in enumerate(headings):
        made.add_column(text(heading), justify="right" if position in right else "left", overflow="fold")
    return made


def percent(value: float | None) -> str:
    """``0.8333`` as ``83.3%``."""
    return "–" if value is None else f"{100 * value:.1f}%"


def interval(cell: Mapping[str, Any] | None) -> str:
    """The ``accuracy`` of a cell with its interval (``low``, ``high``): ``83.3% [66, 93]``; a dash without tasks."""
    if not cell or not cell.get("n"):
        return "–"
    low, high = cell.get("low"), cell.get("high")
    bounds = f" [{100 * low:.0f}, {100 * high:.0f}]" if low is not None and high is not None else ""
    return f"{percent(cell['accuracy'])}{bounds}"
