"""The report of a run or an evaluation: one HTML file that explains itself, opens anywhere and loads nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

if TYPE_CHECKING:
    from callwright.training.run_folder import Run


@hookimpl
def callwright_run_finished(run: Run) -> None:
    """Write ``report.html`` into the run folder."""
    from callwright_plugins.report.page import write_report

    write_report(run)


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """``callwright report`` and ``callwright compare``."""
    yield Lazy(
        "report",
        "callwright_plugins.report.command:report",
        "write the report of a run or an evaluation, finished or not",
    )
    yield Lazy(
        "compare",
        "callwright_plugins.report.comparing.command:compare",
        "compare evaluations of the same tasks: paired differences, and the tasks that flipped",
    )
