"""Pages: how tools of stateful environments return lists, so that an empty result is known as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar

from pydantic import Field
from typing_extensions import TypedDict

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
