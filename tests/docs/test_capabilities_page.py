"""The page of capabilities lists every one of them with its members, and says what each is for in its own words."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from callwright.capability import members
from callwright.capability.listed import CAPABILITIES, capabilities, enables

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_has_every_capability_with_its_members_and_meaning(page: Any) -> None:
    text = page("docs/capabilities.md").path.read_text(encoding="utf-8")
    for kind in CAPABILITIES:
        for one in capabilities(kind):
            place = f"../{Path(str(sys.modules[one.__module__].__file__)).relative_to(ROOT).as_posix()}"
            (row, *_) = re.findall(rf"^\| \[`{one.__name__}`\]\({re.escape(place)}\) \| .*$", text, re.MULTILINE)
            meaning = re.sub(r":[a-z]+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", enables(one)).replace("``", "`")
            assert meaning in row
            own = [name for name in vars(one) if not name.startswith("_") and name in members(one)]
            assert all(f"`{name}`" in row for name in own)
    listed = re.findall(r"^\| \[`(\w+)`\]", text, re.MULTILINE)
    assert sorted(listed) == sorted(one.__name__ for kind in CAPABILITIES for one in capabilities(kind))


def test_every_capability_says_what_it_is_for() -> None:
    for kind in CAPABILITIES:
        for one in capabilities(kind):
            assert len(enables(one).split()) > 5, one
