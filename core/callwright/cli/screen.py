"""What commands draw with: tables, colours, progress. Rich is imported here, and only when something is drawn."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from callwright.cli.failures import visible

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
    """Accuracy with its interval and number of tasks: ``83.3%  [66, 93]  n=30``."""
    if not cell or not cell.get("n"):
        return "–"
    low, high = cell.get("low"), cell.get("high")
    bounds = f" [{100 * low:.0f}, {100 * high:.0f}]" if low is not None and high is not None else ""
    return f"{percent(cell['accuracy'])}{bounds}"


def before_and_after(evaluation: Mapping[str, Any]) -> Table:
    """Accuracy per depth before and after training, from a run's ``evaluation.json``."""
    before, after = evaluation.get("before") or {}, evaluation.get("after") or {}
    made = table("depth", "tasks", "before", "after", "change", right=(0, 1, 2, 3, 4), title="Accuracy by depth")
    depths = sorted({**(before.get("by_depth") or {}), **(after.get("by_depth") or {})}, key=_depth_key)
    for depth in depths:
        first, last = (side.get("by_depth", {}).get(depth) for side in (before, after))
        count = (last or first or {}).get("n", "")
        made.add_row(depth, str(count), interval(first), interval(last), _change(_accuracy(first), _accuracy(last)))
    first, last = before.get("overall"), after.get("overall")
    made.add_section()
    count = str(after.get("n", before.get("n", "")))
    made.add_row("all", count, percent(first), percent(last), _change(first, last))
    return made


def _accuracy(cell: Mapping[str, Any] | None) -> float | None:
    return cell.get("accuracy") if cell else None


def _change(first: float | None, last: float | None) -> Text:
    if first is None or last is None:
        return text("–")
    points = 100 * (last - first)
    return text(f"{points:+.1f}", "green" if points > 0 else "red" if points < 0 else "")


def _depth_key(depth: str) -> tuple[int, str]:
    return (int(depth), "") if depth.isdecimal() else (1 << 30, depth)
