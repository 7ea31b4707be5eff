"""What a suite is: a TOML file of runs, each a benchmark with settings, and of tables that are made of them.

    title = "A paper's tables"
    [runs.nested]                        # the name of its folder, and of its options on the command line
    benchmark = "nestful:2"
    shots = 3
    [runs.nested.files.data]             # an option of the benchmark that is a path below --data
    path = "nestful"
    what = "nestful_data.jsonl of the release"
    [[tables]]
    template = "tier-4"
    ours = [["3-shot", "nested"]]        # a label, and the runs that the columns are taken from
    printed = [["GPT-4o", 60.0, ""]]     # a row's name and its values, "" where none is printed

The file says what is measured and how. Where files lie, which model is asked and what that may cost is for whoever
runs it.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from callwright.errors import UnknownName
from callwright.measuring.templates import Column, Template, template_named
from callwright.recipe_file import Choice, LoadedTable, toml_of, validated

#: A name of a run is that of a folder, and stands before a dot in options.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_STRICT: Final = ConfigDict(extra="forbid", frozen=True, strict=True)


class File(BaseModel):
    """A file or folder that a benchmark is pointed at: its place below ``--data``, and what it is in words."""

    model_config = _STRICT

    path: str = Field(min_length=1, description="Where it lies below the folder of all data.")
    what: str = Field(min_length=1, description="What to download, or the command that fetches it.")
    has: str = Field(default="", description="What lies in it if it is there; left out: it is enough that it exists.")
    required: bool = Field(default=True, description="Whether nothing can be measured without it.")


class RunOf(BaseModel):
    """A benchmark with the settings under which it is measured."""

    model_config = _STRICT

    benchmark: str = Field(min_length=1, description="NAME or NAME:VERSION.")
    ir: str = Field(default="json", description="The form of the completions.")
    temperature: float = Field(default=0.0, ge=0, allow_inf_nan=False, description="0: greedy.")
    shots: int = Field(default=0, ge=0, description="Examples in every prompt.")
    samples: int = Field(default=1, ge=1, description="Attempts at each task.")
    turns: int | None = Field(default=None, ge=1, description="Completions of an episode; left out: the benchmark's.")
    files: dict[str, File] = Field(default_factory=dict, description="Options that are paths.")
    options: dict[str, Any] = Field(default_factory=dict, description="Further options of the benchmark.")
    asks: dict[str, str] = Field(
        default_factory=dict, description="Options that whoever runs it has to give, and what they are in words."
    )
    sampler: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Options by the name of the sampler, where the command line gives none."
    )
    note: str = Field(default="", description="What is not as in the source, in a sentence.")


class ColumnOf(BaseModel):
    """A column of a table that is no template's; the fields of :class:`callwright.measuring.templates.Column`."""

    model_config = _STRICT

    heading: str
    benchmark: str
    value: str = "overall"
    count: bool = False


class Ours(BaseModel):
    """A row of what is measured here: its label, and the runs that its columns are taken from."""

    model_config = _STRICT

    label: str
    runs: list[str] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"label": value[0], "runs": value[1:]} if isinstance(value, list) and value else value


class TableOf(BaseModel):
    """A table: its columns by a template or by itself, the rows that are measured and those that were printed."""

    model_config = _STRICT

    template: str = Field(default="", description="A template's name; left out: `columns` are given.")
    title: str = ""
    columns: list[ColumnOf] = Field(default_factory=list)
    ours: list[Ours] = Field(default_factory=list)
    printed: list[list[str | float | int]] = Field(default_factory=list, description="In percent, as printed.")
    decimals: Annotated[int, Field(ge=0, le=6)] = Field(default=2, description="Of percentages, as printed.")
    note: str = ""

    @model_validator(mode="after")
    def _fits(self) -> TableOf:
        if bool(self.template) == bool(self.columns):
            raise ValueError("a table has either a template or columns")
        width = len(self.layout().columns) + 1
        for row in self.printed:
            if len(row) != width or not isinstance(row[0], str):
                raise ValueError(
                    f"the printed row {row[:1]} has {len(row)} cells, and not its name and {width - 1} values"
                )
            if any(isinstance(cell, str) and cell for cell in row[1:]):
                raise ValueError(f"the printed row {row[:1]} has a value that is no number; '' stands for none")
        return self

    def layout(self) -> Template:
        """The columns as a template. Raises :class:`ValueError` for a template that is not there."""
        if not self.template:
            columns = tuple(Column(one.heading, one.benchmark, one.value, one.count) for one in self.columns)
            return Template(self.title or "table", self.title, columns)
        try:
            return template_named(self.template)
        except UnknownName as error:
            raise ValueError(str(error)) from error


class Suite(BaseModel):
    """Benchmarks with settings, and tables."""

    model_config = _STRICT

    title: str = Field(min_length=1)
    source: str = Field(default="", description="The paper or page whose settings and numbers these are.")
    notes: list[str] = Field(default_factory=list, description="What holds of all tables.")
    runs: dict[str, RunOf] = Field(min_length=1)
    tables: list[TableOf] = Field(default_factory=list)

    @field_validator("runs")
    @classmethod
    def _name_folders(cls, runs: dict[str, RunOf]) -> dict[str, RunOf]:
        for name in runs:
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"the name of the run {name[:100]!r} has other characters than letters, digits, _ and -"
                )
        return runs

    @model_validator(mode="after")
    def _rows_are_measured(self) -> Suite:
        known = ", ".join(self.runs)
        for table in self.tables:
            for row in table.ours:
                for name in row.runs:
                    if name not in self.runs:
                        raise ValueError(f"the row {row.label!r} is taken from the run {name!r}; there are: {known}")
        return self


class LoadedSuite(LoadedTable):
    """A validated suite with the text that it was read from."""

    def __init__(self, suite: Suite, data: dict[str, Any], source: str, text: str) -> None:
        super().__init__(data, source, text, {})
        self.suite = suite

    def choice(self, part: str) -> Choice | None:
        """A suite chooses no components of a recipe."""
        return None


def parse_suite(text: str, source: str = "<suite>") -> LoadedSuite:
    """Read a suite from a text. Raises :class:`callwright.errors.RecipeError` with file and line of each mistake."""
    suite, data, _ = validated(Suite, toml_of(text, source), source, text, ())
    return LoadedSuite(suite, data, source, text)
