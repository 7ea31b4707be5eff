"""A service over HTTP as the state of a session: one that knows sessions by a name, and begins them when asked.

    POST   {base}{reset}   {"session": …, "scenario": …, "seed": …}   a fresh state
    GET    {base}{state}   the whole state: {table: [row, …]}, or any JSON
    DELETE {base}{reset}   the session is over

Each request carries the session's name in a header. A service that can go back to where a call began is a
:class:`CheckpointedService`; with any other a failed call leaves what it had done.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from callwright.environments.backends.backend import Tables
from callwright.errors import InfrastructureFailure, UsageError
from callwright.tools.spec import ToolError

_MOST = 8_000_000


class HTTPService:
    """One session of a service. Tools ask it by :meth:`request`.

    ``time_limit`` (seconds) holds for each request. What the service answers decides:

    - 2xx: the JSON of the answer;
    - 4xx: :class:`callwright.ToolError`, with the answer's ``code`` and ``message`` where it has them;
    - 5xx, no answer, an answer that is not JSON: :class:`callwright.InfrastructureFailure`, which masks the sample.
    """

    def __init__(
        self,
        base: str,
        scenario: str = "",
        seed: int = 0,
        *,
        reset: str = "/session",
        state: str = "/state",
        header: str = "X-Session",
        time_limit: float = 10.0,
    ) -> None:
        if urlsplit(base).scheme not in ("http", "https"):
            raise UsageError(f"the address of a service begins with http:// or https://, not {base!r:.80}")
        if not time_limit > 0:
            raise UsageError(f"'time_limit' is a number of seconds above 0, not {time_limit!r}")
        self._base, self._reset, self._state = base.rstrip("/"), reset, state
        self._header, self._time_limit = header, time_limit
        #: The session's name there.
        self.session = uuid.uuid4().hex
        self._open = True
        self.request("POST", reset, body={"session": self.session, "scenario": scenario, "seed": seed})

    def request(
        self, method: str, path: str, *, body: Any = None, query: Mapping[str, str | int | float] | None = None
    ) -> Any:
        """Ask the service, and return the JSON that it answers; ``None`` for an empty answer."""
        address = f"{self._base}{path}{f'?{urlencode(query)}' if query else ''}"
        data = None if body is None else json.dumps(body).encode()
        headers = {self._header: self.session, "Content-Type": "application/json", "Accept": "application/json"}
        try:
            with urlopen(Request(address, data, headers, method=method), timeout=self._time_limit) as answer:
                return _read(answer.read(_MOST + 1), address)
        except HTTPError as error:
            with error:
                said = error.read(_MOST)
            if 400 <= error.code < 500:
                raise _refused(error.code, said) from None
            raise InfrastructureFailure(f"{method} {address} answered {error.code}") from None
        except (URLError, OSError) as error:
            raise InfrastructureFailure(f"{method} {address}: {getattr(error, 'reason', None) or error}") from None

    def tables(self) -> Tables:
        found = self.request("GET", self._state)
        if isinstance(found, dict) and all(isinstance(rows, list) for rows in found.values()):
            return found
        return {"state": [{"value": found}]}

    def close(self) -> None:
        if self._open:
            self._open = False
            try:
                self.request("DELETE", self._reset)
            except (InfrastructureFailure, ToolError):  # what it held is its own matter now
                return


class CheckpointedService(HTTPService):
    """A service that goes back to where a call began: ``{base}/checkpoint`` takes ``POST`` (a call begins), ``DELETE``
    (what it did stays) and ``PUT`` (it is taken back).
    """

    checkpoint = "/checkpoint"

    def begin(self, read_only: bool) -> None:
        self.request("POST", self.checkpoint, body={"read_only": read_only})

    def commit(self) -> None:
        self.request("DELETE", self.checkpoint)

    def rollback(self) -> None:
        self.request("PUT", self.checkpoint)


def _read(said: bytes, address: str) -> Any:
    if len(said) > _MOST:
        raise InfrastructureFailure(f"{address} answered more than {_MOST:,} bytes")
    try:
        return json.loads(said) if said.strip() else None
    except ValueError:
        raise InfrastructureFailure(f"{address} answered no JSON") from None


def _refused(status: int, said: bytes) -> ToolError:
    try:
        found = json.loads(said)
    except ValueError:
        found = None
    found = found if isinstance(found, dict) else {}
    code, message = found.get("code"), found.get("message")
    return ToolError(
        code if isinstance(code, str) and code else f"http_{status}",
        message if isinstance(message, str) and message else f"the service refused the request ({status})",
    )
