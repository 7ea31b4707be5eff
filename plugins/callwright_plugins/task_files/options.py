"""The options of the corpora ``tasks`` and ``compact-tasks``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from callwright.options import OptionTable


class TasksOptions(OptionTable):
    """Options of ``corpus = "tasks"``."""

    file: str | Path = Field(description="The file of tasks, JSONL or Parquet.")
    any_version: bool = Field(
        default=False, description="Take environments of other versions, as long as their tools are the same."
    )
    trust: bool = Field(
        default=False, description="The file's environments may start programs, send secrets and run a folder's code."
    )
    pass_from: float | None = Field(default=None, description="Only tasks whose measured pass@1 is at least this.")
    pass_to: float | None = Field(default=None, description="Only tasks whose measured pass@1 is at most this.")
    test_file: str | Path | None = Field(
        default=None, description="A second file of tasks: all of them are the split test."
    )


class CompactTasksOptions(TasksOptions):
    """Options of ``corpus = "compact-tasks"``."""

    shown: str | Path | None = Field(
        default=None, description="The file of tasks whose references are demonstrations; the split train if left out."
    )
    form: str = Field(default="hermes", description="The form in which the demonstrations write calls.")
