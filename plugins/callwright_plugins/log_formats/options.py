"""The options of the log formats."""

from __future__ import annotations

from pydantic import Field

from callwright.options import OptionTable


class FailedOptions(OptionTable):
    """Options of ``format = "atif"``, ``"openai"`` and ``"responses"``, which have no place for failures."""

    failed: str = Field(default="", description="A regular expression that is found in the results of failed calls.")
