"""Values that draw themselves in notebooks: small tables of HTML in which text of unknown origin is only text."""

from __future__ import annotations

import html
import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

_LONGEST: Final = 2000
_PRE: Final = "white-space: pre-wrap; text-align: left; vertical-align: top"


def cell(value: object) -> str:
    """A value as it stands in a page: escaped, at most 2,000 characters, without what turns or hides text.

    Anything but a text is JSON, or what ``repr`` makes of it.
    """
    text = value if isinstance(value, str) else _told(value)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return html.escape("".join(_harmless(character) for character in shown))


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], caption: object = "") -> str:
    """A table. There is no script, style sheet, link or image in it, whatever the cells hold."""
    head = "".join(f"<th>{cell(heading)}</th>" for heading in headings)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_PRE}">{cell(value)}</td>' for value in row) + "</tr>" for row in rows
    )
    above = f"<caption>{cell(caption)}</caption>" if caption != "" else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Diff(dict[str, Any]):
    """What changed from one state to another, by table: a dictionary that a notebook shows row by row."""

    def _repr_html_(self) -> str:
        headings = ("table", "", "key", "field", "before", "after")
        return table(headings, _changes(self), "" if self else "nothing changed")


def _changes(diff: Mapping[str, Any]) -> Iterable[tuple[object, ...]]:
    for name, parts in diff.items():
        if not isinstance(parts, dict):  # the clock
            before, after = parts if isinstance(parts, list) and len(parts) == 2 else ("", parts)
            yield name, "changed", "", "", before, after
            continue
        for key, row in parts.get("added", {}).items():
            yield name, "added", key, "", "", row
        for key, row in parts.get("removed", {}).items():
            yield name, "removed", key, "", row, ""
        for key, fields in parts.get("changed", {}).items():
            for field, (before, after) in fields.items():
                yield name, "changed", key, field, before, after


def _told(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return repr(value)


def _harmless(character: str) -> str:
    if character in "\n\t" or character.isprintable():
        return character
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\ufffd" if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") else character
