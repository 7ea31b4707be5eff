"""OpenRLHF's own parser over a command line. A script for its interpreter: needs OpenRLHF and nothing of Callwright.

    python parser_check.py argv.json

Runs what stands below ``if __name__ == "__main__"`` in the installed ``train_ppo_ray.py``, up to the call that would
train: its parser, its defaults and its checks. Neither Ray nor vLLM is imported. Prints one JSON object: ``values``,
what every option came to, or ``error``; and ``openrlhf``, the version.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import io
import json
import os
import sys
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

MODULE = "openrlhf.cli.train_ppo_ray"


def body(source: str) -> ast.Module:
    """The statements below ``if __name__ == "__main__"``, without the last one, which is ``train(args)``.

    Raises ``ValueError`` where the file is not of that form.
    """
    last = ast.parse(source).body[-1]
    if not isinstance(last, ast.If) or ast.unparse(last.test) != "__name__ == '__main__'":
        raise ValueError("the module does not end with what it runs as a program")
    if ast.unparse(last.body[-1]) != "train(args)":
        raise ValueError(f"its last statement is {ast.unparse(last.body[-1])!r}, not 'train(args)'")
    return ast.Module(body=last.body[:-1], type_ignores=[])


def parse(argv: list[str]) -> dict[str, Any]:
    """What every option came to. Raises whatever OpenRLHF raises; its parser leaves with ``SystemExit``."""
    spec = importlib.util.find_spec(MODULE)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"No module named {MODULE!r}", name="openrlhf")
    names: dict[str, Any] = {"argparse": argparse, "os": os, "datetime": datetime}
    before, sys.argv = sys.argv, [spec.origin, *argv]
    try:
        exec(compile(body(Path(spec.origin).read_text(encoding="utf-8")), spec.origin, "exec"), names)
    finally:
        sys.argv = before
    return {name: vars(value) if hasattr(value, "__dict__") else value for name, value in vars(names["args"]).items()}


def main() -> int:
    """Check the words in the file that is named."""
    found: dict[str, Any] = {}
    said = io.StringIO()
    try:
        found["openrlhf"] = metadata.version("openrlhf")
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            found["values"] = parse(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
        if importlib.util.find_spec("tensorboard") is None:  # OpenRLHF requires it, and imports it as late as it logs
            found["missing"] = "tensorboard"
    except SystemExit:
        found["error"] = said.getvalue().strip().splitlines()[-1]
    except metadata.PackageNotFoundError:
        found["missing"] = "openrlhf"
    except ModuleNotFoundError as error:
        found["missing"] = error.name or str(error)
    except AssertionError as error:
        found["error"] = str(error) or "one of its checks failed"
    except Exception as error:  # whatever it is, it is the answer
        found["error"] = f"{type(error).__name__}: {error}"
    print(json.dumps(found, default=lambda value: getattr(value, "__dict__", None) or str(value)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
