"""The page about recipes names every key, with its default."""

from __future__ import annotations

import re
from typing import Any

from pydantic_core import PydanticUndefined

from callwright.recipe_file import Choice, CorpusChoice, PipelineRecipe, RewardChoice


def _rows(page: Any) -> dict[str, str]:
    """Key and default of the table of keys."""
    text = page("docs/recipes.md").path.read_text(encoding="utf-8").partition("## Shipped recipes")[0]
    return dict(re.findall(r"^\| `([\w.]+)` \| (.*?) \|", text, re.MULTILINE))


def _default(field: Any) -> str:
    if field.default_factory is not None:
        made = field.default_factory()
        return f"`{made.name}`" if isinstance(made, Choice) else "nothing"
    if field.default is PydanticUndefined:
        return "required"
    return {None: "nothing", "": "nothing"}.get(field.default, f"`{field.default}`")


def test_every_key_is_in_the_table_with_its_default(page: Any) -> None:
    expected = {name: _default(field) for name, field in PipelineRecipe.model_fields.items()}
    corpus = {name: field for name, field in CorpusChoice.model_fields.items() if name != "name"}
    expected |= {f"corpus.{name}": _default(field) for name, field in corpus.items()}
    reward = {name: field for name, field in RewardChoice.model_fields.items() if name != "name"}
    expected |= {f"reward.{name}": _default(field) for name, field in reward.items()}
    assert _rows(page) == expected
