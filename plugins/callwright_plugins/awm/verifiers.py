"""Verifiers of tasks: a model's code that calls a database and the agent's last words complete, or not.

Source: ``run_verifier`` of ``awm/core/verify.py``, mode ``code``. The mode ``sql``, whose code only gathers what a
language model then judges, is not read.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from callwright.errors import DataError, InfrastructureFailure
from callwright_plugins.awm.rows import rows, scenarios

FILE: Final = "gen_verifier.pure_code.jsonl"
_DEFAULT: Final = "verify_task_completion"
_LEAST: Final = 10  # characters: shorter code is none


def verifiers(folder: Path, world: str) -> dict[int, str]:
    """The code of each task of a world that has any, by the task's number.

    Raises :class:`callwright.errors.DataError` for a file that cannot be read or is not in AWM's format.
    """
    path = folder / FILE
    if world not in scenarios(path):
        return {}
    found: dict[int, str] = {}
    for row in rows(path, world):
        try:
            number, code = row["task_idx"], row["verification"]["code"]
        except (KeyError, TypeError) as error:
            raise DataError(f"{path}: a row of {world!r} is no verifier: {error!r}") from error
        if isinstance(code, str) and len(code.strip()) >= _LEAST:
            found.setdefault(number, code)
    return found


def is_complete(code: str, first: bytes, left: bytes, answer: str) -> bool:
    """Whether a verifier accepts the database that was ``left`` of the ``first`` one, and the last words.

    It gets copies. Raises :class:`callwright.InfrastructureFailure` where it raises, or returns no verdict.
    """
    with tempfile.TemporaryDirectory(prefix="callwright-awm-") as folder:
        paths = [Path(folder) / "initial.db", Path(folder) / "final.db"]
        for path, database in zip(paths, (first, left), strict=True):
            path.write_bytes(database)
            path.chmod(0o444)
        try:
            found = _called(_function(code), str(paths[0]), str(paths[1]), answer)
        except Exception as error:
            raise InfrastructureFailure(f"the task's verifier failed: {type(error).__name__}: {error}") from error
    if not isinstance(found, dict) or "result" not in found:
        raise InfrastructureFailure(f"the task's verifier returned no verdict: {found!r:.80}")
    return bool(found["result"] == "complete")


def _function(code: str) -> Callable[..., Any]:
    """The first function that is called ``verify_…``."""
    lines = (line.strip() for line in code.split("\n"))
    named = (line[4:].partition("(")[0].strip() for line in lines if line.startswith("def verify_") and "(" in line)
    name = next(named, _DEFAULT)
    space: dict[str, Any] = {"sqlite3": sqlite3, "json": json, "os": os, "re": re}
    exec(compile(code, f"<verifier {name}>", "exec"), space)
    function: Callable[..., Any] = space[name]
    return function


def _called(verify: Callable[..., Any], first: str, left: str, answer: str) -> Any:
    wanted = inspect.signature(verify).parameters
    by_name = {"initial_db_path": first, "final_db_path": left, "final_answer": answer}
    given = {name: value for name, value in by_name.items() if name in wanted}
    if given or len(wanted) < 2:
        return verify(**given)
    return verify(*list(by_name.values())[: min(len(wanted), 3)])
