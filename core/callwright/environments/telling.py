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
from typing import Any, Final, cast

from callwright.environments.protocol import FAILED, Outcome, OutcomeKind
from callwright.language.long_numbers import json_text


def _type_name(value: object) -> str:
    return f"<{type(value).__name__}>"  # never repr, which may hold an address


#: Codes that the machinery gives to calls that it lost, and tools may use, too.
_MACHINERY: Final = frozenset({"infrastructure", "infrastructure_error", "session", "timeout", "refused", "not_json"})
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


def read_told(text: str) -> Outcome | None:
    """The outcome that :func:`tell` told in these words; ``None`` for a text that it does not write.

    What is told does not say everything: whether a result was ``empty``, and the kind of a failure with a code of its
    own, which is read as ``execution_error``. A failure with a code that the machinery uses may have been its own:
    its kind is ``unknown``.
    """
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        members = json.loads(text)
        if not isinstance(members, dict) or as_text(members) != text:
            return None
    except (ValueError, RecursionError):
        return None
    (*extra,) = members.keys() - {"id", "name", "notices", "warning"}
    notices = members.get("notices", [])
    if len(extra) != 1 or not (isinstance(notices, list) and all(isinstance(one, str) for one in notices)):
        return None
    held = members[extra[0]]
    if extra[0] == "result":
        warning = members.get("warning")
        if warning is None:
            return Outcome("ok", held, notices=tuple(notices))
        return Outcome("partial", held, *_read_said(warning), notices=tuple(notices)) if _is_said(warning) else None
    if extra[0] not in ("error", "unknown") or "warning" in members or not _is_said(held):
        return None
    code, message = _read_said(held)
    kind: OutcomeKind = "execution_error"
    if extra[0] == "unknown" or code in _MACHINERY:
        kind = "unknown"
    elif code in FAILED:
        kind = cast(OutcomeKind, code)
    return Outcome(kind, None, code, message, notices=tuple(notices))


def _is_said(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"code", "message"} and all(map(_is_text, value.values()))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _read_said(value: dict[str, str]) -> tuple[str, str]:
    return value["code"], value["message"]


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
