"""Observations: what a program's calls came to, in a form that is stored with a rollout and compared later."""

from __future__ import annotations

from typing import Any, Final

from callwright.digests import digest_of
from callwright.walk.trace import Trace

#: Hexadecimal digits that are kept of a digest.
_DIGITS: Final = 16


def observations(trace: Trace | None) -> list[dict[str, str | int]] | None:
    """A row per call: its id, the kind and code of its outcome, digests of its value and of the state after it.

    ``None`` without a trace, that is for a text that is not a program.
    """
    if trace is None:
        return None
    return [
        {
            "call": step.call,
            "kind": step.outcome.kind,
            "code": step.outcome.code,
            "value": _digest(step.outcome.value),
            "state": step.state[:_DIGITS],
        }
        for step in trace.records
    ]


def _digest(value: Any) -> str:
    try:
        return digest_of(value)[:_DIGITS]
    except (TypeError, ValueError, RecursionError) as error:  # a tool returned something that is no JSON
        return type(error).__name__
