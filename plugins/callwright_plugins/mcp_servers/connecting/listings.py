"""Listings of tools as they arrive: a tool that MCP does not allow is taken out, so that the others can be used.

The SDK refuses a whole listing for one tool without a name, and with it the server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from attrs import frozen

#: What the SDK asks of a tool is the same in all versions of the protocol.
_VERSION: Final = "2025-11-25"


@frozen
class BrokenTool:
    """A tool of a listing that cannot be used: its name, empty if it has none, its place (from 0), and its fault.

    ``about`` is the beginning of its description.
    """

    name: str
    place: int
    fault: str
    about: str = ""

    @property
    def named(self) -> str:
        """By which people find it."""
        if self.name:
            return f"the tool {self.name[:64]!r}"
        return f"tool {self.place + 1} of the listing" + (f" ({self.about!r})" if self.about else "")

    def changed(self, change: Callable[[str], str]) -> BrokenTool:
        """The same with its texts changed."""
        return BrokenTool(change(self.name), self.place, change(self.fault), change(self.about))

    @property
    def words(self) -> str:
        """What its users are told."""
        way = f"; hide=[{self.name!r}] leaves it out without a word" if self.name and len(self.name) <= 64 else ""
        return f"{self.named} is left out: {self.fault}. That is a fault of the server{way}"


@asynccontextmanager
async def sifted(
    transport: AbstractAsyncContextManager[Any], broken: Callable[[BrokenTool], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """A transport whose listings of tools are without those that cannot be read, of which ``broken`` is told."""
    async with transport as (arriving, leaving):
        yield _Sifted(arriving, broken), leaving


class _Sifted:
    """A stream of messages; it gives others where a message lists tools."""

    def __init__(self, inner: Any, broken: Callable[[BrokenTool], None]) -> None:
        self._inner, self._broken = inner, broken

    def __getattr__(self, name: str) -> Any:  # the context of the sender, statistics
        return getattr(self._inner, name)

    async def __aenter__(self) -> _Sifted:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *ended: Any) -> Any:
        return await self._inner.__aexit__(*ended)

    def __aiter__(self) -> _Sifted:
        return self

    async def __anext__(self) -> Any:
        return self._without_broken(await self._inner.__anext__())

    async def receive(self) -> Any:
        """The next message."""
        return self._without_broken(await self._inner.receive())

    def _without_broken(self, arrived: Any) -> Any:
        result: Any = getattr(getattr(arrived, "message", None), "result", None)
        tools = result.get("tools") if isinstance(result, dict) else None
        if isinstance(tools, list) and tools and _fault(*tools) is not None:
            faults = [_fault(tool) for tool in tools]
            for place, (tool, fault) in enumerate(zip(tools, faults, strict=True)):
                if fault is not None:
                    name, about = (_text(tool, key) for key in ("name", "description"))
                    self._broken(BrokenTool(name, place, fault, about[:60]))
            result["tools"] = [tool for tool, fault in zip(tools, faults, strict=True) if fault is None]
        return arrived


def _text(tool: Any, key: str) -> str:
    value = tool.get(key) if isinstance(tool, dict) else None
    return value if isinstance(value, str) else ""


def _fault(*tools: Any) -> str | None:
    """What MCP does not allow in tools; ``None`` where it allows them."""
    from mcp_types import Tool
    from mcp_types.methods import validate_server_result
    from pydantic import ValidationError

    if not all(isinstance(tool, dict) for tool in tools):
        return "it is no object"
    if any(tool.get("name") in (None, "") for tool in tools):
        return "it has no name"
    try:
        validate_server_result("tools/list", _VERSION, {"tools": [*tools]})
        for tool in tools:
            Tool.model_validate(tool, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"] if part != "tools" and type(part) is not int)
        return f"{place}: {first['msg']}" if place else first["msg"]
    return None
