"""What a trainer imports is never garbage, so that nobody need look for any in it.

torch and transformers are half a million objects that stay. Python looks through them again and again while they are
imported, and a full collection takes a quarter of a second from then on, a dozen of which come in a short run.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def imports_set_apart() -> Iterator[Callable[[], None]]:
    """Nothing is collected until what is given is called; what is there then is not looked through in this block.

    Afterwards the collector is as it was: what was set apart in this block is looked through again, unless there
    already was something when it began, as in a process of the command line, where all of it stays apart.
    """
    enabled, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.disable()

    def imported() -> None:
        gc.freeze()
        if enabled:
            gc.enable()

    try:
        yield imported
    finally:
        if not frozen:
            gc.unfreeze()
        if enabled:
            gc.enable()
