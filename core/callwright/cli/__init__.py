"""The command line: Callwright's own commands, one module a command, and what carries them.

``root`` finds the commands without importing them, ``failures`` turns every exception into one line and an exit status,
``logging`` sets the log up, ``starting`` makes the start quick, ``streams`` makes do with standard streams that are
closed or know few characters. What commands are made of stands in :mod:`callwright.commands`, which plugins use too.
May import: everything of the core but ``testing``. Nothing imports it.
"""

from __future__ import annotations

import contextlib
import sys


def main() -> None:
    """Run the command line on ``sys.argv`` and leave the process with its exit status."""
    from callwright.cli.starting import begin_start

    begin_start()
    from callwright.cli.streams import make_usable
    from callwright.machines.command_folder import begin_command

    make_usable()
    begin_command()
    from callwright.cli.root import root

    try:
        root.main(prog_name="callwright")
    except SystemExit as leaving:
        if "ray" in sys.modules:
            _leave_at_once(leaving.code)
        raise


def _leave_at_once(status: object) -> None:
    """Leave without the interpreter's teardown, in which a thread of Ray's may end the process by a signal.

    Then the status would be that of a crash (139), though all was done and said. What was registered for the end is
    done here.
    """
    import atexit
    import os

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status if isinstance(status, int) else 0 if status is None else 1)
