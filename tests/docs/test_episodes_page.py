"""The page about episodes names every limit with its default, and every finding of the drift check."""

from __future__ import annotations

import re
from typing import Any

from callwright.recipe_file import Turns
from callwright.walk.limits import TurnLimits
from callwright_plugins.template_drift.checks import CHECKS


def _rows(text: str) -> dict[str, str]:
    return dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.MULTILINE))


def test_every_limit_is_there(page: Any) -> None:
    text = page("docs/episodes.md").path.read_text(encoding="utf-8").partition("## One state machine")[0]
    stated = {name: field.default for name, field in Turns.model_fields.items()}
    assert _rows(text) == {name: "nothing" if value is None else f"`{value}`" for name, value in stated.items()}
    assert TurnLimits(**stated) == TurnLimits()


def test_every_finding_is_there_with_its_severity(page: Any) -> None:
    text = page("docs/episodes.md").path.read_text(encoding="utf-8").partition("## Is this model's template")[2]
    found: dict[str, str] = {check.code: check.severity for check in CHECKS}
    found["no_system_role"] = "error, warning"  # worse where the message is dropped without a word
    assert len(found) > 20
    assert _rows(text) == found
