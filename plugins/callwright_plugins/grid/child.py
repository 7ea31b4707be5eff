"""``python -m callwright_plugins.grid.child WORDS``: the command ``callwright WORDS``, which ends with its parent.

The parent holds the other end of stdin. When it is gone, however it went, stdin ends, and so does this process: two
processes must never write one run folder. It then stops as by Ctrl-C, which loses nothing, or is ended if that takes
long. SIGTERM does the same.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time
from typing import Final

#: Seconds that a run has to stop by itself.
PATIENCE: Final = 30.0


def main() -> None:
    """Run the command line in this process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process may have been started without
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    runpy.run_module("callwright", run_name="__main__", alter_sys=True)


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(PATIENCE)
    os._exit(1)


if __name__ == "__main__":
    sys.argv[0] = "callwright"
    main()
