"""Answers over HTTP that are too long: given up as soon as they are, not when they have been read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

#: What is said of such an answer. The SDK hands on the words, not the exception.
TOO_LONG: Final = "the answer is too long"


def bounded(limit: int) -> Callable[[Any], Awaitable[None]]:
    """A response hook for the client of ``httpx2``: an answer in JSON has at most ``limit`` bytes.

    Streams of events have a limit of the SDK's for each event.
    """
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self._inner:
                size += len(chunk)
                if size > limit:
                    raise httpx2.StreamError(TOO_LONG)
                yield chunk

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def hook(response: Any) -> None:
        if response.headers.get("content-type", "").startswith("application/json"):
            response.stream = Bounded(response.stream)

    return hook
