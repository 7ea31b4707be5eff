"""What is to be synthesised: a TOML file with a table ``[synthesis]``.

    name = "desk"

    [synthesis]
    synthesizer = "look-ups"             # or a table, [synthesis.synthesizer], with its options
    environments = ["email", { name = "calendar", scale = 2 }, "email+calendar"]
    count = 300
    seed = 0
    teacher = "scripted"                 # where the synthesizer needs one
    executor = "process"                 # how it is made changes nothing of what is made
    workers = 2
    file = "tasks.jsonl.gz"

Every error starts with the file and the line that it is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from callwright.errors import RecipeError
from callwright.machines.redaction import redacted_value
from callwright.recipe_file import Choice, LoadedTable, recipe_text, toml_of, validated
from callwright.recipe_file.overriding import Applied
from callwright.training.synthesis.mixture import MixturePart
from callwright.walk.task_rows.writing import SUFFIXES

#: The keys that say how tasks are made. Other ones go on with the same folder.
HOW: Final = ("executor", "workers")
_TABLE: Final = "synthesis"


class SynthesisTable(BaseModel):
    """The table ``[synthesis]``."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    synthesizer: Choice
    environments: list[Choice] = Field(min_length=1, description="Where tasks are made, one after the other.")
    count: int = Field(ge=1, description="How many tasks are wanted, shared evenly by the environments.")
    seed: int = Field(default=0, description="Fixes everything that is drawn.")
    teacher: Choice | None = Field(default=None, description="Who has the words.")
    executor: Literal["serial", "thread", "process", "ray"] = Field(
        default="serial", description="Where units are made."
    )
    workers: int = Field(default=1, ge=1, description="How many units are made at a time.")
    file: str = Field(default="tasks.jsonl", description="The file of tasks, within the folder.")
    mixture: list[MixturePart] = Field(
        default=[], description="Exact counts of kinds of tasks, of its own and of files."
    )

    @field_validator("file")
    @classmethod
    def _names_a_file(cls, name: str) -> str:
        if not name.endswith(SUFFIXES) or Path(name).name != name or name.startswith("."):
            raise ValueError(f"{name!r:.80} is no name of a file of tasks; it ends in {', '.join(SUFFIXES)}")
        return name


class SynthesisRecipe(BaseModel):
    """A whole synthesis."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(default="tasks", description="What it is called.")
    description: str = Field(default="", description="What it is for.")
    synthesis: SynthesisTable


class LoadedSynthesis(LoadedTable):
    """A validated recipe of a synthesis. Its components go by the keys ``synthesis.teacher`` and the like."""

    def __init__(
        self, recipe: SynthesisRecipe, data: dict[str, Any], source: str, text: str | None, overrides: Applied
    ) -> None:
        super().__init__(data, source, text, overrides)
        self.recipe = recipe

    @property
    def table(self) -> SynthesisTable:
        """What is asked for."""
        return self.recipe.synthesis

    @property
    def parts(self) -> dict[str, str]:
        """The kinds of its components, by their keys."""
        table = self.table
        places = {f"{_TABLE}.environments.{place}": "environment" for place in range(len(table.environments))}
        teacher = {} if table.teacher is None else {f"{_TABLE}.teacher": "teacher"}
        return {f"{_TABLE}.synthesizer": "synthesizer", **places, **teacher}

    def choice(self, part: str) -> Choice | None:
        """The component of a key of :attr:`parts`."""
        _, key, *place = part.split(".")
        found: Any = getattr(self.table, key)
        chosen: Choice | None = found[int(place[0])] if place else found
        return chosen

    def where(self, *path: str) -> str:
        """``file:line`` of a key; a part of the path may hold several keys with points between."""
        return super().where(*(key for part in path for key in part.split(".")))

    def settings(self) -> dict[str, Any]:
        """Everything that decides what is made, without secrets: whoever states the same goes on."""
        stated = self.table.model_dump(mode="json")
        if not stated["mixture"]:  # as folders were that were begun before there were mixtures
            del stated["mixture"]
        held: dict[str, Any] = redacted_value({key: value for key, value in stated.items() if key not in HOW})
        return held


def load_synthesis(recipe: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> LoadedSynthesis:
    """Read a recipe from a file or from memory. Raises :class:`callwright.errors.RecipeError` with file and line."""
    text: str | None = None
    if isinstance(recipe, Mapping):
        source, given = "the recipe", dict(recipe)
    else:
        source, text = recipe_text(str(recipe))
        given = toml_of(text, source)
    if _TABLE not in given and "corpus" in given:
        raise RecipeError(f"{source} is a recipe to train by: it has no table [{_TABLE}]; callwright run takes it")
    made, data, applied = validated(SynthesisRecipe, given, source, text, overrides)
    return LoadedSynthesis(made, data, source, text, applied)
