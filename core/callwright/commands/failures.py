"""How a command ends. A command raises; the command line says one clear line on stderr and leaves with the status.

==== ==================================================================================================
0    everything was done
1    something was not: a bad row, a broken installation, a file that cannot be written
2    the request cannot be met: usage, an unknown name, a recipe or data file that is not right
3    an optional extra is missing; the line holds the install command
4    a plugin is broken
5    a component raised: its bug, never the model's
70   a bug of Callwright itself
129  stopped by SIGHUP: the terminal went away
130  stopped with Ctrl-C
141  the reader of the output went away
143  stopped by SIGTERM, as schedulers do
==== ==================================================================================================

Every :class:`callwright.CallwrightError` knows its status (``exit_status``). A command that did all but a part of its
work says so on stderr and ends with ``click.get_current_context().exit(1)``.
"""

from __future__ import annotations

from typing import Final

from callwright.errors import CallwrightError

BUG: Final = 70
INTERRUPTED: Final = 130
NO_READER: Final = 141


class Stopped(CallwrightError):
    """The command was stopped. The message says what is kept and how to go on.

    Raised ``from`` the interrupt, whose signal is the status.
    """

    exit_status = INTERRUPTED
