"""The toolset ``zebra``: typed functions. Signatures and docstrings are the schemas that a model is shown."""

from __future__ import annotations

from datetime import date, timedelta

import callwright as cw


@cw.tool(read_only=True)
def days_between(first: str, last: str) -> int:
    """Days from one date to another, both as YYYY-MM-DD; negative if the second one is earlier."""
    return (_date(last) - _date(first)).days


@cw.tool(read_only=True)
def add_days(day: str, days: int) -> str:
    """The date a number of days after another one, both as YYYY-MM-DD."""
    try:
        return (_date(day) + timedelta(days=days)).isoformat()
    except OverflowError:
        raise cw.ToolError("out_of_range", "there is no such date") from None


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise cw.ToolError("no_date", f"{text!r:.40} is no date; write YYYY-MM-DD") from None


TOOLS = (days_between, add_days)
