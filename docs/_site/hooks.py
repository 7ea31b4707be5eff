"""MkDocs' events: the site has every page of ``docs``, what those link to in the source, and a reference.

Named in ``mkdocs.yml``. Nothing is written into the checkout: generated pages live in the build alone.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from _site import linked_sources, navigation, reference

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "core"


def on_config(config: Any) -> Any:
    """Take the navigation from the index, which names every page under a heading for each kind of reader."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    config.nav = [{"Home": "index.md"}, *navigation.from_index(index)]
    config.nav.append(
        {"Reference": [{room.package: reference.page_of(room.package)} for room in reference.rooms(CORE)]}
    )
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the reference and of the linked sources."""
    rooms = reference.rooms(CORE)
    homes = reference.homes(rooms)
    for room in rooms:
        _generate(files, config, reference.page_of(room.package), reference.room_page(room, CORE, homes))
    outside = {
        target
        for file in files.documentation_pages()
        if file.abs_src_path is not None
        for target in linked_sources.targets(Path(file.abs_src_path).read_text(encoding="utf-8"), file.src_uri)
    }
    for target in sorted(outside):
        _generate(files, config, linked_sources.page_of(target), linked_sources.source_page(ROOT, target))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links that leave the folder of the pages to pages of the site."""
    return linked_sources.rewritten(markdown, page.file.src_uri)


def github_slug(text: str, separator: str = "-") -> str:
    """The fragment of a heading as Git hosts make it, so that links to headings work in both places."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", separator)


def _generate(files: Files, config: Any, path: str, content: str) -> None:
    file = File.generated(config, path, content=content)
    file.inclusion = file.inclusion.NOT_IN_NAV
    files.append(file)
