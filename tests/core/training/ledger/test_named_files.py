"""Files that options name: at any depth, by their content, and not what changes as it is used."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

from callwright.training.ledger.named_files import file_digests


def test_files_are_found_at_any_depth_and_told_by_their_content(tmp_path: Path) -> None:
    rubric, database = tmp_path / "rubric.toml", tmp_path / "verdicts.sqlite"
    rubric.write_text("about = 'x'\n")
    with sqlite3.connect(database) as kept:
        kept.execute("CREATE TABLE verdicts (key TEXT)")
    kept.close()
    named = {
        "reward": {
            "name": str(rubric),
            "rubric": str(rubric),
            "cache": str(database),
            "terms": [1, {"of": str(rubric)}],
        },
        "trainer": {"folder": str(tmp_path), "steps": 3, "text": "x" * 5000, "odd": "a\0b", "empty": ""},
    }
    digest = "sha256:" + hashlib.sha256(b"about = 'x'\n").hexdigest()
    assert file_digests(named) == {"reward.rubric": digest, "reward.terms.1.of": digest}
    rubric.write_text("about = 'y'\n")
    assert file_digests(named)["reward.rubric"] != digest
    rubric.unlink()
    assert file_digests(named) == {}
