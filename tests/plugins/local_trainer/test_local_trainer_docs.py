"""The pages about the local trainers list every option with its default."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from callwright_plugins.local_trainer.options import (
    CriticOptions,
    Options,
    Stage,
    SupervisedOptions,
    Tiny,
    WarmStart,
)

DOCS = Path(__file__).parents[3] / "docs"


def rows(table: type[BaseModel]) -> list[str]:
    found = []
    for name, field in table.model_fields.items():
        if name in ("warm_start", "critic"):  # tables of their own
            continue
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        shown = "" if default is None else str(default).lower() if isinstance(default, bool) else repr(default)
        shown = shown.replace("'", '"').replace("(", "[").replace(")", "]")
        assert field.description, f"{name} has no description"
        found.append(f"| `{name}` | {f'`{shown}`' if shown else ''} | {field.description} |")
    return found


@pytest.mark.parametrize(
    ("name", "table"),
    [
        *(("local-trainer.md", table) for table in (Options, WarmStart, CriticOptions, Stage, Tiny)),
        ("sft.md", SupervisedOptions),
    ],
)
def test_every_option_is_listed(name: str, table: type[BaseModel]) -> None:
    page = (DOCS / name).read_text(encoding="utf-8").splitlines()
    missing = [row for row in rows(table) if row not in page]
    assert not missing, f"docs/{name} lacks:\n" + "\n".join(missing)
