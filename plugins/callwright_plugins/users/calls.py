"""Calls of users as tasks state them: ``{"tool": name, "arguments": {…}}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.errors import UsageError
from callwright.language.program import Call


def read_calls(stated: Any, where: str) -> tuple[Call, ...]:
    """The calls of a list; raises :class:`callwright.UsageError`, which says ``where``, for anything else."""
    if not isinstance(stated, list | tuple):
        raise UsageError(f"{where} is a list of calls, not {stated!r:.80}")
    calls = []
    for number, one in enumerate(stated):
        if (
            not isinstance(one, Mapping)
            or not {"tool"} <= one.keys() <= {"tool", "arguments"}
            or not isinstance(one["tool"], str)
            or not isinstance(one.get("arguments", {}), Mapping)
        ):
            raise UsageError(f'{where}[{number}] is a call such as {{"tool": "…", "arguments": {{}}}}, not {one!r:.80}')
        calls.append(Call(number, one["tool"], dict(one.get("arguments", {}))))
    return tuple(calls)
