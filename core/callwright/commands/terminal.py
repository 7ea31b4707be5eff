"""What commands draw with: a screen, tables, colours. Rich is imported here, and only when something is drawn."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from callwright.commands.safe_text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

#: On narrower terminals columns of codes are folded as all others: to keep them whole would leave these nothing.
_NARROW: Final = 60
_WIDEST: Final = 10_000
#: Room that names have beside figures, if they need it.
_NAMES: Final = 24


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


def table(
    *headings: str,
    right: Sequence[int] = (),
    title: str = "",
    codes: Sequence[int] = (),
    figures: Sequence[int] = (),
) -> Table:
    """An empty table; the columns of these positions are set flush right.

    ``codes`` are columns of names that somebody copies or searches for, such as tools and failures: the others give way
    to them, and what is too long all the same is parted behind punctuation, never within a word.
    ``figures`` are columns whose cells are never parted; where there are many of them, see :func:`parts`.
    """
    from rich import box
    from rich.table import Table

    width = screen().width
    whole = frozenset(codes) if width >= _NARROW else frozenset()
    most = width // (2 * len(whole)) if whole else 0

    class Folding(Table):
        def add_row(self, *cells: Any, **how: Any) -> None:
            super().add_row(*(_folded(one, most) if at in whole else one for at, one in enumerate(cells)), **how)

    made = Folding(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", title_style="bold", pad_edge=False)
    for position, heading in enumerate(headings):
        justify: Any = "right" if position in right else "left"
        made.add_column(
            text(heading), justify=justify, overflow="fold", no_wrap=position in whole or position in figures
        )
    return made


def _folded(cell: Any, most: int) -> Any:
    """A cell whose lines have at most so many characters, parted behind spaces and punctuation where it can be."""
    from rich.text import Text

    if not isinstance(cell, str | Text):
        return cell
    lines = []
    for line in str(cell).split("\n"):
        while len(line) > most:
            at = max(line.rfind(mark, 0, most) for mark in " :_.-/,") + 1 or most
            lines.append(line[:at].rstrip())
            line = line[at:]
        lines.append(line)
    joined = "\n".join(lines)
    return Text(joined, cell.style) if isinstance(cell, Text) else joined


def fits(made: Table, console: Console) -> bool:
    """Whether a table stands on a console without any of its lines parted."""
    wide = console.options.update(width=_WIDEST)
    return console.measure(made, options=wide).maximum <= console.width


def parts(heads: Sequence[str], rows: Sequence[Sequence[str] | None], title: str, console: Console) -> list[Table]:
    """Names with their figures as one table or, where it is too wide, as several: each has the names and some columns.

    No figure is parted, and no name within a word that has room. A row that is ``None`` begins a section.
    """
    least = min(_NAMES, max((len(row[0]) for row in rows if row), default=0))

    def made(columns: Sequence[int], named: Sequence[str]) -> Table:
        place = range(1, len(columns) + 1)
        shown = table(named[0], *(named[at] for at in columns), right=place, title=title, figures=place)
        shown.columns[0].min_width = least
        for row in rows:
            if row is None:
                shown.add_section()
            else:
                shown.add_row(*(text(row[at]) for at in (0, *columns)))
        return shown

    def narrowest(columns: Sequence[int]) -> int:
        # Not the least width that rich knows: that is as if figures were parted at their spaces.
        shown = made(columns, broken)
        shown.columns[0].max_width = least
        return console.measure(shown, options=console.options.update(width=_WIDEST)).maximum

    left = [*range(1, len(heads))]
    whole = made(left, heads)
    if left and not fits(whole, console):
        whole.padding = (0, 1, 0, 0)  # columns stand closer before any is taken away
    if not left or fits(whole, console):
        return [whole]
    broken = [heads[0], *(head.replace(" ", "\n") for head in heads[1:])]
    found = []
    while left:
        count = 1
        while count < len(left) and narrowest(left[: count + 1]) <= console.width:
            count += 1
        found.append(made(left[:count], broken))
        left = left[count:]
    return found


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


def masked_bounds(cell: Mapping[str, Any]) -> str:
    """Between what and what the accuracy lies if the masked attempts count as wrong and as right."""
    return f"{percent(cell['lowest'])} to {percent(cell['highest'])}"


def whole_accuracy(result: Mapping[str, Any] | None) -> str:
    """The accuracy of all in a result (``callwright.training.summary.summarize``) with its interval; with how many are
    masked, if any are, and where that is too many for a headline the bounds in its place. A dash where nothing counts.
    """
    cell = result.get("all") if result else None
    if not result or not cell:
        return "–"
    masked = f", {result['masked']} masked" if result.get("masked") else ""
    return (interval(cell) if result.get("headline", True) else masked_bounds(cell)) + masked
