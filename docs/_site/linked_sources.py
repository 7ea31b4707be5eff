"""Links that leave the folder of the pages: a site has no checkout beside it, so what they lead to becomes a page.

On a Git host ``../core/callwright/errors.py`` opens that file. On the site it opens the page
``source/core/callwright/errors.py.md``, which holds the text of the file, or for a folder what is in it. Nothing
but what some page links to is published.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

#: A link of Markdown to somewhere above the pages: its target, and the heading there.
OUTSIDE = re.compile(r"\]\((?P<target>\.\./[^)#\s]+)(?P<heading>#[^)\s]*)?\)")

_LANGUAGES = {".py": "python", ".pyi": "python", ".toml": "toml", ".json": "json", ".jsonl": "json", ".sh": "bash"}
_READ_AT_MOST = 200_000
_FENCE = "`" * 8


def page_of(target: str) -> str:
    """The path of the page, inside the site, for a path of the checkout."""
    return f"source/{target}" if target.endswith(".md") else f"source/{target}.md"


def targets(text: str, page: str) -> Iterator[str]:
    """Paths of the checkout that the page ``page`` (inside the folder of the pages) links to."""
    for match in OUTSIDE.finditer(text):
        yield _inside_checkout(match["target"], page)


def rewritten(text: str, page: str) -> str:
    """The text of a page with such links led to the site's own pages."""

    def led(match: re.Match[str]) -> str:
        to = page_of(_inside_checkout(match["target"], page))
        return f"]({posixpath.relpath(to, posixpath.dirname(page) or '.')}{match['heading'] or ''})"

    return OUTSIDE.sub(led, text)


def source_page(root: Path, target: str) -> str:
    """The Markdown of the page for a file or folder of the checkout."""
    path = root / target
    if path.is_dir():
        return f"# {target}\n\n" + "".join(_entries(path))
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return _without_links(text)
    shown = text[:_READ_AT_MOST]
    cut = "" if shown == text else f"\nThe first {_READ_AT_MOST:,} of {len(text):,} characters.\n"
    return f"# {target}\n{cut}\n{_FENCE}{_LANGUAGES.get(path.suffix, 'text')}\n{shown.rstrip()}\n{_FENCE}\n"


def _inside_checkout(target: str, page: str) -> str:
    return posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target))


def _entries(folder: Path) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "__pycache__")):
            continue
        yield f"- `{path.name}{'/' if path.is_dir() else ''}`{_opening(path)}\n"


def _opening(path: Path) -> str:
    """The first line of a module's or package's docstring."""
    module = path / "__init__.py" if path.is_dir() else path
    if module.suffix != ".py" or not module.exists():
        return ""
    said = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return f": {said.splitlines()[0]}" if said else ""


def _without_links(text: str) -> str:
    """A page from elsewhere in the checkout: its relative links would lead nowhere, and their texts stay."""
    return re.sub(r"\[([^\]]+)\]\((?!https?://)[^)]*\)", r"\1", text)
