"""Small folders of BFCL's files, written here in its form, and the official ones where they are."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

QUESTION = [[{"role": "user", "content": "How large is it?"}]]
AREA = {
    "name": "shapes.area",
    "description": "The area of a rectangle.",
    "parameters": {
        "type": "dict",
        "properties": {
            "base": {"type": "integer", "description": "In cm."},
            "height": {"type": "float", "description": "In cm."},
            "unit": {"type": "string", "description": "Of the result."},
        },
        "required": ["base", "height"],
    },
}
ALLOWED = {"shapes.area": {"base": [10], "height": [5.0], "unit": ["cm^2", ""]}}
COUNT = {
    "name": "Counter.count",
    "description": "Counts.",
    "parameters": {
        "type": "dict",
        "properties": {
            "limit": {"type": "long", "description": "At most."},
            "words": {"type": "ArrayList", "description": "Which.", "items": {"type": "String"}},
        },
        "required": ["limit"],
    },
}


def written(folder: Path, version: str, category: str, functions: Sequence[Any], gold: Any = None) -> Path:
    """One entry of a category in a folder, with what is allowed."""
    name, key = f"BFCL_{version}_{category}.json", f"{category}_0"
    (folder / "possible_answer").mkdir(parents=True, exist_ok=True)
    row = {"id": key, "question": QUESTION, "function": list(functions)}
    (folder / name).write_text(json.dumps(row) + "\n", encoding="utf-8")
    if gold is not None:
        answer = json.dumps({"id": key, "ground_truth": gold})
        (folder / "possible_answer" / name).write_text(answer + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Five categories of v3 with an entry each."""
    folder = tmp_path / "data"
    written(folder, "v3", "simple", [AREA], [ALLOWED])
    written(folder, "v3", "java", [COUNT], [{"Counter.count": {"limit": [5], "words": [["a", "b"], ""]}}])
    written(folder, "v3", "parallel", [AREA], [ALLOWED, {"shapes.area": {"base": [1], "height": [2.0]}}])
    written(folder, "v3", "irrelevance", [AREA])
    return written(folder, "v3", "live_relevance", [AREA])


@pytest.fixture
def official() -> Path:
    """The official files and verdicts (``CALLWRIGHT_DATA``); the test is skipped where there are none."""
    folder = Path(os.environ.get("CALLWRIGHT_DATA", "../shared/data")) / "bfcl"
    if not (folder / "v3_git").is_dir():
        pytest.skip("BFCL's files are not here (CALLWRIGHT_DATA)")
    return folder
