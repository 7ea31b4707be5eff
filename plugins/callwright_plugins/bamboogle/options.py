"""The options of the benchmark ``bamboogle``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from callwright.options import OptionTable


class BamboogleOptions(OptionTable):
    """Options of ``benchmark = "bamboogle"``."""

    data: str | Path = Field(description="The file of questions, or its folder.")
    search: Any = Field(
        default=None, description="serper, recorded, MODULE:NAME or an object; searching is masked without one."
    )
    judge: Any = Field(default="contains", description="contains (a rule), the name of a teacher, or an object.")
    version: str | None = Field(default=None, description="The release; the newest known if left out.")
    search_file: str | None = Field(default=None, description="The file of the recorded search.")
    search_url: str | None = Field(default=None, description="The address of serper.")
    search_key_env: str | None = Field(default=None, description="The environment variable with serper's key.")
    judge_model: str | None = Field(default=None, description="The model of the teacher that judges.")
    judge_url: str | None = Field(default=None, description="The address of its server.")
