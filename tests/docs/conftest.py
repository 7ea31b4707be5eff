"""Reading the documentation: pages, their code, their links."""

from __future__ import annotations

import re
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
_NOTE = re.compile(r"<!--\s*(file|more of|status|not run|with):?\s*(.*?)\s*-->")


@frozen
class Block:
    """A fenced block: its language and text, where it stands, and the note (an HTML comment) directly before it."""

    language: str
    text: str
    line: int
    note: tuple[str, str] = ("", "")


@frozen(slots=False, eq=False)
class Page:
    """A Markdown page."""

    path: Path
    tokens: list[Token]

    @property
    def name(self) -> str:
        """The path inside the checkout."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def blocks(self) -> list[Block]:
        """Every fenced block in order."""
        found, note = [], ("", "")
        for token in self.tokens:
            match = _NOTE.search(token.content) if token.type == "html_block" else None
            if match:
                note = (match[1], match[2])
            elif token.type == "fence":
                assert token.map is not None
                found.append(Block(token.info.strip(), token.content, token.map[0] + 1, note))
                note = ("", "")
        return found

    @property
    def inline(self) -> list[Token]:
        """Every inline token: texts, code spans, links."""
        return [child for token in self.tokens for child in token.children or ()]

    @cached_property
    def anchors(self) -> set[str]:
        """The fragments that headings can be reached by, as GitHub makes them."""
        seen: dict[str, int] = {}
        found = set()
        for opening, token in zip(self.tokens, self.tokens[1:], strict=False):
            if opening.type == "heading_open":
                text = "".join(child.content for child in token.children or () if child.type in ("text", "code_inline"))
                slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
                count = seen[slug] = seen.get(slug, -1) + 1
                found.add(f"{slug}-{count}" if count else slug)
        return found

    @property
    def headings(self) -> list[str]:
        """The texts of all headings."""
        pairs = zip(self.tokens, self.tokens[1:], strict=False)
        return [token.content for opening, token in pairs if opening.type == "heading_open"]


@cache  # links lead to the same pages again and again
def read(path: Path) -> Page:
    """A page from its file."""
    return Page(path, MarkdownIt("commonmark").enable("table").parse(path.read_text(encoding="utf-8")))


def pages() -> list[Page]:
    """Every page of the checkout that a person reads."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "sdk_examples").rglob("*.md")]
    return [read(path) for path in sorted(found)]


@pytest.fixture(scope="session")
def every_page() -> list[Page]:
    """Every page."""
    return pages()


@pytest.fixture(scope="session")
def page() -> Any:
    """Reads one page by its path inside the checkout."""
    return lambda name: read(ROOT / name)
