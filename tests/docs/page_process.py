"""A process in which the parts of a page run: the program that ``test_documented_code`` starts, no module of tests.

``python page_process.py`` runs the parts that stand in ``_parts.json`` of its folder, one after the other in one
interpreter, and writes down in ``_results.json`` what each printed.

``python page_process.py --prepared`` does that for every folder that it is told on its standard input, each in a copy
of itself. It has imported torch and transformers, and nothing of Callwright's: most of what a page that trains next to
nothing costs are these two. The runs of a grid, too, are then copies, of the process of their page; that a grid starts
fresh processes is what its own tests see.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any


def run_parts() -> None:
    """Run the parts of the page of this folder."""
    results, names = [], {"__name__": "page"}
    for kind, part in json.loads(Path("_parts.json").read_text(encoding="utf-8")):
        printed = io.StringIO()
        status: Any = 0
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                if kind == "python":
                    exec(compile(part, "page", "exec", dont_inherit=True), names)  # without our __future__
                else:
                    from callwright.cli.root import root

                    root.main(part, prog_name="callwright")
            except SystemExit as end:
                status = end.code or 0
            except BaseException:
                traceback.print_exc()
                status = -1
        results.append((status, printed.getvalue()))
    Path("_results.json").write_text(json.dumps(results), encoding="utf-8")


def serve() -> None:
    """For each line, the folder of a page: run it in a copy of this process, and answer with its exit status."""
    import torch  # noqa: F401
    from transformers import AutoModelForCausalLM, LlamaForCausalLM  # noqa: F401

    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        process = os.fork()
        if not process:
            _leave_after(_run_page, line.rstrip("\n"))
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run_page(folder: str) -> None:
    os.chdir(folder)
    subprocess.Popen = _Started  # type: ignore[assignment, misc]
    run_parts()


class _Started(subprocess.Popen[Any]):
    """A process as it is asked for, or a copy of this one where a grid asks for one of its runs."""

    def __new__(cls, command: Any, *args: Any, **options: Any) -> Any:
        if list(command[1:3]) == ["-m", "callwright_plugins.grid.child"]:
            return _Copy(command[3:], options["stdout"].fileno(), options["env"])
        return super().__new__(cls)


class _Copy:
    """A copy of this process that runs a command of Callwright's, as a grid uses it."""

    def __init__(self, words: list[str], log: int, environment: dict[str, str]) -> None:
        theirs, mine = os.pipe()
        self.returncode: int | None = None
        self.pid = os.fork()
        if not self.pid:
            os.setsid()
            os.close(mine)
            for handle, number in ((theirs, 0), (log, 1), (log, 2)):
                os.dup2(handle, number)
            sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            os.environ.update(environment)
            sys.argv = ["callwright", *words]
            from callwright_plugins.grid import child

            _leave_after(child.main)
        os.close(theirs)
        self.stdin = os.fdopen(mine, "wb")


def _leave_after(do: Any, *given: Any) -> None:
    """End this copy with the status that what it does has."""
    status: Any = 0
    try:
        do(*given)
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    sys.path[0] = ""  # the folder of the page, and not the one of this file
    if sys.argv[1:] == ["--prepared"]:
        serve()
    else:
        run_parts()
