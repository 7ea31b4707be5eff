"""The options of the corpus ``worlds-mini-v1`` and of the reward ``worlds``."""

from __future__ import annotations

from pydantic import Field

from callwright.options import OptionTable


class WorldsMiniOptions(OptionTable):
    """Options of ``corpus = "worlds-mini-v1"``."""

    page_bytes: int | None = Field(default=None, description="Bytes of a page of results; no limit if left out.")
    compact: bool = Field(default=False, description="Rows of lists as values under one line of names.")


class WorldsOptions(OptionTable):
    """Options of ``reward = "worlds"``."""

    partial: bool = Field(default=False, description="A goal that is not reached earns the share of it that holds.")
