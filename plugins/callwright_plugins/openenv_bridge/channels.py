"""A connection to a session of an OpenEnv server: one WebSocket, used by one thread at a time."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlsplit, urlunsplit

from callwright.errors import InfrastructureFailure, MissingExtra, UsageError
from callwright.language.shortening import shortened
from callwright.language.strict_json import kind as json_kind
from callwright_plugins.openenv_bridge.wire import FULL

#: How long to wait before asking a full server again, in seconds: at first, and at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_LONGEST_MESSAGE: Final = 1000
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Broken(InfrastructureFailure):
    """The session is lost. ``code``: ``crashed``, ``timeout``, ``protocol`` or ``session``."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)

    def __reduce__(self) -> Any:
        return type(self), (self.code, str(self))


class StepError(Exception):
    """The environment answered a request with an ``error`` and goes on; ``code`` is OpenEnv's (``WSErrorCode``)."""

    def __init__(self, code: str, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(message)

    def __reduce__(self) -> Any:
        return type(self), (self.code, self.message)


class Channel(Protocol):
    """A session of an OpenEnv environment, wherever it lives. Every method may raise :class:`Broken`."""

    def reset(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Begin an episode; ``observation``, ``reward`` and ``done``. Raises :class:`StepError`."""

    def step(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """Act; as :meth:`reset`."""

    def state(self) -> dict[str, Any]:
        """What the environment tells of its state. Raises :class:`StepError`."""

    def close(self) -> None:
        """End the session. Closing twice is allowed."""


class Address:
    """Where a server is: its base URL, and the headers that it wants.

    Raises :class:`callwright.UsageError` for what is no URL of ``http``, ``https``, ``ws`` or ``wss``.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        secure = {"http": False, "ws": False, "https": True, "wss": True}.get(parts.scheme)
        if secure is None or not parts.hostname:
            raise UsageError(f"the environment 'openenv': url {url!r} is not of the form http://HOST:PORT")
        path = parts.path.rstrip("/").removesuffix("/ws")
        self.label = f"the OpenEnv server at {parts.hostname}{f':{parts.port}' if parts.port else ''}"
        self.http = urlunsplit(("https" if secure else "http", parts.netloc, path, "", ""))
        self.socket = urlunsplit(("wss" if secure else "ws", parts.netloc, f"{path}/ws", "", ""))
        self.headers = dict(headers)
        #: Servers of this machine are never asked through a proxy.
        self.is_local = parts.hostname in _LOOPBACK

    def get(self, path: str, time_limit: float) -> dict[str, Any]:
        """What a page of the server says. Raises :class:`Broken` where it says no object of JSON."""
        request = urllib.request.Request(self.http + path, headers=self.headers)
        handlers = [urllib.request.ProxyHandler({})] if self.is_local else []
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=time_limit) as answer:
                found = json.load(answer)
        except (OSError, ValueError, RecursionError) as error:
            why = f"HTTP {error.code}" if isinstance(error, urllib.error.HTTPError) else str(error)
            raise Broken("session", f"{self.label} does not answer GET {path}: {why}") from error
        if not isinstance(found, dict):
            raise Broken("protocol", f"{self.label} answers GET {path} with {json_kind(found)}, not with an object")
        return found


class SocketChannel:
    """A session at a server: ``time_limit`` seconds for an answer of at most ``reply_limit`` bytes.

    A world may take long to begin: a connection has ``start_limit`` seconds, and so has a reset.
    """

    def __init__(self, address: Address, *, time_limit: float, start_limit: float, reply_limit: int) -> None:
        try:
            from websockets.sync.client import connect
        except ModuleNotFoundError as error:
            raise MissingExtra("the environment 'openenv'", "openenv", "websockets") from error
        self._label, self._time_limit, self._start_limit = address.label, time_limit, start_limit
        named: dict[str, Any] = {"proxy": None} if address.is_local else {}
        try:
            self._socket = connect(
                address.socket,
                open_timeout=start_limit,
                close_timeout=1,
                ping_timeout=None,  # an environment that computes answers no pings; the time limit bounds it
                max_size=reply_limit,
                additional_headers=address.headers or None,
                **named,
            )
        except Exception as error:  # refused, no WebSocket there, a proxy: whatever it is, there is no session
            raise Broken("session", f"{self._label} opens no session: {_said(error)}") from error

    def reset(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Begin an episode."""
        return self._observed({"type": "reset", "data": dict(given)}, self._start_limit)

    def step(self, action: Mapping[str, Any]) -> dict[str, Any]:
        """Act."""
        return self._observed({"type": "step", "data": dict(action)}, self._time_limit)

    def state(self) -> dict[str, Any]:
        """What it tells of its state."""
        return self._asked({"type": "state"}, "state", self._time_limit)

    def close(self) -> None:
        """Tell the server, which then frees the place, and hang up."""
        try:
            self._socket.send('{"type":"close"}')
        except Exception:  # it is gone already
            pass
        finally:
            self._socket.close()

    def _observed(self, message: Mapping[str, Any], limit: float) -> dict[str, Any]:
        found = self._asked(message, "observation", limit)
        if not isinstance(found.get("observation"), dict):
            raise Broken("protocol", f"{self._label} answered {message['type']!r} without an observation")
        return found

    def _asked(self, message: Mapping[str, Any], wanted: str, limit: float) -> dict[str, Any]:
        from websockets.exceptions import ConnectionClosed

        lost = None
        try:
            self._socket.send(json.dumps(message))
        except ConnectionClosed as error:  # it may have said why before it hung up
            lost = error
        try:
            text = self._socket.recv(timeout=limit)
        except TimeoutError as error:
            raise Broken("timeout", f"{self._label} did not answer {message['type']!r} in {limit:g} s") from error
        except ConnectionClosed as error:
            raise Broken("crashed", f"{self._label} hung up: {_said(lost or error)}") from error
        try:
            answer = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise Broken("protocol", f"{self._label} answered with what is not JSON: {_said(error)}") from error
        kind, data = (answer.get("type"), answer.get("data")) if isinstance(answer, dict) else (None, None)
        if not isinstance(data, dict):
            raise Broken("protocol", f"{self._label} answered with no message of OpenEnv: {shortened(str(text), 200)}")
        if kind == "error":
            raise StepError(str(data.get("code", "")), shortened(_message(data), _LONGEST_MESSAGE))
        if kind != wanted:
            raise Broken("protocol", f"{self._label} answered {message['type']!r} with {kind!r}")
        return data


def seated(
    address: Address, given: Mapping[str, Any], *, wait_limit: float, **limits: Any
) -> tuple[SocketChannel, dict[str, Any]]:
    """A session that was reset with ``given``, and its first observation.

    OpenEnv servers take one session at a time unless they say otherwise: where one is full, its next free place is
    waited for, ``wait_limit`` seconds at most. Raises :class:`Broken` and :class:`callwright.UsageError` for a reset
    that the environment refuses.
    """
    until, pause = time.monotonic() + wait_limit, _FIRST_PAUSE
    while True:
        channel = SocketChannel(address, **limits)
        try:
            return channel, channel.reset(given)
        except StepError as error:
            channel.close()
            if error.code != FULL:
                raise UsageError(f"{address.label} refuses reset({_keywords(given)}): {error.message}") from error
            if time.monotonic() >= until:
                raise Broken(
                    "session",
                    f"{address.label} had no room for another session in {wait_limit:g} s ({error.message}). Start it "
                    "with a larger max_concurrent_envs, or use fewer workers",
                ) from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        except BaseException:
            channel.close()
            raise


def _keywords(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r:.60}" for name, value in given.items())


def _message(data: Mapping[str, Any]) -> str:
    """What an error says, with what pydantic says of each field."""
    errors = data.get("errors")
    if not isinstance(errors, list) or not errors:
        return str(data.get("message") or "an error without a message")
    told = [
        f"{'.'.join(map(str, one.get('loc') or ())) or 'the action'}: {one.get('msg', '')}"
        for one in errors
        if isinstance(one, Mapping)
    ]
    return "; ".join(told) or str(data.get("message"))


def _said(error: BaseException) -> str:
    return shortened(str(error) or type(error).__name__, _LONGEST_MESSAGE)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
