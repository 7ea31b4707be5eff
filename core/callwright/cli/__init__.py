"""The command line: Callwright's own commands, one module a command, and what carries them.

``root`` finds the commands without importing them, ``failures`` turns every exception into one line and an exit status,
``logging`` sets the log up, ``streams`` makes do with standard streams that are closed or know few characters. What
commands are made of stands in :mod:`callwright.commands`, which plugins use as well.
May import: everything of the core but ``testing``. Nothing imports it.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line on ``sys.argv`` and leave the process with its exit status."""
    from callwright.cli.streams import make_usable
    from callwright.machines.command_folder import begin_command

    make_usable()
    begin_command()
    from callwright.cli.root import root

    root.main(prog_name="callwright")
