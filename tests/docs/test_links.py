"""Links lead somewhere, and every page can be reached."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]


def _links(page: Any) -> list[str]:
    """Targets of the links and images of a page that stay inside the checkout."""
    found = [
        str(token.attrGet(attribute))
        for token in page.inline
        for kind, attribute in (("link_open", "href"), ("image", "src"))
        if token.type == kind
    ]
    return [link for link in found if "://" not in link and not link.startswith("mailto:")]


def test_links_lead_to_files_and_headings_that_exist(every_page: list[Any], page: Any) -> None:
    broken = []
    for one in every_page:
        for link in _links(one):
            name, _, fragment = unquote(link).partition("#")
            target = (one.path.parent / name).resolve() if name else one.path
            inside = target.is_relative_to(ROOT)
            if not (inside and target.exists()):
                broken.append(f"{one.name}: {link}: there is no such file")
            elif fragment and target.suffix == ".md" and fragment not in page(target.relative_to(ROOT)).anchors:
                broken.append(f"{one.name}: {link}: there is no such heading")
    assert broken == []


def test_every_page_of_the_docs_is_in_the_index(every_page: list[Any], page: Any) -> None:
    index = page("docs/index.md")
    listed = {(index.path.parent / link.partition("#")[0]).resolve() for link in _links(index)}
    docs = {one.path for one in every_page if one.path.is_relative_to(ROOT / "docs")}
    assert docs - listed - {index.path} == set()


def test_the_readme_leads_to_the_index(page: Any) -> None:
    assert "docs/index.md" in _links(page("README.md"))
