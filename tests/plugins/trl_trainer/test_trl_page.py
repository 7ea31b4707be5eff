from __future__ import annotations

import re
from pathlib import Path

from callwright_plugins.local_trainer.options import Options as LocalOptions
from callwright_plugins.trl_trainer.options import REFUSED, Options


def test_the_table_has_every_key_of_both_trainers_once(root: Path) -> None:
    page = (root / "docs/trl-trainer.md").read_text().partition("## Keys")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", page, flags=re.MULTILINE)
    keys = [key for cell in cells for key in re.findall(r"`([a-z_]+)`", cell)]
    assert len(keys) == len(set(keys))
    assert set(keys) == Options.model_fields.keys() | REFUSED.keys()
    assert LocalOptions.model_fields.keys() <= set(keys)


def test_the_table_says_the_defaults(root: Path) -> None:
    page = (root / "docs/trl-trainer.md").read_text()
    for key, default in (("steps", "100"), ("group", "16"), ("micro_batches", "2"), ("export", "merged")):
        assert f"| `{key}` | {default} |" in page
        assert str(Options.model_fields[key].default) == default
