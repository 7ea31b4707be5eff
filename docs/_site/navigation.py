"""The navigation of the site, as the index has it."""

from __future__ import annotations

import re

_GROUP = re.compile(r"^## (?P<title>.+)$")
_ENTRY = re.compile(r"^- (?P<links>\[.*)$")
_LINK = re.compile(r"\[(?P<title>[^\]]+)\]\((?P<page>[^)#]+\.md)\)")


def from_index(text: str) -> list[dict[str, list[dict[str, str]]]]:
    """Groups of pages: a heading of the second level, and the first link of each item below it.

    An item may begin with several links (``[TRL](trl.md), [verl](verl.md): …``): all before its colon are pages.
    """
    groups: list[dict[str, list[dict[str, str]]]] = []
    pages: list[dict[str, str]] = []
    for line in text.splitlines():
        if group := _GROUP.match(line):
            pages = []
            groups.append({group["title"]: pages})
        elif groups and (entry := _ENTRY.match(line)):
            named = entry["links"].partition("): ")[0] + ")"
            pages += [{link["title"]: link["page"]} for link in _LINK.finditer(named) if "../" not in link["page"]]
    return groups
