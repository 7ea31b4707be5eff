"""The documentation as a site: built without a warning, whole, and without anything from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs_autorefs", reason="the site needs pip install 'callwright[docs]'")
    folder = tmp_path_factory.mktemp("site")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "docs"), "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


#: The beginnings of elements that load something. A parser of whole pages in Python takes seconds for all of them.
_LOADING = re.compile(r"""<(?:script|img|iframe|source|link)\b(?:"[^"]*"|'[^']*'|[^"'>])*>""", re.IGNORECASE)


class _Loaded(HTMLParser):
    """What a browser would fetch by itself for a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag in ("script", "img", "iframe", "source"):
            self.addresses.append(given.get("src") or "")
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.addresses.append(given.get("href") or "")


def test_every_page_of_the_docs_is_a_page_of_the_site_and_in_its_navigation(site: Path, every_page: list[Any]) -> None:
    docs = [one.path.relative_to(ROOT / "docs") for one in every_page if one.path.is_relative_to(ROOT / "docs")]
    home = (site / "index.html").read_text(encoding="utf-8")
    for page in docs:
        built = page.with_suffix(".html")
        assert (site / built).exists(), page
        assert f'href="{built}"' in home, page


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = _Loaded()
        for tag in _LOADING.findall(page.read_text(encoding="utf-8")):
            loaded.reset()  # or what comes after a script would be its text
            loaded.feed(tag)
        assert loaded.addresses, "every page loads at least its own style sheet"
        assert [one for one in loaded.addresses if "://" in one or one.startswith("//")] == [], page


def test_every_public_name_is_in_the_reference_once(site: Path) -> None:
    headings: list[str] = []
    named = set()
    for stub in (ROOT / "core" / "callwright").rglob("__init__.pyi"):
        room = ".".join(stub.parent.relative_to(ROOT / "core").parts)
        page = (site / "reference" / f"{room}.html").read_text(encoding="utf-8")
        headings += re.findall(r'<h2 id="([\w.]+)"', page)
        for module, name in re.findall(r"^from ([\w.]+) import (\w+) as", stub.read_text(encoding="utf-8"), re.M):
            path = ROOT / "core" / module.replace(".", "/") / name
            if not path.is_dir() and not path.with_suffix(".py").exists():
                named.add(f"{module}.{name}")
    assert len(headings) == len(set(headings))
    assert named <= set(headings)


def test_fields_of_values_are_signatures_and_roles_are_links(site: Path) -> None:
    page = (site / "reference" / "callwright.walk.html").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]+>", "", page)
    assert "Answer(" in text
    assert "others:" in text
    assert ":class:" not in text


def test_what_pages_link_to_in_the_source_can_be_read_on_the_site(site: Path) -> None:
    hooks = (site / "hooks.html").read_text(encoding="utf-8")
    assert 'href="source/core/callwright/hookspecs.py.html"' in hooks
    assert "callwright_parsers" in (site / "source/core/callwright/hookspecs.py.html").read_text(encoding="utf-8")
