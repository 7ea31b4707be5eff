"""Progress for people: bars with estimates on a terminal, a line now and then in a log file."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from callwright.commands.safe_text import say, visible
from callwright.training.reporter import Reporter

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

#: Seconds between two lines in a log file.
_PAUSE: Final = 20.0
#: Bytes of a file that takes long enough to be watched.
_LONG: Final = 5_000_000


def bars_for_bytes(size: int, *, busy: bool) -> Bars | None:
    """Bars for reading a long file on a terminal; ``None`` for a short one, elsewhere, or where stdout is ``busy``."""
    drawn = size >= _LONG and sys.stderr.isatty() and not (busy and sys.stdout.isatty())
    return Bars() if drawn else None


def reporter(headline: str = "") -> Bars | Lines:
    """Bars if stderr is a terminal, else lines. ``headline`` is said when the first stage begins."""
    return Bars(headline) if sys.stderr.isatty() else Lines(headline)


class Bars:
    """Draws one bar a stage on stderr. Use as a context, so that the terminal is left in order."""

    def __init__(self, headline: str = "") -> None:
        self._headline = headline
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Bars:
        """Begin to draw."""
        from rich import progress

        from callwright.commands.terminal import screen

        self._progress = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(bar_width=28),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TextColumn("left"),
            progress.TimeRemainingColumn(compact=True),
            progress.TextColumn("{task.fields[figures]}", markup=False, style="dim"),
            console=screen(stderr=True),
        )
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Leave the bars as they stand."""
        if self._progress is not None:
            self._progress.stop()

    def start(self, stage: str, total: int, done: int = 0) -> None:
        if self._headline:
            self.say(self._headline)
            self._headline = ""
        if self._progress is not None:
            self._task = self._progress.add_task(visible(stage), total=total, completed=done, figures="")

    def advance(self, units: int = 1, **figures: float) -> None:
        """Move the newest bar."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, advance=units)
            if figures:
                self._progress.update(self._task, figures=_figures(figures))

    def say(self, text: str) -> None:
        """A line above the bars."""
        if self._progress is not None:
            from callwright.commands.terminal import text as safe

            self._progress.console.print(safe(text))

    def finish(self) -> None:
        """The newest bar stays as it stands."""
        if self._progress is not None and self._task is not None:
            self._progress.stop_task(self._task)
            self._task = None


class Lines:
    """Writes a line at the beginning and end of each stage, and one every 20 seconds between, with what is left."""

    def __init__(self, headline: str = "") -> None:
        self._headline = headline
        self._stage, self._total, self._done, self._first = "", 0, 0, 0
        self._began = self._said = 0.0
        self._figures = ""

    def __enter__(self) -> Lines:
        """Nothing to prepare."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Nothing to put away."""

    def start(self, stage: str, total: int, done: int = 0) -> None:
        """The line that begins a stage."""
        self._stage, self._total, self._done, self._first, self._figures = stage, total, done, done, ""
        self._began = self._said = time.monotonic()
        if self._headline:
            say(self._headline)
            self._headline = ""
        say(f"{stage}: {total - done:,} to do" + (f", {done:,} done before" if done else ""))

    def advance(self, units: int = 1, **figures: float) -> None:
        """A line, if the last one is long ago."""
        self._done += units
        self._figures = _figures(figures) or self._figures
        now = time.monotonic()
        over = self._done >= self._total
        if now - self._said < _PAUSE or (over and units):
            return
        self._said = now
        if over:  # nothing more is counted, but the stage goes on
            self._line("not over yet")
            return
        left = (now - self._began) / max(1, self._done - self._first) * (self._total - self._done)
        self._line(f"about {_duration(left)} left")

    def say(self, text: str) -> None:
        say(text)

    def finish(self) -> None:
        """The line that ends a stage."""
        self._line(f"in {_duration(time.monotonic() - self._began)}")

    def _line(self, tail: str) -> None:
        say(f"{self._stage}: {self._done:,}/{self._total:,}, {tail}" + (f", {self._figures}" if self._figures else ""))


def _figures(figures: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.3g}" for name, value in figures.items())


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _conforms(bars: Bars, lines: Lines) -> tuple[Reporter, Reporter, Any]:
    """Checked by mypy only: both are reporters."""
    return bars, lines, None
