"""The interpreter of an environment with OpenRLHF, and what it says of a command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from callwright.errors import CallwrightError, UsageError

#: Names the interpreter where a recipe does not.
VARIABLE: Final = "CALLWRIGHT_OPENRLHF_PYTHON"
#: The version whose flags and classes this trainer knows; they changed between patch releases.
VERSION: Final = "0.11.2"


class NoOpenRLHF(CallwrightError):
    """The interpreter has no OpenRLHF; the message holds the commands that make one that has."""

    exit_status = 3


class OpenRLHFRefuses(UsageError):
    """OpenRLHF's parser or its checks do not take the arguments."""


def find_interpreter(wanted: str | None) -> str:
    """The interpreter of the option ``python``, of ``$CALLWRIGHT_OPENRLHF_PYTHON``, or this one.

    Raises :class:`callwright.UsageError` if it is no program.
    """
    named = wanted or os.environ.get(VARIABLE) or sys.executable
    found = shutil.which(str(Path(named).expanduser()))
    if found is None:
        where = "the option 'python'" if wanted else f"${VARIABLE}"
        raise UsageError(f"{where} names {named!r}, which is no interpreter; {how_to_install()}")
    return found


def requirements() -> str:
    """The packages of OpenRLHF's environment."""
    try:
        own = f"=={metadata.version('callwright')}"
    except metadata.PackageNotFoundError:
        own = ""
    return (
        "# An environment of its own, Python 3.11 or 3.12, with CUDA. flash-attn is compiled against torch:\n"
        "# pip install torch packaging ninja wheel, then\n"
        "# pip install flash-attn==2.8.3 --no-build-isolation && pip install -r requirements.txt\n"
        f"openrlhf[vllm]=={VERSION}\n"
        f"callwright[train]{own}\n"
    )


def how_to_install() -> str:
    """The commands that make an environment with OpenRLHF."""
    return (
        "make an environment of its own (Python 3.11 or 3.12): python3.12 -m venv openrlhf-env && "
        "openrlhf-env/bin/pip install torch packaging ninja wheel && "
        "openrlhf-env/bin/pip install flash-attn==2.8.3 --no-build-isolation && "
        f"openrlhf-env/bin/pip install 'openrlhf[vllm]=={VERSION}' 'callwright[train]' && "
        f"export {VARIABLE}=$PWD/openrlhf-env/bin/python"
    )


def check(python: str, argv: Sequence[str]) -> dict[str, Any]:
    """Have OpenRLHF's own parser read the words; what every option came to, and the version.

    Raises :class:`NoOpenRLHF` if the interpreter has none, :class:`OpenRLHFRefuses` with its own words.
    """
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder) / "argv.json"
        words.write_text(json.dumps(list(argv)), encoding="utf-8")
        script = Path(__file__).parent / "translation" / "parser_check.py"
        done = subprocess.run(
            [python, str(script), str(words)], capture_output=True, text=True, errors="replace", check=False, cwd=folder
        )
    try:
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise NoOpenRLHF(f"{python} cannot check the arguments: {last}; {how_to_install()}") from None
    if "missing" in found:
        raise NoOpenRLHF(f"{python} has no package {found['missing']!r}; {how_to_install()}")
    if "error" in found:
        raise OpenRLHFRefuses(f"OpenRLHF {found.get('openrlhf')} refuses the arguments: {found['error']}")
    return found
