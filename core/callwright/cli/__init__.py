"""The command line, one module a command.

``root`` finds the commands without importing them, ``app`` holds what the options before a command say, ``failures``
turns every exception into one line and an exit status. A plugin adds commands with the hook ``callwright_commands``;
they get the :class:`callwright.cli.app.App` as ``ctx.obj``.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line on ``sys.argv`` and leave the process with its exit status."""
    from callwright.cli.root import root

    root.main(prog_name="callwright")
