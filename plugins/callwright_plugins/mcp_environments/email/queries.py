"""Search queries: words, and operators such as ``from:ada is:unread -label:work before:2026-03-01``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.email.rows import Attachment, Folder, Label, Message, MessageState
from callwright_plugins.mcp_environments.recorded_times import outside_of_column
from callwright_plugins.mcp_environments.times import parse_day


class Letter(NamedTuple):
    """A message as searches read it: ``text`` is subject and body in lower case, with a NUL between them."""

    message: Message
    text: str

    @property
    def subject(self) -> str:
        """The subject in lower case."""
        return self.message.subject.lower()

    @property
    def body(self) -> str:
        """The body in lower case."""
        return self.message.body.lower()


def letter_of(message: Message) -> Letter:
    """The message as searches read it."""
    return Letter(message, f"{message.subject}\0{message.body}".lower())


Test = Callable[[Letter, MessageState], bool]
_TERM: Final = re.compile(r'(-?)(?:([A-Za-z]+):)?(?:"([^"]*)"|(\S+))')
_UNITS: Final = {"": 1, "k": 1000, "m": 1_000_000}
OPERATORS: Final = (
    "from, to, cc, subject, label, in, is (read, unread), has (attachment), filename, before, after, larger, smaller"
)


def query_tests(world: World, query: str) -> tuple[list[str], list[Test]]:
    """The words that subject or text must hold, and a test for each other term. Fails with ``BAD_QUERY``."""
    words: list[str] = []
    tests: list[Test] = []
    for match in _TERM.finditer(query):
        minus, operator, quoted, bare = match.groups()
        value = (bare if quoted is None else quoted).lower()
        if not value:
            raise ToolError("BAD_QUERY", f"{match.group()!r} says nothing to look for")
        if not (minus or operator or "\0" in value):
            words.append(value)
            continue
        test = _test(world, (operator or "").lower(), value)
        tests.append(_not(test) if minus else test)
    if not (words or tests):
        raise ToolError("BAD_QUERY", "the query has no words")
    return words, tests


def names_folder(query: str) -> bool:
    """Whether a query looks into a folder that it names; ``-in:`` looks into none, and phrases may hold ``in:``."""
    return any(not minus and operator.lower() == "in" for minus, operator, *_ in _TERM.findall(query))


def outside_of_mail(world: World, query: str) -> str:
    """Why the days of a query that found nothing can find nothing: before the first message, or ahead; else empty."""
    first, last = 0, world.now + 1
    for minus, operator, quoted, bare in _TERM.findall(query):
        if operator.lower() in ("before", "after"):
            day = parse_day(quoted or bare)
            after = (operator.lower() == "after") != bool(minus)
            first, last = (max(first, day), last) if after else (first, min(last, day))
    return (
        "" if first == 0 and last > world.now else outside_of_column(world, Message, "sent_at", "messages", first, last)
    )


def _not(test: Test) -> Test:
    return lambda letter, state: not test(letter, state)


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
        return lambda letter, _: bool(letter.message.attachment_ids)
    if operator == "filename":
        files = {one.id for one in world.rows(Attachment) if value in one.name.lower()}
        return lambda letter, _: not files.isdisjoint(letter.message.attachment_ids)
    if operator in ("before", "after"):
        day = parse_day(value)
        if operator == "before":
            return lambda letter, _: letter.message.sent_at < day
        return lambda letter, _: letter.message.sent_at >= day
    if operator in ("larger", "smaller"):
        size = re.fullmatch(r"([0-9]{1,12})([km]?)b?", value)
        if size is None:
            raise ToolError("BAD_QUERY", f"{value[:40]!r} is not a size such as 500k or 2m")
        limit = int(size.group(1)) * _UNITS[size.group(2)]
        if operator == "larger":
            return lambda letter, _: letter.message.size_bytes > limit
        return lambda letter, _: letter.message.size_bytes < limit
    raise ToolError("BAD_QUERY", f"{operator}:{value[:40]} is not understood; there are {OPERATORS}")


_TEXT_TESTS: Final[dict[str, Callable[[str], Test]]] = {
    "": lambda value: lambda letter, _: value in letter.subject or value in letter.body,
    "from": lambda value: lambda letter, _: value in letter.message.sender,
    "to": lambda value: lambda letter, _: any(value in one for one in letter.message.to),
    "cc": lambda value: lambda letter, _: any(value in one for one in letter.message.cc),
    "subject": lambda value: lambda letter, _: value in letter.subject,
}
