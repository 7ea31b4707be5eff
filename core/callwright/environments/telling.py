"""Telling: what a model reads of an outcome. The text is the same in rollouts, over MCP, and wherever else.

    {"result": …}                                       ok, empty
    {"result": …, "warning": {"code": …, "message": …}}  partial
    {"error": {"code": …, "message": …}}                 any failure
    {"unknown": {"code": …, "message": …}}               a log does not say what came of the call

Beside any of them stands ``"notices": [text, …]`` where something happened meanwhile that the user is told.

Rollouts put ``id`` and ``name`` of the call before it; MCP gives each member a block of its own. Where a failure was
undeclared is not told: that is for the owner of the tool.
"""

from __future__ import annotations

import json
from typing import Any, Final

from callwright.environments.protocol import Outcome
from callwright.language.long_numbers import json_text


def _type_name(value: object) -> str:
    return f"<{type(value).__name__}>"  # never repr, which may hold an address


_write: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_type_name).encode


def told(outcome: Outcome) -> dict[str, Any]:
    """What is told of an outcome, as the members of an object."""
    if outcome.kind != "unknown" and outcome.executed:
        members = {"result": outcome.value}
        if outcome.code or outcome.message:
            members["warning"] = _said(outcome)
    else:
        members = {"unknown" if outcome.kind == "unknown" else "error": _said(outcome)}
    if outcome.notices:
        members["notices"] = list(outcome.notices)
    return members


def tell(outcome: Outcome, /, **about: Any) -> str:
    """The text that a model reads of an outcome: compact JSON, the members of ``about`` first.

    Values that are not JSON appear as the name of their type; a value that cannot be written at all (circular, nested
    too deeply) becomes an error ``not_json``. Halves of surrogate pairs are escaped, because no tokenizer takes them.
    """
    try:
        return as_text({**about, **told(outcome)})
    except (ValueError, TypeError, RecursionError) as error:
        broken = Outcome("execution_error", None, "not_json", type(error).__name__, notices=outcome.notices)
        return as_text({**about, **told(broken)})


def as_text(value: Any) -> str:
    """Compact JSON that any tokenizer takes. Raises what :mod:`json` raises for a value that cannot be written."""
    try:
        return printable(_write(value))
    except ValueError:  # of a circular value, or a long integer
        return printable(json_text(value, separators=(",", ":"), ensure_ascii=False, default=_type_name))


def printable(text: str) -> str:
    """The text with halves of surrogate pairs escaped: no tokenizer takes them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _said(outcome: Outcome) -> dict[str, str]:
    return {"code": outcome.code or outcome.kind, "message": outcome.message}
