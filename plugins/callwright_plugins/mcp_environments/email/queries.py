"""Search queries: words, and operators such as ``from:ada is:unread -label:work before:2026-03-01``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from callwright.tool import ToolError
from callwright.world import World
from callwright_plugins.mcp_environments.email.rows import Attachment, Folder, Label, Message, MessageState
from callwright_plugins.mcp_environments.times import parse_day

Test = Callable[[Message, MessageState], bool]
_TERM: Final = re.compile(r'(-?)(?:([A-Za-z]+):)?(?:"([^"]*)"|(\S+))')
_UNITS: Final = {"": 1, "k": 1000, "m": 1_000_000}
OPERATORS: Final = (
    "from, to, cc, subject, label, in, is (read, unread), has (attachment), filename, before, after, larger, smaller"
)


def query_tests(world: World, query: str) -> list[Test]:
    """One test for each term of a query; a message fits if all hold. Fails with ``BAD_QUERY``."""
    tests: list[Test] = []
    for match in _TERM.finditer(query):
        minus, operator, quoted, bare = match.groups()
        value = (bare if quoted is None else quoted).lower()
        if not value:
            raise ToolError("BAD_QUERY", f"{match.group()!r} says nothing to look for")
        test = _test(world, (operator or "").lower(), value)
        tests.append(_not(test) if minus else test)
    if not tests:
        raise ToolError("BAD_QUERY", "the query has no words")
    return tests


def _not(test: Test) -> Test:
    return lambda message, state: not test(message, state)


def _test(world: World, operator: str, value: str) -> Test:
    if operator in _TEXT_TESTS:
        return _TEXT_TESTS[operator](value)
    if operator == "label":
        wanted = {one.id for one in world.rows(Label) if one.name == value or one.id.lower() == value}
        if not wanted:
            raise ToolError("LABEL_NOT_FOUND", f"there is no label {value[:40]!r}; see list_labels")
        return lambda _, state: not wanted.isdisjoint(state.label_ids)
    if operator == "in":
        folders = {one.id for one in world.rows(Folder) if value in (one.name.lower(), one.role, one.id.lower())}
        if not folders:
            raise ToolError("NOT_FOUND", f"there is no folder {value[:40]!r}; see list_folders")
        return lambda _, state: state.folder_id in folders
    if operator == "is" and value in ("read", "unread"):
        return lambda _, state: state.read == (value == "read")
    if operator == "has" and value == "attachment":
        return lambda message, _: bool(message.attachment_ids)
    if operator == "filename":
        files = {one.id for one in world.rows(Attachment) if value in one.name.lower()}
        return lambda message, _: not files.isdisjoint(message.attachment_ids)
    if operator in ("before", "after"):
        day = parse_day(value)
        return (lambda message, _: message.sent_at < day) if operator == "before" else (lambda m, _: m.sent_at >= day)
    if operator in ("larger", "smaller"):
        size = re.fullmatch(r"([0-9]{1,12})([km]?)b?", value)
        if size is None:
            raise ToolError("BAD_QUERY", f"{value[:40]!r} is not a size such as 500k or 2m")
        limit = int(size.group(1)) * _UNITS[size.group(2)]
        if operator == "larger":
            return lambda message, _: message.size_bytes > limit
        return lambda message, _: message.size_bytes < limit
    raise ToolError("BAD_QUERY", f"{operator}:{value[:40]} is not understood; there are {OPERATORS}")


_TEXT_TESTS: Final[dict[str, Callable[[str], Test]]] = {
    "": lambda value: lambda message, _: value in message.subject.lower() or value in message.body.lower(),
    "from": lambda value: lambda message, _: value in message.sender,
    "to": lambda value: lambda message, _: any(value in one for one in message.to),
    "cc": lambda value: lambda message, _: any(value in one for one in message.cc),
    "subject": lambda value: lambda message, _: value in message.subject.lower(),
}
