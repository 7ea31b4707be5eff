"""Pages: how tools of stateful environments return lists, so that an empty result is known as one, and how small they
can be made for a model that has little room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Generic, TypeVar

from attrs import evolve, frozen
from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.calling import ReadyTool
from callwright.environments.protocol import Environment, FitsLittleRoom
from callwright.environments.telling import as_text
from callwright.errors import UsageError
from callwright.tools.descriptions import without_nothing
from callwright.tools.spec import ToolError

T = TypeVar("T")
R = TypeVar("R")

#: Parameters of a tool that returns a page.
Limit = Annotated[int, Field(ge=1, le=100, description="Most items to return.")]
Cursor = Annotated[str, Field(description="next_cursor of the page before; empty for the first.")]


class Page(TypedDict, Generic[T]):
    """A page."""

    items: list[T]
    total: Annotated[int, Field(description="Of all pages.")]
    next_cursor: Annotated[str | None, Field(description="null: this is the last page.")]


def page(rows: Sequence[R], view: Callable[[R], T], limit: int = 20, cursor: str = "") -> Page[T]:
    """The page that begins at ``cursor``; ``view`` is asked for the rows on it only.

    A cursor that no page gave is the failure ``BAD_CURSOR``.
    """
    start = int(cursor) if cursor.isascii() and cursor.isdigit() and len(cursor) < 10 else 0
    if cursor and (start == 0 or start >= len(rows)):
        raise ToolError("BAD_CURSOR", f"{cursor[:40]!r} is not the next_cursor of a page")
    end = start + limit
    return {
        "items": [view(row) for row in rows[start:end]],
        "total": len(rows),
        "next_cursor": str(end) if end < len(rows) else None,
    }


# Little room ----------------------------------------------------------------------------------------------------------


@frozen
class Fit:
    """How results and listings are made to fit a model with little room.

    ``page_bytes`` is the most bytes of a page as models read it (compact JSON in UTF-8), at least 200: it ends before
    the item that goes over it, though never before the first, and ``next_cursor`` goes on with that one. ``None`` is no
    bound. With ``compact`` members of results that hold ``null``, an empty text or an empty list are left out, and
    tools are listed in few words (:attr:`callwright.ToolSpec.brief`). Raises :class:`callwright.UsageError` for other
    values.
    """

    page_bytes: int | None = None
    compact: bool = False

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.compact, bool):
            raise UsageError(f"compact is true or false, not {self.compact!r:.80}")
        if self.page_bytes is not None and (type(self.page_bytes) is not int or self.page_bytes < 200):
            raise UsageError(f"page_bytes is a whole number from 200 on, not {self.page_bytes!r:.80}")


def fit_to(environment: Environment, fit: Fit) -> Environment:
    """An environment with results and listings that fit. Raises :class:`callwright.UsageError` if it cannot do that."""
    if not isinstance(environment, FitsLittleRoom):
        raise UsageError(
            f"the environment {environment.name!r} takes neither page_bytes nor compact: environments of rows do, and "
            "those that are composed of them"
        )
    return environment.fitted(fit)


def fitting(tool: ReadyTool, fit: Fit) -> ReadyTool:
    """A tool whose results fit. What it does, and what its arguments are checked against, is the same."""
    spec = tool.spec
    result = spec.result
    paged = result is not None and "next_cursor" in result.get("properties", ())
    most = fit.page_bytes if paged else None
    if fit.compact:
        spec = evolve(spec, brief=True, result=_schema_without_nothing(result, paged))
    elif most is None:
        return tool

    def fitted(value: Any, arguments: Mapping[str, Any]) -> Any:
        if fit.compact:
            value = _without_nothing(value, paged)
        return value if most is None else _ended(value, arguments, most)

    return evolve(tool, spec=spec, function=_then(tool, fitted))


def _then(tool: ReadyTool, then: Callable[[Any, Mapping[str, Any]], Any]) -> Callable[..., Any]:
    """The function of a tool, with something done to its result."""
    function = tool.function
    if tool.takes == "arguments":
        return lambda **arguments: then(function(**arguments), arguments)
    if tool.takes == "mapping":
        return lambda state, arguments: then(function(state, arguments), arguments)

    def called(state: Any, /, **arguments: Any) -> Any:
        return then(function(state, **arguments), arguments)

    return called


def _without_nothing(value: Any, paged: bool) -> Any:
    """A result without what is nothing: of a page the items only, and never all of a result."""
    if paged and isinstance(value, dict):
        return {**value, "items": _slim(value.get("items"))}
    return _slim(value) or value


def _schema_without_nothing(result: Mapping[str, Any] | None, paged: bool) -> Mapping[str, Any] | None:
    if result is None or not paged:
        return None if result is None else without_nothing(result)
    properties = result["properties"]
    return {**result, "properties": {**properties, "items": without_nothing(properties.get("items", {}))}}


def _slim(value: Any) -> Any:
    if type(value) is dict:
        return {key: _slim(inner) for key, inner in value.items() if not (inner is None or inner == "" or inner == [])}
    return [_slim(inner) for inner in value] if type(value) is list else value


def _ended(value: Any, arguments: Mapping[str, Any], most: int) -> Any:
    """A page that ends where it would go over so many bytes. One whose cursors are not places in a list stays whole."""
    items, cursor = value["items"], arguments.get("cursor", "")
    if not isinstance(cursor, str) or not (cursor == "" or cursor.isdecimal()):
        return value
    start = int(cursor or 0)
    end, after = start + len(items), value.get("next_cursor")
    if after != str(end) if after is not None else value.get("total") != end:
        return value
    room = most - _bytes({**value, "items": [], "next_cursor": str(end)})
    for kept, item in enumerate(items):
        room -= _bytes(item) + 1  # and a comma
        if room < -1 and kept:
            return {**value, "items": items[:kept], "next_cursor": str(start + kept)}
    return value


def _bytes(value: Any) -> int:
    return len(as_text(value).encode())
