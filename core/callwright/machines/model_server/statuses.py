"""What an answer other than a success means: wait and ask again, refuse one sample, or end the run in words."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from typing import Any, Final

from callwright.errors import InfrastructureFailure, RunError, UsageError
from callwright.machines.model_server.refusals import ContentFiltered, ContextExceeded, Said, refusal

#: Statuses below 500 that pass when time does.
_PASSING: Final = frozenset({408, 409, 425, 429})
#: Codes of status 429 that no waiting mends: the account is empty.
_EMPTY: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
#: Seconds between tries: at first, and at most; doubled each time.
_FIRST, _MOST = 0.5, 8.0


class RequestRejected(UsageError):
    """The server rejects the request itself: its key, its model or a parameter. Every other request would be, too.

    ``status``, ``code`` and ``param`` are as the server gives them, ``said`` its message without secrets.
    """

    def __init__(self, message: str, *, status: int, error: Said, said: str) -> None:
        super().__init__(message)
        self.status, self.code, self.param, self.said = status, error.code, error.param, said


class ServerFailing(RunError):
    """So many requests in a row failed that going on would only lose more samples."""


class Passing(Exception):
    """A try that failed and may succeed when it is made again, after ``wait`` seconds if the server named some.

    ``said`` is what is known of the reason. ``began``: the server may have worked on it, and count it as paid for.
    """

    def __init__(self, message: str, said: str = "", *, wait: float | None = None, began: bool = False) -> None:
        super().__init__(message)
        self.said, self.wait, self.began = said, wait, began


def judged(status: int, headers: Mapping[str, str], error: Said, label: str, key: str, model: str) -> Exception:
    """The exception for an answer with an error. Its message is still to be freed of secrets, like ``error``'s."""
    said = error.message[:400] or "it says nothing more"
    empty = status == 402 or bool(error.marks & _EMPTY)
    kind = refusal(status, error)  # gateways hand some on as 5xx
    if kind is not None:
        return (ContextExceeded if kind == "overflow" else ContentFiltered)(said)
    if not empty and (status in _PASSING or status >= 500):
        return Passing(f"{label} answered {status}", error.message[:400], wait=retry_after(headers))
    if empty:
        words = f"{label} has no credit left for the key in ${key} ({status})"
    elif status in (401, 403):
        words = f"{label} refuses the key in ${key} ({status})"
    elif status == 404:
        words = f"{label} has no model {model!r}, or is no such server (404)"
    elif 300 <= status < 400:
        where = headers.get("location", "another address")
        words = f"{label} sends elsewhere ({status}): give {where} as base_url, without its last part"
    else:
        words = f"{label} refuses the request ({status})"
    return RequestRejected(f"{words}: {said}", status=status, error=error, said=said)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait: ``retry-after-ms``, or ``Retry-After`` in seconds or as a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        date = email.utils.parsedate_to_datetime(headers["retry-after"])
        return max(0.0, date.timestamp() - time.time())
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


def pause(tries: int, draw: float) -> float:
    """Seconds before the next try after so many, where the server names none. ``draw`` (0 to 1) spreads them."""
    return float(min(_FIRST * 2.0 ** min(tries - 1, 10), _MOST)) * (1 - draw / 4)


def lost(passing: Passing, tries: int, said: str) -> InfrastructureFailure:
    """What remains when the retries are used up."""
    return InfrastructureFailure(f"{passing} {tries} times" + (f": {said}" if said else ""))


def status_in(answer: Mapping[str, Any]) -> int | None:
    """The status that an answer of status 200 holds in place of a completion (OpenRouter), if it does."""
    error = answer.get("error")
    if not isinstance(error, Mapping) or answer.get("choices") or answer.get("output"):
        return None
    code = error.get("code")
    return code if type(code) is int and 400 <= code < 600 else 502
