"""A quick start: while modules are imported nothing is garbage, so that nobody need look for any.

What a command imports is tens of thousands of objects that stay. Python looks through them again and again while they
are made, which was a ninth of the time until a command runs.
"""

from __future__ import annotations

import gc

_starting = False


def begin_start() -> None:
    """Leave the collector of garbage off until :func:`end_start`: for a process that is this command line's own."""
    global _starting
    if gc.isenabled():
        gc.disable()
        _starting = True


def end_start() -> None:
    """The command is there: from now on garbage is looked for, in what comes after. Nothing if no start was begun."""
    global _starting
    if _starting:
        _starting = False
        gc.freeze()
        gc.enable()
